//! Several servers on one database: what one commits, the others see, find and hear of.
#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that fails")]

#[path = "shared/support.rs"]
mod support;

use std::time::Duration;

use futures::future::join_all;
use yore_domain::Seq;
use yore_domain::memory::Draft;
use yore_domain::query::Filter;
use yore_store::suite::{self, Scene};
use yore_store::{CommitError, Precondition, Store, Write};
use yore_store_postgres::{Options, PostgresStore};

async fn two() -> Option<[PostgresStore; 2]> {
    let (one, ()) = support::empty_store().await?;
    // Asking is put off, so that only telling can be what is heard.
    let options = Options {
        poll: Duration::from_secs(3600),
        ..support::options(&support::database().await?)
    };
    Some([one, PostgresStore::open(options).await.unwrap()])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_commits_the_other_finds_and_judges_by() {
    let Some([one, other]) = two().await else { return };
    let scene = Scene::new(&one, &one).await;
    let owner = scene.owner();
    let before = other.snapshot(&owner).await.unwrap();
    assert!(before.grants().await.unwrap().is_empty());
    let grant = suite::grant("scheduler");
    scene.commit(vec![Write::Grant(Box::new(grant.clone()))]).await;
    scene.remember(Draft::text("the boat is moored at Porto")).await;
    let after = other.snapshot(&owner).await.unwrap();
    let books = after.grants().await.unwrap();
    assert_eq!(books, std::slice::from_ref(&grant), "no server judges by old books");
    let any = Filter::default();
    let corpus = yore_domain::query::Corpus::Memories;
    let found = suite::gather(&*after, "boat", corpus, &any, scene.tick()).await;
    assert_eq!(found.len(), 1);
    // A grant taken back through one server is gone on the other with its next view.
    let plan = scene.plan(vec![Write::RevokeGrant(grant.id, scene.tick())]);
    other.commit(&owner, plan).await.unwrap();
    assert!(scene.look().await.grant(grant.id).await.unwrap().unwrap().revoked.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_equal_statements_through_two_servers_one_stays() {
    let Some([one, other]) = two().await else { return };
    let scene = Scene::new(&one, &one).await;
    let (owner, text) = (scene.owner(), "the kettle is blue");
    let race = (0..12).map(|number| {
        let draft = Draft::text(text);
        let id = yore_domain::MemoryId::random();
        let first = yore_domain::memory::Version::first(id, draft, scene.tick(), None);
        let mut plan = scene.plan(vec![suite::write(&first)]);
        plan.preconditions.push(Precondition::Unsaid(suite::statement(text)));
        let store = if number % 2 == 0 { &one } else { &other };
        store.commit(&owner, plan)
    });
    let done = join_all(race).await;
    assert_eq!(done.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    assert!(done.iter().all(|outcome| matches!(outcome, Ok(_) | Err(CommitError::Stale(_)))));
    let entries = scene.look().await;
    let query = yore_store::snapshot::AuditQuery { limit: 100, ..Default::default() };
    let entries = entries.audit(&query).await.unwrap();
    assert!(entries.windows(2).all(|two| two[0].hash == two[1].previous), "one chain");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watcher_hears_of_another_servers_commits() {
    let Some([one, other]) = two().await else { return };
    let scene = Scene::new(&one, &one).await;
    let mut watch = other.watch(&scene.owner()).await.unwrap();
    watch.borrow_and_update();
    // The listener may not be there yet: what is told before that is not heard, so it is told
    // until it is.
    let mut last = Seq(0);
    for _ in 0..50 {
        scene.remember(Draft::text("tea")).await;
        let heard = tokio::time::timeout(Duration::from_millis(200), watch.changed()).await;
        if heard.is_ok() {
            last = *watch.borrow_and_update();
            break;
        }
    }
    assert!(last > Seq(0), "telling is heard without asking");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_not_told_is_asked_for() {
    let Some((one, ())) = support::empty_store().await else { return };
    let address = support::database().await.unwrap();
    let options = Options { poll: Duration::from_millis(200), ..support::options(&address) };
    let other = PostgresStore::open(options).await.unwrap();
    let scene = Scene::new(&one, &one).await;
    let mut watch = other.watch(&scene.owner()).await.unwrap();
    watch.borrow_and_update();
    // Every listener is cut off, again and again, while something is committed.
    let admin = support::connect(&address).await;
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE application_name = 'yore listen' AND datname = current_database()";
    admin.batch_execute(cut).await.unwrap();
    scene.remember(Draft::text("tea")).await;
    admin.batch_execute(cut).await.unwrap();
    let heard = tokio::time::timeout(Duration::from_secs(10), watch.changed()).await;
    heard.expect("a lost notification is made up for").unwrap();
    assert_eq!(*watch.borrow_and_update(), Seq(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn views_that_hold_every_connection_do_not_hold_up_commits() {
    let Some(address) = support::database().await else { return };
    let patience = Duration::from_millis(500);
    let options = Options { readers: 2, writers: 1, patience, ..support::options(&address) };
    let store = PostgresStore::open(options).await.unwrap();
    let scene = Scene::new(&store, &store).await;
    let first = scene.remember(Draft::text("tea")).await;
    let (one, two) = (scene.look().await, scene.look().await);
    for view in [&one, &two] {
        assert!(view.memory(first.memory).await.unwrap().is_some());
    }
    // Both connections of views are taken. Commits, traces of reads and books still go on.
    scene.remember(Draft::text("coffee")).await;
    let mut trace = scene.plan(vec![]);
    trace.durability = yore_store::Durability::Relaxed;
    assert_eq!(scene.run(trace).await.unwrap().change, Seq(2));
    let third = scene.look().await;
    assert!(third.epochs().await.is_ok());
    // Rows are refused in time instead of for ever, and given again when a view is done.
    let refused = third.memory(first.memory).await;
    assert!(matches!(refused, Err(yore_domain::Error::Busy { .. })), "{refused:?}");
    drop(one);
    assert!(third.memory(first.memory).await.unwrap().is_some());
    drop((two, third));
    yore_store::Keeper::close(&store).await.unwrap();
    assert!(store.snapshot(&scene.owner()).await.is_err(), "closed is closed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_is_done_by_one_server_until_it_is_given_back_or_over() {
    let Some([one, other]) = two().await else { return };
    let scene = Scene::new(&one, &one).await;
    let (permit, long) = (scene.owner(), Duration::from_secs(60));
    let race = (0..10).map(|number| {
        let store = if number % 2 == 0 { &one } else { &other };
        store.lease(&permit, "work", long)
    });
    let taken: Vec<bool> = join_all(race).await.into_iter().map(Result::unwrap).collect();
    let first = taken.iter().position(|taken| *taken).unwrap();
    // Whoever had it first has it each time it asks, and the other never.
    assert!(taken.iter().enumerate().all(|(at, taken)| !taken || at % 2 == first % 2));
    let (has, waits) = if first % 2 == 0 { (&one, &other) } else { (&other, &one) };
    assert!(has.lease(&permit, "work", long).await.unwrap());
    assert!(!waits.lease(&permit, "work", long).await.unwrap());
    assert!(waits.lease(&permit, "other work", long).await.unwrap());
    let elsewhere = Scene::new(&one, &one).await;
    assert!(waits.lease(&elsewhere.owner(), "work", long).await.unwrap(), "another vault");
    waits.give_back(&permit, "work").await.unwrap();
    assert!(!waits.lease(&permit, "work", long).await.unwrap(), "it was not its own to give");
    has.give_back(&permit, "work").await.unwrap();
    assert!(waits.lease(&permit, "work", Duration::from_millis(200)).await.unwrap());
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(has.lease(&permit, "work", long).await.unwrap(), "its time was over");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_is_shared_by_all_servers() {
    let Some([one, other]) = two().await else { return };
    let scene = Scene::new(&one, &one).await;
    let (permit, now) = (scene.owner(), suite::time(0));
    let draw = async |store: &PostgresStore, now| store.draw(&permit, "reads", 6, now).await;
    let mut drawn = 0;
    for number in 0..10 {
        let store = if number % 2 == 0 { &one } else { &other };
        drawn += usize::from(draw(store, now).await.unwrap());
    }
    assert_eq!(drawn, 6);
    assert!(!draw(&one, suite::time(9)).await.unwrap(), "one flows in every ten seconds");
    assert!(draw(&other, suite::time(10)).await.unwrap());
    assert!(!draw(&one, suite::time(10)).await.unwrap());
    assert!(!draw(&one, suite::time(5)).await.unwrap(), "a clock that goes after gains nothing");
    assert!(one.draw(&permit, "writes", 1, now).await.unwrap(), "another bucket");
    assert!(!one.draw(&permit, "nothing", 0, now).await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn commits_happen_in_the_order_in_which_they_were_asked_for() {
    let Some((store, ())) = support::empty_store().await else { return };
    let scene = Scene::new(&store, &store).await;
    let plan = |number: usize| {
        let mut plan = scene.plan(vec![]);
        plan.audit.operation = format!("step {number}");
        if !number.is_multiple_of(3) {
            plan.durability = yore_store::Durability::Relaxed;
        }
        plan
    };
    for number in 0..30 {
        scene.run(plan(number)).await.unwrap();
        if number == 10 {
            // One that is given up while it waits lets nobody past those before it.
            let (owner, given_up) = (scene.owner(), scene.plan(vec![]));
            let commit = store.commit(&owner, given_up);
            drop(tokio::time::timeout(Duration::ZERO, commit).await);
        }
    }
    scene.run(scene.plan(vec![])).await.unwrap();
    let query = yore_store::snapshot::AuditQuery { limit: 100, ..Default::default() };
    let entries = scene.look().await.audit(&query).await.unwrap();
    let steps: Vec<String> = entries
        .iter()
        .map(|entry| entry.draft.operation.clone())
        .filter(|operation| operation.starts_with("step"))
        .collect();
    assert_eq!(steps, (0..30).map(|number| format!("step {number}")).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_left_of_a_broken_upload_goes_after_a_day() {
    let Some((store, ())) = support::empty_store().await else { return };
    let address = support::database().await.unwrap();
    let scene = Scene::new(&store, &store).await;
    let permit = support::system(scene.owner().vault());
    let chunk = |name: &[u8], number, complete| Write::BlobChunk {
        blob: yore_domain::BlobHash::of(name),
        number,
        bytes: b"a piece".to_vec(),
        complete,
    };
    scene.commit(vec![chunk(b"broken", 0, None), chunk(b"broken", 1, None)]).await;
    scene.commit(vec![chunk(b"whole", 0, Some(7))]).await;
    let owner = support::connect(&address).await;
    let vault = permit.vault().bytes();
    let left = async || -> i64 {
        let sql = "SELECT count(*) FROM yore.blob_chunk WHERE vault = $1";
        owner.query_one(sql, &[&vault.as_slice()]).await.unwrap().get(0)
    };
    let hour = yore_domain::Span::seconds(3600);
    assert!(!yore_store::Keeper::tend(&store, &permit, scene.tick().plus(hour)).await.unwrap());
    assert_eq!(left().await, 3);
    let later = scene.tick().plus(yore_domain::Span::days(2));
    while yore_store::Keeper::tend(&store, &permit, later).await.unwrap() {}
    assert_eq!(left().await, 1, "the whole one stays");
}
