use yore_domain::Span;
use yore_domain::audit::Actor;
use yore_domain::hold::{HoldReason, HoldState};
use yore_domain::memory::{Draft, Status};
use yore_domain::mutation::Mutation;
use yore_engine::{Decision, Reference};

use crate::support::{Vault, labelled, recall};

#[tokio::test]
async fn vectors_follow_the_write() {
    let vault = Vault::new().await;
    for number in 0..20 {
        vault.holds(Draft::text(format!("Anna drinks tea number {number}"))).await;
    }
    assert_eq!(vault.engine.census(&vault.owner()).await.unwrap().unembedded, 20);
    vault.engine.settle().await.unwrap();
    assert_eq!(vault.engine.census(&vault.owner()).await.unwrap().unembedded, 0);
    let entry = vault.audit().await.into_iter().find(|e| e.draft.operation == "embed").unwrap();
    assert_eq!(entry.draft.actor, Actor::System { reason: "embed".into() });
    let found = vault.engine.recall(&vault.owner(), recall("a hot beverage")).await.unwrap();
    assert!(found.results[0].relevance > 0.2, "{}", found.results[0].relevance);
}

#[tokio::test]
async fn nothing_is_done_twice() {
    let vault = Vault::new().await;
    vault.holds(Draft::text("Anna drinks tea")).await;
    vault.engine.settle().await.unwrap();
    let entries = vault.audit().await;
    for operation in ["embed", "find duplicates"] {
        let times = entries.iter().filter(|entry| entry.draft.operation == operation).count();
        assert_eq!(times, 1, "{operation}");
    }
}

#[tokio::test]
async fn near_duplicates_are_proposed_once_and_nothing_is_overwritten() {
    let vault = Vault::new().await;
    let owner = vault.owner();
    let older = vault.holds(Draft::text("Anna drinks green tea every morning")).await;
    vault.clock.advance(Span::days(1));
    let newer = vault.holds(Draft::text("Anna drinks green tea every morning!")).await;
    vault.holds(labelled("Anna drinks green tea every morning", "health")).await;
    vault.holds(Draft::text("The car needs new tyres")).await;
    vault.engine.settle().await.unwrap();

    let holds = vault.engine.holds(&owner, HoldState::Pending, 10).await.unwrap();
    assert_eq!(holds.len(), 1, "{holds:?}");
    assert_eq!(holds[0].reason, HoldReason::NearDuplicate(older));
    let expected =
        Mutation::Merge { canonical: older, duplicates: vec![newer], strategy: Default::default() };
    assert_eq!(holds[0].mutation, expected);
    for memory in [older, newer] {
        let found = vault.engine.get(&owner, Reference::Memory(memory)).await.unwrap();
        assert_eq!((found.head.number, found.head.status), (1, Status::Active));
    }

    vault.engine.review(&owner, holds[0].id, Decision::Reject, None).await.unwrap();
    vault.remember(&owner, Draft::text("Anna drinks green tea every morning")).await.unwrap();
    vault.engine.settle().await.unwrap();
    let holds = vault.engine.holds(&owner, HoldState::Pending, 10).await.unwrap();
    assert!(holds.is_empty(), "a pair is never proposed twice");
}

#[tokio::test]
async fn an_approved_proposal_merges() {
    let vault = Vault::new().await;
    let owner = vault.owner();
    let older = vault.holds(Draft::text("Anna drinks green tea every morning")).await;
    vault.clock.advance(Span::days(1));
    let newer = vault.holds(Draft::text("Anna drinks green tea every morning!")).await;
    vault.engine.settle().await.unwrap();
    let holds = vault.engine.holds(&owner, HoldState::Pending, 10).await.unwrap();
    vault.engine.review(&owner, holds[0].id, Decision::Approve, None).await.unwrap();
    let gone = vault.engine.get(&owner, Reference::Memory(newer)).await.unwrap();
    assert_eq!((gone.head.status, gone.head.absorbed_by), (Status::Tombstoned, Some(older)));
    assert_eq!(vault.texts(&owner, "green tea").await.len(), 1);
}

#[tokio::test]
async fn the_background_starts_works_and_stops() {
    let vault = Vault::new().await;
    let background = vault.engine.start();
    vault.holds(Draft::text("Anna drinks tea")).await;
    let mut left = 1;
    for _ in 0..200 {
        left = vault.engine.census(&vault.owner()).await.unwrap().unembedded;
        if left == 0 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(left, 0);
    background.stop().await;
}
