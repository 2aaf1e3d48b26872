//! Erasing leaves no trace, and the search for traces would find one.
#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that fails")]

#[path = "shared/support.rs"]
mod support;

use serde_json::json;
use support::*;
use yore_domain::conversation::{Conversation, Message, Role};
use yore_domain::hold::{Hold, HoldReason, HoldState};
use yore_domain::memory::{Body, Draft, Status, Version};
use yore_domain::mutation::{Mutation, Patch};
use yore_domain::{ConversationId, HoldId, MemoryId, MessageId};
use yore_policy::Permit;
use yore_store::plan::{AliasTarget, Operation};
use yore_store::{CommitError, Keeper, Plan, Store, Write};
use yore_store_sqlite::SqliteStore;

const SECRET: &str = "the \"blue\" notebook lies under the third floorboard";

async fn write(store: &SqliteStore, permit: &Permit, writes: Vec<Write>) {
    let plan = Plan { writes, ..Plan::of(audit(permit, "write")) };
    store.commit(permit, plan).await.unwrap();
}

/// Writes the secret wherever a vault can keep text, amid much else.
async fn hide(store: &SqliteStore, permit: &Permit) -> MemoryId {
    let mut draft = Draft::text(SECRET);
    draft.content.body.structured = json!({"where": SECRET}).as_object().cloned();
    draft.content.tags = vec![SECRET.into()];
    draft.content.provenance.source = Some(SECRET.into());
    draft.content.foreign.insert("oamp".into(), json!({"note": [SECRET]}));
    let first = Version::first(MemoryId::random(), draft, now(), None);
    let memory = first.memory;
    let mut plan = version_plan(permit, first.clone());
    plan.operation = Some(Operation {
        caller: "agent".into(),
        id: "op-1".into(),
        fingerprint: "f".into(),
        result: json!({"memory": memory, "text": SECRET}),
    });
    store.commit(permit, plan).await.unwrap();
    for number in 0..40 {
        remember(store, permit, &format!("noise {number} {}", "lorem ipsum ".repeat(30))).await;
    }
    revise(store, permit, &first, &format!("{SECRET}, still")).await;
    let alias = AliasTarget::Memory(memory);
    let name = format!("about {SECRET}");
    let hold = |mutation, state| {
        Write::Hold(Box::new(Hold {
            id: HoldId::random(),
            mutation,
            reason: HoldReason::Requested,
            reasoning: None,
            diff: vec![yore_domain::hold::DiffLine {
                field: "body.text".into(),
                before: Some(json!(SECRET)),
                after: None,
            }],
            judged: vec![(memory, 2)],
            agent: None,
            grant: None,
            protocol: "test".into(),
            asked: now(),
            expires: None,
            state,
            decided_by: None,
            decided: None,
            note: Some(SECRET.into()),
            outcome: None,
            cluster: None,
            learned: None,
        }))
    };
    let body = Some(Body { text: format!("{SECRET} no more"), structured: None });
    let patch = Box::new(Patch { body, ..Patch::default() });
    let draft = Box::new(Draft::text(SECRET));
    let frame = yore_domain::stream::Frame { number: 0, bytes: SECRET.as_bytes().to_vec() };
    let writes = vec![
        Write::Alias { namespace: String::new(), name, target: alias, instead_of: None },
        hold(Mutation::Revise { memory, patch, expected: None }, HoldState::Pending),
        hold(Mutation::Remember { draft, id: None }, HoldState::Rejected),
        Write::Frame { sender: "s".into(), stream: "t".into(), frame },
    ];
    write(store, permit, writes).await;
    memory
}

#[tokio::test]
async fn an_erased_text_is_nowhere_and_was_somewhere() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let permit = permit(vault(&store, "ada").await.id);
    let memory = hide(&store, &permit).await;
    let before = store.traces(&permit, SECRET).await.unwrap();
    assert!(before.found.iter().any(|place| place.contains("-wal")), "{before:?}");

    erase(&store, &permit, memory).await;
    let after = store.traces(&permit, SECRET).await.unwrap();
    assert_eq!(after.found, [] as [String; 0]);
    assert!(after.scanned > 100_000, "{}", after.scanned);
    let part = store.traces(&permit, "third floorboard").await.unwrap();
    assert_eq!(part.found, [] as [String; 0]);

    let snapshot = store.snapshot(&permit).await.unwrap();
    let history = snapshot.history(memory).await.unwrap();
    assert!(history.iter().all(|version| version.status == Status::Erased));
    assert!(history.iter().all(|version| version.content.body.text.is_empty()));
    let again = snapshot.operation("agent", "op-1").await.unwrap().expect("a retry is known");
    assert_eq!(again.result["text"], "");
    assert_eq!(snapshot.holds(HoldState::Pending, 10).await.unwrap().len(), 0);
    drop(snapshot);

    store.close().await.unwrap();
    drop(store);
    let store = open(dir.path());
    for gone in [SECRET, "floorboard", "notebook"] {
        assert_eq!(store.traces(&permit, gone).await.unwrap().found, [] as [String; 0], "{gone}");
    }
    assert!(store.check(&permit, false).await.unwrap().is_sound());
}

#[tokio::test]
async fn without_overwriting_the_same_search_finds_the_text() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_careless(dir.path());
    let permit = permit(vault(&store, "ada").await.id);
    let memory = hide(&store, &permit).await;
    erase(&store, &permit, memory).await;
    let found = store.traces(&permit, SECRET).await.unwrap().found;
    assert!(found.iter().any(|place| place.contains(".db page")), "{found:?}");
}

#[tokio::test]
async fn many_erasures_amid_growth_leave_nothing_in_the_slack_of_pages() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let permit = permit(vault(&store, "ada").await.id);
    let mut seed = 7u64;
    let mut random = move |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let (mut erased, mut live) = (0, Vec::new());
    for round in 0..400 {
        let size = usize::try_from(random(if round % 2 == 0 { 9000 } else { 300 })).unwrap();
        let text = format!("secret number {round:04} begins {} ends", "pad ".repeat(size / 4));
        let version = Version::first(MemoryId::random(), Draft::text(&text), now(), None);
        let mut plan = version_plan(&permit, version.clone());
        // Keys in random order make SQLite split and merge pages, which copies rows about.
        plan.operation = Some(Operation {
            caller: "agent".into(),
            id: MemoryId::random().to_string(),
            fingerprint: "f".into(),
            result: json!({"text": text}),
        });
        plan.writes.push(Write::Alias {
            namespace: "agent".into(),
            name: format!("{} {text:.200}", MemoryId::random()),
            target: AliasTarget::Memory(version.memory),
            instead_of: None,
        });
        store.commit(&permit, plan).await.unwrap();
        let longer = format!("{text} and goes on {}", "tail ".repeat(size / 9));
        let version = revise(&store, &permit, &version, &longer).await;
        live.push(version.memory);
        if live.len() > 60 {
            let index = usize::try_from(random(live.len() as u64)).unwrap();
            let memory = live.swap_remove(index);
            erase(&store, &permit, memory).await;
            erased += 1;
        }
    }
    assert!(erased > 300);
    assert!(!store.traces(&permit, "secret number").await.unwrap().found.is_empty());
    for memory in live {
        erase(&store, &permit, memory).await;
    }
    let traces = store.traces(&permit, "secret number").await.unwrap();
    assert_eq!(traces.found, [] as [String; 0]);
    assert!(traces.scanned > 500_000, "{}", traces.scanned);
}

#[tokio::test]
async fn a_legal_hold_refuses_and_a_reader_only_delays() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let permit = permit(vault(&store, "ada").await.id);
    let memory = remember(&store, &permit, SECRET).await.memory;
    write(&store, &permit, vec![Write::LegalHold { memory, held: true }]).await;
    let plan = Plan { writes: vec![Write::Erase { memory }], ..Plan::of(audit(&permit, "forget")) };
    let error = store.commit(&permit, plan).await.unwrap_err();
    assert!(matches!(&error, CommitError::Failed(e) if e.code() == "consent"), "{error:?}");
    write(&store, &permit, vec![Write::LegalHold { memory, held: false }]).await;

    let reader = store.snapshot(&permit).await.unwrap();
    assert!(reader.memory(memory).await.unwrap().is_some());
    erase(&store, &permit, memory).await;
    let old = reader.memory(memory).await.unwrap().expect("an old snapshot still sees it");
    assert_eq!(old.head.content.body.text, SECRET);
    drop(reader);
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert_eq!(store.traces(&permit, SECRET).await.unwrap().found, [] as [String; 0]);
}

#[tokio::test]
async fn conversations_and_messages_go_with_their_attachments() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let permit = permit(vault(&store, "ada").await.id);
    let conversation = Conversation {
        id: ConversationId::random(),
        title: Some("plans".into()),
        platform: "chatgpt".into(),
        model: None,
        created: now(),
        updated: now(),
        scope: Default::default(),
        governance: Default::default(),
        tags: Vec::new(),
        summary: None,
        language: None,
        foreign: Default::default(),
    };
    let id = conversation.id;
    let bytes = "an attachment that says where the treasure lies".as_bytes().to_vec();
    let blob = yore_domain::BlobHash::of(&bytes);
    let message = |text: &str, attached: bool| Message {
        id: MessageId::random(),
        role: Role::User,
        content: json!(text),
        text: text.into(),
        at: now(),
        model: None,
        platform: None,
        parent: None,
        off_path: false,
        attachments: attached
            .then(|| yore_domain::conversation::Attachment {
                filename: "map.txt".into(),
                media_type: "text/plain".into(),
                blob: Some(blob),
                size: None,
                foreign: Default::default(),
            })
            .into_iter()
            .collect(),
        foreign: Default::default(),
    };
    let (one, two) = (message("first words of the talk", true), message("second words", false));
    let complete = Some(bytes.len() as u64);
    let append = |message: &Message| Write::Message {
        conversation: id,
        message: std::sync::Arc::new(message.clone()),
        indexing: indexing(&message.text),
    };
    write(
        &store,
        &permit,
        vec![
            Write::BlobChunk { blob, number: 0, bytes, complete },
            Write::Conversation(Box::new(conversation)),
            append(&one),
            append(&two),
            append(&one),
        ],
    )
    .await;
    let snapshot = store.snapshot(&permit).await.unwrap();
    assert_eq!(snapshot.messages(id, 0, 10).await.unwrap().len(), 2);
    assert!(snapshot.blob(blob).await.unwrap().is_some());
    drop(snapshot);

    write(&store, &permit, vec![Write::EraseMessage(id, one.id)]).await;
    for gone in ["first words of the talk", "where the treasure lies"] {
        assert_eq!(store.traces(&permit, gone).await.unwrap().found, [] as [String; 0], "{gone}");
    }
    assert!(!store.traces(&permit, "second words").await.unwrap().found.is_empty());
    write(&store, &permit, vec![Write::EraseConversation(id)]).await;
    assert_eq!(store.traces(&permit, "second words").await.unwrap().found, [] as [String; 0]);
    let snapshot = store.snapshot(&permit).await.unwrap();
    assert!(snapshot.conversation(id).await.unwrap().is_none());
}
