//! Vaults moved from files into a database and back: every row is the same in the end.
#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that fails")]

use std::path::Path;
use std::time::Duration;

use tempfile::tempdir;
use yore_store::Keeper;
use yore_store::key::{Cost, MasterKey};
use yore_store::suite::moving::{all, finds_the_same, furnish, goes_on, is_sound};
use yore_store::transfer::{Fate, Moved, compare, transfer};
use yore_store_postgres::{PostgresSource, PostgresStore, PostgresTarget};
use yore_store_sqlite::{SqliteSource, SqliteStore, SqliteTarget};

fn key() -> MasterKey {
    MasterKey::passphrase("open sesame")
}

fn files(data: &Path) -> yore_store_sqlite::Options {
    yore_store_sqlite::Options { cost: Cost::Least, ..yore_store_sqlite::Options::new(data, key()) }
}

fn tables(address: &str) -> yore_store_postgres::Options {
    yore_store_postgres::Options {
        cost: Cost::Least,
        readers: 8,
        writers: 4,
        ..yore_store_postgres::Options::new(address, key())
    }
}

async fn database() -> Option<String> {
    let Ok(server) = std::env::var("YORE_TEST_POSTGRES") else {
        println!("NOT RUN: YORE_TEST_POSTGRES names no PostgreSQL with pgvector");
        return None;
    };
    let some = yore_canon::encode::hex(&yore_store::key::random::<4>());
    let name = format!("yore_{}_{some}", std::process::id());
    let (client, connection) =
        tokio_postgres::connect(&server, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    let (place, _) = server.rsplit_once('/').unwrap();
    Some(format!("{place}/{name}"))
}

/// Opens the database once the move has let go of it.
async fn opened(address: &str) -> PostgresStore {
    tokio::time::sleep(Duration::from_millis(200)).await;
    PostgresStore::open(tables(address)).await.unwrap()
}

fn digests(moved: &[Moved]) -> Vec<&str> {
    moved.iter().filter_map(|one| one.digest.as_deref()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_row_comes_back_from_a_database() {
    let Some(address) = database().await else { return };
    let (here, back) = (tempdir().unwrap(), tempdir().unwrap());
    let store = SqliteStore::open(files(here.path())).unwrap();
    furnish(&store, &store).await;
    store.close().await.unwrap();
    drop(store);

    let from = SqliteSource::open(&files(here.path())).unwrap();
    let there = PostgresTarget::open(&tables(&address)).await.unwrap();
    let moved = transfer(&from, &there, &mut |_| {}).await.unwrap();
    assert!(all(&moved, Fate::Moved), "{moved:?}");
    let compared = compare(&from, &there, &mut |_| {}).await.unwrap();
    assert!(all(&compared, Fate::Same), "{compared:?}");
    drop(there);
    let there = PostgresSource::open(&tables(&address)).await.unwrap();
    let to = SqliteTarget::open(files(back.path()), "words").unwrap();
    let returned = transfer(&there, &to, &mut |_| {}).await.unwrap();
    assert!(all(&returned, Fate::Moved), "{returned:?}");
    assert!(returned.iter().all(|one| one.left.is_empty()), "{returned:?}");
    assert_eq!(digests(&returned), digests(&moved));
    assert!(all(&compare(&from, &to, &mut |_| {}).await.unwrap(), Fate::Same));
    drop((from, there, to));

    let ours = SqliteStore::open(files(here.path())).unwrap();
    let returned = SqliteStore::open(files(back.path())).unwrap();
    let theirs = opened(&address).await;
    is_sound(&returned).await;
    is_sound(&theirs).await;
    finds_the_same(&ours, &returned, &returned).await;
    finds_the_same(&ours, &theirs, &theirs).await;
    // Each goes on from where the vault stood.
    goes_on(&theirs, &theirs).await;
    goes_on(&returned, &returned).await;
    is_sound(&theirs).await;
    is_sound(&returned).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_grew_in_a_database_goes_into_files() {
    let Some(address) = database().await else { return };
    let back = tempdir().unwrap();
    let store = PostgresStore::open(tables(&address)).await.unwrap();
    furnish(&store, &store).await;
    store.close().await.unwrap();
    drop(store);
    let from = PostgresSource::open(&tables(&address)).await.unwrap();
    let to = SqliteTarget::open(files(back.path()), "words").unwrap();
    let moved = transfer(&from, &to, &mut |_| {}).await.unwrap();
    assert!(all(&moved, Fate::Moved), "{moved:?}");
    assert!(moved.iter().all(|one| one.left.is_empty()), "{moved:?}");
    drop((from, to));
    let (ours, theirs) = (opened(&address).await, SqliteStore::open(files(back.path())).unwrap());
    is_sound(&theirs).await;
    finds_the_same(&ours, &theirs, &theirs).await;
}
