//! The scenarios of the protocol, against every store that can be started here.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use yore_engine::Secret;
use yore_router::adapters::{Cognee, Edition, Letta, Mem0, Pgvector, Server, SqliteVec};
use yore_router::suite::{BEYOND, CONFORMANCE, NOW, run};
use yore_router::{
    Ask, InMemory, MemoryStore, Options, Question, Record, Router, Slot, Type, Whose,
};

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

/// What speaks TLS as `localhost`, and the certificate that vouches for it.
fn certified() -> (tokio_rustls::TlsAcceptor, String) {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let private = rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .unwrap();
    (tokio_rustls::TlsAcceptor::from(Arc::new(config)), certificate.pem())
}

/// Something that speaks TLS in front of the PostgreSQL, which itself need not.
async fn encrypting(dsn: &str) -> (u16, String) {
    let target: tokio_postgres::Config = dsn.parse().unwrap();
    let port = target.get_ports()[0];
    let (acceptor, certificate) = certified();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                // A client that wants TLS says so first, in eight bytes.
                let mut request = [0; 8];
                client.read_exact(&mut request).await?;
                assert_eq!(request[4..], 80_877_103_u32.to_be_bytes(), "nothing in the clear");
                client.write_all(b"S").await?;
                let mut client = acceptor.accept(client).await?;
                let mut server = tokio::net::TcpStream::connect(("127.0.0.1", port)).await?;
                tokio::io::copy_bidirectional(&mut client, &mut server).await
            });
        }
    });
    (own, certificate)
}

#[tokio::test]
async fn a_server_is_believed_where_its_own_certificates_vouch_for_it() {
    let (address, _) = fakes::mem0().await;
    let (acceptor, certificate) = certified();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let mut client = acceptor.accept(client).await?;
                let mut server = tokio::net::TcpStream::connect(address).await?;
                tokio::io::copy_bidirectional(&mut client, &mut server).await
            });
        }
    });
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ca.pem");
    std::fs::write(&file, certificate).unwrap();
    let mut config = yore_router::config::StoreConfig::new("far", "mem0://default");
    config.base_url = Some(url);
    let health = async |config: &yore_router::config::StoreConfig| {
        let slot = config.slot(Arc::new(InMemory::default()), embedder()).unwrap();
        slot.store().health().await
    };
    assert!(health(&config).await.is_err(), "nobody vouches for the certificate");
    config.ca_file = Some(file);
    assert_eq!(health(&config).await.unwrap().status, "ok");
    config.ca_file = Some(directory.path().join("no such file"));
    let refused = config.slot(Arc::new(InMemory::default()), embedder()).unwrap_err();
    assert!(refused.to_string().contains("ca_file"), "{refused}");
}

#[tokio::test]
async fn connections_to_postgresql_are_encrypted_where_the_address_asks_for_it() {
    let Ok(dsn) = std::env::var("YORE_TEST_PGVECTOR") else {
        println!("NOT RUN: pgvector: YORE_TEST_PGVECTOR names no PostgreSQL with pgvector");
        return;
    };
    let (port, certificate) = encrypting(&dsn).await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ca.pem");
    std::fs::write(&file, certificate).unwrap();
    let schema = format!("encrypted_{}", std::process::id());
    let open = |query: String| {
        let dsn = format!("postgresql://postgres@localhost:{port}/postgres?{query}");
        Pgvector::new(&dsn, &schema, embedder()).unwrap()
    };
    for mode in ["require", "verify-full"] {
        let store = open(format!("sslmode={mode}&sslrootcert={}", file.display()));
        assert_eq!(store.health().await.unwrap().status, "ok", "{mode}");
        let stranger = open(format!("sslmode={mode}"));
        assert!(stranger.health().await.is_err(), "{mode}: nobody vouches for the certificate");
    }
    let plain = format!("{dsn}?sslmode=require");
    let store = Pgvector::new(&plain, &schema, embedder()).unwrap();
    assert!(store.health().await.is_err(), "a server without TLS is not spoken to in the clear");
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
    passes(
        "mem0",
        Arc::new(Mem0::new(Server::from(url).with_token(token), Edition::Server).unwrap()),
    )
    .await;
}

#[tokio::test]
async fn mw_conformance_letta_server() {
    let Some(url) = real("Letta", "YORE_TEST_LETTA") else { return };
    let embedding = std::env::var("YORE_TEST_LETTA_EMBEDDING").unwrap_or_default();
    let embedding = serde_json::from_str(&embedding).unwrap_or_else(|_| json!(embedding));
    passes("letta", Arc::new(Letta::new(url, "conformance", embedding).unwrap())).await;
}

#[tokio::test]
async fn mw_conformance_cognee_server() {
    let Some(url) = real("Cognee", "YORE_TEST_COGNEE") else { return };
    let store = Cognee::new(url, "conformance").unwrap();
    let slow = async {
        let store: Arc<dyn MemoryStore> = Arc::new(store);
        passes("cognee", store.clone()).await;
        relations_lift(store).await;
    };
    tokio::time::timeout(Duration::from_secs(1800), slow).await.unwrap();
}

/// Facts that name one thing lift each other, in a store that knows what is named.
async fn relations_lift(store: Arc<dyn MemoryStore>) {
    let slot = Slot::new("graph", store, Arc::new(InMemory::default()), terms(120_000));
    let whose = Whose { agent: format!("graph-{}", std::process::id()), user: None };
    let texts = ["Hypatia taught in a school", "a lamp of Hypatia", "the school has a lamp"];
    for (number, text) in texts.into_iter().enumerate() {
        let id = format!("{}-{number}", whose.agent);
        slot.put(&Record::new(id, &whose, Type::Semantic, text, NOW)).await.unwrap();
    }
    let router = Router::new(vec![Arc::new(slot)], Options::default()).unwrap();
    let question = Question::new(whose.clone(), "a school with a lamp", 5, NOW);
    let ask = Ask { hops: 1, ..Ask::new(question) };
    let hits = router.recall(&ask, Vec::new()).await.unwrap().hits;
    let lifted: Vec<(&str, usize)> =
        hits.iter().map(|hit| (hit.record.content.as_str(), hit.supporting.len())).collect();
    assert_eq!(lifted.len(), 3, "{lifted:?}");
    for (text, by) in lifted {
        assert_eq!(by, usize::from(text.contains("Hypatia")), "{text}");
    }
}

#[tokio::test]
async fn the_mem0_adapter_against_its_documented_routes() {
    let (address, _) = fakes::mem0().await;
    let url = format!("http://{address}");
    let store =
        Mem0::new(Server::from(url).with_token(Some(Secret::new("key"))), Edition::Server).unwrap();
    assert!(!format!("{store:?}").contains("key\""), "the key is not shown");
    passes("mem0", Arc::new(store)).await;
}

#[tokio::test]
async fn the_letta_adapter_against_its_documented_routes() {
    let (address, _) = fakes::letta().await;
    let store = Letta::new(format!("http://{address}"), "yore", json!("model")).unwrap();
    passes("letta", Arc::new(store)).await;
}

#[tokio::test]
async fn the_cognee_adapter_against_its_documented_routes() {
    let (address, state) = fakes::cognee().await;
    state.somebody_elses("a duplicate fact of the city, the sky, the sun and the ferry");
    let store = Cognee::new(format!("http://{address}/api/v1"), "yore").unwrap();
    let store: Arc<dyn MemoryStore> = Arc::new(store);
    passes("cognee", store.clone()).await;
    relations_lift(store).await;
}
