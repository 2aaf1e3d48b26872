use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use yore_domain::change::What;
use yore_domain::memory::Status;
use yore_domain::mutation::{Mutation, Relabel};
use yore_domain::{Error, MemoryId, Result, Seq, Span};
use yore_engine::{Event, Wish};

use crate::support::{Vault, label, labelled, refused, under};

async fn next(stream: &mut BoxStream<'static, Result<Event>>) -> Option<Result<Event>> {
    tokio::time::timeout(Duration::from_secs(10), stream.next()).await.expect("nothing came")
}

fn memory(event: &Event) -> Option<MemoryId> {
    let What::Memory { memory, .. } = &event.change else { return None };
    Some(*memory)
}

async fn quiet(stream: &mut BoxStream<'static, Result<Event>>) -> bool {
    tokio::time::timeout(Duration::from_millis(200), stream.next()).await.is_err()
}

#[tokio::test]
async fn a_subscriber_is_told_what_it_may_see() {
    let vault = Vault::new().await;
    let agent = vault.agent(|grant| grant.read = under("work")).await;
    let mut stream = vault.engine.subscribe(&agent.call, None).await.unwrap();
    vault.holds(labelled("hidden", "health")).await;
    let seen = vault.holds(labelled("seen", "work")).await;
    let event = next(&mut stream).await.unwrap().unwrap();
    assert_eq!(memory(&event), Some(seen));
    assert!(!serde_json::to_string(&event).unwrap().contains("seen"), "no text");
    assert!(quiet(&mut stream).await);
}

#[tokio::test]
async fn a_cursor_goes_on_without_gaps_and_tells_nothing_of_what_is_hidden() {
    let vault = Vault::new().await;
    let agent = vault.agent(|grant| grant.read = under("work")).await;
    let mut expected = Vec::new();
    for number in 0..6 {
        vault.holds(labelled(&format!("hidden {number}"), "health")).await;
        expected.push(vault.holds(labelled(&format!("seen {number}"), "work")).await);
    }
    let mut stream = vault.engine.subscribe(&agent.call, Some(Seq(0))).await.unwrap();
    let mut told = Vec::new();
    let mut cursor = String::new();
    for _ in 0..3 {
        let event = next(&mut stream).await.unwrap().unwrap();
        told.push(memory(&event).unwrap());
        cursor = event.cursor;
    }
    drop(stream);
    let after = vault.engine.seq_at(&cursor).unwrap();
    let mut stream = vault.engine.subscribe(&agent.call, Some(after)).await.unwrap();
    let mut cursors = vec![cursor];
    for _ in 0..3 {
        let event = next(&mut stream).await.unwrap().unwrap();
        told.push(memory(&event).unwrap());
        cursors.push(event.cursor);
    }
    assert_eq!(told, expected);
    assert!(quiet(&mut stream).await);
    let forged = format!("{}A", &cursors[0][..cursors[0].len() - 1]);
    for bad in ["", "AAAA", "1", forged.as_str()] {
        if cursors.iter().all(|cursor| cursor != bad) {
            assert!(vault.engine.seq_at(bad).is_err(), "{bad}");
        }
    }
    let seqs: Vec<u64> = cursors.iter().map(|c| vault.engine.seq_at(c).unwrap().0).collect();
    assert!(seqs.is_sorted());
}

#[tokio::test]
async fn a_revoked_grant_silences_a_live_stream() {
    let vault = Vault::new().await;
    let agent = vault.agent(|_| {}).await;
    let mut stream = vault.engine.subscribe(&agent.call, None).await.unwrap();
    vault.holds(labelled("before", "work")).await;
    assert!(next(&mut stream).await.unwrap().is_ok());
    vault.engine.revoke_grant(&vault.owner(), agent.grant).await.unwrap();
    vault.holds(labelled("after", "work")).await;
    let ended = next(&mut stream).await.unwrap();
    assert!(matches!(ended, Err(Error::Unauthenticated { .. })));
    assert!(next(&mut stream).await.is_none());
    let entries = vault.audit().await;
    let refusal = entries.iter().rev().find(|entry| entry.draft.operation == "subscribe").unwrap();
    assert_eq!(refused(refusal), Some("unauthenticated"));
}

#[tokio::test]
async fn who_loses_sight_of_a_memory_is_told_that_it_is_gone_and_not_where() {
    let vault = Vault::new().await;
    let agent = vault.agent(|grant| grant.read = under("work")).await;
    let moved = vault.holds(labelled("moves away", "work")).await;
    let mut stream = vault.engine.subscribe(&agent.call, None).await.unwrap();
    let relabel = |name: &str| {
        let mut governance = labelled("", name).content.governance;
        governance.labels = vec![label(name)];
        let change = Box::new(Relabel { governance: Some(governance), ..Relabel::default() });
        Mutation::Relabel { memory: moved, change }
    };
    vault.engine.mutate(&vault.owner(), relabel("health"), Wish::default()).await.unwrap();
    let event = next(&mut stream).await.unwrap().unwrap();
    let What::Memory { memory, status, .. } = &event.change else { panic!("{event:?}") };
    assert_eq!((*memory, *status), (moved, Status::Tombstoned));
    assert!(!serde_json::to_string(&event).unwrap().contains("health"));
    vault.engine.mutate(&vault.owner(), relabel("work"), Wish::default()).await.unwrap();
    let event = next(&mut stream).await.unwrap().unwrap();
    let What::Memory { status, was, .. } = &event.change else { panic!("{event:?}") };
    assert_eq!((*status, was), (Status::Active, &None), "where it was is not told either");
}

#[tokio::test]
async fn the_owner_is_told_of_grants_and_an_agent_is_not() {
    let vault = Vault::new().await;
    let agent = vault.agent(|_| {}).await;
    let mut owners = vault.engine.subscribe(&vault.owner(), None).await.unwrap();
    let mut agents = vault.engine.subscribe(&agent.call, None).await.unwrap();
    let other = vault.agent(|_| {}).await;
    let event = next(&mut owners).await.unwrap().unwrap();
    assert_eq!(event.change, What::Grant { grant: other.grant, revoked: false });
    assert!(quiet(&mut agents).await);
}

#[tokio::test]
async fn a_proof_of_the_master_key_is_checked_once_and_the_stream_goes_on() {
    let vault = Vault::new().await;
    let mut stream = vault.engine.subscribe(&vault.master(), None).await.unwrap();
    let stale = vault.master();
    for hour in 0..3 {
        vault.clock.advance(Span::seconds(3600));
        let told = vault.holds(labelled(&format!("after {hour} hours"), "work")).await;
        let event = next(&mut stream).await.unwrap().unwrap();
        assert_eq!(memory(&event), Some(told));
    }
    let opened = vault.engine.subscribe(&stale, None).await;
    assert!(matches!(opened.err(), Some(Error::Unauthenticated { .. })), "an old proof opens none");
}
