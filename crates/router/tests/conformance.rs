//! The scenarios of the protocol, against every store that can be started here.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use yore_engine::Secret;
use yore_router::adapters::{Cognee, Edition, Letta, Mem0, Pgvector, SqliteVec};
use yore_router::suite::{BEYOND, CONFORMANCE, run};
use yore_router::{InMemory, MemoryStore, Slot};

use crate::{embedder, fakes, terms};

async fn passes(name: &str, store: Arc<dyn MemoryStore>) {
    let slot = Slot::new(name, store, Arc::new(InMemory::default()), terms(10_000));
    let mark = std::process::id().to_string();
    let mut failed = run(&slot, &mark, &CONFORMANCE).await;
    failed.extend(run(&slot, &mark, &BEYOND).await);
    assert!(failed.is_empty(), "{name}:\n{}", failed.join("\n"));
}

#[tokio::test]
async fn mw_conformance_sqlite_vec_in_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteVec::open(&directory.path().join("memory.db"), embedder()).unwrap();
    passes("sqlite-vec", Arc::new(store)).await;
}

/// In the file at `YORE_TEST_SQLITE_VEC`, which memorywire made and will read again.
#[tokio::test]
async fn mw_conformance_sqlite_vec_in_a_file_of_memorywires() {
    let Ok(path) = std::env::var("YORE_TEST_SQLITE_VEC") else {
        eprintln!("NOT RUN: sqlite-vec: YORE_TEST_SQLITE_VEC names no file that memorywire made");
        return;
    };
    let store = SqliteVec::open(path.as_ref(), embedder()).unwrap();
    let before = store.health().await.unwrap().detail["memory_count"].as_i64().unwrap();
    assert!(before > 0, "the file holds what memorywire wrote");
    passes("sqlite-vec", Arc::new(store)).await;
}

/// Against the PostgreSQL at `YORE_TEST_PGVECTOR`, whose user may make schemas and extensions.
#[tokio::test]
async fn mw_conformance_pgvector() {
    let Ok(dsn) = std::env::var("YORE_TEST_PGVECTOR") else {
        eprintln!("NOT RUN: pgvector: YORE_TEST_PGVECTOR names no PostgreSQL with pgvector");
        return;
    };
    let schema = format!("memorywire_{}", std::process::id());
    passes("pgvector", Arc::new(Pgvector::new(&dsn, &schema, embedder()).unwrap())).await;
    // A new connection finds the tables in place.
    let again = Pgvector::new(&dsn, &schema, embedder()).unwrap();
    let health = again.health().await.unwrap();
    assert!(health.detail["memory_count"].as_i64().unwrap() > 0, "{health:?}");
}

fn real(name: &str, variable: &str) -> Option<String> {
    let address = std::env::var(variable).ok();
    if address.is_none() {
        eprintln!("NOT RUN: {name}: {variable} names no server");
    }
    address
}

#[tokio::test]
async fn mw_conformance_mem0_server() {
    let Some(url) = real("mem0", "YORE_TEST_MEM0") else { return };
    let token = std::env::var("YORE_TEST_MEM0_KEY").ok().map(Secret::new);
    passes("mem0", Arc::new(Mem0::new(&url, Edition::Server, token).unwrap())).await;
}

#[tokio::test]
async fn mw_conformance_letta_server() {
    let Some(url) = real("Letta", "YORE_TEST_LETTA") else { return };
    let embedding = std::env::var("YORE_TEST_LETTA_EMBEDDING").unwrap_or_default();
    let embedding = serde_json::from_str(&embedding).unwrap_or_else(|_| json!(embedding));
    passes("letta", Arc::new(Letta::new(&url, None, "conformance", embedding).unwrap())).await;
}

#[tokio::test]
async fn mw_conformance_cognee_server() {
    let Some(url) = real("Cognee", "YORE_TEST_COGNEE") else { return };
    let store = Cognee::new(&url, "conformance", None).unwrap();
    tokio::time::timeout(Duration::from_secs(1800), passes("cognee", Arc::new(store)))
        .await
        .unwrap();
}

#[tokio::test]
async fn the_mem0_adapter_against_its_documented_routes() {
    let (address, _) = fakes::mem0().await;
    let url = format!("http://{address}");
    let store = Mem0::new(&url, Edition::Server, Some(Secret::new("key"))).unwrap();
    assert!(!format!("{store:?}").contains("key\""), "the key is not shown");
    passes("mem0", Arc::new(store)).await;
}

#[tokio::test]
async fn the_letta_adapter_against_its_documented_routes() {
    let (address, _) = fakes::letta().await;
    let store = Letta::new(&format!("http://{address}"), None, "yore", json!("model")).unwrap();
    passes("letta", Arc::new(store)).await;
}

#[tokio::test]
async fn the_cognee_adapter_against_its_documented_routes() {
    let (address, _) = fakes::cognee().await;
    let store = Cognee::new(&format!("http://{address}/api/v1"), "yore", None).unwrap();
    passes("cognee", Arc::new(store)).await;
}
