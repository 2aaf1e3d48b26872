use yore_domain::memory::{Body, Draft};
use yore_domain::mutation::{Depth, Mutation, Patch};
use yore_domain::{Error, Span};
use yore_engine::{Reference, Wish};

use crate::support::{NOW, Vault};

#[tokio::test]
async fn a_legal_hold_protects_from_erasure() {
    let vault = Vault::new().await;
    let owner = vault.owner();
    let memory = vault.holds(Draft::text("protected by law")).await;
    let erase = Mutation::Forget { memories: vec![memory], depth: Depth::Erase, reason: None };
    vault.engine.legal_hold(&owner, memory, true).await.unwrap();
    let refused = vault.engine.mutate(&owner, erase.clone(), Wish::default()).await;
    assert!(matches!(refused, Err(Error::Consent { .. })));
    vault.engine.legal_hold(&owner, memory, false).await.unwrap();
    vault.engine.mutate(&owner, erase, Wish::default()).await.unwrap();
    let gone = vault.engine.get(&owner, Reference::Memory(memory)).await;
    assert!(matches!(gone, Err(Error::NotFound)));
    let traces = vault.engine.traces(&owner, "protected by law".into()).await.unwrap();
    assert!(traces.found.is_empty(), "{traces:?}");
}

#[tokio::test]
async fn a_vault_is_sound_after_its_key_was_changed_and_comes_back_from_a_copy() {
    if yore_scratch::is_elsewhere("a database has no copies of single vaults") {
        return;
    }
    let vault = Vault::new().await;
    let owner = vault.owner();
    let memory = vault.holds(Draft::text("kept in the copy")).await;
    vault.engine.rotate_keys(&owner).await.unwrap();
    let health = vault.engine.check(&owner, false).await.unwrap();
    assert!(health.is_sound(), "{health:?}");

    let elsewhere = tempfile::tempdir().unwrap();
    let copy = elsewhere.path().join("copy.yore");
    assert!(vault.engine.backup(&owner, copy.clone()).await.unwrap() > 0);
    let later = vault.holds(Draft::text("said after the copy")).await;
    vault.engine.restore_backup(&owner, copy).await.unwrap();
    let found = vault.engine.get(&owner, Reference::Memory(memory)).await.unwrap();
    assert_eq!(found.head.content.body.text, "kept in the copy");
    let lost = vault.engine.get(&owner, Reference::Memory(later)).await;
    assert!(matches!(lost, Err(Error::NotFound)));
    assert!(vault.engine.check(&owner, false).await.unwrap().is_sound());
}

/// Protocols run operations on any thread.
#[test]
fn operations_can_be_sent_between_threads() {
    fn sent<T: Send>(_: impl Fn(&'static yore_engine::Engine, &'static yore_engine::Call) -> T) {}
    sent(|engine, call| engine.check(call, false));
    sent(|engine, call| engine.backup(call, "x".into()));
    sent(|engine, call| engine.traces(call, String::new()));
    sent(|engine, call| engine.verify_audit(call));
    sent(|engine, call| engine.rotate_keys(call));
    sent(|engine, call| engine.restore_backup(call, "x".into()));
    sent(|engine, call| engine.census(call));
    sent(|engine, call| engine.attach(call, Vec::new()));
    sent(|engine, call| engine.subscribe(call, None));
    sent(|engine, call| engine.import(call, Vec::new()));
    sent(|engine, _| engine.settle());
}

#[tokio::test]
async fn a_clock_that_is_set_back_loses_and_reorders_nothing() {
    let vault = Vault::new().await;
    let owner = vault.owner();
    let memory = vault.holds(Draft::text("tea, no sugar")).await;
    let agent = vault.agent(|grant| grant.ttl = Some(Span::days(1))).await;
    for number in 1..=5 {
        vault.clock.set(NOW.minus(Span::days(number)));
        let body = Body { text: format!("cup {number}"), structured: None };
        let patch = Patch { body: Some(body), ..Patch::default() };
        let revise = Mutation::Revise { memory, patch: Box::new(patch), expected: None };
        vault.engine.mutate(&owner, revise, Wish::default()).await.unwrap();
    }
    let history = vault.engine.history(&owner, memory).await.unwrap();
    assert_eq!(history.len(), 6);
    assert!(history.is_sorted_by_key(|version| (version.recorded, version.number)));
    let then = vault.engine.get_as_of(&owner, memory, NOW).await.unwrap();
    assert_eq!(then.number, 6, "what was known at a time is what was written by then");
    assert_eq!(vault.texts(&owner, "cup").await, ["cup 5"]);
    assert!(vault.engine.count(&agent.call, Default::default()).await.is_ok());
    assert!(vault.engine.verify_audit(&owner).await.unwrap().faults.is_empty());
    assert!(vault.engine.check(&owner, false).await.unwrap().is_sound());
}
