//! Out of one vault and into another.

use yore_domain::conversation::{Conversation, Message, Role};
use yore_domain::grant::{Verb, Verbs};
use yore_domain::hold::{Rule, RuleAction};
use yore_domain::memory::{Draft, Version};
use yore_domain::mutation::{Mutation, Patch};
use yore_domain::query::{Filter, PageRequest};
use yore_domain::{ConversationId, Error, MessageId, Span};
use yore_engine::{Call, Imported, Item, Reference, Wish};

use crate::support::{NOW, Vault, labelled, refused, under};

async fn export(vault: &Vault, call: &Call, limit: usize) -> Vec<Item> {
    let mut page = PageRequest { limit, ..PageRequest::default() };
    let mut items = Vec::new();
    loop {
        let some = vault.engine.export(call, Filter::default(), page.clone()).await.unwrap();
        items.extend(some.items);
        match some.next {
            Some(next) => page.after = Some(next),
            None => return items,
        }
    }
}

fn texts(items: &[Item]) -> Vec<String> {
    items
        .iter()
        .filter_map(|item| match item {
            Item::Memory { versions } => Some(versions.last()?.content.body.text.clone()),
            Item::Conversation { .. } | Item::Profile(_) => None,
        })
        .collect()
}

fn talk(messages: usize) -> (Conversation, Vec<Message>) {
    let conversation = Conversation {
        id: ConversationId::random(),
        title: Some("a talk".into()),
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
    let message = |number| Message {
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
    (conversation, (0..messages).map(message).collect())
}

#[tokio::test]
async fn everything_comes_out_page_by_page_and_goes_in_again_unchanged() {
    let from = Vault::new().await;
    let owner = from.owner();
    let first = from.holds(Draft::text("Lives in Bern")).await;
    from.clock.advance(Span::days(1));
    let body = Some(Draft::text("Lives in Basel").content.body);
    let patch = Box::new(Patch { body, ..Patch::default() });
    let revise = Mutation::Revise { memory: first, patch, expected: None };
    from.engine.mutate(&owner, revise, Wish::default()).await.unwrap();
    for number in 0..4 {
        from.clock.advance(Span::seconds(1));
        from.holds(Draft::text(format!("fact {number}"))).await;
    }
    for messages in [2, 3] {
        let (conversation, messages) = talk(messages);
        from.engine.converse(&owner, conversation, messages).await.unwrap();
    }
    let items = export(&from, &owner, 2).await;
    assert_eq!(items.len(), 7);
    assert_eq!(export(&from, &owner, 100).await.len(), 7);

    let into = Vault::new().await;
    into.clock.advance(Span::days(2));
    let imported = into.engine.import(&into.owner(), items.clone()).await.unwrap();
    assert_eq!((imported.imported, imported.memories.len()), (7, 5), "{imported:?}");
    assert!(imported.memories.contains(&first) && imported.rejected.is_empty());
    let history = into.engine.history(&into.owner(), first).await.unwrap();
    assert_eq!(history, from.engine.history(&owner, first).await.unwrap());
    let key = |items: &[Item]| {
        let mut lines: Vec<String> =
            items.iter().map(|item| serde_json::to_string(item).unwrap()).collect();
        lines.sort();
        lines
    };
    assert_eq!(key(&export(&into, &into.owner(), 100).await), key(&items));
    assert_eq!(into.texts(&into.owner(), "fact 3").await[0], "fact 3");

    let again = into.engine.import(&into.owner(), items).await.unwrap();
    assert_eq!(again, Imported { duplicates: 7, ..Imported::default() });
}

#[tokio::test]
async fn consent_decides_what_leaves_under_a_grant() {
    let vault = Vault::new().await;
    let mut stays = labelled("stays here", "work");
    stays.content.consent.exportable = Some(false);
    vault.holds(stays).await;
    let mut redacted = labelled("leaves in part", "work");
    let members = serde_json::json!({"secret": "S3CRET", "open": "fine"});
    redacted.content.body.structured = members.as_object().cloned();
    redacted.content.consent.redact = vec!["body.structured.secret".into()];
    vault.holds(redacted).await;
    vault.holds(labelled("hidden", "health")).await;
    let agent = vault
        .agent(|grant| {
            grant.verbs = Verbs::of(&[Verb::Read, Verb::Export]);
            grant.read = under("work");
        })
        .await;

    let items = export(&vault, &agent.call, 10).await;
    assert_eq!(texts(&items), ["leaves in part"]);
    let text = serde_json::to_string(&items).unwrap();
    assert!(text.contains("fine") && !text.contains("S3CRET"), "{text}");
    assert_eq!(export(&vault, &vault.owner(), 10).await.len(), 3, "the owner takes all");

    let reader = vault.agent(|_| {}).await;
    let page = PageRequest { limit: 10, ..PageRequest::default() };
    let without = vault.engine.export(&reader.call, Filter::default(), page).await;
    assert!(matches!(without, Err(Error::Forbidden { .. })));
    assert_eq!(refused(&vault.last().await), Some("forbidden"));
}

fn item(text: &str) -> Item {
    let memory = yore_domain::MemoryId::random();
    Item::Memory { versions: vec![Version::first(memory, Draft::text(text), NOW, None)] }
}

#[tokio::test]
async fn each_item_of_a_batch_is_judged_by_itself() {
    let vault = Vault::new().await;
    let known = vault.holds(Draft::text("already said")).await;
    let rule = Rule {
        agent: Some("scheduler".into()),
        words: vec!["cheese".into()],
        ..Rule::new("ask", RuleAction::Hold)
    };
    vault.engine.put_rule(&vault.owner(), rule).await.unwrap();
    let agent = vault.agent(|_| {}).await;
    let mut empty = item("x");
    let Item::Memory { versions } = &mut empty else { unreachable!() };
    versions[0].content.body.text.clear();
    let mut secret = item("too secret");
    let Item::Memory { versions } = &mut secret else { unreachable!() };
    versions[0].content.governance.sensitivity = Some(yore_domain::class::Sensitivity::Restricted);
    let twice = item("new");
    let items = vec![
        item("Already  SAID"),
        twice.clone(),
        item("new"),
        twice,
        item("the moon is cheese"),
        empty,
        secret,
    ];
    let imported = vault.engine.import(&agent.call, items).await.unwrap();

    assert_eq!((imported.imported, imported.merged, imported.held), (1, 2, 1), "{imported:?}");
    assert_eq!((imported.duplicates, imported.rejected.len()), (1, 2), "{imported:?}");
    let memory = vault.engine.get(&vault.owner(), Reference::Memory(known)).await.unwrap();
    assert_eq!(memory.head.number, 2, "reinforced");
    assert_eq!(vault.engine.count(&vault.owner(), Filter::default()).await.unwrap(), 2);
    assert_eq!(vault.last().await.draft.operation, "count");

    let many = vec![item("x"); 501];
    let refused_batch = vault.engine.import(&agent.call, many).await;
    assert!(matches!(refused_batch, Err(Error::TooLarge { .. })));
}

#[tokio::test]
async fn what_an_agent_brings_in_is_new_here_and_its_own() {
    let vault = Vault::new().await;
    let hidden = vault.holds(labelled("hidden", "health")).await;
    let agent = vault.agent(|grant| grant.read = under("work")).await;
    let draft = labelled("brought in", "work");
    let mut version = Version::first(hidden, draft, NOW.minus(Span::days(9)), None);
    version.writer = Some("somebody else".into());
    let items = vec![Item::Memory { versions: vec![version] }];
    let imported = vault.engine.import(&agent.call, items.clone()).await.unwrap();
    assert_eq!(imported.imported, 1, "the hidden id says nothing");
    let mine = vault.engine.get(&agent.call, Reference::Memory(hidden)).await.unwrap();
    assert_eq!(mine.head.content.body.text, "brought in");
    assert_eq!(mine.head.writer.as_deref(), Some("scheduler"));
    assert_eq!(mine.head.recorded, NOW, "history says when it came, not when it claims");
    let again = vault.engine.import(&agent.call, items).await.unwrap();
    assert_eq!(again.duplicates, 1);
}
