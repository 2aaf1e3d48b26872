//! From the vault to a store that is there, away, and back.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tempfile::TempDir;
use yore_domain::class::Sensitivity;
use yore_domain::kind::Kind;
use yore_domain::memory::Draft;
use yore_domain::mutation::{Depth, Mutation, Relabel};
use yore_domain::{MemoryId, Timestamp};
use yore_engine::{Call, Engine, FixedClock, Parts, Secret, Settings, TokenKind, Wish, token};
use yore_router::adapters::{Edition, Letta, Mem0};
use yore_router::deliver::{Delivered, Delivery};
use yore_router::suite::NOW;
use yore_router::{Error, InMemory, Mapping, Question, Slot, Whose};
use zeroize::Zeroizing;

use crate::http::Reply;
use crate::{fakes, slot_on, texts};

const QUIET: Duration = Duration::from_millis(400);
const LOCAL_KEY: [u8; 32] = [7; 32];

struct Vault {
    engine: Engine,
    owner: Call,
    directory: TempDir,
}

impl Vault {
    async fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let (store, keeper) = yore_scratch::open(directory.path()).await;
        let now = Timestamp::from_millis(NOW);
        let engine = Engine::new(Parts {
            store,
            keeper,
            clock: Arc::new(FixedClock::at(now)),
            local_key: Zeroizing::new(LOCAL_KEY),
            settings: Settings::default(),
        });
        let master = Call::bearer("test", token::proof(&LOCAL_KEY, now));
        let owner = engine.issue_token(&master, TokenKind::Owner, None, None).await.unwrap();
        let owner = Call::bearer("test", Secret::new(owner));
        Self { engine, owner, directory }
    }

    async fn remember(&self, text: &str, change: impl FnOnce(&mut Draft)) -> MemoryId {
        let mut draft = Draft::new(Kind::Semantic, text);
        draft.content.scope.agent = Some("agent-a".into());
        draft.content.scope.user = Some("alice".into());
        change(&mut draft);
        let mutation = Mutation::Remember { draft: Box::new(draft), id: None };
        self.mutate(mutation).await
    }

    async fn mutate(&self, mutation: Mutation) -> MemoryId {
        let done = self.engine.mutate(&self.owner, mutation, Wish::default()).await.unwrap();
        done.memories[0].memory
    }

    async fn forget(&self, memory: MemoryId, depth: Depth) {
        self.mutate(Mutation::Forget { memories: vec![memory], depth, reason: None }).await;
    }

    fn to(&self, slot: &Arc<Slot>) -> Delivery {
        let owner = self.owner.clone();
        Delivery::new(self.engine.clone(), Arc::new(move || owner.clone()), slot.clone())
    }
}

#[tokio::test]
async fn a_store_that_was_away_catches_up_from_its_cursor_without_doubling_anything() {
    let vault = Vault::new().await;
    let (address, state) = fakes::mem0().await;
    let url = format!("http://{address}");
    let mapping = Arc::new(InMemory::default());
    let open = || Mem0::new(url.as_str(), Edition::Server).unwrap();
    let slot = slot_on("mem0", open(), mapping.clone(), 300);

    let first = vault.remember("the orchard has pears", |_| {}).await;
    vault.remember("no agent's own", |draft| draft.content.scope.agent = None).await;
    vault
        .remember("too private to leave", |draft| {
            draft.content.governance.sensitivity = Some(Sensitivity::Restricted);
        })
        .await;
    let done = vault.to(&slot).catch_up(QUIET).await.unwrap();
    assert_eq!((done.created, done.refused), (1, 0), "{done:?}");
    assert_eq!(state.len(), 1);
    assert_eq!(texts(&slot, "orchard").await, ["the orchard has pears"]);
    let cursor = mapping.cursor("mem0").await.unwrap().unwrap();

    // Away: it takes the write and does not answer.
    state.writes_only.store(true, Ordering::SeqCst);
    *state.trouble.lock() = Some(Reply::Hang);
    vault.remember("the orchard has plums", |_| {}).await;
    vault.remember("the orchard has quinces", |_| {}).await;
    let failed = vault.to(&slot).catch_up(QUIET).await;
    assert!(matches!(failed, Err(Error::Deadline(_))), "{failed:?}");
    assert_eq!(mapping.cursor("mem0").await.unwrap().unwrap(), cursor, "nothing is passed over");
    vault.forget(first, Depth::Tombstone).await;

    // Back, with another process over the same mapping.
    *state.trouble.lock() = None;
    let slot = slot_on("mem0", open(), mapping, 2000);
    let done = vault.to(&slot).catch_up(QUIET).await.unwrap();
    assert_eq!((done.created, done.replaced, done.withdrawn), (1, 1, 1), "{done:?}");
    assert_eq!(state.len(), 2);
    let mut found = texts(&slot, "orchard").await;
    found.sort();
    assert_eq!(found, ["the orchard has plums", "the orchard has quinces"]);
    let again = vault.to(&slot).catch_up(QUIET).await.unwrap();
    assert_eq!(again, Delivered::default(), "nothing is left to do");
}

#[tokio::test]
async fn what_is_erased_leaves_the_store() {
    let vault = Vault::new().await;
    let slot = slot_on("file", crate::file(), Arc::new(InMemory::default()), 5000);
    let erased = vault.remember("the code of the gate", |_| {}).await;
    vault.remember("the gate is green", |_| {}).await;
    vault.to(&slot).catch_up(QUIET).await.unwrap();
    assert_eq!(texts(&slot, "gate").await.len(), 2);
    vault.forget(erased, Depth::Erase).await;
    let done = vault.to(&slot).catch_up(QUIET).await.unwrap();
    assert_eq!(done.withdrawn, 1, "{done:?}");
    assert_eq!(texts(&slot, "gate").await, ["the gate is green"]);
}

#[tokio::test]
async fn a_delete_that_a_store_refuses_is_asked_for_again() {
    let vault = Vault::new().await;
    let (address, state) = fakes::mem0().await;
    let store = Mem0::new(format!("http://{address}"), Edition::Server).unwrap();
    let mapping = Arc::new(InMemory::default());
    let slot = slot_on("mem0", store, mapping.clone(), 2000);
    let gone = vault.remember("the gate has a code", |_| {}).await;
    vault.to(&slot).catch_up(QUIET).await.unwrap();
    state.keeps_all.store(true, Ordering::SeqCst);
    vault.forget(gone, Depth::Tombstone).await;
    vault.remember("the gate is green", |_| {}).await;
    let done = vault.to(&slot).catch_up(QUIET).await.unwrap();
    assert_eq!(
        (done.refused, done.created),
        (1, 1),
        "what comes after it is not held up: {done:?}"
    );
    assert_eq!(mapping.leaving("mem0").await.unwrap().len(), 1);
    let again = vault.to(&slot).catch_up(QUIET).await.unwrap();
    assert_eq!((again.withdrawn, state.len()), (0, 2), "still refused");
    state.keeps_all.store(false, Ordering::SeqCst);
    let done = vault.to(&slot).catch_up(QUIET).await.unwrap();
    assert_eq!((done.withdrawn, state.len()), (1, 1), "{done:?}");
    assert_eq!(mapping.leaving("mem0").await.unwrap(), [""; 0]);
    assert_eq!(texts(&slot, "gate").await, ["the gate is green"]);
}

#[tokio::test]
async fn deliveries_go_on_by_themselves_after_the_vault_was_put_back() {
    let vault = Vault::new().await;
    let slot = slot_on("file", crate::file(), Arc::new(InMemory::default()), 5000);
    vault.remember("the gate is green", |_| {}).await;
    vault.to(&slot).catch_up(QUIET).await.unwrap();
    let copy = vault.directory.path().join("copy.backup");
    vault.engine.backup(&vault.owner, copy.clone()).await.unwrap();
    for colour in ["red", "blue", "white"] {
        vault.remember(&format!("the gate was {colour} later"), |_| {}).await;
    }
    vault.to(&slot).catch_up(QUIET).await.unwrap();
    assert_eq!(texts(&slot, "gate").await.len(), 4);
    vault.engine.restore_backup(&vault.owner, copy).await.unwrap();

    // Fewer changes than the store has seen.
    vault.remember("the gate is open", |_| {}).await;
    let done = vault.to(&slot).catch_up(QUIET).await.unwrap();
    assert_eq!((done.created, done.withdrawn), (1, 3), "{done:?}");
    let mut found = texts(&slot, "gate").await;
    found.sort();
    assert_eq!(found, ["the gate is green", "the gate is open"]);
    let again = vault.to(&slot).catch_up(QUIET).await.unwrap();
    assert_eq!(again, Delivered::default());
}

#[tokio::test]
async fn a_repair_leaves_no_word_of_what_was_erased() {
    let vault = Vault::new().await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes.db");
    let store = yore_router::adapters::SqliteVec::open(&path, crate::embedder()).unwrap();
    let slot = slot_on("file", store, Arc::new(InMemory::default()), 5000);
    let erased = vault.remember("the gate code is 4711", |_| {}).await;
    vault.to(&slot).catch_up(QUIET).await.unwrap();
    vault.forget(erased, Depth::Erase).await;
    let done = vault.to(&slot).repair(QUIET).await.unwrap();
    assert_eq!(done.withdrawn, 1, "{done:?}");
    let rows = rusqlite::Connection::open(&path).unwrap();
    let left: i64 = rows.query_row("SELECT count(*) FROM memories", [], |row| row.get(0)).unwrap();
    assert_eq!(left, 0, "out of recall is not enough");
}

#[tokio::test]
async fn a_vault_that_was_put_back_and_has_grown_since_is_not_taken_for_the_same() {
    let vault = Vault::new().await;
    let slot = slot_on("file", crate::file(), Arc::new(InMemory::default()), 5000);
    let copy = vault.directory.path().join("copy.backup");
    vault.remember("the gate is green", |_| {}).await;
    vault.engine.backup(&vault.owner, copy.clone()).await.unwrap();
    vault.remember("the gate was red later", |_| {}).await;
    vault.to(&slot).catch_up(QUIET).await.unwrap();
    vault.engine.restore_backup(&vault.owner, copy).await.unwrap();
    for number in 0..5 {
        vault.remember(&format!("gate number {number}"), |_| {}).await;
    }
    let done = vault.to(&slot).catch_up(QUIET).await.unwrap();
    assert_eq!((done.created, done.withdrawn), (5, 1), "{done:?}");
    assert!(!texts(&slot, "gate").await.contains(&"the gate was red later".to_owned()));
}

#[tokio::test]
async fn mw_088_a_memory_that_moves_to_another_person_leaves_no_copy_behind() {
    let (mem0, mem0_state) = fakes::mem0().await;
    let (letta, letta_state) = fakes::letta().await;
    let mem0 = Mem0::new(format!("http://{mem0}"), Edition::Server).unwrap();
    let letta = Letta::new(format!("http://{letta}"), "yore", "model".into()).unwrap();
    let mapping = || Arc::new(InMemory::default());
    for (slot, state) in [
        (slot_on("mem0", mem0, mapping(), 5000), mem0_state),
        (slot_on("letta", letta, mapping(), 5000), letta_state),
    ] {
        let vault = Vault::new().await;
        let memory = vault.remember("the gate is green", |_| {}).await;
        vault.to(&slot).catch_up(QUIET).await.unwrap();
        assert_eq!(texts(&slot, "gate").await.len(), 1, "{slot:?}");
        let found = vault.engine.get(&vault.owner, yore_engine::Reference::Memory(memory)).await;
        let mut scope = found.unwrap().head.content.scope;
        scope.user = Some("bob".into());
        let change = Box::new(Relabel { scope: Some(scope), ..Relabel::default() });
        vault.mutate(Mutation::Relabel { memory, change }).await;
        vault.to(&slot).catch_up(QUIET).await.unwrap();
        assert_eq!(state.len(), 1, "one row, wherever it is: {slot:?}");
        assert_eq!(texts(&slot, "gate").await, [""; 0], "it is not alice's any more");
        let bob = Whose { agent: "agent-a".into(), user: Some("bob".into()) };
        let lane = slot.recall(&Question::new(bob, "gate", 5, NOW)).await.unwrap();
        assert_eq!(lane.hits.len(), 1, "{slot:?}");
    }
}
