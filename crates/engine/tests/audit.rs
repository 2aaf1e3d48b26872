use yore_domain::grant::{Verb, Verbs};
use yore_domain::memory::Draft;
use yore_domain::{GrantId, HoldId, JobId, MemoryId, Seq, Span};
use yore_engine::{AuditQuery, Checker, Decision, Line, Reference, Sealed};

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
        "rule.switch": engine.switch_rule(&mute, "x".into(), true);
        "rule.learn": engine.set_learning(&mute, Some(5));
        "rule.learning": engine.learning(&mute);
        "hold": engine.case(&mute, HoldId::random());
        "approve": engine.review(&mute, HoldId::random(), Decision::Approve, None);
        "census": engine.census(&mute);
        "check": engine.check(&mute, false);
        "rotate": engine.rotate_keys(&mute);
        "traces": engine.traces(&mute, "x".into());
        "job.show": engine.job(&mute, JobId::random());
        "legal-hold": engine.legal_hold(&mute, memory, true);
        "audit.verify": engine.verify_audit(&mute);
        "audit.seal": engine.seal_audit(&mute);
        "subscribe": engine.subscribe(&mute, None);
        "conversations": engine.conversations(&mute, Default::default(), page());
        "get": engine.get(&vault.owner(), Reference::Memory(memory));
        "job.show": engine.job(&vault.owner(), JobId::random());
        "list": engine.list(&vault.owner(), Default::default(), Default::default());
        "remember": vault.remember(&vault.owner(), Draft::text(" "));
    }
}

#[tokio::test]
async fn what_is_handed_out_beside_the_engine_leaves_an_entry() {
    let vault = Vault::new().await;
    let before = vault.audit().await.len();
    vault.engine.witness(&vault.owner(), "backup.download", Verb::Admin).await.unwrap();
    let mute = vault.agent(|grant| grant.verbs = Verbs::of(&[Verb::Read])).await.call;
    assert!(vault.engine.witness(&mute, "backup.download", Verb::Admin).await.is_err());
    let entries = vault.audit().await;
    let witnessed = entries[before..].iter().filter(|one| one.draft.operation == "backup.download");
    assert_eq!(witnessed.map(|one| refused(one).is_some()).collect::<Vec<_>>(), [false, true]);
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

/// The whole chain with its seal, as lines.
async fn copied(vault: &Vault) -> Vec<Line> {
    let sealed = vault.engine.seal_audit(&vault.owner()).await.unwrap();
    let before = Some(Seq(sealed.checkpoint.seq.0 + 1));
    let query = AuditQuery { limit: 1000, before, ..AuditQuery::default() };
    let entries = vault.engine.audit(&vault.owner(), query).await.unwrap();
    entries
        .into_iter()
        .map(|entry| Line::Entry(Box::new(entry)))
        .chain([Line::Sealed(sealed)])
        .collect()
}

fn faults(lines: Vec<Line>) -> usize {
    let mut checker = Checker::default();
    // A copy goes through a file.
    for line in lines {
        checker.line(serde_json::from_str(&serde_json::to_string(&line).unwrap()).unwrap());
    }
    checker.finish().faults.len()
}

#[tokio::test]
async fn mw_203_a_signed_copy_of_the_audit_chain_shows_every_change() {
    let vault = Vault::new().await;
    for number in 0..5 {
        vault.holds(Draft::text(format!("fact {number}"))).await;
        vault.texts(&vault.owner(), "fact").await;
    }
    let lines = copied(&vault).await;
    assert!(lines.len() > 10);
    assert_eq!(faults(lines.clone()), 0);
    assert_eq!(faults(lines[4..].to_vec()), 0, "a later part stands for itself");
    let mut cut = lines.clone();
    cut.remove(lines.len() - 2);
    assert_ne!(faults(cut), 0, "the tail is cut off");
    let mut gap = lines.clone();
    gap.remove(3);
    assert_ne!(faults(gap), 0);
    assert_ne!(faults(lines[..lines.len() - 1].to_vec()), 0, "unsigned");
    let mut changed = lines.clone();
    if let Line::Entry(entry) = &mut changed[2] {
        entry.draft.operation = "nothing".into();
    }
    assert_ne!(faults(changed), 0);
    let mut forged = lines.clone();
    if let Some(Line::Sealed(Sealed { checkpoint, .. })) = forged.last_mut() {
        checkpoint.at = checkpoint.at.plus(Span::seconds(1));
    }
    assert_ne!(faults(forged), 0, "the time is signed, too");
    let other = copied(&Vault::new().await).await;
    let mut swapped = lines[..lines.len() - 1].to_vec();
    swapped.extend(other.last().cloned());
    assert_ne!(faults(swapped), 0);
}
