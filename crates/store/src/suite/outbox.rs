//! Whole commits: outbox, audit chain and atomicity.

#![expect(clippy::missing_panics_doc, reason = "a story panics when the guarantee does not hold")]

use std::collections::BTreeMap;

use yore_domain::change::What;
use yore_domain::class::{Class, Label};
use yore_domain::conversation::Conversation;
use yore_domain::memory::{Cause, Draft, Status};
use yore_domain::query::{Filter, PageRequest};
use yore_domain::{MemoryId, Seq};

use super::{Scene, talks, write};
use crate::Write;
use crate::snapshot::AuditQuery;

/// Folding every change in order gives the heads, states and classes that the tables have.
pub async fn the_outbox_folds_to_the_tables(scene: &Scene<'_>) {
    let first = scene.remember(Draft::text("one")).await;
    let second = scene.remember(Draft::text("two")).await;
    let third = scene.remember(Draft::text("three")).await;
    let mut labelled = first.next(Cause::Relabelled, scene.tick(), None);
    labelled.content.governance.labels = vec![Label::new("health").unwrap()];
    let mut gone = second.next(Cause::Tombstoned, scene.tick(), None);
    gone.status = Status::Tombstoned;
    scene.commit(vec![write(&labelled), write(&gone)]).await;
    scene.commit(vec![Write::Erase { memory: third.memory }]).await;
    let talk = talks::talk(scene, "chatgpt").await;
    let kept = talks::say(scene, &talk, "kept").await;
    let lost = talks::say(scene, &talk, "lost").await;
    scene.commit(vec![Write::EraseMessage(talk.id, lost.id)]).await;
    let renamed = Conversation { title: Some("renamed".into()), ..talk.clone() };
    scene.commit(vec![Write::Conversation(Box::new(renamed))]).await;

    let view = scene.look().await;
    let changes = view.changes(Seq(0), 1000).await.unwrap();
    assert!(changes.iter().map(|change| change.seq.0).eq(1..=changes.len() as u64), "no gap");
    let mut heads: BTreeMap<MemoryId, (u32, Status, Class)> = BTreeMap::new();
    let (mut messages, mut begun) = (Vec::new(), Vec::new());
    for change in changes {
        match change.what {
            What::Memory { memory, head, status, class, was, .. } => {
                let before = heads.insert(memory, (head, status, class.clone()));
                let moved = before.map(|(_, _, before)| before).filter(|before| *before != class);
                assert_eq!(was, moved, "who loses sight must be told");
            }
            What::Erased { memory, head, class } => {
                heads.insert(memory, (head, Status::Erased, class));
            }
            What::Message { message, .. } => messages.push(message),
            What::ConversationErased { message: Some(message), .. } => {
                messages.retain(|other| *other != message);
            }
            What::Conversation { made, .. } => begun.push(made),
            What::ConversationErased { .. }
            | What::Profile { .. }
            | What::Hold { .. }
            | What::Grant { .. }
            | What::Job { .. } => {}
        }
    }
    assert_eq!(messages, [kept.id]);
    assert_eq!(begun, [true, false], "a conversation is made once");
    let statuses = vec![
        Status::Active,
        Status::Candidate,
        Status::Quarantined,
        Status::Tombstoned,
        Status::Erased,
    ];
    let filter = Filter { statuses, ..Filter::default() };
    let page = PageRequest { limit: 100, ..PageRequest::default() };
    let listed = view.memories(&filter, &page).await.unwrap().items;
    let tables: BTreeMap<MemoryId, (u32, Status, Class)> = listed
        .into_iter()
        .map(|memory| memory.head)
        .map(|head| (head.memory, (head.number, head.status, head.class())))
        .collect();
    assert_eq!(heads, tables);
    assert_eq!(view.changes(Seq(2), 1).await.unwrap()[0].seq, Seq(3));
}

/// Every commit adds exactly one entry, linked to the one before it, naming what it touched.
pub async fn every_commit_has_one_entry(scene: &Scene<'_>) {
    let first = scene.remember(Draft::text("tea")).await;
    let second = scene.remember(Draft::text("coffee")).await;
    let receipt = scene.commit(vec![]).await;
    let view = scene.look().await;
    let query = AuditQuery { limit: 100, ..AuditQuery::default() };
    let entries = view.audit(&query).await.unwrap();
    assert_eq!(entries.len(), 3);
    assert_eq!(receipt.audit, entries[2].seq);
    assert!(entries.windows(2).all(|two| two[0].hash == two[1].previous));
    assert!(entries.iter().map(|entry| entry.seq.0).eq(1..=3));
    let target = &entries[0].draft.targets[0];
    assert_eq!((target.memory, target.number), (first.memory, Some(1)));
    assert!(target.digest.as_ref().is_some_and(|digest| !digest.contains("tea")));
    let seqs = async |query: AuditQuery| {
        let entries = view.audit(&query).await.unwrap();
        entries.iter().map(|entry| entry.seq.0).collect::<Vec<_>>()
    };
    let base = || AuditQuery { limit: 100, ..AuditQuery::default() };
    assert_eq!(seqs(AuditQuery { memory: Some(second.memory), ..base() }).await, [2]);
    assert_eq!(seqs(AuditQuery { newest_first: true, limit: 2, ..base() }).await, [3, 2]);
    assert_eq!(seqs(AuditQuery { after: Seq(1), ..base() }).await, [2, 3]);
    assert_eq!(seqs(AuditQuery { before: Some(Seq(3)), ..base() }).await, [1, 2]);
    assert!(seqs(AuditQuery { operation: Some("other".into()), ..base() }).await.is_empty());
    assert!(seqs(AuditQuery { agent: Some("other".into()), ..base() }).await.is_empty());
    let at = entries[1].draft.at;
    assert_eq!(seqs(AuditQuery { from: Some(at), ..base() }).await, [2, 3]);
    assert_eq!(seqs(AuditQuery { until: Some(at), ..base() }).await, [1]);
}

/// A plan that fails in its last write leaves no row, no change, no entry and nothing findable.
pub async fn a_failed_plan_writes_nothing(scene: &Scene<'_>) {
    let first = scene.remember(Draft::text("tea")).await;
    let before = scene.look().await.changes(Seq(0), 10).await.unwrap();
    let mut good = first.next(Cause::Revised, scene.tick(), None);
    good.content.body.text = "coffee".into();
    good.content.governance.labels = vec![Label::new("brand.new").unwrap()];
    let bad = Write::Erase { memory: MemoryId::random() };
    assert!(scene.run(scene.plan(vec![write(&good), bad])).await.is_err());
    let view = scene.look().await;
    assert_eq!(view.changes(Seq(0), 10).await.unwrap(), before);
    let query = AuditQuery { limit: 10, ..AuditQuery::default() };
    assert_eq!(view.audit(&query).await.unwrap().len(), 1);
    assert_eq!(view.history(first.memory).await.unwrap(), std::slice::from_ref(&first));
    assert!(scene.find("coffee", &Filter::default()).await.is_empty());
    assert_eq!(scene.find("tea", &Filter::default()).await, ["tea"]);
    // The store goes on as if nothing had been tried, the new class included.
    scene.commit(vec![write(&good)]).await;
    assert_eq!(scene.find("coffee", &Filter::default()).await, ["coffee"]);
}

/// Whoever watches a vault hears the number of its last change.
pub async fn watchers_hear_of_changes(scene: &Scene<'_>) {
    let mut watch = scene.store().watch(&scene.owner()).await.unwrap();
    let before = *watch.borrow_and_update();
    scene.remember(Draft::text("tea")).await;
    watch.changed().await.unwrap();
    assert_eq!(*watch.borrow_and_update(), Seq(before.0 + 1));
    scene.commit(vec![]).await;
    assert!(!watch.has_changed().unwrap(), "nothing changed");
}
