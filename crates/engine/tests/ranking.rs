//! Each preference, outcome, half-life and demotion moves the order, alone and measurably.
//!
//! Two memories say the same, so that the question prefers neither; what is tested is the only
//! difference. Which of the two bears it is swapped, so that no tie can pass.

use yore_domain::memory::{Draft, FeedbackOutcome, Lifecycle};
use yore_domain::mutation::{ExpiryAction, ExpiryPolicy, Mutation, Patch};
use yore_domain::provenance::Evidence;
use yore_domain::query::{Hint, Recall};
use yore_domain::scope::Scope;
use yore_domain::{MemoryId, Span};
use yore_engine::{DryRun, Wish};

use crate::support::{NOW, Vault, recall};

const TEXT: &str = "Anna likes green tea";

/// Two memories of the same words among others.
struct Pair {
    vault: Vault,
    ids: [MemoryId; 2],
}

impl Pair {
    /// Stores the pair; `set` is told which of the two is the better one.
    async fn with(better: usize, set: impl Fn(&mut Draft, bool)) -> Self {
        let vault = Vault::new().await;
        for other in ["The car needs new tyres", "Anna has a dentist appointment"] {
            vault.holds(Draft::text(other)).await;
        }
        let mut ids = [MemoryId::random(); 2];
        for (at, id) in ids.iter_mut().enumerate() {
            let mut draft = Draft::text(TEXT);
            set(&mut draft, at == better);
            let wish = Wish { keep_duplicate: true, ..Wish::default() };
            let remember = Mutation::Remember { draft: Box::new(draft), id: None };
            let said = vault.engine.mutate(&vault.owner(), remember, wish).await.unwrap();
            *id = said.memories[0].memory;
        }
        Self { vault, ids }
    }

    /// How much higher the one at this place scores than the other.
    async fn lead(&self, at: usize, asked: &Recall) -> f32 {
        let found = self.vault.engine.recall(&self.vault.owner(), asked.clone()).await.unwrap();
        let score = |id: MemoryId| {
            found.results.iter().find(|hit| hit.found.memory() == Some(id)).unwrap().score
        };
        score(self.ids[at]) / score(self.ids[1 - at])
    }
}

/// How much higher the better one scores.
async fn first(better: usize, asked: &Recall, set: impl Fn(&mut Draft, bool)) -> f32 {
    Pair::with(better, set).await.lead(better, asked).await
}

fn tea() -> Recall {
    recall("what tea does Anna like")
}

fn preferring(hint: Hint) -> Recall {
    Recall { prefer: vec![hint], ..tea() }
}

#[tokio::test]
async fn hint_recency() {
    for better in [0, 1] {
        let lead = first(better, &preferring(Hint::Recency), |draft, better| {
            let days = if better { 1 } else { 200 };
            draft.time.created = Some(NOW.minus(Span::days(days)));
        })
        .await;
        assert!(lead > 1.2, "{lead}");
    }
}

#[tokio::test]
async fn hint_salience() {
    for better in [0, 1] {
        let lead = first(better, &preferring(Hint::Salience), |draft, better| {
            draft.content.lifecycle.salience = Some(if better { 0.9 } else { 0.1 });
        })
        .await;
        assert!(lead > 1.2, "{lead}");
    }
}

#[tokio::test]
async fn hint_confidence() {
    for better in [0, 1] {
        let lead = first(better, &preferring(Hint::Confidence), |draft, better| {
            draft.content.lifecycle.confidence = Some(if better { 0.9 } else { 0.1 });
        })
        .await;
        assert!(lead > 1.2, "{lead}");
    }
}

#[tokio::test]
async fn hint_provenance() {
    for better in [0, 1] {
        let lead = first(better, &preferring(Hint::Provenance), |draft, better| {
            let pieces = if better { 4 } else { 0 };
            draft.content.provenance.evidence = (0..pieces)
                .map(|number| Evidence { reference: format!("note {number}"), weight: None })
                .collect();
        })
        .await;
        assert!(lead > 1.2, "{lead}");
    }
}

#[tokio::test]
async fn hint_scope_match() {
    let near = Scope { project: Some("x".into()), ..Scope::default() };
    let asked = Recall { near, ..preferring(Hint::ScopeMatch) };
    for better in [0, 1] {
        let lead = first(better, &asked, |draft, better| {
            draft.content.scope.project = Some(if better { "x" } else { "y" }.into());
        })
        .await;
        assert!(lead > 1.2, "{lead}");
    }
}

#[tokio::test]
async fn hint_scope_match_knows_the_session() {
    let near = Scope { session: Some("today".into()), ..Scope::default() };
    let asked = Recall { near, ..preferring(Hint::ScopeMatch) };
    for better in [0, 1] {
        let lead = first(better, &asked, |draft, better| {
            draft.content.scope.session = Some(if better { "today" } else { "before" }.into());
        })
        .await;
        assert!(lead > 1.2, "{lead}");
    }
}

#[tokio::test]
async fn hint_similarity_lets_meaning_outweigh_words() {
    let vault = Vault::new().await;
    let meaning = "How to bake a fruit tart at home";
    let words = "The recipe for disaster: apple shares fell and the pie chart shows a tax reform";
    for text in [meaning, words, "The car needs new tyres", "The senate votes on Monday"] {
        vault.holds(Draft::text(text)).await;
    }
    vault.engine.settle().await.unwrap();
    let lead = async |prefer: Vec<Hint>| {
        let asked = Recall { prefer, ..recall("apple pie recipe") };
        let found = vault.engine.recall(&vault.owner(), asked).await.unwrap();
        let score =
            |text: &str| found.results.iter().find(|hit| hit.found.text() == text).unwrap().score;
        score(meaning) / score(words)
    };
    let (plain, hinted) = (lead(vec![]).await, lead(vec![Hint::Similarity]).await);
    assert!(hinted > plain * 1.05, "{hinted} and {plain}");
}

#[tokio::test]
async fn outcomes_move_a_memory_up_or_down() {
    let cases = [
        (FeedbackOutcome::Followed, 1.1..1.6),
        (FeedbackOutcome::Overridden, 0.5..0.9),
        (FeedbackOutcome::Ignored, 0.9..0.99),
        (FeedbackOutcome::Contradicted, 0.2..0.7),
    ];
    for (outcome, expected) in cases {
        for reported in [0, 1] {
            let pair = Pair::with(0, |_, _| {}).await;
            let before = pair.lead(reported, &tea()).await;
            assert!((before - 1.0).abs() < 1e-3, "{before}");
            let (engine, owner) = (&pair.vault.engine, pair.vault.owner());
            for _ in 0..8 {
                engine.feedback(&owner, pair.ids[reported], outcome).await.unwrap();
            }
            let after = pair.lead(reported, &tea()).await;
            assert!(expected.contains(&after), "{outcome:?}: {after}");
        }
    }
}

#[tokio::test]
async fn a_half_life_halves_the_weight_and_confirming_restores_it() {
    for lasting in [0, 1] {
        let pair = Pair::with(lasting, |draft, lasting| {
            if !lasting {
                draft.content.lifecycle.half_life = Some(Span::days(10));
                draft.content.lifecycle.confirmed = Some(NOW);
            }
        })
        .await;
        let near = |found: f32, expected: f32| (found - expected).abs() < expected * 0.01;
        assert!(near(pair.lead(lasting, &tea()).await, 1.0));
        pair.vault.clock.advance(Span::days(10));
        let lead = pair.lead(lasting, &tea()).await;
        assert!(near(lead, 2.0), "{lead}");
        pair.vault.clock.advance(Span::days(10));
        let lead = pair.lead(lasting, &tea()).await;
        assert!(near(lead, 4.0), "{lead}");
        let lifecycle = Lifecycle {
            half_life: Some(Span::days(10)),
            confirmed: Some(pair.vault.engine.now()),
            ..Lifecycle::default()
        };
        let patch = Box::new(Patch { lifecycle: Some(lifecycle), ..Patch::default() });
        let memory = pair.ids[1 - lasting];
        let confirm = Mutation::Revise { memory, patch, expected: None };
        let (engine, owner) = (&pair.vault.engine, pair.vault.owner());
        engine.mutate(&owner, confirm, Wish::default()).await.unwrap();
        let lead = pair.lead(lasting, &tea()).await;
        assert!((0.9..1.01).contains(&lead), "{lead}");
    }
}

#[tokio::test]
async fn demotion_ranks_at_a_quarter() {
    for demoted in [0, 1] {
        let pair = Pair::with(1 - demoted, |draft, better| {
            draft.content.tags = vec![if better { "good" } else { "bad" }.into()];
            draft.time.created = (!better).then_some(NOW.minus(Span::seconds(10)));
        })
        .await;
        let policy = ExpiryPolicy { older_than: Some(Span::seconds(5)), ..ExpiryPolicy::default() };
        let (engine, owner) = (&pair.vault.engine, pair.vault.owner());
        let expired = engine.expire(&owner, policy, ExpiryAction::Demote, DryRun::No).await;
        assert_eq!(expired.unwrap().matched, [pair.ids[demoted]]);
        let lead = pair.lead(1 - demoted, &tea()).await;
        assert!((3.9..4.1).contains(&lead), "{lead}");
    }
}
