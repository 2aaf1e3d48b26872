//! What the tests of this crate share: a database of their own, and stores in it.
#![allow(dead_code, reason = "every test file uses another part of it")]

use tokio::sync::OnceCell;
use tokio_postgres::{Client, NoTls};
use yore_domain::grant::Verb;
use yore_domain::{TenantId, Timestamp, VaultId};
use yore_policy::{Need, Permit, Principal, authorise};
use yore_store::Keeper;
use yore_store::keeper::VaultInfo;
use yore_store::key::{Cost, MasterKey};
use yore_store_postgres::{Options, PostgresStore};

static DATABASE: OnceCell<Option<String>> = OnceCell::const_new();
static INDEXED: OnceCell<Option<String>> = OnceCell::const_new();

/// The address of an empty database, made once for all tests of the process.
pub(crate) async fn database() -> Option<String> {
    DATABASE.get_or_init(|| make_database("")).await.clone()
}

/// The same, where ordering by distance means the index: the few rows of a test would otherwise be
/// sorted, and the index never asked.
pub(crate) async fn indexed_database() -> Option<String> {
    let set = "SET enable_sort = off";
    INDEXED.get_or_init(|| make_database(set)).await.clone()
}

/// A database of its own in which nothing was made yet.
pub(crate) async fn empty_database() -> Option<String> {
    new_database("").await
}

async fn make_database(set: &str) -> Option<String> {
    let address = new_database(set).await?;
    PostgresStore::open(options(&address)).await.unwrap();
    Some(address)
}

async fn new_database(set: &str) -> Option<String> {
    let Ok(server) = std::env::var("YORE_TEST_POSTGRES") else {
        println!("NOT RUN: YORE_TEST_POSTGRES names no PostgreSQL with pgvector");
        return None;
    };
    let some = yore_canon::encode::hex(&yore_store::key::random::<4>());
    let name = format!("yore_{}_{some}", std::process::id());
    let client = connect(&server).await;
    client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    if !set.is_empty() {
        client.batch_execute(&format!("ALTER DATABASE {name} {set}")).await.unwrap();
    }
    let (place, _) = server.rsplit_once('/').unwrap();
    Some(format!("{place}/{name}"))
}

/// A connection with all the power the address gives.
pub(crate) async fn connect(address: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

pub(crate) fn options(address: &str) -> Options {
    let master = MasterKey::text("07".repeat(32));
    // Tests run beside each other: the server has only so many connections.
    Options { cost: Cost::Least, readers: 8, writers: 4, ..Options::new(address, master) }
}

pub(crate) async fn empty_store() -> Option<(PostgresStore, ())> {
    let address = database().await?;
    Some((PostgresStore::open(options(&address)).await.unwrap(), ()))
}

/// A store that finds vectors through the index, however few there are.
pub(crate) async fn indexed_store() -> Option<(PostgresStore, ())> {
    let address = indexed_database().await?;
    let options = Options { exact_up_to: 0, ..options(&address) };
    Some((PostgresStore::open(options).await.unwrap(), ()))
}

pub(crate) fn system(vault: VaultId) -> Permit {
    let need = Need::one("test", Verb::Admin);
    authorise(&Principal::system(vault, "test"), need, Timestamp::MIN).unwrap()
}

pub(crate) async fn vault(store: &PostgresStore, owner: &str) -> VaultInfo {
    let (permit, now) = (system(VaultId::CATALOG), Timestamp::from_millis(1_700_000_000_000));
    store.create(&permit, TenantId::DEFAULT, owner, now).await.unwrap()
}
