use yore_domain::audit::{self, Actor, Outcome};
use yore_domain::class::{Label, Sensitivity};
use yore_domain::memory::{Draft, Version};
use yore_domain::{Error as DomainError, MemoryId, Timestamp};
use yore_store::plan::Indexing;
use yore_store::{CommitError, Plan, Precondition, Write};

use super::*;

const TUNING: Tuning = Tuning { secure_delete: true, writer_kib: 1024, reader_kib: 512 };

pub(crate) struct Place {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) id: VaultId,
    pub(crate) key: Key,
}

impl Place {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { dir, id: VaultId::random(), key: Key::random() }
    }

    pub(crate) fn open(&self) -> Result<Vault> {
        Vault::open(Opening {
            id: self.id,
            info: None,
            files: Files::new(self.dir.path().join("v.db")),
            key: self.key.clone(),
            schema: Schema::Vault,
            tuning: TUNING,
            notary: None,
            lock: None,
            gate: Arc::default(),
            tokens: None,
        })
    }
}

pub(crate) fn plan() -> Plan {
    Plan::of(audit::Draft {
        at: Timestamp::from_micros(1),
        actor: Actor::Owner,
        protocol: "test".into(),
        operation: "test".into(),
        outcome: Outcome::Done,
        targets: Vec::new(),
        request: None,
        source: None,
        because: None,
        detail: serde_json::Map::new(),
    })
}

pub(crate) fn says(text: &str) -> Plan {
    let mut draft = Draft::text(text);
    draft.content.governance.labels = vec![Label::new(text.get(..4).unwrap_or(text)).unwrap()];
    draft.content.governance.sensitivity = Some(Sensitivity::Internal);
    let version = Version::first(MemoryId::random(), draft, Timestamp::from_micros(1), None);
    let indexing = Indexing::default();
    Plan { writes: vec![Write::Version { version: Box::new(version), indexing }], ..plan() }
}

pub(crate) fn commit(vault: &Vault, plan: Plan) -> Result<yore_store::Receipt, CommitError> {
    vault.writer.strict(plan).unwrap().blocking_recv().unwrap()
}

fn count(vault: &Vault, table: &str) -> u64 {
    let sql = format!("SELECT count(*) FROM {table}");
    vault.reader().unwrap().query_row(&sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn a_failed_plan_leaves_nothing_and_its_neighbours_stay() {
    let place = Place::new();
    let vault = place.open().unwrap();
    let stale = Precondition::GrantEpoch(7);
    // Queued while the writer is busy, so that all three share one transaction.
    let (go, wait) = crossbeam_channel::bounded::<()>(1);
    let busy = vault.writer.run(move |_| wait.recv().map_err(|_| Error::Stopped)).unwrap();
    let mut spoilt = says("bbbb is never said");
    spoilt.writes.push(Write::RemoveRule("no such rule".into()));
    let answers: Vec<_> = [
        says("aaaa is said"),
        spoilt,
        Plan { preconditions: vec![stale], ..says("cccc is late") },
        says("dddd is said"),
    ]
    .into_iter()
    .map(|plan| vault.writer.strict(plan).unwrap())
    .collect();
    go.send(()).unwrap();
    busy.blocking_recv().unwrap().unwrap();
    let answers: Vec<_> =
        answers.into_iter().map(|answer| answer.blocking_recv().unwrap()).collect();
    assert_eq!(answers[0].as_ref().unwrap().audit, Seq(1));
    assert!(matches!(answers[1], Err(CommitError::Failed(DomainError::NotFound))));
    assert!(matches!(answers[2], Err(CommitError::Stale("grants"))));
    assert_eq!(answers[3].as_ref().unwrap().audit, Seq(2));
    for (table, rows) in [("memory", 2), ("version", 2), ("class", 2), ("audit", 2)] {
        assert_eq!(count(&vault, table), rows, "{table}");
    }
    assert_eq!(vault.classes.len(), 2, "a class of a rolled-back plan is forgotten");
    assert_eq!(*vault.changes.borrow(), Seq(2));
}

#[test]
fn a_full_disk_fails_clearly_and_the_writer_goes_on() {
    let place = Place::new();
    let vault = place.open().unwrap();
    commit(&vault, says("before the disk was full")).unwrap();
    let limit = |pages: i64| {
        vault
            .writer
            .ask_blocking(move |desk| {
                let sql = format!("PRAGMA max_page_count = {pages}");
                Ok(desk.conn.query_row(&sql, [], |row| row.get::<_, i64>(0))?)
            })
            .unwrap()
    };
    let pages = limit(1);
    let error = commit(&vault, says(&"too long for the disk ".repeat(4000))).unwrap_err();
    assert!(
        matches!(&error, CommitError::Failed(DomainError::Busy { reason, .. }) if reason == "the disk is full"),
        "{error:?}"
    );
    assert_eq!((count(&vault, "memory"), count(&vault, "audit")), (1, 1));
    limit(pages + 1000);
    commit(&vault, says("after it was emptied")).unwrap();
    assert_eq!((count(&vault, "memory"), count(&vault, "audit")), (2, 2));
}

#[test]
fn a_file_that_cannot_be_written_fails_clearly_and_heals() {
    let place = Place::new();
    let vault = place.open().unwrap();
    let only_reads = |on: bool| {
        let work = move |desk: &mut Desk| Ok(desk.conn.pragma_update(None, "query_only", on)?);
        vault.writer.ask_blocking(work).unwrap();
    };
    only_reads(true);
    let error = commit(&vault, says("not now")).unwrap_err();
    assert!(error.to_string().contains("the data directory cannot be written"), "{error}");
    only_reads(false);
    commit(&vault, says("now")).unwrap();
    assert_eq!((count(&vault, "memory"), count(&vault, "audit")), (1, 1));
}

#[test]
fn a_plan_that_fails_halfway_takes_nothing_of_the_batch_along() {
    let place = Place::new();
    let vault = place.open().unwrap();
    // Relaxed plans wait for company: all four are one transaction, and the third fails after
    // it wrote, into a class of the first. The classes were undone with it and are made again.
    vault.writer.relaxed(says("aaaa first")).unwrap();
    vault.writer.relaxed(says("bbbb second")).unwrap();
    let mut broken = says("aaaa third");
    broken.writes.push(Write::LegalHold { memory: MemoryId::random(), held: true });
    vault.writer.relaxed(broken).unwrap();
    commit(&vault, says("dddd fourth")).unwrap();
    assert_eq!((count(&vault, "memory"), count(&vault, "class")), (3, 3));
    let reader = vault.reader().unwrap();
    let mut rows = reader
        .prepare("SELECT v.data, c.data FROM version v JOIN class c ON c.id = v.class")
        .unwrap();
    let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    for row in rows {
        let (version, class): (String, String) = row.unwrap();
        let version: Version = serde_json::from_str(&version).unwrap();
        let class: Class = serde_json::from_str(&class).unwrap();
        assert_eq!(version.class(), class);
    }
}

#[test]
fn a_panic_on_the_writer_hangs_nobody() {
    let place = Place::new();
    let vault = place.open().unwrap();
    let broken: Result<()> = vault.writer.ask_blocking(|desk| {
        desk.conn.execute_batch("BEGIN IMMEDIATE; DELETE FROM setting").unwrap();
        panic!("on purpose");
    });
    assert!(matches!(broken, Err(Error::Stopped)));
    commit(&vault, says("still writing")).unwrap();
    assert_eq!(count(&vault, "setting"), 1, "what the panic left open was undone");
}

#[test]
fn relaxed_plans_are_on_disk_soon_without_a_strict_one() {
    let place = Place::new();
    let vault = place.open().unwrap();
    vault.writer.relaxed(plan()).unwrap();
    let begun = std::time::Instant::now();
    while count(&vault, "audit") == 0 {
        assert!(begun.elapsed().as_secs() < 5);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    vault.writer.relaxed(plan()).unwrap();
    assert_eq!(commit(&vault, plan()).unwrap().audit, Seq(3), "a strict one takes them along");
}

#[test]
fn a_reader_sees_one_moment() {
    let place = Place::new();
    let vault = place.open().unwrap();
    commit(&vault, says("one thing")).unwrap();
    let early = vault.reader().unwrap();
    commit(&vault, says("two things")).unwrap();
    let seen = |reader: &Reader| -> u64 {
        reader.query_row("SELECT count(*) FROM memory", [], |row| row.get(0)).unwrap()
    };
    assert_eq!((seen(&early), seen(&vault.reader().unwrap())), (1, 2));
    let refused = early.execute("DELETE FROM memory", []);
    assert!(refused.is_err(), "readers cannot write");
}

#[test]
fn a_newer_file_is_refused_by_name() {
    let place = Place::new();
    let vault = place.open().unwrap();
    vault
        .writer
        .ask_blocking(|desk| Ok(desk.conn.pragma_update(None, "user_version", 99)?))
        .unwrap();
    let gate = Arc::clone(&vault.gate);
    drop(vault);
    gate.wait();
    let error = place.open().unwrap_err().to_string();
    assert!(error.starts_with("this vault was written by a newer version of yore"), "{error}");
    assert!(error.contains("v.db"), "{error}");
}

#[test]
fn the_writer_keeps_the_journal_short() {
    let place = Place::new();
    let vault = place.open().unwrap();
    for round in 0..60 {
        commit(&vault, says(&format!("{round:04} {}", "x".repeat(100_000)))).unwrap();
    }
    let length = std::fs::metadata(vault.files.wal()).unwrap().len();
    assert!(length < 3 * 1000 * 4120, "{length}");
}
