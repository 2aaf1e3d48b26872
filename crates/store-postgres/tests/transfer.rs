//! Vaults moved from one database to another, whole, and not by halves.
#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that fails")]

#[path = "shared/support.rs"]
mod support;

use support::{connect, empty_database, options};
use yore_store::Keeper;
use yore_store::key::MasterKey;
use yore_store::suite::moving::{Fault, Faulty, all, finds_the_same, furnish, goes_on, is_sound};
use yore_store::transfer::{Fate, compare, transfer};
use yore_store_postgres::{Error, Options, PostgresSource, PostgresStore, PostgresTarget};

async fn open(address: &str) -> PostgresStore {
    PostgresStore::open(options(address)).await.unwrap()
}

async fn furnished(address: &str) {
    let store = open(address).await;
    furnish(&store, &store).await;
    store.close().await.unwrap();
}

async fn source(address: &str) -> PostgresSource {
    PostgresSource::open(&options(address)).await.unwrap()
}

async fn target(address: &str) -> PostgresTarget {
    PostgresTarget::open(&options(address)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_arrives_even_when_the_move_breaks_off() {
    let (Some(here), Some(there)) = (empty_database().await, empty_database().await) else {
        return;
    };
    furnished(&here).await;
    let from = source(&here).await;
    for batches in [0, 7, 3] {
        let to = target(&there).await;
        let broken = Faulty::new(&to, Fault::Stops(batches));
        let error = transfer(&from, &broken, &mut |_| {}).await.unwrap_err();
        assert!(format!("{error:?}").contains("the power went"), "{error:?}");
        drop(to);
        let half = PostgresStore::open(options(&there)).await;
        assert!(matches!(half, Err(Error::Half | Error::InUse(_))), "{half:?}");
    }
    let to = target(&there).await;
    for kind in ["names", "vectors", "checkpoints", "pieces of attachments", "links"] {
        let careless = Faulty::new(&to, Fault::Drops(kind));
        // Vaults that have nothing of the kind are moved.
        if let Err(error) = transfer(&from, &careless, &mut |_| {}).await {
            let said = format!("{error:?}");
            assert!(said.contains(kind) || said.contains("an attachment"), "{kind}: {said}");
        }
    }
    let moved = transfer(&from, &to, &mut |_| {}).await.unwrap();
    assert!(moved.iter().any(|one| one.fate == Fate::There), "{moved:?}");
    assert!(moved.iter().any(|one| one.fate == Fate::Moved), "{moved:?}");
    assert!(moved.iter().all(|one| one.left.is_empty() && one.broken == 0), "{moved:?}");
    let compared = compare(&from, &to, &mut |_| {}).await.unwrap();
    assert!(all(&compared, Fate::Same), "{compared:?}");
    assert!(all(&transfer(&from, &to, &mut |_| {}).await.unwrap(), Fate::There));
    drop((from, to));
    let (ours, theirs) = (opened(&here).await, opened(&there).await);
    is_sound(&theirs).await;
    finds_the_same(&ours, &theirs, &theirs).await;
    // What is written afterwards goes on from where the vault stood.
    goes_on(&theirs, &theirs).await;
    is_sound(&theirs).await;
}

/// Opens a store once a move has let go of the database.
async fn opened(address: &str) -> PostgresStore {
    for _ in 0..100 {
        match PostgresStore::open(options(address)).await {
            Err(Error::InUse(_)) => {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
            opened => return opened.unwrap(),
        }
    }
    panic!("the move does not let go");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_was_touched_in_the_target_is_noticed() {
    let (Some(here), Some(there)) = (empty_database().await, empty_database().await) else {
        return;
    };
    furnished(&here).await;
    let (from, to) = (source(&here).await, target(&there).await);
    transfer(&from, &to, &mut |_| {}).await.unwrap();
    let someone = connect(&there).await;
    let touch = async |sql: &str| someone.batch_execute(sql).await.unwrap();
    touch("DELETE FROM yore.vector WHERE row = 2").await;
    touch("UPDATE yore.memory SET recalls = recalls + 1 WHERE legal_hold").await;
    let compared = compare(&from, &to, &mut |_| {}).await.unwrap();
    let mut differences: Vec<_> = compared.iter().flat_map(|one| &one.differences).collect();
    differences.sort_unstable();
    differences.dedup();
    assert_eq!(differences, ["memories: as many, but not the same", "vectors: 3 and 2"]);
    // A value that was exchanged does not even open.
    touch("UPDATE yore.checkpoint SET data = data || '\\x00'::bytea").await;
    let error = compare(&from, &to, &mut |_| {}).await.unwrap_err();
    assert!(format!("{error:?}").contains("checkpoint"), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_and_moves_keep_out_of_each_others_way() {
    let Some(address) = empty_database().await else { return };
    let none = PostgresSource::open(&options(&address)).await.unwrap_err();
    assert!(none.to_string().contains("holds no vaults"), "{none}");
    let store = open(&address).await;
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    let used = PostgresSource::open(&options(&address)).await.unwrap_err();
    assert!(matches!(used, Error::InUse(_)), "{used}");
    store.close().await.unwrap();
    drop(store);
    let moving = source(&address).await;
    let kept_out = PostgresStore::open(options(&address)).await;
    assert!(matches!(kept_out, Err(Error::InUse(_))), "{kept_out:?}");
    drop(moving);
    let stranger = Options { master: MasterKey::passphrase("another"), ..options(&address) };
    let wrong = PostgresSource::open(&stranger).await.unwrap_err();
    assert!(matches!(wrong, Error::WrongKey), "{wrong}");
}
