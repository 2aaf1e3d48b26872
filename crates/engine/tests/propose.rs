use yore_domain::audit::Outcome;
use yore_domain::grant::{Verb, Verbs};
use yore_domain::hold::HoldState;
use yore_domain::memory::{Draft, Status};
use yore_domain::provenance::MessageRef;
use yore_domain::{ConversationId, MemoryId, MessageId};
use yore_engine::{Call, Decision, Proposal, Reference};

use crate::support::Vault;

fn proposal(text: &str) -> Proposal {
    let mut draft = Draft::text(text);
    draft.status = Status::Candidate;
    let from = MessageRef { conversation: ConversationId::random(), message: MessageId::random() };
    draft.content.provenance.messages.push(from);
    Proposal { id: MemoryId::random(), draft }
}

async fn waiting(vault: &Vault, call: &Call, state: HoldState) -> usize {
    vault.engine.holds(call, state, 100).await.unwrap().len()
}

#[tokio::test]
async fn a_proposal_is_asked_once_whatever_is_decided() {
    let vault = Vault::new().await;
    let owner = vault.owner();
    vault.holds(Draft::text("said already")).await;
    let all = vec![
        proposal("keeps bees"),
        proposal("likes tea"),
        proposal("Said  ALREADY"),
        proposal(""),
    ];
    let weighed = vault.engine.weigh_proposals(&owner, all.clone()).await.unwrap();
    assert_eq!((weighed.held, weighed.known, weighed.rejected.len()), (2, 1, 1), "{weighed:?}");
    assert_eq!(waiting(&vault, &owner, HoldState::Pending).await, 0, "weighing writes nothing");

    let done = vault.engine.propose(&owner, all.clone()).await.unwrap();
    assert_eq!(done, weighed);
    let entry = vault.last().await;
    assert_eq!(entry.draft.operation, "propose");
    assert!(matches!(entry.draft.outcome, Outcome::Done), "{entry:?}");
    let holds = vault.engine.holds(&owner, HoldState::Pending, 10).await.unwrap();
    assert_eq!(holds.len(), 2);
    let again = vault.engine.propose(&owner, all.clone()).await.unwrap();
    assert_eq!((again.held, again.known), (0, 3), "it waits already");

    vault.engine.review(&owner, holds[0].id, Decision::Approve, None).await.unwrap();
    vault.engine.review(&owner, holds[1].id, Decision::Reject, None).await.unwrap();
    let again = vault.engine.propose(&owner, all.clone()).await.unwrap();
    assert_eq!((again.held, again.known), (0, 3), "it was decided");
    assert_eq!(waiting(&vault, &owner, HoldState::Pending).await, 0);
    let kept = all.iter().find(|one| one.draft.content.body.text == "keeps bees").unwrap();
    let kept = vault.engine.get(&owner, Reference::Memory(kept.id)).await;
    let turned = all.iter().find(|one| one.draft.content.body.text == "likes tea").unwrap();
    let turned = vault.engine.get(&owner, Reference::Memory(turned.id)).await;
    let kept = kept.or(turned).unwrap();
    assert_eq!(kept.head.status, Status::Active, "a person settled it");
    assert_eq!(kept.head.content.provenance.messages.len(), 1);
}

#[tokio::test]
async fn an_agent_proposes_under_its_grant_and_in_its_own_name() {
    let vault = Vault::new().await;
    let plain = vault.agent(|_| {}).await;
    let one = proposal("keeps bees");
    let done = vault.engine.propose(&plain.call, vec![one.clone()]).await.unwrap();
    assert_eq!((done.held, done.rejected.len()), (0, 1), "it rests on a message: {done:?}");
    let agent = vault
        .agent(|grant| grant.verbs = Verbs::of(&[Verb::Read, Verb::Write, Verb::Derive]))
        .await;
    for expected in [(1, 0), (0, 1)] {
        let done = vault.engine.propose(&agent.call, vec![one.clone()]).await.unwrap();
        assert_eq!((done.held, done.known), expected, "{done:?}");
    }
    let done = vault.engine.propose(&vault.owner(), vec![one.clone()]).await.unwrap();
    assert_eq!(done.held, 1, "whether another asked is not told");
    let reader = vault.agent(|grant| grant.verbs = Verbs::of(&[Verb::Read])).await;
    assert!(vault.engine.propose(&reader.call, vec![one]).await.is_err());
}
