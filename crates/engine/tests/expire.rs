use yore_domain::kind::Kind;
use yore_domain::memory::{Cause, Draft, Status};
use yore_domain::mutation::{Depth, ExpiryAction, ExpiryPolicy, Mutation};
use yore_domain::{Error, MemoryId, Span};
use yore_engine::{DryRun, Reference, Wish};

use crate::support::{NOW, Vault, labelled, refused, under};

async fn status(vault: &Vault, memory: MemoryId) -> Status {
    let found = vault.engine.get(&vault.owner(), Reference::Memory(memory)).await.unwrap();
    found.head.status
}

fn aged(text: &str, kind: Kind, days: u64) -> Draft {
    let mut draft = Draft::new(kind, text);
    draft.time.created = Some(NOW.minus(Span::days(days)));
    draft
}

#[tokio::test]
async fn a_policy_that_demands_nothing_is_refused() {
    let vault = Vault::new().await;
    let memory = vault.holds(Draft::text("kept")).await;
    let nothing = ExpiryPolicy::default();
    let expired =
        vault.engine.expire(&vault.owner(), nothing, ExpiryAction::Forget, DryRun::No).await;
    assert!(matches!(expired, Err(Error::Invalid { .. })));
    assert_eq!(refused(&vault.last().await), Some("invalid"));
    assert_eq!(status(&vault, memory).await, Status::Active);
}

#[tokio::test]
async fn all_demands_must_hold() {
    let vault = Vault::new().await;
    let taken = vault.holds(aged("old and working", Kind::Working, 100)).await;
    let young = vault.holds(aged("young and working", Kind::Working, 1)).await;
    let other = vault.holds(aged("old and semantic", Kind::Semantic, 100)).await;
    let policy = ExpiryPolicy {
        older_than: Some(Span::days(30)),
        kind: Some(Kind::Working),
        ..ExpiryPolicy::default()
    };
    let owner = vault.owner();
    let engine = &vault.engine;
    let dry = engine.expire(&owner, policy.clone(), ExpiryAction::Forget, DryRun::Yes).await;
    assert_eq!(dry.unwrap().matched, [taken]);
    assert_eq!(status(&vault, taken).await, Status::Active);
    let done = engine.expire(&owner, policy, ExpiryAction::Forget, DryRun::No).await;
    assert_eq!(done.unwrap().matched, [taken]);
    assert_eq!(status(&vault, taken).await, Status::Tombstoned);
    assert_eq!(status(&vault, young).await, Status::Active);
    assert_eq!(status(&vault, other).await, Status::Active);
}

#[tokio::test]
async fn what_was_recalled_lately_is_not_unused() {
    let vault = Vault::new().await;
    let used = vault.holds(Draft::text("green tea in the morning")).await;
    let unused = vault.holds(Draft::text("the car needs tyres")).await;
    vault.clock.advance(Span::days(60));
    let asked = yore_domain::query::Recall { limit: 1, ..crate::support::recall("green tea") };
    vault.engine.recall(&vault.owner(), asked).await.unwrap();
    let policy = ExpiryPolicy { unused_for: Some(Span::days(30)), ..ExpiryPolicy::default() };
    let action = ExpiryAction::Archive;
    let done = vault.engine.expire(&vault.owner(), policy, action, DryRun::No).await.unwrap();
    assert_eq!(done.matched, [unused]);
    let archived = vault.engine.get(&vault.owner(), Reference::Memory(unused)).await.unwrap();
    assert_eq!(archived.head.content.tags, ["archived"]);
    assert_eq!(status(&vault, used).await, Status::Active);
}

#[tokio::test]
async fn an_agent_expires_only_what_it_may_write() {
    let vault = Vault::new().await;
    let theirs = vault.holds(labelled("a work note", "work")).await;
    vault.holds(labelled("a health note", "health")).await;
    vault.clock.advance(Span::days(60));
    let agent = vault.agent(|grant| grant.write = under("work")).await;
    let policy = ExpiryPolicy { older_than: Some(Span::days(30)), ..ExpiryPolicy::default() };
    let action = ExpiryAction::Forget;
    let done = vault.engine.expire(&agent.call, policy, action, DryRun::No).await.unwrap();
    assert_eq!(done.matched, [theirs]);
}

#[tokio::test]
async fn retention_erases_and_expiry_forgets_when_their_time_has_come() {
    let vault = Vault::new().await;
    let owner = vault.owner();
    let mut kept_a_week = Draft::text("erase me after a week");
    kept_a_week.content.consent.retention = Some(Span::days(7));
    let kept_a_week = vault.holds(kept_a_week).await;
    let mut protected = Draft::text("protect me by law");
    protected.content.consent.retention = Some(Span::days(7));
    let protected = vault.holds(protected).await;
    vault.engine.legal_hold(&owner, protected, true).await.unwrap();
    let mut lapsing = Draft::text("no longer recalled after a week");
    lapsing.content.lifecycle.expires = Some(NOW.plus(Span::days(7)));
    let lapsing = vault.holds(lapsing).await;

    vault.engine.settle().await.unwrap();
    assert_eq!(status(&vault, kept_a_week).await, Status::Active);
    vault.clock.advance(Span::days(8));
    assert!(vault.texts(&owner, "a week").await.is_empty(), "even before the sweep");
    vault.engine.settle().await.unwrap();
    let gone = vault.engine.get(&owner, Reference::Memory(kept_a_week)).await;
    assert!(matches!(gone, Err(Error::NotFound)));
    let traces = vault.engine.traces(&owner, "erase me after".into()).await.unwrap();
    assert!(traces.found.is_empty(), "{traces:?}");
    for memory in [protected, lapsing] {
        assert_eq!(status(&vault, memory).await, Status::Tombstoned);
        let history = vault.engine.history(&owner, memory).await.unwrap();
        assert_eq!(history.last().unwrap().cause, Cause::Expired);
    }
    assert!(vault.audit().await.iter().any(|entry| entry.draft.operation == "retention"));
}

#[tokio::test]
async fn retention_reaches_what_was_forgotten_before_and_what_a_hold_releases() {
    let vault = Vault::new().await;
    let owner = vault.owner();
    let mut ids = Vec::new();
    for text in ["forgotten first", "held by law"] {
        let mut draft = Draft::text(text);
        draft.content.consent.retention = Some(Span::days(7));
        ids.push(vault.holds(draft).await);
    }
    let [forgotten, held] = ids[..] else { panic!() };
    vault.engine.legal_hold(&owner, held, true).await.unwrap();
    vault.clock.advance(Span::days(1));
    let depth = Depth::Tombstone;
    let forget = Mutation::Forget { memories: vec![forgotten], depth, reason: None };
    vault.engine.mutate(&owner, forget, Wish::default()).await.unwrap();
    vault.engine.settle().await.unwrap();
    assert_eq!(status(&vault, forgotten).await, Status::Tombstoned, "its time has not come");

    vault.clock.advance(Span::days(7));
    vault.engine.settle().await.unwrap();
    let gone = vault.engine.get(&owner, Reference::Memory(forgotten)).await;
    assert!(matches!(gone, Err(Error::NotFound)));
    let traces = vault.engine.traces(&owner, "forgotten first".into()).await.unwrap();
    assert!(traces.found.is_empty(), "{traces:?}");
    assert_eq!(status(&vault, held).await, Status::Tombstoned);

    vault.engine.legal_hold(&owner, held, false).await.unwrap();
    vault.engine.settle().await.unwrap();
    let gone = vault.engine.get(&owner, Reference::Memory(held)).await;
    assert!(matches!(gone, Err(Error::NotFound)));
}
