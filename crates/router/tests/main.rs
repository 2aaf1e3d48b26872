//! Stores, alone and together: files, servers that answer, and servers that do not.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

mod conformance;
mod delivery;
mod fakes;
mod faults;
mod files;
mod http;
mod together;

use std::sync::Arc;
use std::time::Duration;

use yore_router::suite::{NOW, WordHash};
use yore_router::{InMemory, Mapping, MemoryStore, Question, Record, Slot, Terms, Type, Whose};

fn alice() -> Whose {
    Whose { agent: "agent-a".into(), user: Some("alice".into()) }
}

fn record(id: &str, text: &str) -> Record {
    Record::new(id, &alice(), Type::Semantic, text, NOW)
}

fn question(query: &str, k: usize) -> Question {
    Question::new(alice(), query, k, NOW)
}

fn terms(deadline: u64) -> Terms {
    Terms { deadline: Duration::from_millis(deadline), ..Terms::default() }
}

fn slot(name: &str, store: impl MemoryStore + 'static, deadline: u64) -> Arc<Slot> {
    slot_on(name, store, Arc::new(InMemory::default()), deadline)
}

fn slot_on(
    name: &str,
    store: impl MemoryStore + 'static,
    mapping: Arc<dyn Mapping>,
    deadline: u64,
) -> Arc<Slot> {
    Arc::new(Slot::new(name, Arc::new(store), mapping, terms(deadline)))
}

fn embedder() -> Arc<WordHash> {
    Arc::new(WordHash)
}

fn file() -> yore_router::adapters::SqliteVec {
    yore_router::adapters::SqliteVec::open(":memory:".as_ref(), embedder()).unwrap()
}

async fn texts(slot: &Slot, query: &str) -> Vec<String> {
    let lane = slot.recall(&question(query, 10)).await.unwrap();
    lane.hits.into_iter().map(|(record, _)| record.content).collect()
}
