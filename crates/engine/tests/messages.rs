//! Messages between agents: who is believed to have sent them, and what happens once.

use yore_canon::did::Did;
use yore_canon::key::{Algorithm, SigningKey};
use yore_domain::grant::{Verb, Verbs};
use yore_domain::stream::{Pending, StreamState};
use yore_domain::{AgentId, Error, MessageId, Span};
use yore_engine::{Acceptance, Acknowledged, Appending, Call, Incoming, Opening, Peer};

use crate::support::{NOW, Vault, refused};

fn did(seed: u8) -> String {
    let key = SigningKey::generate(Algorithm::Ed25519, &[seed; 32]);
    Did::of_key(&key.verifying_key()).as_str().to_owned()
}

fn peer(did: &str, name: Option<&str>) -> Peer {
    let agent = name.map(|name| AgentId::new(name).unwrap());
    Peer { did: did.to_owned(), agent, recorded: true, registered: NOW }
}

async fn message(vault: &Vault, sender: &str) -> Incoming {
    Incoming {
        sender: sender.to_owned(),
        id: MessageId::random().to_string(),
        digest: "d".into(),
        sent: NOW,
        tolerance: Span::seconds(300),
        to: vec![vault.engine.server_did().await.unwrap()],
        reply_to: None,
        context: Vec::new(),
        opens: Some(Opening {
            id: "s".into(),
            window: 2,
            pending: Pending::Answer { until: NOW.plus(Span::seconds(900)) },
        }),
        unsettled: true,
        expires: NOW.plus(Span::days(1)),
        bytes: b"{}".to_vec(),
        said: None,
    }
}

fn frames(first: u64, count: usize, ends: Option<StreamState>) -> Appending {
    Appending { first, frames: vec![b"{}".to_vec(); count], ends, pending: None, said: None }
}

async fn acknowledged(vault: &Vault, call: &Call, sender: &str, below: u64) -> Option<u64> {
    match vault.engine.acknowledge(call, sender, "s", below).await.unwrap() {
        Acknowledged::Done(stream) => Some(stream.acknowledged),
        Acknowledged::Beyond { .. } => None,
    }
}

#[tokio::test]
async fn only_the_owner_keeps_the_register_and_only_real_dids_enter_it() {
    let vault = Vault::new().await;
    let grants = Verbs::of(&[Verb::Read, Verb::Write, Verb::Grant]);
    let agent = vault.agent(|request| request.verbs = grants).await;
    let owner = vault.owner();
    let mine = peer(&did(1), Some("scheduler"));
    let forged = vault.engine.register_peer(&agent.call, mine.clone()).await;
    assert!(matches!(forged, Err(Error::Forbidden { .. })), "it would give itself a name");
    for wrong in ["", "scheduler", "did:ion:x", "did:key:z6Mk", "did:web:10.0.0.1"] {
        assert!(vault.engine.register_peer(&owner, peer(wrong, None)).await.is_err(), "{wrong}");
    }
    vault.engine.register_peer(&owner, mine.clone()).await.unwrap();
    vault.engine.register_peer(&owner, peer(&did(1), Some("other"))).await.unwrap();
    let known = vault.engine.peers(&owner).await.unwrap();
    assert_eq!(known, [peer(&did(1), Some("other"))], "the last word counts");
    vault.engine.remove_peer(&owner, did(1)).await.unwrap();
    assert!(matches!(vault.engine.remove_peer(&owner, did(1)).await, Err(Error::NotFound)));
    assert!(vault.engine.peers(&owner).await.unwrap().is_empty());
}

#[tokio::test]
async fn uamp_070_a_message_counts_from_whom_the_credential_speaks_for() {
    let vault = Vault::new().await;
    let agent = vault.agent(|_| {}).await;
    let sender = did(1);
    let stranger = vault.engine.accept(&agent.call, message(&vault, &sender).await).await;
    assert!(matches!(stranger, Err(Error::Forbidden { .. })));
    assert_eq!(refused(&vault.last().await), Some("forbidden"));
    vault.engine.register_peer(&vault.owner(), peer(&sender, Some("scheduler"))).await.unwrap();
    let accepted = vault.engine.accept(&agent.call, message(&vault, &sender).await).await.unwrap();
    assert_eq!(accepted.acceptance, Acceptance::New);
    assert!(accepted.own && accepted.stream.as_deref() == Some("s"));
    assert_eq!(vault.last().await.draft.operation, "accept");
    // The owner is somebody else.
    let owner = vault.engine.accept(&vault.owner(), message(&vault, &sender).await).await;
    assert!(matches!(owner, Err(Error::Forbidden { .. })));
}

#[tokio::test]
async fn uamp_075_uamp_076_a_message_is_taken_in_once_and_fresh() {
    let vault = Vault::new().await;
    let agent = vault.agent(|_| {}).await;
    vault.engine.register_peer(&vault.owner(), peer(&did(1), Some("scheduler"))).await.unwrap();
    let sent = message(&vault, &did(1)).await;
    let accept =
        async |message: &Incoming| vault.engine.accept(&agent.call, message.clone()).await.unwrap();
    let first = accept(&sent).await;
    assert_eq!(accept(&sent).await.acceptance, Acceptance::Unsettled);
    vault.engine.settle_message(&first.ticket).await.unwrap();
    vault.clock.advance(Span::days(1));
    let again = accept(&sent).await;
    assert_eq!((again.acceptance, again.stream), (Acceptance::Repeated, Some("s".to_owned())));
    let other = Incoming { digest: "other".into(), ..sent.clone() };
    assert_eq!(accept(&other).await.acceptance, Acceptance::Reused);
    assert_eq!(refused(&vault.last().await), Some("conflict"));
    let late = Incoming { id: MessageId::random().to_string(), ..sent };
    assert_eq!(accept(&late).await.acceptance, Acceptance::Stale);
}

#[tokio::test]
async fn uamp_075_what_came_before_is_answered_so_though_it_would_be_refused_now() {
    let vault = Vault::new().await;
    let agent = vault.agent(|_| {}).await;
    let (sender, friend) = (did(1), did(2));
    for (did, name) in [(&sender, "scheduler"), (&friend, "friend")] {
        vault.engine.register_peer(&vault.owner(), peer(did, Some(name))).await.unwrap();
    }
    let plain = message(&vault, &sender).await;
    let sent = Incoming { to: vec![friend.clone()], opens: None, unsettled: false, ..plain };
    let accept = async |message: &Incoming| vault.engine.accept(&agent.call, message.clone()).await;
    assert_eq!(accept(&sent).await.unwrap().acceptance, Acceptance::New);
    // New or not, the same fresh message: nothing is looked up until the commit says so.
    assert_eq!(accept(&sent).await.unwrap().acceptance, Acceptance::Repeated);
    assert_eq!(vault.engine.letters(&vault.owner(), &friend, 10).await.unwrap().len(), 1);
    vault.engine.remove_peer(&vault.owner(), friend).await.unwrap();
    assert_eq!(accept(&sent).await.unwrap().acceptance, Acceptance::Repeated);
    let other = Incoming { digest: "other".into(), ..sent.clone() };
    assert_eq!(accept(&other).await.unwrap().acceptance, Acceptance::Reused);
    let new = Incoming { id: MessageId::random().to_string(), ..sent };
    assert!(matches!(accept(&new).await, Err(Error::NotFound)));
}

#[tokio::test]
async fn uamp_052_uamp_054_uamp_101_frames_are_numbered_acknowledged_and_end() {
    let vault = Vault::new().await;
    let agent = vault.agent(|_| {}).await;
    let sender = did(1);
    vault.engine.register_peer(&vault.owner(), peer(&sender, Some("scheduler"))).await.unwrap();
    let accepted = vault.engine.accept(&agent.call, message(&vault, &sender).await).await.unwrap();
    let append = async |appending: Appending| {
        vault.engine.append_frames(&accepted.ticket, "s", appending).await
    };
    assert!(append(frames(0, 5, None)).await.unwrap());
    assert!(matches!(append(frames(4, 1, None)).await, Err(Error::Conflict { .. })), "taken");
    assert!(matches!(append(frames(6, 1, None)).await, Err(Error::Conflict { .. })), "a gap");
    assert_eq!(acknowledged(&vault, &agent.call, &sender, 3).await, None, "two are out");
    assert_eq!(acknowledged(&vault, &agent.call, &sender, 2).await, Some(2));
    assert_eq!(acknowledged(&vault, &agent.call, &sender, 1).await, Some(2), "lower ones add none");
    assert!(append(frames(5, 1, Some(StreamState::Completed))).await.unwrap());
    assert!(!append(frames(6, 1, None)).await.unwrap(), "what has ended stays so");
    let (reader, stream) = vault.engine.resume(&agent.call, "s").await.unwrap();
    assert_eq!((stream.next, stream.state), (6, StreamState::Completed));
    let numbers: Vec<u64> =
        reader.read(4, 10).await.unwrap().1.iter().map(|frame| frame.number).collect();
    assert_eq!(numbers, [4, 5]);
    // A stream that is another's and one that is not there look alike.
    let other = vault.agent(|request| request.agent = AgentId::new("other").unwrap()).await;
    assert!(matches!(vault.engine.resume(&other.call, "s").await, Err(Error::NotFound)));
    assert!(matches!(vault.engine.resume(&other.call, "x").await, Err(Error::NotFound)));
    // Whoever loses the grant loses the stream.
    vault.engine.revoke_grant(&vault.owner(), agent.grant).await.unwrap();
    assert!(reader.read(0, 1).await.is_err());
}
