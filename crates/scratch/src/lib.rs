//! Stores for the tests of everything above the store.
//!
//! A test asks for the store of a directory and does not say of which kind. Usually it lies in
//! that directory. With `YORE_TEST_STORE=postgres` it is a database of its own on the server that
//! `YORE_TEST_POSTGRES` names; the directory remembers which, so that opening it again opens the
//! same vaults. `cargo xtask test` runs the tests of the engine and of every protocol both ways.
//!
//! No program links this crate. Start at [`open`].
#![expect(clippy::unwrap_used, reason = "a test whose store does not open has failed")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Mutex as Turn;
use tokio_postgres::{Client, NoTls};
use yore_canon::encode;
use yore_store::key::{Cost, MasterKey};
use yore_store::{Keeper, Store};
use yore_store_postgres::PostgresStore;
use yore_store_sqlite::SqliteStore;

/// Which store the tests run on, and where the server is.
const STORE: &str = "YORE_TEST_STORE";
const SERVER: &str = "YORE_TEST_POSTGRES";
/// Where a directory says which database is its own.
const NOTE: &str = "database";

/// The databases of this process and the directories they belong to.
static OPENED: Mutex<Vec<(PathBuf, String)>> = Mutex::new(Vec::new());
/// The database from which the others are copied: making the tables takes far longer.
static TEMPLATE: Turn<Option<String>> = Turn::const_new(None);

/// Whether the tests run on PostgreSQL.
#[must_use]
pub fn is_postgres() -> bool {
    std::env::var(STORE).is_ok_and(|store| store == "postgres")
}

/// For a test about the files of a vault: says that it is not run where there are none.
#[must_use]
pub fn is_elsewhere(reason: &str) -> bool {
    if is_postgres() {
        println!("NOT RUN: {reason}");
    }
    is_postgres()
}

/// Opens the store of a directory, or makes it.
pub async fn open(directory: &Path) -> (Arc<dyn Store>, Arc<dyn Keeper>) {
    let key = MasterKey::passphrase("open sesame");
    if is_postgres() {
        let mut options = yore_store_postgres::Options::new(address(directory).await, key);
        // Tests run beside each other: the server has only so many connections.
        (options.cost, options.readers, options.writers) = (Cost::Least, 6, 4);
        let store = Arc::new(Box::pin(PostgresStore::open(options)).await.unwrap());
        return (Arc::clone(&store) as Arc<dyn Store>, store);
    }
    loop {
        let mut options = yore_store_sqlite::Options::new(directory, key.clone());
        options.cost = Cost::Least;
        match SqliteStore::open(options) {
            Ok(store) => {
                let store = Arc::new(store);
                return (Arc::clone(&store) as Arc<dyn Store>, store);
            }
            // Whoever had it open is on its way out.
            Err(yore_store_sqlite::Error::InUse(_)) => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// The address of a directory's database.
async fn address(directory: &Path) -> String {
    let server = std::env::var(SERVER).expect("YORE_TEST_POSTGRES names the server");
    let place = server.rsplit_once('/').map_or(server.as_str(), |(place, _)| place);
    let note = directory.join(NOTE);
    let name = match std::fs::read_to_string(&note) {
        Ok(name) => name,
        Err(_) => {
            let name = copied(&server, place).await;
            std::fs::write(&note, &name).unwrap();
            OPENED.lock().push((directory.to_owned(), name.clone()));
            name
        }
    };
    format!("{place}/{name}")
}

/// Copies the template, and removes the databases whose directories are gone.
async fn copied(server: &str, place: &str) -> String {
    let client = connect(server).await;
    let mut template = TEMPLATE.lock().await;
    if template.is_none() {
        let name = some_name();
        client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        let key = MasterKey::passphrase("open sesame");
        let mut options = yore_store_postgres::Options::new(format!("{place}/{name}"), key);
        options.cost = Cost::Least;
        let store = Box::pin(PostgresStore::open(options)).await.unwrap();
        Keeper::close(&store).await.unwrap();
        drop(store);
        *template = Some(name);
    }
    let (gone, kept) = std::mem::take(&mut *OPENED.lock())
        .into_iter()
        .partition::<Vec<_>, _>(|(directory, _)| !directory.exists());
    OPENED.lock().extend(kept);
    for (_, name) in gone {
        let sql = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
        if let Err(error) = client.batch_execute(&sql).await {
            println!("the database {name} stays: {error}");
        }
    }
    let name = some_name();
    let from = template.as_deref().unwrap();
    let sql = format!("CREATE DATABASE {name} TEMPLATE {from} STRATEGY file_copy");
    // Whoever made the template may not have left it yet.
    let mut left = 100;
    while let Err(error) = client.batch_execute(&sql).await {
        assert!(left > 0, "{error}");
        left -= 1;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    name
}

fn some_name() -> String {
    let some = encode::hex(&yore_store::key::random::<6>());
    format!("yore_{}_{some}", std::process::id())
}

async fn connect(address: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
