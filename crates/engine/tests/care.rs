use yore_domain::hold::{Hold, HoldReason, HoldState};
use yore_domain::kind::Kind;
use yore_domain::memory::{Draft, FeedbackOutcome, Status};
use yore_domain::mutation::Mutation;
use yore_domain::{MemoryId, Span};
use yore_engine::{Decision, Reference};

use crate::consolidate::{item, quiet};
use crate::support::{NOW, Vault, labelled, recall};

async fn waiting(vault: &Vault) -> Vec<Hold> {
    vault.engine.holds(&vault.owner(), HoldState::Pending, 1000).await.unwrap()
}

/// What is proposed because of what is known of it, not because it is close in meaning.
async fn proposed(vault: &Vault) -> Vec<Hold> {
    let waiting = waiting(vault).await;
    waiting.into_iter().filter(|hold| hold.protocol == "co-memorize").collect()
}

async fn status(vault: &Vault, id: MemoryId) -> Status {
    vault.engine.get(&vault.owner(), Reference::Memory(id)).await.unwrap().head.status
}

fn unsure(text: &str, confidence: f64, days: u64) -> Draft {
    let mut draft = Draft::text(text);
    draft.content.lifecycle.confidence = Some(confidence);
    draft.time.created = Some(NOW.minus(Span::days(days)));
    draft
}

#[tokio::test]
async fn mw_127_what_nobody_needs_is_proposed_with_its_reason_and_forgotten_on_approval() {
    let vault = quiet().await;
    let owner = vault.owner();
    let stale = vault.holds(unsure("the bakery may move to Elm Street", 0.3, 100)).await;
    vault.holds(unsure("her sister lives in Oslo", 0.9, 100)).await;
    vault.holds(unsure("a colleague might be called Bo", 0.3, 10)).await;
    let used = vault.holds(unsure("the pool opens in May", 0.3, 100)).await;
    let asked = yore_domain::query::Recall { limit: 1, ..recall("pool opens in May") };
    vault.engine.recall(&owner, asked).await.unwrap();
    assert!(vault.engine.get(&owner, Reference::Memory(used)).await.unwrap().usage.recalls > 0);
    let wrong = vault.holds(Draft::text("the office has a cat")).await;
    for _ in 0..2 {
        vault.engine.feedback(&owner, wrong, FeedbackOutcome::Contradicted).await.unwrap();
    }
    vault.engine.settle().await.unwrap();

    let holds = waiting(&vault).await;
    let reasons: Vec<_> =
        holds.iter().map(|hold| (hold.mutation.targets(), hold.reason.clone())).collect();
    assert_eq!(reasons.len(), 2, "{holds:?}");
    for memory in [stale, wrong] {
        assert!(reasons.contains(&(vec![memory], HoldReason::Unhelpful)), "{holds:?}");
    }
    let of = |memory: MemoryId| holds.iter().find(|hold| hold.mutation.targets() == [memory]);
    let reasoning = of(stale).unwrap().reasoning.clone().unwrap();
    assert_eq!(reasoning, "never recalled since it was made 100 days ago, and only 0.30 sure");
    assert!(of(wrong).unwrap().reasoning.as_ref().unwrap().starts_with("2 uses found it wrong"));
    assert_eq!(status(&vault, stale).await, Status::Active, "nothing happens by itself");

    vault.engine.review(&owner, of(stale).unwrap().id, Decision::Approve, None).await.unwrap();
    assert_eq!(status(&vault, stale).await, Status::Tombstoned);
    vault.engine.review(&owner, of(wrong).unwrap().id, Decision::Reject, None).await.unwrap();
    vault.clock.advance(Span::days(1));
    vault.engine.settle().await.unwrap();
    assert!(waiting(&vault).await.is_empty(), "it is asked once");
}

#[tokio::test]
async fn mw_127_what_is_said_twice_is_merged_and_what_is_denied_is_forgotten_once_approved() {
    let vault = quiet().await;
    let owner = vault.owner();
    let said = |text: &str, days| unsure(text, 1.0, days);
    let older = vault.holds(said("the ferry to Oslo leaves every evening from pier two", 9)).await;
    let newer = vault.holds(said("ferry to Oslo: leaves from pier two, every evening", 8)).await;
    let was = vault.holds(said("Anna takes milk in her morning coffee", 7)).await;
    let now_is = vault.holds(said("Anna takes no milk in her morning coffee", 6)).await;
    let nine = vault.holds(said("the shop on Elm Street opens at 9 on weekdays", 5)).await;
    let ten = vault.holds(said("the shop on Elm Street opens at 10 on weekdays", 4)).await;
    for number in 1..=4 {
        vault.holds(said(&format!("invoice {number} of the year was paid by card"), 3)).await;
    }
    vault.holds(labelled("Anna takes milk in her morning coffee", "health")).await;
    vault.holds(item("a", "Anna takes milk in her usual morning coffee", 0.1)).await;
    vault.engine.settle().await.unwrap();

    let holds = waiting(&vault).await;
    let found: Vec<_> =
        holds.iter().map(|hold| (hold.reason.clone(), hold.mutation.targets())).collect();
    for expected in [
        (HoldReason::NearDuplicate(older), vec![older, newer]),
        (HoldReason::Contradiction(now_is), vec![was]),
        (HoldReason::Contradiction(ten), vec![nine]),
    ] {
        assert!(found.contains(&expected), "{expected:?} in {found:?}");
    }
    let proposed = holds.iter().filter(|hold| hold.protocol == "co-memorize");
    for hold in proposed {
        let reasoning = hold.reasoning.as_ref().unwrap();
        assert!(reasoning.contains('%'), "{reasoning}");
        let numbers = vault.texts(&owner, "invoice of the year").await;
        assert!(!numbers.is_empty());
        assert!(
            !hold.diff.iter().any(|line| line.before.as_ref().is_some_and(|text| {
                text.as_str().is_some_and(|text| text.starts_with("invoice"))
            })),
            "a series is no contradiction: {hold:?}"
        );
    }
    for hold in &holds {
        vault.engine.review(&owner, hold.id, Decision::Approve, None).await.unwrap();
    }
    for gone in [newer, was, nine] {
        assert_eq!(status(&vault, gone).await, Status::Tombstoned);
    }
    for stays in [older, now_is, ten] {
        assert_eq!(status(&vault, stays).await, Status::Active);
    }
}

#[tokio::test]
async fn mw_127_no_more_than_fifty_wait_at_once_and_no_pair_is_asked_twice() {
    let vault = quiet().await;
    let owner = vault.owner();
    for colour in ["red", "blue", "green", "brown", "white", "grey"] {
        for thing in
            ["door", "lamp", "horse", "river", "stamp", "guitar", "tower", "soup", "coat", "knife"]
        {
            vault.holds(unsure(&format!("perhaps a {colour} {thing}"), 0.2, 200)).await;
        }
    }
    vault.engine.settle().await.unwrap();
    let holds = proposed(&vault).await;
    assert_eq!(holds.len(), 50);
    for hold in &holds[..20] {
        vault.engine.review(&owner, hold.id, Decision::Reject, None).await.unwrap();
    }
    vault.clock.advance(Span::days(1));
    vault.engine.settle().await.unwrap();
    let now_waiting = proposed(&vault).await;
    assert_eq!(now_waiting.len(), 40, "ten were left, and no other is asked about again");
    let mut targets: Vec<_> = now_waiting.iter().flat_map(|hold| hold.mutation.targets()).collect();
    targets.sort();
    targets.dedup();
    assert_eq!(targets.len(), 40);
    assert!(now_waiting.iter().all(|hold| matches!(hold.mutation, Mutation::Forget { .. })));
}

#[tokio::test]
async fn mw_126_health_counts_what_is_stale_what_drifts_and_what_there_is() {
    let vault = quiet().await;
    let owner = vault.owner();
    let of_anna = |agent: &str, text: &str, kind| {
        let mut draft = item(agent, text, 0.1);
        draft.content.kind = kind;
        draft
    };
    let one = vault.holds(of_anna("a", "the ferry leaves from pier two", Kind::Semantic)).await;
    let other = vault.holds(of_anna("a", "the ferry leaves from pier", Kind::Episodic)).await;
    vault.holds(of_anna("b", "the ferry leaves from pier two now", Kind::Semantic)).await;
    vault.holds(of_anna("a", "the kettle is on", Kind::Working)).await;
    let vitals = vault.engine.vitals(&owner, None, None).await.unwrap();
    assert_eq!((vitals.live, vitals.stale, vitals.stale_percent), (4, 4, 100.0));

    let asked = yore_domain::query::Recall { limit: 1, ..recall("kettle") };
    vault.engine.recall(&owner, asked.clone()).await.unwrap();
    let vitals = vault.engine.vitals(&owner, None, None).await.unwrap();
    assert_eq!((vitals.live, vitals.stale, vitals.stale_percent), (4, 3, 75.0));
    assert_eq!((vitals.drifting, vitals.drifting_more), (1, false));
    let pair = &vitals.drift[0];
    assert!([(one, other), (other, one)].contains(&(pair.one, pair.other)));
    assert!((pair.share - 5.0 / 6.0).abs() < 1e-9);
    let kinds: Vec<_> = vitals.kinds.into_iter().collect();
    assert_eq!(kinds, [(Kind::Semantic, 2), (Kind::Episodic, 1), (Kind::Working, 1)]);

    vault.clock.advance(Span::days(31));
    let of_b = vault.engine.vitals(&owner, Some("b".into()), Some("anna".into())).await.unwrap();
    assert_eq!((of_b.live, of_b.stale, of_b.drifting), (1, 1, 0));
    assert_eq!(vault.engine.vitals(&owner, None, None).await.unwrap().stale, 4);
}
