//! Vaults moved from one data directory to another, whole, and not by halves.
#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that fails")]

#[path = "shared/support.rs"]
mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use support::{files, open, options};
use tempfile::tempdir;
use yore_domain::VaultId;
use yore_store::Keeper;
use yore_store::suite::moving::{
    Fault, Faulty, all, finds_the_same, furnish, goes_on, is_sound, keeping,
};
use yore_store::transfer::{Fate, Source as _, Told, compare, survey, transfer};
use yore_store_sqlite::{Error, MasterKey, Options, SqliteSource, SqliteStore, SqliteTarget};

const STATICS: &str = "words";

async fn furnished(data: &Path) {
    let store = open(data);
    furnish(&store, &store).await;
    store.close().await.unwrap();
}

fn target(data: &Path) -> SqliteTarget {
    SqliteTarget::open(options(data), STATICS).unwrap()
}

/// The bytes of everything that holds something.
fn bytes(data: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let held = files(data).into_iter().filter(|path| !path.ends_with("store.lock"));
    held.map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .filter(|(path, bytes)| {
            // SQLite makes these for whoever only reads, and keeps nothing in them.
            let beside = path.to_string_lossy().ends_with("-shm");
            !beside && !bytes.is_empty()
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_arrives_and_the_source_stays_as_it_is() {
    let (here, there) = (tempdir().unwrap(), tempdir().unwrap());
    furnished(here.path()).await;
    let before = bytes(here.path());
    {
        let from = SqliteSource::open(&options(here.path())).unwrap();
        let listed = survey(&from).await.unwrap();
        assert!(listed.len() > 10 && listed.iter().any(|one| one.rows["messages"] > 300));
        let (mut vaults, mut rows) = (0, 0);
        let mut told = |told: Told<'_>| match told {
            Told::Vault(..) => vaults += 1,
            Told::Rows(more) => rows += more,
        };
        let moved = transfer(&from, &target(there.path()), &mut told).await.unwrap();
        assert!(all(&moved, Fate::Moved), "{moved:?}");
        assert_eq!((vaults, moved.len()), (listed.len() + 1, listed.len() + 1));
        let counted: u64 = moved.iter().flat_map(|one| one.rows.values()).sum();
        assert_eq!(rows, 2 * counted, "every row was read on both sides");
        let kinds: std::collections::BTreeSet<_> =
            moved.iter().flat_map(|one| one.rows.keys()).collect();
        assert!(kinds.len() >= 29, "some of everything: {kinds:?}");
    }
    assert!(bytes(here.path()) == before, "the source changed");
    {
        let from = SqliteSource::open(&options(here.path())).unwrap();
        let to = target(there.path());
        assert!(all(&compare(&from, &to, &mut |_| {}).await.unwrap(), Fate::Same));
        // Once more, there is nothing left to do.
        assert!(all(&transfer(&from, &to, &mut |_| {}).await.unwrap(), Fate::There));
    }
    let (ours, theirs) = (open(here.path()), open(there.path()));
    is_sound(&theirs).await;
    finds_the_same(&ours, &theirs, &theirs).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_that_broke_off_goes_on_and_serves_nobody_meanwhile() {
    let (here, there) = (tempdir().unwrap(), tempdir().unwrap());
    furnished(here.path()).await;
    let from = SqliteSource::open(&options(here.path())).unwrap();
    let mut there_before = 0;
    for batches in [0, 7, 3] {
        let to = target(there.path());
        let broken = Faulty::new(&to, Fault::Stops(batches));
        let error = transfer(&from, &broken, &mut |_| {}).await.unwrap_err();
        assert!(format!("{error:?}").contains("the power went"), "{error:?}");
        drop(to);
        let half = SqliteStore::open(options(there.path())).unwrap_err();
        assert!(matches!(half, Error::Half { .. }), "{half}");
        let half = SqliteSource::open(&options(there.path())).unwrap_err();
        assert!(matches!(half, Error::Half { .. }), "{half}");
        let databases = |path: &PathBuf| path.extension().is_some_and(|end| end == "db");
        let whole = files(&there.path().join("vaults")).iter().filter(|p| databases(p)).count();
        assert!(whole >= there_before);
        there_before = whole;
    }
    assert!(there_before > 0, "some were moved before it broke off");
    let moved = transfer(&from, &target(there.path()), &mut |_| {}).await.unwrap();
    let fates = |fate| moved.iter().filter(|one| one.fate == fate).count();
    assert_eq!(fates(Fate::There), there_before);
    assert_eq!(fates(Fate::Moved), moved.len() - there_before);
    let to = target(there.path());
    assert!(all(&compare(&from, &to, &mut |_| {}).await.unwrap(), Fate::Same));
    // Killed at the very last: the catalog is in its place, and the mark is still there.
    let name = from.name(&keeping(VaultId::CATALOG)).await.unwrap();
    drop(to);
    std::fs::write(there.path().join("moving"), name).unwrap();
    assert!(matches!(SqliteStore::open(options(there.path())), Err(Error::Half { .. })));
    let again = transfer(&from, &target(there.path()), &mut |_| {}).await.unwrap();
    assert!(all(&again, Fate::There));
    drop(from);
    is_sound(&open(there.path())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_target_does_not_give_back_is_noticed() {
    let (here, there) = (tempdir().unwrap(), tempdir().unwrap());
    furnished(here.path()).await;
    let from = SqliteSource::open(&options(here.path())).unwrap();
    for kind in ["names", "vectors", "checkpoints", "pieces of attachments", "classes", "links"] {
        let to = target(there.path());
        let careless = Faulty::new(&to, Fault::Drops(kind));
        let error = transfer(&from, &careless, &mut |_| {}).await.unwrap_err();
        let said = format!("{error:?}");
        assert!(said.contains(kind) || said.contains("FOREIGN KEY"), "{kind}: {said}");
    }
    transfer(&from, &target(there.path()), &mut |_| {}).await.unwrap();
    drop(from);
    // Whoever goes on with the source afterwards sees where the two part.
    let store = open(here.path());
    goes_on(&store, &store).await;
    store.close().await.unwrap();
    drop(store);
    let from = SqliteSource::open(&options(here.path())).unwrap();
    let compared = compare(&from, &target(there.path()), &mut |_| {}).await.unwrap();
    let parted: Vec<_> = compared.iter().filter(|one| one.fate == Fate::Different).collect();
    assert_eq!(parted.len(), 1);
    assert!(parted[0].differences.iter().any(|one| one.starts_with("memories")), "{parted:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_places_and_keys_are_refused_with_one_error() {
    let (here, there) = (tempdir().unwrap(), tempdir().unwrap());
    furnished(here.path()).await;
    let stranger =
        |data: &Path| Options { master: MasterKey::passphrase("another"), ..options(data) };
    let wrong = SqliteSource::open(&stranger(here.path())).unwrap_err();
    assert!(matches!(wrong, Error::WrongKey), "{wrong}");
    let empty = SqliteSource::open(&options(there.path())).unwrap_err();
    assert!(matches!(empty, Error::Foreign { .. }), "{empty}");
    assert!(files(there.path()).is_empty(), "looking makes nothing");

    furnished(there.path()).await;
    let wrong = SqliteTarget::open(stranger(there.path()), STATICS).unwrap_err();
    assert!(matches!(wrong, Error::WrongKey), "{wrong}");
    let from = SqliteSource::open(&options(here.path())).unwrap();
    let error = transfer(&from, &target(there.path()), &mut |_| {}).await.unwrap_err();
    assert!(error.to_string().contains("not empty"), "{error}");
    let used = SqliteStore::open(options(here.path())).unwrap_err();
    assert!(matches!(used, Error::InUse(_)), "{used}");
}
