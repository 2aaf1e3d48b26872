//! What the tests of this crate share: a store in a temporary directory, permits, plans.
#![allow(dead_code, reason = "every test file uses another part of it")]

use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};

use yore_domain::audit::{Draft as AuditDraft, Outcome, Target};
use yore_domain::memory::{Cause, Draft, Version, normalised};
use yore_domain::{MemoryId, TenantId, Timestamp, VaultId};
use yore_policy::{Need, Permit, Principal, authorise};
use yore_store::keeper::VaultInfo;
use yore_store::plan::Indexing;
use yore_store::{Keeper, Plan, Precondition, Store, Vector, Write};
use yore_store_sqlite::{Cost, MasterKey, Options, Overwrite, SqliteStore};

pub(crate) const PASSPHRASE: &str = "correct horse";

/// A clock that moves a second at every look.
pub(crate) fn now() -> Timestamp {
    static CLOCK: AtomicI64 = AtomicI64::new(1_700_000_000);
    Timestamp::from_millis(CLOCK.fetch_add(1, Ordering::Relaxed) * 1000)
}

pub(crate) fn permit(vault: VaultId) -> Permit {
    let verbs = yore_domain::grant::Verbs::NONE;
    let surface = yore_domain::class::Surface::Retrieval;
    let need = Need::of("test", verbs, surface);
    authorise(&Principal::system(vault, "test"), need, Timestamp::MIN).unwrap()
}

pub(crate) fn options(data: &Path) -> Options {
    Options { cost: Cost::Least, ..Options::new(data, MasterKey::passphrase(PASSPHRASE)) }
}

pub(crate) fn open(data: &Path) -> SqliteStore {
    SqliteStore::open(options(data)).unwrap()
}

pub(crate) fn open_careless(data: &Path) -> SqliteStore {
    SqliteStore::open(Options { overwrite: Overwrite::Never, ..options(data) }).unwrap()
}

pub(crate) async fn vault(store: &SqliteStore, owner: &str) -> VaultInfo {
    store.create(&permit(VaultId::CATALOG), TenantId::DEFAULT, owner, now()).await.unwrap()
}

pub(crate) fn audit(permit: &Permit, operation: &str) -> AuditDraft {
    AuditDraft {
        at: now(),
        actor: permit.actor(),
        protocol: "test".into(),
        operation: operation.into(),
        outcome: Outcome::Done,
        targets: Vec::new(),
        request: None,
        source: None,
        because: None,
        detail: serde_json::Map::new(),
    }
}

pub(crate) fn indexing(text: &str) -> Indexing {
    let values: Vec<i8> =
        (0..256).map(|i| i8::try_from((text.len() * 7 + i * 13) % 120).unwrap()).collect();
    Indexing {
        tokens: text.split(' ').map(|word| u16::try_from(word.len()).unwrap() + 100).collect(),
        statics: Some(Vector { model: "static".into(), scale: 0.001, values }),
        statement: yore_domain::BlobHash::of(normalised(text).as_bytes()).to_string(),
    }
}

pub(crate) fn version_plan(permit: &Permit, version: Version) -> Plan {
    let mut audit = audit(permit, "remember");
    let (memory, number) = (version.memory, Some(version.number));
    audit.targets.push(Target { memory, number, digest: None });
    let indexing = indexing(&version.content.body.text);
    let head = (version.number > 1).then(|| version.number - 1);
    Plan {
        preconditions: vec![Precondition::Head(memory, head)],
        writes: vec![Write::Version { version: Box::new(version), indexing }],
        ..Plan::of(audit)
    }
}

pub(crate) async fn remember(store: &SqliteStore, permit: &Permit, text: &str) -> Version {
    let version = Version::first(MemoryId::random(), Draft::text(text), now(), None);
    store.commit(permit, version_plan(permit, version.clone())).await.unwrap();
    version
}

pub(crate) async fn revise(
    store: &SqliteStore,
    permit: &Permit,
    version: &Version,
    text: &str,
) -> Version {
    let mut next = version.next(Cause::Revised, now(), None);
    next.content.body.text = text.into();
    store.commit(permit, version_plan(permit, next.clone())).await.unwrap();
    next
}

pub(crate) async fn erase(store: &SqliteStore, permit: &Permit, memory: MemoryId) {
    let plan = Plan { writes: vec![Write::Erase { memory }], ..Plan::of(audit(permit, "forget")) };
    store.commit(permit, plan).await.unwrap();
}

/// Every file below a directory.
pub(crate) fn files(data: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(data).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}
