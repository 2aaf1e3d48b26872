use yore_domain::Error;
use yore_domain::audit::{Actor, Outcome};
use yore_domain::memory::Draft;
use yore_domain::mutation::{Depth, Mutation, Patch};
use yore_domain::sensitive::Care;
use yore_domain::{MemoryId, Span};
use yore_engine::{Call, Effect, Reference, Wish};

use crate::support::{Vault, labelled, under};

#[tokio::test]
async fn the_same_statement_is_merged_and_grows_surer() {
    let vault = Vault::new().await;
    let mut draft = Draft::text("Anna prefers tea.");
    draft.content.lifecycle.confidence = Some(0.5);
    let first = vault.remember(&vault.owner(), draft.clone()).await.unwrap();
    vault.clock.advance(Span::days(1));
    draft.content.body.text = "  anna prefers  TEA. ".to_owned();
    let again = vault.remember(&vault.owner(), draft).await.unwrap();

    assert_eq!((first.effect, again.effect), (Effect::Created, Effect::Merged));
    assert_eq!(again.memories[0].memory, first.memories[0].memory);
    assert_eq!(again.memories[0].number, 2);
    let reference = Reference::Memory(first.memories[0].memory);
    let memory = vault.engine.get(&vault.owner(), reference).await.unwrap();
    assert_eq!(memory.head.content.body.text, "Anna prefers tea.", "the first wording stays");
    assert_eq!(memory.head.content.lifecycle.confidence, Some(0.6));
}

#[tokio::test]
async fn another_class_or_kind_is_another_statement() {
    let vault = Vault::new().await;
    vault.holds(labelled("The key is under the mat", "home")).await;
    let other = vault.remember(&vault.owner(), labelled("The key is under the mat", "work")).await;
    assert_eq!(other.unwrap().effect, Effect::Created);
}

#[tokio::test]
async fn a_writer_that_cannot_see_a_class_learns_nothing_from_merging() {
    let vault = Vault::new().await;
    vault.holds(labelled("The safe opens with 4711", "secret")).await;
    let blind = vault.agent(|grant| grant.read = under("work")).await;
    let draft = labelled("The safe opens with 4711", "secret");
    let said = vault.remember(&blind.call, draft.clone()).await.unwrap();
    assert_eq!(said.effect, Effect::Created, "merging would tell that it was there");
    assert_eq!(vault.remember(&blind.call, draft).await.unwrap().effect, Effect::Merged);
}

#[tokio::test]
async fn an_id_an_agent_chose_is_a_name_of_its_own() {
    let vault = Vault::new().await;
    let hidden = vault.holds(labelled("hidden", "secret")).await;
    let agent = vault.agent(|grant| grant.read = under("work")).await;
    let with = |id| Mutation::Remember { draft: Box::new(labelled("mine", "work")), id: Some(id) };

    let taken = vault.engine.mutate(&agent.call, with(hidden), Wish::default()).await.unwrap();
    assert_ne!(taken.memories[0].memory, hidden);
    let mine = vault.engine.get(&agent.call, Reference::Memory(hidden)).await.unwrap();
    assert_eq!(mine.head.content.body.text, "mine");
    let again = vault.engine.mutate(&agent.call, with(hidden), Wish::default()).await;
    assert!(matches!(again, Err(Error::Conflict { .. })), "its own name is taken");
    let theirs = vault.engine.get(&vault.owner(), Reference::Memory(hidden)).await.unwrap();
    assert_eq!(theirs.head.content.body.text, "hidden");

    let forget = Mutation::Forget { memories: vec![hidden], depth: Depth::Tombstone, reason: None };
    vault.engine.mutate(&agent.call, forget, Wish::default()).await.unwrap();
    let theirs = vault.engine.get(&vault.owner(), Reference::Memory(hidden)).await.unwrap();
    assert!(theirs.head.status.is_live(), "the agent forgot its own, not the owner's");
}

#[tokio::test]
async fn an_operation_id_gives_the_first_result_again_and_refuses_another_request() {
    let vault = Vault::new().await;
    let call = Call { operation: Some("op-1".into()), ..vault.owner() };
    let first = vault.remember(&call, Draft::text("once")).await.unwrap();
    let forget = Mutation::Forget {
        memories: vec![first.memories[0].memory],
        depth: Depth::Tombstone,
        reason: None,
    };
    vault.engine.mutate(&vault.owner(), forget, Wish::default()).await.unwrap();

    assert_eq!(vault.remember(&call, Draft::text("once")).await.unwrap(), first);
    let count = vault.engine.count(&vault.owner(), Default::default()).await.unwrap();
    assert_eq!(count, 0, "the retry wrote nothing");
    let other = vault.remember(&call, Draft::text("twice")).await;
    assert!(matches!(other, Err(Error::Conflict { .. })));
    let agent = vault.agent(|_| {}).await;
    let theirs = Call { operation: Some("op-1".into()), ..agent.call };
    assert!(
        vault.remember(&theirs, Draft::text("twice")).await.is_ok(),
        "ids are each caller's own"
    );
}

#[tokio::test]
async fn a_write_leaves_one_audit_entry_without_text() {
    let vault = Vault::new().await;
    let agent = vault.agent(|_| {}).await;
    let before = vault.audit().await.len();
    let said = vault.remember(&agent.call, Draft::text("zebras sleep standing")).await.unwrap();

    let entries = vault.audit().await;
    assert_eq!(entries.len(), before + 1);
    let entry = &entries[before].draft;
    assert_eq!((entry.operation.as_str(), &entry.outcome), ("remember", &Outcome::Done));
    assert_eq!(entry.targets[0].memory, said.memories[0].memory);
    assert!(entry.targets[0].digest.is_some());
    let named = Actor::Agent { agent: "scheduler".into(), grant: agent.grant };
    assert_eq!(entry.actor, named);
    assert!(!serde_json::to_string(&entries).unwrap().contains("zebras"));
}

#[tokio::test]
async fn a_revision_appends_and_history_reads_back() {
    let vault = Vault::new().await;
    let memory = vault.holds(Draft::text("Lives in Bern")).await;
    vault.clock.advance(Span::days(3));
    let mut body = Draft::text("Lives in Basel").content.body;
    body.structured = None;
    let patch = Box::new(Patch { body: Some(body), ..Patch::default() });
    let revise = Mutation::Revise { memory, patch, expected: Some(1) };
    vault.engine.mutate(&vault.owner(), revise.clone(), Wish::default()).await.unwrap();

    let stale = vault.engine.mutate(&vault.owner(), revise, Wish::default()).await;
    assert!(matches!(stale, Err(Error::Conflict { .. })));
    let history = vault.engine.history(&vault.owner(), memory).await.unwrap();
    let texts: Vec<&str> = history.iter().map(|v| v.content.body.text.as_str()).collect();
    assert_eq!(texts, ["Lives in Bern", "Lives in Basel"]);
    let then = crate::support::NOW.plus(Span::days(1));
    let version = vault.engine.get_as_of(&vault.owner(), memory, then).await.unwrap();
    assert_eq!(version.number, 1);
    let unknown = vault.engine.history(&vault.owner(), MemoryId::random()).await;
    assert!(matches!(unknown, Err(Error::NotFound)));
}

#[tokio::test]
async fn names_find_what_they_were_given_to() {
    let vault = Vault::new().await;
    let wish = Wish { aliases: vec!["tea".into()], ..Wish::default() };
    let draft = Box::new(Draft::text("Anna prefers tea"));
    let remember = Mutation::Remember { draft, id: None };
    let said = vault.engine.mutate(&vault.owner(), remember, wish).await.unwrap();
    let id = said.memories[0].memory;
    let found = vault.engine.get(&vault.owner(), Reference::parse("tea")).await.unwrap();
    assert_eq!(found.head.memory, id);
    assert_eq!(Reference::parse(&id.to_string()), Reference::Memory(id));
}

#[tokio::test]
async fn secrets_are_labelled_or_held_as_the_operator_wants() {
    let said = || Draft::text("the card is 4111 1111 1111 1111");
    let label = yore_domain::sensitive::Finding::Card.label();
    for care in [Care::Off, Care::Label, Care::Hold] {
        let vault = Vault::with(|settings| settings.care = care).await;
        let own = vault.holds(said()).await;
        let own = vault.engine.get(&vault.owner(), Reference::Memory(own)).await.unwrap();
        let labelled = own.head.content.governance.labels.contains(&label);
        assert_eq!(labelled, care != Care::Off, "{care:?}");
        // Said again it is the same memory, labels or not.
        let again = vault.remember(&vault.owner(), said()).await.unwrap();
        assert_eq!(again.memories[0].memory, own.head.memory, "{care:?}");
        let agent = vault.agent(|_| {}).await;
        let mut other = said();
        other.content.tags = vec!["x".into()];
        other.content.body.text.push_str(", I think");
        let written = vault.remember(&agent.call, other).await;
        assert_eq!(matches!(written, Err(Error::Held { .. })), care == Care::Hold, "{care:?}");
        vault.remember(&agent.call, Draft::text("likes tea")).await.unwrap();
    }
}
