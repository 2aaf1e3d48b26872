use std::time::Duration;

use yore_domain::audit::{Actor, Entry, Outcome};
use yore_domain::grant::{Verb, Verbs};
use yore_domain::hold::{HoldReason, HoldState, Rule, RuleAction};
use yore_domain::job::JobState;
use yore_domain::kind::{Facet, Kind};
use yore_domain::memory::{Cause, Draft, Memory, Status};
use yore_domain::mutation::Mutation;
use yore_domain::query::Effort;
use yore_domain::{Error, MemoryId, Span};
use yore_engine::{Consolidated, Consolidation, Decision, DryRun, Fate, Reference, Wish};

use crate::support::{Vault, recall, refused};

/// Something an agent keeps in mind about Anna.
pub(crate) fn item(agent: &str, text: &str, importance: f64) -> Draft {
    let mut draft = Draft::new(Kind::Working, text);
    draft.content.scope.agent = Some(agent.to_owned());
    draft.content.scope.user = Some("anna".to_owned());
    draft.content.lifecycle.salience = Some(importance);
    draft.content.lifecycle.confidence = Some(0.9);
    draft
}

pub(crate) async fn quiet() -> Vault {
    Vault::with(|settings| settings.effort = Effort::Instant).await
}

async fn pass(vault: &Vault) -> Consolidated {
    let asked = Consolidation::default();
    vault.engine.consolidate(&vault.owner(), asked, DryRun::No).await.unwrap()
}

async fn memory(vault: &Vault, id: MemoryId) -> Memory {
    vault.engine.get(&vault.owner(), Reference::Memory(id)).await.unwrap()
}

/// What the chain says the server did to a memory.
pub(crate) async fn deeds(vault: &Vault, id: MemoryId) -> Vec<Entry> {
    let entries = vault.audit().await.into_iter().filter(|entry| {
        entry.draft.operation == "consolidate"
            && entry.draft.targets.iter().any(|target| target.memory == id)
    });
    entries.collect()
}

#[tokio::test]
async fn mw_103_mw_105_what_is_of_use_becomes_a_semantic_version_of_the_same_memory() {
    let vault = quiet().await;
    let mut draft = item("a", "Anna is allergic to peanuts", 0.9);
    draft.content.provenance.source = Some("user".to_owned());
    let id = vault.holds(draft).await;
    let before = memory(&vault, id).await;
    vault.clock.advance(Span::seconds(30));

    let done = pass(&vault).await;
    assert_eq!((done.count(Fate::Promote), done.items.len()), (1, 1), "{done:?}");
    let after = memory(&vault, id).await;
    assert_eq!((after.head.number, after.head.cause), (2, Cause::Revised));
    let content = &after.head.content;
    assert_eq!((content.kind, content.facet), (Kind::Semantic, Facet::Fact));
    assert_eq!(content.provenance, before.head.content.provenance);
    assert_eq!(content.lifecycle, before.head.content.lifecycle, "a score is no belief");
    assert_eq!(after.head.time.created, before.head.time.created);
    let all = vault.engine.count(&vault.owner(), Default::default()).await.unwrap();
    assert_eq!(all, 1, "nothing is doubled");

    let deeds = deeds(&vault, id).await;
    assert_eq!(deeds.len(), 1);
    let deed = &deeds[0].draft;
    assert_eq!(deed.actor, Actor::System { reason: "consolidate".into() });
    assert_eq!(
        (&deed.detail["fate"], &deed.detail["scorer"]),
        (&"promote".into(), &"balanced".into())
    );
    let job = vault.engine.job(&vault.owner(), done.job.unwrap()).await.unwrap();
    assert_eq!((job.kind.as_str(), job.state, job.done), ("consolidate", JobState::Completed, 1));
    assert_eq!(deed.detail["job"], job.id.to_string());
    let again = pass(&vault).await;
    assert!(again.items.is_empty() && again.job.is_none(), "{again:?}");
}

#[tokio::test]
async fn mw_103_what_never_was_of_use_is_forgotten_in_time_and_can_come_back() {
    let vault = quiet().await;
    let owner = vault.owner();
    let id = vault.holds(item("a", "the kettle is on", 0.1)).await;
    let mut lasting = item("a", "the oven is on until noon", 0.1);
    lasting.content.lifecycle.expires = Some(vault.engine.now().plus(Span::days(9)));
    let lasting = vault.holds(lasting).await;
    assert_eq!(pass(&vault).await.count(Fate::Keep), 2);
    vault.clock.advance(Span::days(2));
    let done = pass(&vault).await;
    assert_eq!((done.count(Fate::Evict), done.count(Fate::Keep)), (1, 1), "{done:?}");
    let gone = memory(&vault, id).await;
    assert_eq!((gone.head.status, gone.head.cause), (Status::Tombstoned, Cause::Expired));
    assert_eq!(deeds(&vault, id).await[0].draft.detail["fate"], "evict");
    assert_eq!(memory(&vault, lasting).await.head.status, Status::Active);

    let back = Mutation::Restore { memory: id, number: 1 };
    vault.engine.mutate(&owner, back, Wish::default()).await.unwrap();
    assert_eq!(pass(&vault).await.count(Fate::Keep), 2, "its time begins anew");
    assert_eq!(memory(&vault, id).await.head.status, Status::Active);
}

#[tokio::test]
async fn mw_104_each_recall_counts_and_use_earns_a_place() {
    let vault = quiet().await;
    let mut draft = item("a", "Anna parks in the blue garage", 0.3);
    draft.content.lifecycle.salience = None;
    let id = vault.holds(draft).await;
    let kept = pass(&vault).await;
    assert_eq!(kept.count(Fate::Keep), 1);
    vault.engine.recall(&vault.owner(), recall("blue garage")).await.unwrap();
    assert_eq!(memory(&vault, id).await.usage.recalls, 1);
    let done = pass(&vault).await;
    assert!(done.items[0].score > kept.items[0].score);
    assert_eq!(done.count(Fate::Promote), 1, "{done:?}");
}

#[tokio::test]
async fn a_dry_run_explains_each_score_and_changes_nothing() {
    let vault = quiet().await;
    let owner = vault.owner();
    let good = vault.holds(item("a", "Anna is allergic to peanuts", 0.9)).await;
    let poor = vault.holds(item("a", "the kettle is on", 0.1)).await;
    vault.holds(item("b", "another agent's", 0.9)).await;
    let asked = Consolidation { agent: Some("a".into()), ..Consolidation::default() };
    let told = vault.engine.consolidate(&owner, asked.clone(), DryRun::Yes).await.unwrap();
    assert!(told.dry_run && told.job.is_none());
    let fates: Vec<_> = told.items.iter().map(|one| (one.memory, one.fate)).collect();
    assert_eq!(fates, [(good, Fate::Promote), (poor, Fate::Keep)]);
    for one in &told.items {
        let names: Vec<&str> = one.parts.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(names, ["recency", "salience", "confidence"]);
        let sum: f64 = one.parts.iter().map(|part| part.value * part.weight).sum();
        assert!((sum - one.score).abs() < 1e-9, "{one:?}");
    }
    assert_eq!(memory(&vault, good).await.head.number, 1);
    assert!(vault.engine.jobs(&owner, 10).await.unwrap().is_empty());

    let named = |scorer: &str, threshold| Consolidation {
        scorer: Some(scorer.to_owned()),
        threshold: Some(threshold),
        ..asked.clone()
    };
    let told =
        vault.engine.consolidate(&owner, named("reference", 0.9), DryRun::Yes).await.unwrap();
    assert_eq!((told.scorer.as_str(), told.threshold), ("reference", 0.9));
    assert_eq!(told.items[0].parts.len(), 4);
    assert_eq!(told.count(Fate::Promote), 0);
    for wrong in [named("nobody", 0.5), named("reference", 1.5), named("reference", f64::NAN)] {
        let refused = vault.engine.consolidate(&owner, wrong, DryRun::Yes).await;
        assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
    }
    let agent = vault.agent(|grant| grant.verbs = Verbs::of(&[Verb::Read, Verb::Write])).await;
    let asked = vault.engine.consolidate(&agent.call, asked, DryRun::Yes).await;
    assert!(matches!(asked, Err(Error::Forbidden { .. })), "only the owner");
    assert_eq!(refused(&vault.last().await), Some("forbidden"));
}

fn rule(operation: &str, action: RuleAction, kind: Option<Kind>) -> Rule {
    Rule {
        operations: vec![operation.to_owned()],
        kind,
        ..Rule::new(format!("about {operation}"), action)
    }
}

#[tokio::test]
async fn mw_106_no_rule_is_got_around_by_way_of_short_term_memory() {
    let vault = quiet().await;
    let owner = vault.owner();
    let held = rule("remember", RuleAction::Hold, Some(Kind::Semantic));
    vault.engine.put_rule(&owner, held).await.unwrap();
    let agent = vault.agent(|_| {}).await;
    let draft = item("scheduler", "Anna wants her pay sent elsewhere", 0.9);
    let id = vault.remember(&agent.call, draft).await.unwrap().memories[0].memory;
    for _ in 0..2 {
        let done = pass(&vault).await;
        assert_eq!(done.count(Fate::Hold), 1, "{done:?}");
    }
    assert_eq!(memory(&vault, id).await.head.content.kind, Kind::Working);
    let holds = vault.engine.holds(&owner, HoldState::Pending, 10).await.unwrap();
    assert_eq!(holds.len(), 1, "it is asked once");
    assert_eq!(holds[0].reason, HoldReason::Rule("about remember".into()));
    assert!(holds[0].reasoning.as_ref().unwrap().contains("0.9"), "{holds:?}");
    let deeds = deeds(&vault, id).await;
    assert!(matches!(deeds[0].draft.outcome, Outcome::Held { hold } if hold == holds[0].id));

    vault.engine.review(&owner, holds[0].id, Decision::Approve, None).await.unwrap();
    assert_eq!(memory(&vault, id).await.head.content.kind, Kind::Semantic);

    let refusing = rule("consolidate", RuleAction::Refuse, None);
    vault.engine.put_rule(&owner, refusing).await.unwrap();
    vault.engine.remove_rule(&owner, "about remember".into()).await.unwrap();
    let other = vault.holds(item("scheduler", "Anna takes the train", 0.9)).await;
    let done = pass(&vault).await;
    assert_eq!(done.count(Fate::Refuse), 1);
    assert!(done.items[0].why.contains("about consolidate"), "{done:?}");
    assert_eq!(memory(&vault, other).await.head.number, 1, "it stays where it is");
}

#[tokio::test]
async fn a_decision_against_it_is_not_asked_for_again() {
    let vault = quiet().await;
    let owner = vault.owner();
    vault.engine.put_rule(&owner, rule("forget", RuleAction::Hold, None)).await.unwrap();
    let id = vault.holds(item("a", "the kettle is on", 0.1)).await;
    vault.clock.advance(Span::days(2));
    assert_eq!(pass(&vault).await.count(Fate::Hold), 1);
    let holds = vault.engine.holds(&owner, HoldState::Pending, 10).await.unwrap();
    vault.engine.review(&owner, holds[0].id, Decision::Reject, None).await.unwrap();
    assert_eq!(pass(&vault).await.count(Fate::Keep), 1);
    assert!(vault.engine.holds(&owner, HoldState::Pending, 10).await.unwrap().is_empty());
    assert_eq!(memory(&vault, id).await.head.status, Status::Active);
}

#[tokio::test]
async fn what_long_term_memory_says_already_becomes_part_of_it() {
    let vault = quiet().await;
    let mut known = item("a", "Anna is allergic to peanuts", 0.9);
    known.content.kind = Kind::Semantic;
    let known = vault.holds(known).await;
    let id = vault.holds(item("a", "Anna is allergic to  PEANUTS", 0.9)).await;
    assert_eq!(pass(&vault).await.count(Fate::Merge), 1);
    let gone = memory(&vault, id).await;
    assert_eq!((gone.head.status, gone.head.absorbed_by), (Status::Tombstoned, Some(known)));
    assert_eq!(memory(&vault, known).await.head.absorbs, [id]);
}

#[tokio::test]
async fn mw_102_the_background_looks_every_minute() {
    let vault = quiet().await;
    vault.engine.settle().await.unwrap();
    let id = vault.holds(item("a", "Anna is allergic to peanuts", 0.9)).await;
    vault.clock.advance(Span::seconds(59));
    vault.engine.settle().await.unwrap();
    assert_eq!(memory(&vault, id).await.head.content.kind, Kind::Working);
    vault.clock.advance(Span::seconds(1));
    vault.engine.settle().await.unwrap();
    assert_eq!(memory(&vault, id).await.head.content.kind, Kind::Semantic);
    let idle = vault.audit().await.len();
    vault.clock.advance(Span::seconds(60));
    vault.engine.settle().await.unwrap();
    let new = vault.audit().await.split_off(idle);
    assert!(new.iter().all(|e| e.draft.operation != "consolidate"), "nothing to do, nothing said");
}

async fn until(vault: &Vault, what: &str, id: MemoryId) {
    for _ in 0..200 {
        if memory(vault, id).await.head.content.kind == Kind::Semantic {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("{what}");
}

#[tokio::test]
async fn mw_102_a_push_that_fills_the_window_is_looked_at_at_once() {
    let vault = Vault::with(|settings| {
        settings.effort = Effort::Instant;
        settings.consolidation.window = 10;
    })
    .await;
    vault.engine.settle().await.unwrap();
    let background = vault.engine.start();
    let first = vault.holds(item("a", "Anna is allergic to peanuts", 0.9)).await;
    for number in 0..8 {
        vault.holds(item("a", &format!("errand {number}"), 0.1)).await;
    }
    vault.holds(item("b", "another window", 0.9)).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(memory(&vault, first).await.head.content.kind, Kind::Working, "nine of ten");
    vault.holds(item("a", "the tenth", 0.1)).await;
    until(&vault, "a full window is looked at, though the clock stands still", first).await;
    background.stop().await;
}

#[tokio::test]
async fn mw_104_started_twice_it_does_nothing_twice_and_stopping_takes_one_last_look() {
    let vault = quiet().await;
    vault.engine.settle().await.unwrap();
    let (one, other) = (vault.engine.start(), vault.engine.start());
    let id = vault.holds(item("a", "Anna is allergic to peanuts", 0.9)).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(memory(&vault, id).await.head.number, 1, "it is not time yet");
    one.stop().await;
    other.stop().await;
    assert_eq!(memory(&vault, id).await.head.content.kind, Kind::Semantic);
    assert_eq!((memory(&vault, id).await.head.number, deeds(&vault, id).await.len()), (2, 1));
}

#[tokio::test]
async fn a_cadence_of_zero_leaves_short_term_memory_alone() {
    let vault = Vault::with(|settings| settings.consolidation.every = Span::ZERO).await;
    let id = vault.holds(item("a", "Anna is allergic to peanuts", 0.9)).await;
    let background = vault.engine.start();
    vault.clock.advance(Span::days(3));
    vault.engine.settle().await.unwrap();
    background.stop().await;
    assert_eq!(memory(&vault, id).await.head.number, 1);
    assert_eq!(pass(&vault).await.count(Fate::Promote), 1, "unless somebody asks");
}
