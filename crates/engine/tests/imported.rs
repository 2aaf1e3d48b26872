//! Bringing the same in again, and what was erased.

use yore_domain::conversation::{Conversation, Message, Role};
use yore_domain::hold::{HoldState, Rule, RuleAction};
use yore_domain::memory::{Draft, Version};
use yore_domain::mutation::{Depth, Mutation};
use yore_domain::query::{Filter, PageRequest};
use yore_domain::{ConversationId, Error, MemoryId, MessageId, Span};
use yore_engine::{Call, Decision, Hands, Imported, Item, Proposal, Reference, Wish, fingerprint};

use crate::support::{NOW, Vault};

fn memory(text: &str) -> (MemoryId, Item) {
    let id = MemoryId::random();
    let version = Version::first(id, Draft::text(text), NOW, None);
    (id, Item::Memory { versions: vec![version] })
}

fn talk(said: usize) -> (Conversation, Vec<Message>) {
    let head = Conversation {
        id: ConversationId::random(),
        title: None,
        platform: "test".into(),
        model: None,
        created: NOW,
        updated: NOW,
        scope: Default::default(),
        governance: Default::default(),
        tags: vec![],
        summary: None,
        language: None,
        foreign: Default::default(),
    };
    let message = |number: usize| Message {
        id: MessageId::random(),
        role: Role::User,
        content: format!("line {number}").into(),
        text: format!("line {number}"),
        at: NOW.plus(Span::seconds(number as u64)),
        model: None,
        platform: None,
        parent: None,
        off_path: false,
        attachments: vec![],
        foreign: Default::default(),
    };
    (head, (0..said).map(message).collect())
}

fn item(talk: &(Conversation, Vec<Message>)) -> Item {
    Item::Conversation { conversation: Box::new(talk.0.clone()), messages: talk.1.clone() }
}

async fn erase(vault: &Vault, memory: MemoryId) {
    let erase = Mutation::Forget { memories: vec![memory], depth: Depth::Erase, reason: None };
    vault.engine.mutate(&vault.owner(), erase, Wish::default()).await.unwrap();
}

async fn everything(vault: &Vault, call: &Call, hands: Hands) -> Vec<Item> {
    let mut page = PageRequest { limit: 100, ..PageRequest::default() };
    let mut items = Vec::new();
    loop {
        let filter = Filter::default();
        let some = vault.engine.export_for(call, hands, filter, page.clone()).await.unwrap();
        items.extend(some.items);
        match some.next {
            Some(next) => page.after = Some(next),
            None => return items,
        }
    }
}

#[tokio::test]
async fn omp_092_what_merged_is_known_when_it_comes_again_and_changes_nothing() {
    let vault = Vault::new().await;
    let owner = vault.owner();
    let known = vault.holds(Draft::text("keeps bees")).await;
    let (other, same) = memory("Keeps  BEES");
    let (_, twin) = memory("likes tea");
    let (last, triplet) = memory("likes tea");
    let items = vec![same, twin, triplet];
    let done = vault.engine.import(&owner, items.clone()).await.unwrap();
    assert_eq!((done.imported, done.merged), (1, 2), "{done:?}");
    let before = everything(&vault, &owner, Hands::Own).await;
    for _ in 0..2 {
        let again = vault.engine.import(&owner, items.clone()).await.unwrap();
        assert_eq!(again, Imported { duplicates: 3, ..Imported::default() });
    }
    assert_eq!(
        everything(&vault, &owner, Hands::Own).await,
        before,
        "nothing was reinforced again"
    );
    let found = vault.engine.get(&owner, Reference::Memory(other)).await.unwrap();
    assert_eq!(found.head.memory, known, "its id leads to what says the same");
    let found = vault.engine.get(&owner, Reference::Memory(last)).await.unwrap();
    assert_eq!(found.head.content.body.text, "likes tea");
}

#[tokio::test]
async fn what_waits_for_a_decision_waits_once() {
    let vault = Vault::new().await;
    let owner = vault.owner();
    let rule = Rule::new("ask", RuleAction::Hold);
    vault.engine.put_rule(&owner, rule).await.unwrap();
    let agent = vault.agent(|_| {}).await;
    let (_, held) = memory("keeps bees");
    let done = vault.engine.import(&agent.call, vec![held.clone()]).await.unwrap();
    assert_eq!(done.held, 1, "{done:?}");
    let again = vault.engine.import(&agent.call, vec![held]).await.unwrap();
    assert_eq!((again.held, again.duplicates), (0, 1), "{again:?}");
    assert_eq!(vault.engine.holds(&owner, HoldState::Pending, 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn two_proposals_of_one_statement_make_one_memory() {
    let vault = Vault::new().await;
    let owner = vault.owner();
    let ids = [MemoryId::random(), MemoryId::random()];
    let proposals = ids.map(|id| Proposal { id, draft: Draft::text("keeps bees") }).to_vec();
    assert_eq!(vault.engine.propose(&owner, proposals).await.unwrap().held, 2);
    for hold in vault.engine.holds(&owner, HoldState::Pending, 10).await.unwrap() {
        vault.engine.review(&owner, hold.id, Decision::Approve, None).await.unwrap();
    }
    assert_eq!(vault.engine.count(&owner, Filter::default()).await.unwrap(), 1);
    let mut found = Vec::new();
    for id in ids {
        found.push(vault.engine.get(&owner, Reference::Memory(id)).await.unwrap().head.memory);
    }
    assert_eq!(found[0], found[1], "both ids lead to it");
    assert!(ids.contains(&found[0]), "it has the id of the one that was approved first");
}

#[tokio::test]
async fn exactly_what_came_in_is_told_by_its_fingerprint() {
    let vault = Vault::new().await;
    let owner = vault.owner();
    let mut talk = talk(3);
    let print = |talk: &(Conversation, Vec<Message>)| fingerprint(&talk.0, &talk.1);
    let asked = vec![print(&talk)];
    assert_eq!(vault.engine.imported(&owner, asked.clone()).await.unwrap(), [false]);
    vault.engine.import(&owner, vec![item(&talk)]).await.unwrap();
    assert_eq!(vault.engine.imported(&owner, asked.clone()).await.unwrap(), [true]);
    let agent = vault.agent(|_| {}).await;
    assert_eq!(vault.engine.imported(&agent.call, asked.clone()).await.unwrap(), [false]);
    let more = self::talk(1).1;
    talk.1.extend(more);
    assert_eq!(vault.engine.imported(&owner, vec![print(&talk)]).await.unwrap(), [false]);
    vault.engine.erase_conversation(&owner, talk.0.id, Vec::new()).await.unwrap();
    assert_eq!(vault.engine.imported(&owner, asked).await.unwrap(), [false], "no hash stays");
    let many = vec![String::new(); 501];
    assert!(matches!(vault.engine.imported(&owner, many).await, Err(Error::TooLarge { .. })));
}

#[tokio::test]
async fn omp_094_nothing_brings_back_what_was_erased() {
    if yore_scratch::is_elsewhere("a database has no copies of single vaults") {
        return;
    }
    let vault = Vault::new().await;
    let owner = vault.owner();
    let (id, gone) = memory("a secret");
    let (merged, twin) = memory("A  secret");
    let (whole, part) = (talk(3), talk(3));
    let items = vec![gone, twin, item(&whole), item(&part)];
    vault.engine.import(&owner, items.clone()).await.unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let copy = elsewhere.path().join("copy.yore");
    vault.engine.backup(&owner, copy.clone()).await.unwrap();

    erase(&vault, id).await;
    vault.engine.erase_conversation(&owner, whole.0.id, Vec::new()).await.unwrap();
    vault.engine.erase_message(&owner, part.0.id, part.1[1].id).await.unwrap();
    let stays_gone = async |what: &str| {
        let done = vault.engine.import(&owner, items.clone()).await.unwrap();
        assert_eq!((done.erased, done.imported, done.merged), (3, 0, 0), "{what}: {done:?}");
        for memory in [id, merged] {
            let found = vault.engine.get(&owner, Reference::Memory(memory)).await;
            assert!(matches!(found, Err(Error::NotFound)), "{what}");
        }
        assert!(vault.engine.conversation(&owner, whole.0.id).await.is_err(), "{what}");
        let left = vault.engine.messages(&owner, part.0.id, 0, 10).await.unwrap();
        assert_eq!(left, [part.1[0].clone(), part.1[2].clone()], "{what}");
        let traces = vault.engine.traces(&owner, "a secret".into()).await.unwrap();
        assert!(traces.found.is_empty(), "{what}: {traces:?}");
    };
    stays_gone("an import").await;
    let (_, found) = memory("kept");
    vault.engine.import(&owner, vec![found]).await.unwrap();
    vault.engine.restore_backup(&owner, copy.clone()).await.unwrap();
    stays_gone("a copy").await;
    assert_eq!(vault.engine.count(&owner, Filter::default()).await.unwrap(), 0, "a copy is older");
    // Whoever makes something new under the same id may.
    vault.engine.converse(&owner, whole.0.clone(), whole.1.clone()).await.unwrap();
    assert_eq!(vault.engine.messages(&owner, whole.0.id, 0, 10).await.unwrap().len(), 3);
}

#[tokio::test]
async fn what_consent_keeps_inside_leaves_only_in_the_owners_own_hands() {
    let vault = Vault::new().await;
    let owner = vault.owner();
    let mut inside = Draft::text("stays inside");
    inside.content.consent.exportable = Some(false);
    vault.holds(inside).await;
    let mut part = Draft::text("leaves in part");
    part.content.body.structured =
        serde_json::json!({"pin": "sesame", "open": 1}).as_object().cloned();
    part.content.consent.redact = vec!["body.structured.pin".into()];
    vault.holds(part).await;
    let own = everything(&vault, &owner, Hands::Own).await;
    assert_eq!(own.len(), 2);
    assert!(serde_json::to_string(&own).unwrap().contains("sesame"));
    let given = everything(&vault, &owner, Hands::Anybody).await;
    assert_eq!(given.len(), 1);
    let text = serde_json::to_string(&given).unwrap();
    assert!(text.contains("leaves in part") && !text.contains("sesame"), "{text}");
}

#[tokio::test]
async fn a_long_conversation_leaves_whole_after_a_message_was_erased() {
    let vault = Vault::new().await;
    let owner = vault.owner();
    let (head, messages) = talk(1200);
    vault.engine.converse(&owner, head.clone(), messages.clone()).await.unwrap();
    vault.engine.erase_message(&owner, head.id, messages[5].id).await.unwrap();
    let items = everything(&vault, &owner, Hands::Own).await;
    let [Item::Conversation { messages: left, .. }] = items.as_slice() else { panic!() };
    let expected: Vec<MessageId> =
        messages.iter().map(|message| message.id).filter(|id| *id != messages[5].id).collect();
    assert_eq!(left.iter().map(|message| message.id).collect::<Vec<_>>(), expected);
}
