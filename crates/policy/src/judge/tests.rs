use yore_domain::class::{Governance, Handling, Label};
use yore_domain::grant::{Grant, Labels};
use yore_domain::hold::Privacy;
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
    Rule::new("r", action)
}

#[test]
fn mw_106_rules_speak_about_what_the_server_does_unasked() {
    let system = Principal::system(yore_domain::VaultId::random(), "consolidate");
    let permit = permit(&system);
    let target = memory(Draft::new(yore_domain::kind::Kind::Working, "a"));
    let after = Draft::text("a").content;
    let revise =
        Mutation::Revise { memory: target.head.memory, patch: Box::default(), expected: None };
    let of = |rule: Rule, unasked| {
        let rules = [rule];
        let (targets, after) = (vec![&target], Some(&after));
        let facts = Facts { targets, after, rules: &rules, unasked, ..Facts::default() };
        judge(&permit, &revise, &facts, NOW)
    };
    let unasked = Some(Unasked { agent: Some("a"), counts_as: &["consolidate", "remember"] });
    let named = |name: &str| Rule { operations: vec![name.into()], ..rule(RuleAction::Hold) };
    assert!(matches!(of(named("remember"), None), Verdict::Commit), "its own work is no write");
    assert!(matches!(of(named("remember"), unasked), Verdict::Hold(HoldReason::Rule(_))));
    assert!(matches!(of(named("consolidate"), unasked), Verdict::Hold(HoldReason::Rule(_))));
    assert!(matches!(of(named("forget"), unasked), Verdict::Commit));
    let other = Rule { agent: Some("b".into()), ..named("remember") };
    assert!(matches!(of(other, unasked), Verdict::Commit));
    assert!(matches!(of(rule(RuleAction::Refuse), unasked), Verdict::Refuse(_)));
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
        (vec![Rule { off: true, ..hold.clone() }], "commit"),
        (vec![Rule { learned: true, ..hold.clone() }], "commit"),
        (vec![Rule { operations: vec!["recall".into()], ..hold.clone() }], "commit"),
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
fn mw_200_a_rule_may_ask_for_what_is_stated_about_privacy() {
    let silent = Draft::text("a");
    let mut kept = silent.clone();
    kept.content.consent.retention = Some(yore_domain::Span::days(30));
    let mut agreed = silent.clone();
    agreed.content.consent.reference = Some("c-7".into());
    let mut shared = silent.clone();
    shared.content.scope.shared_with = Some(["planner".to_owned()].into());
    let privacy = Privacy::default;
    let planner = Some("planner".to_owned());
    let table = [
        (Privacy { stated: Some(true), ..privacy() }, [false, true, true, true]),
        (Privacy { stated: Some(false), ..privacy() }, [true, false, false, false]),
        (Privacy { retention: Some(true), ..privacy() }, [false, true, false, false]),
        (Privacy { consent: Some(false), ..privacy() }, [true, true, false, true]),
        (Privacy { shared_with: planner, ..privacy() }, [false, false, false, true]),
        (Privacy { shared_with: Some("other".into()), ..privacy() }, [false; 4]),
    ];
    for (privacy, expected) in table {
        let rules = [Rule { privacy: Some(privacy), ..rule(RuleAction::Hold) }];
        let facts = Facts { rules: &rules, ..Facts::default() };
        let held = [&silent, &kept, &agreed, &shared].map(|draft| {
            let verdict = judge(&permit(&writer()), &remember(draft.clone()), &facts, NOW);
            matches!(verdict, Verdict::Hold(_))
        });
        assert_eq!(held, expected, "{rules:?}");
    }
}

#[test]
fn mw_200_an_agent_cannot_share_with_more_what_is_shared_with_some() {
    let mut draft = Draft::text("a");
    draft.content.scope.shared_with = Some(["scheduler".to_owned()].into());
    let target = memory(draft.clone());
    for (shared_with, allowed) in [
        (Some(["scheduler".to_owned()].into()), true),
        (Some(Default::default()), true),
        (Some(["scheduler".to_owned(), "other".to_owned()].into()), false),
        (None, false),
    ] {
        let mut after = draft.content.clone();
        after.scope.shared_with = shared_with;
        let facts = Facts { targets: vec![&target], after: Some(&after), ..Facts::default() };
        let relabel = Mutation::Relabel { memory: target.head.memory, change: Box::default() };
        let verdict = judge(&permit(&writer()), &relabel, &facts, NOW);
        assert_eq!(matches!(verdict, Verdict::Commit), allowed, "{after:?}");
        let verdict = judge(&permit(&owner()), &relabel, &facts, NOW);
        assert!(matches!(verdict, Verdict::Commit));
    }
}

#[test]
fn mw_204_reading_is_withheld_by_rules_that_name_it() {
    let mut draft = Draft::text("blood pressure");
    draft.content.governance.labels = vec![Label::new("health.heart").unwrap()];
    let content = draft.content;
    let read = |action| Rule {
        operations: vec!["recall".into()],
        label: Some(Label::new("health").unwrap()),
        ..rule(action)
    };
    let kept = |rules: &[Rule], agent| crate::rules::withholding(rules, agent, &content).is_some();
    assert!(kept(&[read(RuleAction::Hold)], Some("a")));
    assert!(kept(&[read(RuleAction::Refuse)], None));
    assert!(!kept(&[rule(RuleAction::Hold)], Some("a")), "a rule about writes");
    assert!(!kept(&[read(RuleAction::Allow), read(RuleAction::Hold)], Some("a")));
    assert!(!kept(&[Rule { off: true, ..read(RuleAction::Hold) }], Some("a")));
    let of_b = Rule { agent: Some("b".into()), ..read(RuleAction::Hold) };
    assert!(kept(std::slice::from_ref(&of_b), Some("b")) && !kept(&[of_b], Some("a")));
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

#[test]
fn what_holds_secrets_waits_or_is_labelled_as_the_operator_wants() {
    let said = remember(Draft::text("the card is 4111 1111 1111 1111"));
    let facts = |care| Facts { care, ..Facts::default() };
    for (care, waits) in [(Care::Off, false), (Care::Label, false), (Care::Hold, true)] {
        let verdict = judge(&permit(&writer()), &said, &facts(care), NOW);
        assert_eq!(
            matches!(&verdict, Verdict::Hold(HoldReason::Rule(why)) if why.contains("card")),
            waits
        );
        let own = judge(&permit(&owner()), &said, &facts(care), NOW);
        assert!(matches!(own, Verdict::Commit), "the owner's own word is not held");
    }
    let plain = remember(Draft::text("tea, no sugar"));
    let verdict = judge(&permit(&writer()), &plain, &facts(Care::Hold), NOW);
    assert!(matches!(verdict, Verdict::Commit));

    let mut content = Draft::text("robin@example.org, +49 171 2345678").content;
    assert!(careful_labels(Care::Off, &content).is_empty());
    let labels = careful_labels(Care::Label, &content);
    assert_eq!(labels, [Finding::Email.label(), Finding::Phone.label()]);
    content.governance.labels = labels;
    assert!(careful_labels(Care::Hold, &content).is_empty(), "each once");
}

#[test]
fn a_rule_may_ask_for_what_is_found_and_an_allowing_one_goes_first() {
    let said = remember(Draft::text("the card is 4111 1111 1111 1111"));
    let asks = Rule { detects: vec![Finding::Iban, Finding::Card], ..rule(RuleAction::Refuse) };
    let rules = [asks];
    let facts = Facts { rules: &rules, ..Facts::default() };
    let verdict = judge(&permit(&writer()), &said, &facts, NOW);
    assert!(matches!(verdict, Verdict::Refuse(_)));
    let plain = judge(&permit(&writer()), &remember(Draft::text("tea")), &facts, NOW);
    assert!(matches!(plain, Verdict::Commit));
    let rules = [Rule { detects: vec![Finding::Card], ..rule(RuleAction::Allow) }];
    let facts = Facts { rules: &rules, care: Care::Hold, ..Facts::default() };
    assert!(matches!(judge(&permit(&writer()), &said, &facts, NOW), Verdict::Commit));
}
