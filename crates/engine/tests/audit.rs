use yore_domain::grant::{Verb, Verbs};
use yore_domain::memory::Draft;
use yore_domain::{GrantId, HoldId, JobId, MemoryId, Seq};
use yore_engine::{AuditQuery, Decision, Reference};

use crate::support::{Vault, recall, refused};

#[tokio::test]
async fn every_refusal_leaves_an_entry() {
    let vault = Vault::new().await;
    let mute = vault.agent(|grant| grant.verbs = Verbs::of(&[Verb::Derive])).await.call;
    let engine = &vault.engine;
    let memory = MemoryId::random();
    macro_rules! refusals {
        ($($operation:literal: $call:expr;)*) => {$(
            let before = vault.audit().await.len();
            let error = $call.await.err().expect($operation);
            let entries = vault.audit().await;
            assert_eq!(entries.len(), before + 1, $operation);
            assert_eq!(entries[before].draft.operation, $operation);
            assert_eq!(refused(&entries[before]), Some(error.code()), $operation);
        )*};
    }
    let page = || yore_domain::query::PageRequest { limit: 1, ..Default::default() };
    refusals! {
        "recall": engine.recall(&mute, recall("x"));
        "context": engine.context(&mute, recall("x"), 100);
        "get": engine.get(&mute, Reference::Memory(memory));
        "history": engine.history(&mute, memory);
        "list": engine.list(&mute, Default::default(), page());
        "count": engine.count(&mute, Default::default());
        "export": engine.export(&mute, Default::default(), page());
        "remember": vault.remember(&mute, Draft::text("x"));
        "import": engine.import(&mute, vec![]);
        "feedback": engine.feedback(&mute, memory, yore_domain::memory::FeedbackOutcome::Followed);
        "grant.list": engine.grants(&mute);
        "grant.revoke": engine.revoke_grant(&mute, GrantId::random());
        "token.list": engine.tokens(&mute);
        "rule.list": engine.rules(&mute);
        "approve": engine.review(&mute, HoldId::random(), Decision::Approve, None);
        "census": engine.census(&mute);
        "check": engine.check(&mute, false);
        "rotate": engine.rotate_keys(&mute);
        "traces": engine.traces(&mute, "x".into());
        "job.show": engine.job(&mute, JobId::random());
        "legal-hold": engine.legal_hold(&mute, memory, true);
        "audit.verify": engine.verify_audit(&mute);
        "subscribe": engine.subscribe(&mute, None);
        "conversations": engine.conversations(&mute, Default::default(), page());
        "get": engine.get(&vault.owner(), Reference::Memory(memory));
        "job.show": engine.job(&vault.owner(), JobId::random());
        "list": engine.list(&vault.owner(), Default::default(), Default::default());
        "remember": vault.remember(&vault.owner(), Draft::text(" "));
    }
}

#[tokio::test]
async fn the_chain_verifies_and_can_be_asked() {
    let vault = Vault::new().await;
    let memory = vault.holds(Draft::text("one")).await;
    vault.holds(Draft::text("two")).await;
    let report = vault.engine.verify_audit(&vault.owner()).await.unwrap();
    assert!(report.faults.is_empty(), "{report:?}");
    assert!(report.entries >= 3);
    let query = AuditQuery { memory: Some(memory), limit: 10, ..AuditQuery::default() };
    let touched = vault.engine.audit(&vault.owner(), query).await.unwrap();
    assert_eq!(touched.len(), 1);
    let query = AuditQuery {
        operation: Some("remember".into()),
        limit: 1,
        newest_first: true,
        ..AuditQuery::default()
    };
    let newest = vault.engine.audit(&vault.owner(), query).await.unwrap();
    assert_eq!(newest.len(), 1);
    assert!(newest[0].seq > touched[0].seq);
    let all = vault.audit().await;
    assert!(all.iter().all(|entry| entry.seq > Seq(0)));
}
