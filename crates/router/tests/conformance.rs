//! The scenarios of the protocol, against every store that can be started here.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use yore_engine::Secret;
use yore_router::adapters::{Cognee, Edition, Letta, Mem0, Pgvector, SqliteVec};
use yore_router::suite::{BEYOND, CONFORMANCE, NOW, run};
use yore_router::{InMemory, MemoryStore, Question, Record, Slot, Type, Whose};

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
        println!("NOT RUN: sqlite-vec: YORE_TEST_SQLITE_VEC names no file that memorywire made");
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
        println!("NOT RUN: pgvector: YORE_TEST_PGVECTOR names no PostgreSQL with pgvector");
        return;
    };
    let schema = format!("memorywire_{}", std::process::id());
    passes("pgvector", Arc::new(Pgvector::new(&dsn, &schema, embedder()).unwrap())).await;
    // A new connection finds the tables in place, and goes through the index.
    let again = Pgvector::new(&dsn, &schema, embedder()).unwrap().exact_up_to(0);
    let health = again.health().await.unwrap();
    assert!(health.detail["memory_count"].as_i64().unwrap() > 0, "{health:?}");
    agents_find_their_own(again).await;
}

/// A schema as memorywire makes it, with an index over an empty table that loses answers.
#[tokio::test]
async fn mw_077_a_schema_of_memorywires_is_searched_exactly() {
    let Ok(dsn) = std::env::var("YORE_TEST_PGVECTOR") else {
        println!("NOT RUN: pgvector: YORE_TEST_PGVECTOR names no PostgreSQL with pgvector");
        return;
    };
    let schema = format!("theirs_{}", std::process::id());
    let (client, connection) = tokio_postgres::connect(&dsn, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
        .batch_execute(&format!(
            "SELECT pg_advisory_xact_lock(x'796f7265'::bigint);
             CREATE EXTENSION IF NOT EXISTS vector; CREATE SCHEMA {schema};
             CREATE TABLE {schema}.memories (id text PRIMARY KEY, agent_id text NOT NULL,
                 user_id text, type text NOT NULL, content text NOT NULL,
                 metadata jsonb DEFAULT '{{}}', confidence real DEFAULT 1.0, source text,
                 embedding vector(384), created_at bigint NOT NULL, updated_at bigint NOT NULL,
                 expires_at bigint, deleted_at bigint, last_recalled_at bigint);
             CREATE INDEX idx_memories_embedding ON {schema}.memories
                 USING ivfflat (embedding vector_l2_ops);
             INSERT INTO {schema}.memories (id, agent_id, type, content, created_at, updated_at)
                 VALUES ('theirs', 'many-1', 'semantic', 'written without a vector', 1, 1);"
        ))
        .await
        .unwrap();
    let store = Pgvector::new(&dsn, &schema, embedder()).unwrap().exact_up_to(0);
    agents_find_their_own(store).await;
}

/// Many agents in one table: conditions that the index does not know must cost nobody an answer.
async fn agents_find_their_own(store: Pgvector) {
    let slot = Slot::new("index", Arc::new(store), Arc::new(InMemory::default()), terms(60_000));
    let whose = |agent: usize| Whose { agent: format!("many-{agent}"), user: None };
    for agent in 0..20 {
        for number in 0..20 {
            let text = format!("topic{number} of agent{agent} is about word{}", number * 7);
            let id = format!("many-{agent}-{number}");
            let record = Record::new(id, &whose(agent), Type::Semantic, &text, NOW);
            slot.put(&record).await.unwrap();
        }
    }
    for agent in 0..20 {
        let query = format!("topic7 of agent{agent} is about word49");
        let lane = slot.recall(&Question::new(whose(agent), &query, 5, NOW)).await.unwrap();
        assert_eq!(lane.hits.len(), 5, "agent {agent}");
        assert_eq!(lane.hits[0].0.id, format!("many-{agent}-7"));
    }
}

fn real(name: &str, variable: &str) -> Option<String> {
    let address = std::env::var(variable).ok();
    if address.is_none() {
        println!("NOT RUN: {name}: {variable} names no server");
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
