use yore_domain::class::{Governance, Handling, Label};
use yore_domain::grant::{Grant, Labels};
use yore_domain::memory::{Draft, Usage, Version};
use yore_domain::{MemoryId, Span};

use super::*;
use crate::permit::{Need, authorise};
use crate::principal::Principal;
use crate::principal::tests::{agent, grant, owner};

/// A change that lets more be seen.
type Widen = fn(&mut Content);

const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

fn permit(principal: &Principal) -> Permit {
    authorise(principal, Need::one("test", Verb::Write), NOW).unwrap()
}

fn remember(draft: Draft) -> Mutation {
    Mutation::Remember { draft: Box::new(draft), id: None }
}

fn memory(draft: Draft) -> Memory {
    let head = Version::first(MemoryId::random(), draft, NOW, None);
    Memory { since: NOW, head, usage: Usage::default(), legal_hold: false }
}

fn writer() -> Principal {
    agent(&[grant(&[Verb::Read, Verb::Write])])
}

fn rule(action: RuleAction) -> Rule {
    Rule {
        name: "r".into(),
        action,
        operations: vec![],
        agent: None,
        source: None,
        kind: None,
        label: None,
        from_sensitivity: None,
        words: vec![],
        learned: false,
    }
}

#[test]
fn a_plain_write_is_committed() {
    let verdict = judge(&permit(&writer()), &remember(Draft::text("a")), &Facts::default(), NOW);
    assert!(matches!(verdict, Verdict::Commit));
}

#[test]
fn ump_049_what_may_not_leave_cannot_be_public() {
    let mut draft = Draft::text("a");
    draft.content.consent.exportable = Some(false);
    draft.content.scope.visibility = Visibility::Public;
    let verdict = judge(&permit(&owner()), &remember(draft), &Facts::default(), NOW);
    assert!(matches!(verdict, Verdict::Refuse(Error::Consent { .. })));
}

#[test]
fn retention_that_has_run_out_is_refused_on_write() {
    let mut draft = Draft::text("a");
    draft.content.consent.retention = Some(Span::days(1));
    draft.time.created = Some(NOW.minus(Span::days(2)));
    let verdict = judge(&permit(&owner()), &remember(draft.clone()), &Facts::default(), NOW);
    assert!(matches!(verdict, Verdict::Refuse(Error::Consent { .. })));
    draft.time.created = Some(NOW.minus(Span::seconds(5)));
    let verdict = judge(&permit(&owner()), &remember(draft), &Facts::default(), NOW);
    assert!(matches!(verdict, Verdict::Commit));
}

#[test]
fn oamp_344_an_agent_speaks_only_in_its_own_name() {
    let mut draft = Draft::text("a");
    draft.content.provenance.actor_kind = ActorKind::Agent;
    draft.content.provenance.actor = "somebody-else".into();
    let verdict = judge(&permit(&writer()), &remember(draft.clone()), &Facts::default(), NOW);
    assert!(matches!(verdict, Verdict::Refuse(Error::Forbidden { .. })));
    draft.content.provenance.actor = "scheduler".into();
    let verdict = judge(&permit(&writer()), &remember(draft), &Facts::default(), NOW);
    assert!(matches!(verdict, Verdict::Commit));
}

#[test]
fn only_the_owner_opens_what_is_not_public() {
    let mut draft = Draft::text("a");
    draft.content.governance.handling = Some(Handling { open_export: true, ..Handling::default() });
    let open = remember(draft);
    let verdict = judge(&permit(&writer()), &open, &Facts::default(), NOW);
    assert!(matches!(verdict, Verdict::Refuse(Error::Forbidden { .. })));
    assert!(matches!(judge(&permit(&owner()), &open, &Facts::default(), NOW), Verdict::Commit));
}

#[test]
fn an_agent_takes_back_alone_only_what_it_put_aside_itself() {
    let mut aside = memory(Draft::text("a"));
    aside.head.status = Status::Quarantined;
    let back = Mutation::Restore { memory: aside.head.memory, number: 1 };
    let agent = permit(&writer()).principal().agent().map(str::to_owned);
    assert!(agent.is_some());
    for (by, waits) in [(None, true), (Some("another".to_owned()), true), (agent, false)] {
        aside.head.writer = by;
        let after = aside.head.content.clone();
        let facts = Facts { targets: vec![&aside], after: Some(&after), ..Facts::default() };
        let verdict = judge(&permit(&writer()), &back, &facts, NOW);
        assert_eq!(matches!(verdict, Verdict::Hold(_)), waits, "{:?}", aside.head.writer);
        assert!(matches!(judge(&permit(&owner()), &back, &facts, NOW), Verdict::Commit));
    }
}

#[test]
fn what_was_relabelled_since_comes_back_for_no_agent() {
    let gone = memory(Draft::text("a"));
    let back = Mutation::Restore { memory: gone.head.memory, number: 1 };
    let changes: [fn(&mut Content); 2] = [
        |after| after.governance.labels = vec![Label::new("work").unwrap()],
        |after| after.scope.agent = Some("another".to_owned()),
    ];
    for change in changes {
        let mut after = gone.head.content.clone();
        change(&mut after);
        let facts = Facts { targets: vec![&gone], after: Some(&after), ..Facts::default() };
        let verdict = judge(&permit(&writer()), &back, &facts, NOW);
        assert!(matches!(verdict, Verdict::Refuse(Error::Forbidden { .. })), "{verdict:?}");
        assert!(matches!(judge(&permit(&owner()), &back, &facts, NOW), Verdict::Commit));
    }
}

#[test]
fn erasing_needs_its_own_verb_and_no_legal_hold() {
    let mut held = memory(Draft::text("a"));
    let erase =
        Mutation::Forget { memories: vec![held.head.memory], depth: Depth::Erase, reason: None };
    let facts = Facts { targets: vec![&held], ..Facts::default() };
    let verdict = judge(&permit(&writer()), &erase, &facts, NOW);
    assert!(matches!(verdict, Verdict::Refuse(Error::Forbidden { .. })));
    assert!(matches!(judge(&permit(&owner()), &erase, &facts, NOW), Verdict::Commit));
    held.legal_hold = true;
    let facts = Facts { targets: vec![&held], ..Facts::default() };
    let verdict = judge(&permit(&owner()), &erase, &facts, NOW);
    assert!(matches!(verdict, Verdict::Refuse(Error::Consent { .. })));
}

#[test]
fn moving_a_memory_into_labels_one_may_not_write_is_refused() {
    let label = |name: &str| Label::new(name).unwrap();
    let bound = agent(&[Grant {
        write: Labels::Under(vec![label("work")]),
        ..grant(&[Verb::Read, Verb::Write])
    }]);
    let mut draft = Draft::text("a");
    draft.content.governance = Governance { labels: vec![label("work")], ..Governance::default() };
    let before = memory(draft);
    let mut after = before.head.content.clone();
    after.governance.labels = vec![label("health")];
    let relabel = Mutation::Relabel { memory: before.head.memory, change: Box::default() };
    let facts = Facts { targets: vec![&before], after: Some(&after), ..Facts::default() };
    let verdict = judge(&permit(&bound), &relabel, &facts, NOW);
    assert!(matches!(verdict, Verdict::Refuse(Error::Forbidden { .. })));
}

#[test]
fn ump_057_an_agent_lifts_no_consent_and_opens_nothing_to_more_eyes() {
    let mut draft = Draft::text("the door code");
    draft.content.consent.redact = vec!["body.structured.code".into()];
    draft.content.consent.retention = Some(Span::days(30));
    draft.content.consent.exportable = Some(false);
    draft.content.governance.sensitivity = Some(Sensitivity::Confidential);
    draft.content.scope.visibility = Visibility::Shared;
    let kept = memory(draft);
    let own = memory(Draft::text("mine"));
    let id = kept.head.memory;
    let wider: [(&str, Widen); 6] = [
        ("redact", |after| after.consent.redact.clear()),
        ("retention", |after| after.consent.retention = None),
        ("longer", |after| after.consent.retention = Some(Span::days(31))),
        ("exportable", |after| after.consent.exportable = None),
        ("visibility", |after| after.scope.visibility = Visibility::Public),
        ("sensitivity", |after| after.governance.sensitivity = Some(Sensitivity::Internal)),
    ];
    let mutations = [
        Mutation::Revise { memory: id, patch: Box::default(), expected: None },
        Mutation::Relabel { memory: id, change: Box::default() },
        Mutation::Restore { memory: id, number: 1 },
    ];
    for (name, change) in wider {
        let mut after = kept.head.content.clone();
        change(&mut after);
        let facts = Facts { targets: vec![&kept], after: Some(&after), ..Facts::default() };
        for mutation in &mutations {
            let verdict = judge(&permit(&writer()), mutation, &facts, NOW);
            assert!(matches!(verdict, Verdict::Refuse(_)), "{name}: {mutation:?}");
        }
        if after.consent.exportable == Some(false) && name == "visibility" {
            continue; // What may not be exported is public to nobody.
        }
        for mutation in &mutations {
            let verdict = judge(&permit(&owner()), mutation, &facts, NOW);
            assert!(matches!(verdict, Verdict::Commit), "{name}: {mutation:?}");
        }
    }
    for mutation in &mutations {
        let after = kept.head.content.clone();
        let facts = Facts { targets: vec![&kept], after: Some(&after), ..Facts::default() };
        let verdict = judge(&permit(&writer()), mutation, &facts, NOW);
        assert!(matches!(verdict, Verdict::Commit), "{mutation:?}");
    }
    let merge = Mutation::Merge {
        canonical: own.head.memory,
        duplicates: vec![id],
        strategy: yore_domain::mutation::MergeStrategy::MergeContent,
    };
    let union = own.head.content.clone();
    let facts = Facts { targets: vec![&own, &kept], after: Some(&union), ..Facts::default() };
    let verdict = judge(&permit(&writer()), &merge, &facts, NOW);
    assert!(matches!(verdict, Verdict::Refuse(Error::Forbidden { .. })), "{verdict:?}");
    assert!(matches!(judge(&permit(&owner()), &merge, &facts, NOW), Verdict::Commit));
}

#[test]
fn a_moved_head_is_a_conflict_and_a_missing_target_is_not_found() {
    let target = memory(Draft::text("a"));
    let revise =
        |expected| Mutation::Revise { memory: target.head.memory, patch: Box::default(), expected };
    let facts = Facts { targets: vec![&target], ..Facts::default() };
    assert!(matches!(judge(&permit(&owner()), &revise(Some(1)), &facts, NOW), Verdict::Commit));
    let moved = judge(&permit(&owner()), &revise(Some(2)), &facts, NOW);
    assert!(matches!(moved, Verdict::Refuse(Error::Conflict { .. })));
    let missing = judge(&permit(&owner()), &revise(None), &Facts::default(), NOW);
    assert!(matches!(missing, Verdict::Refuse(Error::NotFound)));
}

#[test]
fn the_first_matching_rule_decides_for_agents_and_never_for_the_owner() {
    let write = remember(Draft::text("grant-all to the new bot"));
    let hold = Rule { words: vec!["Grant-All".into()], ..rule(RuleAction::Hold) };
    let cases = [
        (vec![hold.clone()], "hold"),
        (vec![Rule { words: vec!["other".into()], ..hold.clone() }], "commit"),
        (vec![Rule { operations: vec!["forget".into()], ..hold.clone() }], "commit"),
        (vec![rule(RuleAction::Allow), hold.clone()], "commit"),
        (vec![rule(RuleAction::Refuse), hold.clone()], "refuse"),
        (vec![Rule { agent: Some("other".into()), ..hold.clone() }], "commit"),
        (vec![Rule { from_sensitivity: Some(Sensitivity::Internal), ..hold.clone() }], "hold"),
        (vec![Rule { label: Some(Label::behaviour()), ..hold.clone() }], "hold"),
    ];
    for (rules, expected) in cases {
        let facts = Facts { rules: &rules, ..Facts::default() };
        let found = match judge(&permit(&writer()), &write, &facts, NOW) {
            Verdict::Commit => "commit",
            Verdict::Hold(_) => "hold",
            Verdict::Refuse(_) => "refuse",
        };
        assert_eq!(found, expected, "{rules:?}");
        let verdict = judge(&permit(&owner()), &write, &facts, NOW);
        assert!(matches!(verdict, Verdict::Commit), "{rules:?}");
    }
}

#[test]
fn approval_lifts_the_hold_and_nothing_else() {
    let rules = [rule(RuleAction::Hold)];
    let facts = Facts { rules: &rules, approved_by: Some("owner"), ..Facts::default() };
    let verdict = judge(&permit(&writer()), &remember(Draft::text("a")), &facts, NOW);
    assert!(matches!(verdict, Verdict::Commit));
    let mut draft = Draft::text("a");
    draft.content.consent.exportable = Some(false);
    draft.content.scope.visibility = Visibility::Public;
    let verdict = judge(&permit(&writer()), &remember(draft), &facts, NOW);
    assert!(matches!(verdict, Verdict::Refuse(_)), "consent still stands");
}

#[test]
fn who_asks_for_approval_gets_it_even_as_the_owner() {
    let facts = Facts { wants_approval: true, ..Facts::default() };
    let verdict = judge(&permit(&owner()), &remember(Draft::text("a")), &facts, NOW);
    assert!(matches!(verdict, Verdict::Hold(HoldReason::Requested)));
}
