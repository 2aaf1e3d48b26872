use yore_domain::Error;
use yore_domain::Span;
use yore_domain::audit::Outcome;
use yore_domain::hold::{HoldState, Rule, RuleAction};
use yore_domain::memory::Draft;
use yore_engine::{Call, Decision};

use crate::support::{Vault, refused};

fn hold_everything() -> Rule {
    Rule::new("ask me", RuleAction::Hold)
}

async fn held(vault: &Vault, call: &Call, text: &str) -> yore_domain::HoldId {
    match vault.remember(call, Draft::text(text)).await {
        Err(Error::Held { hold }) => hold,
        other => panic!("not held: {other:?}"),
    }
}

#[tokio::test]
async fn a_held_write_is_invisible_until_it_is_approved() {
    let vault = Vault::new().await;
    vault.engine.put_rule(&vault.owner(), hold_everything()).await.unwrap();
    let agent = vault.agent(|_| {}).await;
    let hold = held(&vault, &agent.call, "The moon is made of cheese").await;
    assert!(matches!(vault.last().await.draft.outcome, Outcome::Held { hold: h } if h == hold));

    for call in [&vault.owner(), &agent.call] {
        assert!(vault.texts(call, "moon cheese").await.is_empty());
        let list = vault.engine.count(call, Default::default()).await.unwrap();
        assert_eq!(list, 0);
    }
    let own = vault.engine.holds(&agent.call, HoldState::Pending, 10).await.unwrap();
    assert_eq!(own.len(), 1, "an agent sees what it asked for");
    let decided = vault.engine.review(&agent.call, hold, Decision::Approve, None).await;
    assert!(matches!(decided, Err(Error::Forbidden { .. })));

    let reviewed =
        vault.engine.review(&vault.owner(), hold, Decision::Approve, None).await.unwrap();
    assert_eq!(reviewed.hold.state, HoldState::Approved);
    assert_eq!(vault.texts(&agent.call, "moon cheese").await, ["The moon is made of cheese"]);
    let memory = reviewed.hold.outcome.unwrap();
    let history = vault.engine.history(&vault.owner(), memory).await.unwrap();
    assert_eq!(history[0].writer.as_deref(), Some("scheduler"));
    let twice = vault.engine.review(&vault.owner(), hold, Decision::Approve, None).await;
    assert!(matches!(twice, Err(Error::Conflict { .. })));
    assert_eq!(refused(&vault.last().await), Some("conflict"));
}

#[tokio::test]
async fn a_rejected_write_never_happens() {
    let vault = Vault::new().await;
    vault.engine.put_rule(&vault.owner(), hold_everything()).await.unwrap();
    let agent = vault.agent(|_| {}).await;
    let hold = held(&vault, &agent.call, "The moon is made of cheese").await;
    let note = Some("it is not".to_owned());
    let reviewed = vault.engine.review(&vault.owner(), hold, Decision::Reject, note).await.unwrap();
    assert_eq!((reviewed.hold.state, reviewed.done), (HoldState::Rejected, None));
    assert!(vault.texts(&vault.owner(), "moon cheese").await.is_empty());
}

#[tokio::test]
async fn an_edited_approval_stores_the_edit() {
    let vault = Vault::new().await;
    vault.engine.put_rule(&vault.owner(), hold_everything()).await.unwrap();
    let agent = vault.agent(|_| {}).await;
    let hold = held(&vault, &agent.call, "The moon is made of cheese").await;
    let edit = Decision::Edit(Box::new(Draft::text("The moon is made of rock")));
    vault.engine.review(&vault.owner(), hold, edit, None).await.unwrap();
    assert_eq!(vault.texts(&vault.owner(), "moon").await, ["The moon is made of rock"]);
}

#[tokio::test]
async fn a_grant_that_ended_meanwhile_no_longer_carries_its_request() {
    let vault = Vault::new().await;
    vault.engine.put_rule(&vault.owner(), hold_everything()).await.unwrap();
    let agent = vault.agent(|_| {}).await;
    let hold = held(&vault, &agent.call, "The moon is made of cheese").await;
    vault.engine.revoke_grant(&vault.owner(), agent.grant).await.unwrap();
    let reviewed = vault.engine.review(&vault.owner(), hold, Decision::Approve, None).await;
    assert!(matches!(reviewed, Err(Error::Conflict { .. })));
}

#[tokio::test]
async fn nobody_deciding_in_time_ends_a_hold() {
    let vault = Vault::new().await;
    vault.engine.put_rule(&vault.owner(), hold_everything()).await.unwrap();
    let agent = vault.agent(|_| {}).await;
    let hold = held(&vault, &agent.call, "The moon is made of cheese").await;
    vault.clock.advance(Span::days(31));
    vault.engine.settle().await.unwrap();
    let found = vault.engine.hold(&vault.owner(), hold).await.unwrap();
    assert_eq!(found.state, HoldState::Expired);
}

#[tokio::test]
async fn a_removed_rule_holds_nothing() {
    let vault = Vault::new().await;
    vault.engine.put_rule(&vault.owner(), hold_everything()).await.unwrap();
    vault.engine.remove_rule(&vault.owner(), "ask me".into()).await.unwrap();
    let agent = vault.agent(|_| {}).await;
    assert!(vault.remember(&agent.call, Draft::text("free")).await.is_ok());
    let missing = vault.engine.remove_rule(&vault.owner(), "ask me".into()).await;
    assert!(matches!(missing, Err(Error::NotFound)));
    let theirs = vault.engine.put_rule(&agent.call, hold_everything()).await;
    assert!(matches!(theirs, Err(Error::Forbidden { .. })));
}
