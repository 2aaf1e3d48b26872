use yore_domain::memory::{Draft, Status};
use yore_domain::mutation::{Depth, Mutation, Patch};
use yore_domain::{Error, MemoryId, Span};
use yore_engine::{Call, DryRun, Reference, Undo, Wish};

use crate::support::{Vault, refused};

async fn revise(vault: &Vault, call: &Call, memory: MemoryId, text: &str) {
    let body = Some(Draft::text(text).content.body);
    let patch = Box::new(Patch { body, ..Patch::default() });
    let revise = Mutation::Revise { memory, patch, expected: None };
    vault.engine.mutate(call, revise, Wish::default()).await.unwrap();
}

async fn text(vault: &Vault, memory: MemoryId) -> (String, Status) {
    let memory = vault.engine.get(&vault.owner(), Reference::Memory(memory)).await.unwrap();
    (memory.head.content.body.text, memory.head.status)
}

#[tokio::test]
async fn what_an_agent_did_is_taken_back_and_nothing_else() {
    let vault = Vault::new().await;
    let owner = vault.owner();
    let agent = vault.agent(|_| {}).await;
    let [revised, forgotten, mine, contested] = [
        vault.holds(Draft::text("revised")).await,
        vault.holds(Draft::text("forgotten")).await,
        vault.holds(Draft::text("mine")).await,
        vault.holds(Draft::text("contested")).await,
    ];
    revise(&vault, &agent.call, revised, "old but the agent's").await;
    vault.clock.advance(Span::days(1));
    let since = vault.engine.now();
    revise(&vault, &agent.call, revised, "wrong once").await;
    revise(&vault, &agent.call, revised, "wrong twice").await;
    let forget =
        Mutation::Forget { memories: vec![forgotten], depth: Depth::Tombstone, reason: None };
    vault.engine.mutate(&agent.call, forget, Wish::default()).await.unwrap();
    let made =
        vault.remember(&agent.call, Draft::text("made up")).await.unwrap().memories[0].memory;
    revise(&vault, &owner, mine, "mine, changed by me").await;
    revise(&vault, &agent.call, contested, "by the agent").await;
    revise(&vault, &owner, contested, "and then by me").await;

    let undo = |dry_run| Undo { agent: Some("scheduler".into()), since, dry_run };
    let dry = vault.engine.undo(&owner, undo(DryRun::Yes)).await.unwrap();
    assert_eq!(text(&vault, revised).await.0, "wrong twice", "a dry run changes nothing");
    let undone = vault.engine.undo(&owner, undo(DryRun::No)).await.unwrap();
    assert_eq!(dry, undone);

    let mut reverted = undone.reverted.clone();
    reverted.sort();
    let mut expected = vec![revised, forgotten, made];
    expected.sort();
    assert_eq!(reverted, expected);
    assert_eq!(undone.skipped.len(), 1);
    assert_eq!(undone.skipped[0].0, contested);
    assert_eq!(text(&vault, revised).await, ("old but the agent's".into(), Status::Active));
    assert_eq!(text(&vault, forgotten).await, ("forgotten".into(), Status::Active));
    assert_eq!(text(&vault, made).await.1, Status::Tombstoned);
    assert_eq!(text(&vault, mine).await.0, "mine, changed by me");
    assert_eq!(text(&vault, contested).await.0, "and then by me");
    let history = vault.engine.history(&owner, revised).await.unwrap();
    assert_eq!(history.len(), 5, "undoing appends");
    let again = vault.engine.undo(&owner, undo(DryRun::No)).await.unwrap();
    assert!(again.reverted.is_empty(), "{again:?}");
}

#[tokio::test]
async fn an_agent_takes_back_only_its_own() {
    let vault = Vault::new().await;
    let since = vault.engine.now();
    let memory = vault.holds(Draft::text("mine")).await;
    let agent = vault.agent(|_| {}).await;
    let undo =
        |agent: Option<&str>| Undo { agent: agent.map(str::to_owned), since, dry_run: DryRun::No };
    let other = vault.engine.undo(&agent.call, undo(Some("somebody"))).await;
    assert!(matches!(other, Err(Error::Forbidden { .. })));
    assert_eq!(refused(&vault.last().await), Some("forbidden"));
    let own = vault.engine.undo(&agent.call, undo(None)).await.unwrap();
    assert!(own.reverted.is_empty());
    assert_eq!(text(&vault, memory).await.1, Status::Active);
}
