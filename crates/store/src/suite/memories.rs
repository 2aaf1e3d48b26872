//! Memories: chains of versions, their heads, their past, their names.

#![expect(clippy::missing_panics_doc, reason = "a story panics when the guarantee does not hold")]

use serde_json::json;
use yore_domain::class::{Label, Sensitivity};
use yore_domain::kind::Kind;
use yore_domain::memory::{Cause, Draft, FeedbackOutcome, Relation, Status, Version};
use yore_domain::query::{Filter, Order, PageRequest};
use yore_domain::{MemoryId, VersionId};

use super::{Scene, statement, time, write};
use crate::plan::AliasTarget;
use crate::{CommitError, Precondition, Write};

fn said(version: &Version) -> &str {
    &version.content.body.text
}

fn revised(version: &Version, text: &str, scene: &Scene<'_>) -> Version {
    let mut next = version.next(Cause::Revised, scene.tick(), None);
    next.content.body.text = text.into();
    next
}

/// Versions append to a chain; the newest is the head; old ones stay as they were.
pub async fn versions_form_a_chain(scene: &Scene<'_>) {
    let first = scene.remember(Draft::text("lives in Lisbon")).await;
    let second = revised(&first, "lives in Porto", scene);
    let third = second.next(Cause::Relabelled, scene.tick(), Some("scheduler".into()));
    scene.commit(vec![write(&second), write(&third)]).await;
    let view = scene.look().await;
    let memory = view.memory(first.memory).await.unwrap().unwrap();
    assert_eq!(memory.head, third);
    assert_eq!(memory.since, first.recorded);
    let history = view.history(first.memory).await.unwrap();
    assert_eq!(history, [first.clone(), second.clone(), third.clone()]);
    assert_eq!(view.version(second.id).await.unwrap(), Some(second));
    assert_eq!(view.version(VersionId::random()).await.unwrap(), None);
    assert_eq!(view.memory(MemoryId::random()).await.unwrap(), None);
    assert!(view.history(MemoryId::random()).await.unwrap().is_empty());
    assert_eq!(view.count(&Filter::default()).await.unwrap(), 1);

    // A number that is not the next one, and an id that is taken, change nothing.
    let gap = Version { number: 9, id: VersionId::random(), ..third.clone() };
    assert!(scene.run(scene.plan(vec![write(&gap)])).await.is_err());
    let again = Version { id: VersionId::random(), ..first };
    assert!(scene.run(scene.plan(vec![write(&again)])).await.is_err());
    assert_eq!(scene.look().await.history(third.memory).await.unwrap().len(), 3);
}

/// A plan whose head moved is stale, and a view opened before a commit does not see it.
pub async fn heads_are_checked_in_the_transaction(scene: &Scene<'_>) {
    let first = scene.remember(Draft::text("tea")).await;
    let before = scene.look().await;
    assert_eq!(said(&before.memory(first.memory).await.unwrap().unwrap().head), "tea");
    let next = revised(&first, "coffee", scene);
    for (precondition, holds) in [
        (Precondition::Head(first.memory, None), false),
        (Precondition::Head(first.memory, Some(2)), false),
        (Precondition::Head(MemoryId::random(), Some(1)), false),
        (Precondition::Head(MemoryId::random(), None), true),
        (Precondition::Head(first.memory, Some(1)), true),
    ] {
        let mut plan = scene.plan(vec![]);
        if precondition == Precondition::Head(first.memory, Some(1)) {
            plan.writes.push(write(&next));
        }
        plan.preconditions.push(precondition.clone());
        let done = scene.run(plan).await;
        match done {
            Ok(_) => assert!(holds, "{precondition:?}"),
            Err(CommitError::Stale(_)) => assert!(!holds, "{precondition:?}"),
            Err(CommitError::Failed(error)) => panic!("{precondition:?}: {error}"),
        }
    }
    assert_eq!(said(&before.memory(first.memory).await.unwrap().unwrap().head), "tea");
    let after = scene.look().await;
    assert_eq!(said(&after.memory(first.memory).await.unwrap().unwrap().head), "coffee");
}

/// The digest of a live statement leads to its memory, and only while it is live.
pub async fn an_exact_statement_is_known(scene: &Scene<'_>) {
    let first = scene.remember(Draft::text("Tea, no sugar")).await;
    let digest = statement("tea,  no SUGAR");
    let unsaid = |digest: &str| {
        let mut plan = scene.plan(vec![]);
        plan.preconditions.push(Precondition::Unsaid(digest.to_owned()));
        plan
    };
    assert_eq!(scene.look().await.said(&digest).await.unwrap(), Some(first.memory));
    assert!(matches!(scene.run(unsaid(&digest)).await, Err(CommitError::Stale(_))));
    assert!(scene.run(unsaid("something else")).await.is_ok());

    let mut gone = first.next(Cause::Tombstoned, scene.tick(), None);
    gone.status = Status::Tombstoned;
    scene.commit(vec![write(&gone)]).await;
    assert_eq!(scene.look().await.said(&digest).await.unwrap(), None);
    assert!(scene.run(unsaid(&digest)).await.is_ok());
}

/// Of several that say the same at once, one commits; those in the same transaction count, too.
pub async fn of_equal_statements_at_once_one_stays(scene: &Scene<'_>) {
    let text = "the kettle is blue";
    let race = (0..16).map(|_| {
        let first = Version::first(MemoryId::random(), Draft::text(text), scene.tick(), None);
        let mut plan = scene.plan(vec![write(&first)]);
        plan.preconditions.push(Precondition::Unsaid(statement(text)));
        scene.run(plan)
    });
    let done = futures::future::join_all(race).await;
    assert_eq!(done.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    assert!(done.iter().all(|outcome| matches!(outcome, Ok(_) | Err(CommitError::Stale(_)))));
    assert_eq!(scene.find(text, &Filter::default()).await.len(), 1);
}

/// Erasing takes the text out of every version and keeps that there was something.
pub async fn erasing_leaves_no_text(scene: &Scene<'_>) {
    let mut draft = Draft::text("the code word is marzipan");
    draft.content.tags = vec!["marzipan".into()];
    draft.content.body.structured = json!({"word": "marzipan"}).as_object().cloned();
    draft.content.relations = vec![Relation { kind: "about".into(), target: "marzipan".into() }];
    let first = scene.remember(draft).await;
    let second = revised(&first, "the code word was marzipan", scene);
    let target = AliasTarget::Memory(first.memory);
    let alias =
        Write::Alias { namespace: String::new(), name: "word-1".into(), target, instead_of: None };
    scene.commit(vec![write(&second), alias]).await;
    let other = scene.remember(Draft::text("marzipan is sweet")).await;
    assert_eq!(scene.find("marzipan", &Filter::default()).await.len(), 2);

    scene.commit(vec![Write::Erase { memory: first.memory }]).await;
    let view = scene.look().await;
    let memory = view.memory(first.memory).await.unwrap().unwrap();
    assert_eq!(memory.head.status, Status::Erased);
    let history = view.history(first.memory).await.unwrap();
    assert_eq!(history.iter().map(|version| version.number).collect::<Vec<_>>(), [1, 2]);
    for version in &history {
        let text = serde_json::to_string(version).unwrap();
        assert!(!text.contains("marzipan"), "{text}");
    }
    assert_eq!(scene.find("marzipan", &Filter::default()).await, [said(&other)]);
    let past = Filter { as_of: Some(second.recorded), ..Filter::default() };
    assert!(scene.find("code word", &past).await.is_empty());
    assert_eq!(view.said(&statement(said(&second))).await.unwrap(), None);
    assert_eq!(view.resolve("", "word-1").await.unwrap(), None);
    assert_eq!(view.count(&Filter::default()).await.unwrap(), 1);
}

/// What the vault knew, and what it held true, can be asked for any time.
pub async fn the_past_can_be_read(scene: &Scene<'_>) {
    let mut draft = Draft::text("works at the bakery");
    draft.time.valid_from = Some(time(-1000));
    let first = scene.remember(draft).await;
    let mut second = revised(&first, "works at the harbour", scene);
    second.time.valid_from = time(-500);
    scene.commit(vec![write(&second)]).await;
    let mut gone = second.next(Cause::Tombstoned, scene.tick(), None);
    gone.status = Status::Tombstoned;
    scene.commit(vec![write(&gone)]).await;

    let view = scene.look().await;
    let before = view.memory_as_of(first.memory, time(-1)).await.unwrap();
    assert_eq!(before, None, "the vault did not know it yet");
    for version in [&first, &second, &gone] {
        let then = view.memory_as_of(first.memory, version.recorded).await.unwrap();
        assert_eq!(then.as_ref(), Some(version));
    }
    let page = PageRequest { limit: 10, ..PageRequest::default() };
    let table = [
        (None, None, None),
        (Some(first.recorded), None, Some(&first)),
        (Some(second.recorded), None, Some(&second)),
        (Some(second.recorded), Some(time(-700)), Some(&first)),
        (Some(second.recorded), Some(time(-500)), Some(&second)),
        (Some(second.recorded), Some(time(-1001)), None),
        (Some(gone.recorded), None, None),
        (Some(gone.recorded), Some(time(-700)), None),
    ];
    for (as_of, valid_at, wanted) in table {
        let filter = Filter { as_of, valid_at, ..Filter::default() };
        let listed = view.memories(&filter, &page).await.unwrap().items;
        let heads: Vec<&Version> = listed.iter().map(|memory| &memory.head).collect();
        assert_eq!(heads, wanted.into_iter().collect::<Vec<_>>(), "{as_of:?} {valid_at:?}");
        let found = scene.find("works bakery harbour", &filter).await;
        let wanted: Vec<&str> = wanted.into_iter().map(said).collect();
        assert_eq!(found, wanted, "search {as_of:?} {valid_at:?}");
    }
}

/// Pages follow each other without gaps or repeats, whatever is written between them.
pub async fn lists_are_paged_without_gaps(scene: &Scene<'_>) {
    let mut writes = Vec::new();
    let mut ids = Vec::new();
    for number in 0..23 {
        let mut draft = Draft::text(format!("note {number}"));
        // Three share each instant, so the id must break the tie.
        draft.time.created = Some(time(-100 + number / 3));
        let version = Version::first(MemoryId::random(), draft, scene.tick(), None);
        ids.push((version.time.created, version.memory));
        writes.push(write(&version));
    }
    scene.commit(writes).await;
    ids.sort_unstable_by_key(|(created, id)| (*created, id.bytes()));
    for order in [Order::OldestFirst, Order::NewestFirst] {
        let mut wanted: Vec<MemoryId> = ids.iter().map(|(_, id)| *id).collect();
        if order == Order::NewestFirst {
            wanted.reverse();
        }
        let (mut got, mut after, mut late) = (Vec::new(), None, None);
        loop {
            let page = PageRequest { limit: 5, after, offset: 0, order };
            let page = scene.look().await.memories(&Filter::default(), &page).await.unwrap();
            got.extend(page.items.iter().map(|memory| memory.head.memory));
            // What arrives before the place that was reached shifts nothing that is still to come.
            if got.len() == 10 {
                let mut draft = Draft::text("late");
                let newest = order == Order::NewestFirst;
                draft.time.created = Some(time(if newest { 500 } else { -500 }));
                late = Some(scene.remember(draft).await);
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(got, wanted, "{order:?}");
        scene.commit(vec![Write::Erase { memory: late.unwrap().memory }]).await;
        let page = PageRequest { limit: 4, after: None, offset: 21, order };
        let page = scene.look().await.memories(&Filter::default(), &page).await.unwrap();
        let tail: Vec<MemoryId> = page.items.iter().map(|memory| memory.head.memory).collect();
        assert_eq!(tail, wanted[21..], "{order:?}");
        assert_eq!(page.next, None);
    }
}

/// Names lead to memories, versions and conversations; links are followed both ways.
pub async fn names_and_links_are_followed(scene: &Scene<'_>) {
    let first = scene.remember(Draft::text("Ada")).await;
    let mut draft = Draft::text("Ada wrote the first program");
    draft.content.relations =
        vec![Relation { kind: "about".into(), target: first.memory.to_string() }];
    let second = scene.remember(draft).await;
    let alias = |namespace: &str, name: &str, target| Write::Alias {
        namespace: namespace.into(),
        name: name.into(),
        target,
        instead_of: None,
    };
    scene
        .commit(vec![
            alias("", "ada", AliasTarget::Memory(first.memory)),
            alias("scheduler", "ada", AliasTarget::Memory(second.memory)),
            alias("", "program-1", AliasTarget::Version(second.memory, 1)),
        ])
        .await;
    let view = scene.look().await;
    let resolve = async |space: &str, name: &str| view.resolve(space, name).await.unwrap();
    assert_eq!(resolve("", "ada").await, Some(AliasTarget::Memory(first.memory)));
    assert_eq!(resolve("scheduler", "ada").await, Some(AliasTarget::Memory(second.memory)));
    assert_eq!(resolve("", "program-1").await, Some(AliasTarget::Version(second.memory, 1)));
    assert_eq!(resolve("other", "ada").await, None);
    let names = view.aliases(first.memory).await.unwrap();
    assert_eq!(names, [(String::new(), "ada".to_owned())]);
    assert_eq!(view.related(first.memory).await.unwrap(), [second.memory]);
    assert_eq!(view.related(second.memory).await.unwrap(), [first.memory]);
    drop(view);
    let mut about = Vec::new();
    for (text, target) in [
        ("she was born in 1815", "entity:Ada"),
        ("so was Boole", "entity:Boole"),
        ("Ada!", "entity:Ada"),
    ] {
        let mut draft = Draft::text(text);
        draft.content.relations = vec![Relation { kind: "about".into(), target: target.into() }];
        about.push(scene.remember(draft).await.memory);
    }
    let view = scene.look().await;
    assert_eq!(view.related(about[0]).await.unwrap(), [about[2]], "both are about one thing");
    assert_eq!(view.related(about[1]).await.unwrap(), []);
}

/// Use, outcomes, demotion and legal holds change a memory without a new version.
pub async fn use_is_counted(scene: &Scene<'_>) {
    let version = scene.remember(Draft::text("tea")).await;
    let memory = version.memory;
    let at = scene.tick();
    scene
        .commit(vec![
            Write::Used { memories: vec![memory], at },
            Write::Used { memories: vec![memory], at },
            Write::Feedback { memory, outcome: FeedbackOutcome::Followed },
            Write::Feedback { memory, outcome: FeedbackOutcome::Contradicted },
            Write::Demote { memory, demoted: true },
            Write::LegalHold { memory, held: true },
        ])
        .await;
    let found = scene.look().await.memory(memory).await.unwrap().unwrap();
    assert_eq!(found.head, version);
    assert_eq!((found.usage.recalls, found.usage.recalled), (2, Some(at)));
    assert_eq!((found.usage.feedback.followed, found.usage.feedback.contradicted), (1, 1));
    assert!(found.usage.demoted && found.legal_hold);
}

/// Every member of a filter narrows lists, counts and searches alike.
pub async fn filters_are_exact(scene: &Scene<'_>) {
    let mut kitchen = Draft::new(Kind::Procedural, "boil water for tea");
    kitchen.content.tags = vec!["kitchen".into(), "drink".into()];
    kitchen.content.scope.project = Some("home".into());
    kitchen.content.lifecycle.confidence = Some(0.9);
    kitchen.content.governance.labels = vec![Label::new("food").unwrap()];
    kitchen.content.body.structured = json!({"pot": {"size": 2}}).as_object().cloned();
    let kitchen = scene.remember(kitchen).await;
    let mut office = Draft::text("tea is served at four");
    office.content.tags = vec!["drink".into()];
    office.content.scope.session = Some("s1".into());
    office.content.governance.sensitivity = Some(Sensitivity::Confidential);
    office.content.foreign.insert("omp".into(), json!({"room": "east"}));
    let office = scene.remember(office).await;
    let member = |path: &str, value| [(path.to_owned(), value)].into();
    let label = |text: &str| vec![Label::new(text).unwrap()];
    let base = Filter::default;
    let scoped = |project: &str| yore_domain::scope::ScopeRule {
        project: Some(project.into()),
        ..yore_domain::scope::ScopeRule::default()
    };
    let both: &[&Version] = &[&kitchen, &office];
    let table: Vec<(&[&Version], Filter)> = vec![
        (both, base()),
        (&both[..1], Filter { kinds: vec![Kind::Procedural], ..base() }),
        (&both[..1], Filter { tags: vec!["drink".into(), "kitchen".into()], ..base() }),
        (both, Filter { tags: vec!["drink".into()], ..base() }),
        (&both[..1], Filter { scope: scoped("home"), ..base() }),
        (&[], Filter { scope: scoped("work"), ..base() }),
        (&both[1..], Filter { session: Some("s1".into()), ..base() }),
        (&both[..1], Filter { labels: label("food"), ..base() }),
        // What declared no label counts as behaviour for a lens, never for a filter.
        (&[], Filter { labels: label("behaviour"), ..base() }),
        (&both[1..], Filter { sensitivities: vec![Sensitivity::Confidential], ..base() }),
        (&[], Filter { sensitivities: vec![Sensitivity::Internal], ..base() }),
        (&both[..1], Filter { min_confidence: Some(0.5), ..base() }),
        (&both[..1], Filter { members: member("pot.size", json!(2)), ..base() }),
        (&both[1..], Filter { members: member("room", json!("east")), ..base() }),
        (&both[1..], Filter { from: Some(office.time.created), ..base() }),
        (&both[..1], Filter { until: Some(office.time.created), ..base() }),
        (&[], Filter { statuses: vec![Status::Quarantined], ..base() }),
    ];
    let view = scene.look().await;
    let page = PageRequest { limit: 10, order: Order::OldestFirst, ..PageRequest::default() };
    for (wanted, filter) in table {
        let listed = view.memories(&filter, &page).await.unwrap().items;
        let heads: Vec<&Version> = listed.iter().map(|memory| &memory.head).collect();
        assert_eq!(heads, wanted, "{filter:?}");
        assert_eq!(view.count(&filter).await.unwrap(), wanted.len() as u64, "{filter:?}");
        let mut found = scene.find("tea", &filter).await;
        found.sort();
        let mut texts: Vec<&str> = wanted.iter().map(|version| said(version)).collect();
        texts.sort_unstable();
        assert_eq!(found, texts, "{filter:?}");
    }
}
