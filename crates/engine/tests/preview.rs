use yore_domain::class::{Label, Sensitivity};
use yore_domain::consent::Consent;
use yore_domain::grant::{Labels, Verb, Verbs};
use yore_domain::memory::{Draft, Memory};
use yore_domain::query::{Filter, PageRequest};
use yore_domain::scope::ScopeRule;
use yore_domain::{AgentId, Error, Span};
use yore_engine::{Call, GrantRequest, Preview};

use crate::support::{Vault, under};

fn request() -> GrantRequest {
    GrantRequest {
        agent: AgentId::new("scheduler").unwrap(),
        verbs: Verbs::of(&[Verb::Read]),
        read: under("work"),
        write: Labels::Under(Vec::new()),
        ceiling: Sensitivity::Internal,
        scope: ScopeRule::default(),
        ttl: Some(Span::days(1)),
        note: None,
    }
}

fn labelled(text: &str, label: &str, sensitivity: Sensitivity) -> Draft {
    let mut draft = Draft::text(text);
    draft.content.governance.labels = vec![Label::new(label).unwrap()];
    draft.content.governance.sensitivity = Some(sensitivity);
    draft
}

async fn filled() -> Vault {
    let vault = Vault::new().await;
    vault.holds(labelled("stand-up is at nine", "work.calendar", Sensitivity::Internal)).await;
    vault.holds(labelled("the raise is planned", "work.pay", Sensitivity::Restricted)).await;
    vault.holds(labelled("blood pressure is fine", "health", Sensitivity::Internal)).await;
    vault.holds(Draft::text("tea before coffee")).await;
    let mut redacted = labelled("meet Kim at the office", "work", Sensitivity::Internal);
    redacted.content.consent =
        Consent { redact: vec!["provenance.source".into()], ..Consent::default() };
    redacted.content.provenance.source = Some("a diary".into());
    vault.holds(redacted).await;
    vault
}

fn page() -> PageRequest {
    PageRequest { limit: 50, ..PageRequest::default() }
}

async fn seen_by(vault: &Vault, call: &Call) -> Vec<Memory> {
    vault.engine.list(call, Filter::default(), page()).await.unwrap().items
}

#[tokio::test]
async fn a_preview_is_what_the_agent_will_see() {
    let vault = filled().await;
    let preview = vault.engine.preview_grant(&vault.owner(), request(), page()).await.unwrap();
    let agent = vault.agent(|grant| *grant = request()).await;
    let seen = seen_by(&vault, &agent.call).await;
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert_eq!((preview.memories, &preview.first), (2, &seen));
    assert!(!format!("{:?}", preview.first).contains("a diary"), "consent holds in a preview");
}

#[tokio::test]
async fn a_preview_gives_nothing_and_leaves_its_line() {
    let vault = filled().await;
    let before = vault.engine.grants(&vault.owner()).await.unwrap().len();
    vault.engine.preview_grant(&vault.owner(), request(), page()).await.unwrap();
    assert_eq!(vault.last().await.draft.operation, "grant.preview");
    assert_eq!(vault.engine.grants(&vault.owner()).await.unwrap().len(), before);
}

#[tokio::test]
async fn who_may_not_read_sees_nothing() {
    let vault = filled().await;
    let blind = GrantRequest { verbs: Verbs::of(&[Verb::Write]), ..request() };
    let preview = vault.engine.preview_grant(&vault.owner(), blind, page()).await.unwrap();
    assert_eq!(preview, Preview::default());
}

#[tokio::test]
async fn only_the_owner_looks_with_the_eyes_of_others() {
    let vault = filled().await;
    let agent = vault.agent(|grant| grant.verbs = Verbs::of(&[Verb::Read, Verb::Grant])).await;
    let refused = vault.engine.preview_grant(&agent.call, request(), page()).await;
    assert!(matches!(refused, Err(Error::Forbidden { .. })), "{refused:?}");
}
