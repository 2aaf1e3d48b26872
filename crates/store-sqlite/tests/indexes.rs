//! The indexes are derived: saved, caught up, rebuilt or applied one by one, they answer the same.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use yore_domain::class::Label;
use yore_domain::grant::Verb;
use yore_domain::memory::{Cause, Draft, FeedbackOutcome, Status, Version};
use yore_domain::query::{Corpus, Filter};
use yore_domain::{MemoryId, TenantId, Timestamp, VaultId};
use yore_policy::{Evidence, Need, Permit, Presented, Principal, authorise, verify};
use yore_store::suite::{gather, indexing, statement, time, write};
use yore_store::{Candidate, Keeper, Plan, RowKey, Search, Source, Store, Vector, Write};
use yore_store_sqlite::{MasterKey, Options, SqliteStore};

/// One vault that can be closed and opened again.
struct Home {
    dir: TempDir,
    vault: VaultId,
}

impl Home {
    async fn new() -> (Self, SqliteStore) {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path());
        let system = Principal::system(VaultId::CATALOG, "test");
        let permit = authorise(&system, Need::one("create", Verb::Admin), time(0)).unwrap();
        let made = store.create(&permit, TenantId::DEFAULT, "ada", time(0)).await.unwrap();
        (Self { dir, vault: made.id }, store)
    }

    fn permit(&self) -> Permit {
        let presented = vec![Presented::MasterKey { proven: true }];
        let evidence = Evidence { vault: self.vault, presented, public_reads: false };
        let owner = verify(&evidence, time(0)).unwrap();
        authorise(&owner, Need::one("test", Verb::Read), time(0)).unwrap()
    }

    fn saved(&self) -> PathBuf {
        self.dir.path().join("data/vaults").join(format!("{}.idx", self.vault))
    }

    async fn reopen(&self, store: SqliteStore) -> SqliteStore {
        close(store).await;
        open(self.dir.path())
    }

    async fn commit(&self, store: &SqliteStore, writes: Vec<Write>) {
        let permit = self.permit();
        let audit = yore_domain::audit::Draft {
            at: time(500),
            actor: permit.actor(),
            protocol: "test".into(),
            operation: "test".into(),
            outcome: yore_domain::audit::Outcome::Done,
            targets: Vec::new(),
            request: None,
            source: None,
            because: None,
            detail: serde_json::Map::new(),
        };
        store.commit(&permit, Plan { writes, ..Plan::of(audit) }).await.unwrap();
    }

    /// Everything that a few searches answer, rows included.
    async fn answers(&self, store: &SqliteStore) -> String {
        let view = store.snapshot(&self.permit()).await.unwrap();
        let filters = [
            Filter::default(),
            Filter { as_of: Some(time(3)), ..Filter::default() },
            Filter { statuses: vec![Status::Tombstoned], ..Filter::default() },
        ];
        let mut told = String::new();
        for filter in &filters {
            for text in ["lantern", "harbour note", "number 3 of the bicycle"] {
                let found = gather(&*view, text, Corpus::Both, filter, time(LATE)).await;
                told += &format!("{found:?}\n");
            }
        }
        for seed in ["harbour note", "garden note"] {
            for number in 0..20 {
                for text in [
                    format!("{seed} number {number} of the bicycle"),
                    format!("{seed} lantern {number}"),
                ] {
                    let said = view.said(&statement(&text)).await.unwrap();
                    told += &format!("{text}: {said:?}\n");
                }
            }
        }
        told
    }

    async fn differences(&self, store: &SqliteStore) -> Vec<String> {
        store.check(&self.permit(), false).await.unwrap().indexes
    }
}

const LATE: i64 = 10_000;

fn open(home: &Path) -> SqliteStore {
    let options = Options::new(home.join("data"), MasterKey::text("07".repeat(32)));
    SqliteStore::open(options).unwrap()
}

async fn close(store: SqliteStore) {
    Keeper::close(&store).await.unwrap();
    drop(store);
}

fn first(number: i64, text: &str) -> Version {
    let mut draft = Draft::text(text);
    draft.content.scope.session = (number % 2 == 0).then(|| "s1".into());
    if number % 3 == 0 {
        draft.content.governance.labels = vec![Label::new("work").unwrap()];
    }
    Version::first(MemoryId::random(), draft, time(number % 7), None)
}

/// A little of everything that changes an index.
async fn live(home: &Home, store: &SqliteStore, seed: &str) -> Vec<Version> {
    let versions: Vec<Version> = (0..20)
        .map(|number| first(number, &format!("{seed} number {number} of the bicycle")))
        .collect();
    home.commit(store, versions.iter().map(write).collect()).await;
    let mut writes = Vec::new();
    for (at, version) in versions.iter().enumerate() {
        let mut next = version.next(Cause::Revised, time(8), None);
        match at % 5 {
            0 => next.content.body.text = format!("{seed} lantern {at}"),
            1 => next.content.governance.labels = vec![Label::new("health").unwrap()],
            2 => next.status = Status::Tombstoned,
            _ => continue,
        }
        writes.push(write(&next));
    }
    writes.push(Write::Erase { memory: versions[3].memory });
    writes.push(Write::Demote { memory: versions[4].memory, demoted: true });
    let outcome = FeedbackOutcome::Followed;
    writes.push(Write::Feedback { memory: versions[9].memory, outcome });
    home.commit(store, writes).await;
    versions
}

fn towards(model: &str, dims: usize, axis: usize) -> Vector {
    let mut values = vec![0i8; dims];
    values[axis] = 127;
    Vector { model: model.into(), scale: 1.0 / 127.0, values }
}

#[tokio::test(flavor = "multi_thread")]
async fn saved_caught_up_and_rebuilt_indexes_answer_alike() {
    let (home, store) = Home::new().await;
    live(&home, &store, "harbour note").await;
    assert_eq!(home.differences(&store).await, Vec::<String>::new());
    let early = home.answers(&store).await;

    let store = home.reopen(store).await;
    assert!(home.saved().exists(), "closing saves the indexes");
    assert_eq!(home.answers(&store).await, early, "from the saved copy");
    let old = std::fs::read(home.saved()).unwrap();

    live(&home, &store, "garden note").await;
    let row = RowKey { source: Source::Version, row: 1 };
    home.commit(&store, vec![Write::Vector { row, vector: towards("m", 384, 1) }]).await;
    assert_eq!(home.differences(&store).await, Vec::<String>::new());
    let late = home.answers(&store).await;
    assert_ne!(early, late);

    let damaged = {
        let mut bytes = old.clone();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        bytes
    };
    let copies = [
        ("a copy from before the last changes", Some(old)),
        ("no copy", None),
        ("a damaged copy", Some(damaged)),
        ("an empty copy", Some(Vec::new())),
    ];
    let mut store = store;
    for (name, copy) in copies {
        close(store).await;
        match copy {
            Some(bytes) => std::fs::write(home.saved(), bytes).unwrap(),
            None => std::fs::remove_file(home.saved()).unwrap(),
        }
        store = open(home.dir.path());
        assert_eq!(home.answers(&store).await, late, "{name}");
        assert_eq!(home.differences(&store).await, Vec::<String>::new(), "{name}");
    }
    close(store).await;
}

async fn dense(home: &Home, store: &SqliteStore, vector: &Vector) -> Vec<Candidate> {
    let view = store.snapshot(&home.permit()).await.unwrap();
    let (filter, made) = (Filter::default(), indexing("unrelated"));
    let search = Search {
        text: "unrelated",
        tokens: &[],
        statics: made.statics.as_ref(),
        dense: Some(vector),
        corpus: Corpus::Memories,
        filter: &filter,
        depth: 5,
        now: Timestamp::from_micros(time(LATE).micros()),
    };
    let mut found = view.search(&search).await.unwrap();
    found.retain(|one| one.signals.dense.is_some());
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn another_model_takes_over_while_the_old_one_answers() {
    let (home, store) = Home::new().await;
    let versions = [first(1, "window seats"), first(2, "bicycle lanes")];
    home.commit(&store, versions.iter().map(write).collect()).await;
    let row = |row| RowKey { source: Source::Version, row };
    let vector = |at: u64, vector| Write::Vector { row: row(at), vector };
    // The first vector decides the model; the second model differs even in its dimensions.
    home.commit(&store, vec![vector(1, towards("old", 384, 3)), vector(2, towards("old", 384, 4))])
        .await;
    home.commit(&store, vec![vector(1, towards("new", 64, 5)), vector(2, towards("new", 64, 6))])
        .await;
    let best = |found: &[Candidate]| {
        let best = found
            .iter()
            .max_by(|a, b| a.signals.dense.unwrap().total_cmp(&b.signals.dense.unwrap()));
        best.map(|one| one.row.row)
    };
    assert_eq!(best(&dense(&home, &store, &towards("old", 384, 4)).await), Some(2));
    assert!(dense(&home, &store, &towards("new", 64, 6)).await.is_empty());

    home.commit(&store, vec![Write::Setting("dense_model".into(), "new".into())]).await;
    let mut taken_over = false;
    for _ in 0..500 {
        let (old, new) = (towards("old", 384, 4), towards("new", 64, 6));
        let found = dense(&home, &store, &new).await;
        if !found.is_empty() {
            assert_eq!(best(&found), Some(2));
            assert!(dense(&home, &store, &old).await.is_empty());
            taken_over = true;
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(taken_over);
    // What is written after the switch is indexed like anything else.
    home.commit(&store, vec![write(&first(5, "a third thing")), vector(3, towards("new", 64, 9))])
        .await;
    assert_eq!(best(&dense(&home, &store, &towards("new", 64, 9)).await), Some(3));
    let store = home.reopen(store).await;
    assert_eq!(best(&dense(&home, &store, &towards("new", 64, 9)).await), Some(3));
    assert_eq!(home.differences(&store).await, Vec::<String>::new());
}
