//! Recall: what was written is found at once, inside its time, by words and by vectors.

#![expect(clippy::missing_panics_doc, reason = "a story panics when the guarantee does not hold")]

use yore_domain::Span;
use yore_domain::memory::{Cause, Draft, FeedbackOutcome, Status};
use yore_domain::query::{Corpus, Filter};

use super::{Scene, gather, indexing, time, write};
use crate::search::{RowKey, Search, Source, Vector};
use crate::{Snapshot, Write};

async fn row_of(view: &dyn Snapshot, text: &str) -> RowKey {
    let found = gather(view, text, Corpus::Memories, &Filter::default(), time(1000)).await;
    let best = found.iter().max_by(|a, b| a.signals.lexical.total_cmp(&b.signals.lexical));
    best.unwrap().row
}

/// A search right after a commit sees it: the new head is found, the old one no longer.
pub async fn a_write_is_findable_at_once(scene: &Scene<'_>) {
    let any = Filter::default();
    let first = scene.remember(Draft::text("the boat is moored at Porto")).await;
    assert_eq!(scene.find("boat", &any).await, ["the boat is moored at Porto"]);
    let mut second = first.next(Cause::Revised, scene.tick(), None);
    second.content.body.text = "the boat is moored at Lagos".into();
    scene.commit(vec![write(&second)]).await;
    assert_eq!(scene.find("boat", &any).await, ["the boat is moored at Lagos"]);
    assert!(scene.find("Porto", &any).await.is_empty());

    let memory = first.memory;
    scene
        .commit(vec![
            Write::Feedback { memory, outcome: FeedbackOutcome::Followed },
            Write::Demote { memory, demoted: true },
        ])
        .await;
    let view = scene.look().await;
    let found = gather(&*view, "boat", Corpus::Memories, &any, scene.tick()).await;
    assert_eq!(found.len(), 1);
    assert!(found[0].signals.listed && found[0].standing.demoted);
    assert_eq!(found[0].standing.feedback.followed, 1);
    assert_eq!(*found[0].class, second.class());
    assert_eq!(found[0].signals.id, second.id.bytes());

    let mut gone = second.next(Cause::Tombstoned, scene.tick(), None);
    gone.status = Status::Tombstoned;
    scene.commit(vec![write(&gone)]).await;
    assert!(scene.find("boat", &any).await.is_empty());
    let dead = Filter { statuses: vec![Status::Tombstoned], ..any };
    assert_eq!(scene.find("boat", &dead).await, ["the boat is moored at Lagos"]);
    // A row that a later search would not name may still be loaded, unless it is gone.
    let rows = [found[0].row, RowKey { source: Source::Version, row: u64::from(u32::MAX) }];
    let loaded = scene.look().await.load(&rows).await.unwrap();
    assert_eq!(loaded.iter().map(|(row, _)| *row).collect::<Vec<_>>(), [found[0].row]);
}

/// What has ended, or is not true now, is not recalled; the sweeper hears of what has ended.
pub async fn time_is_respected(scene: &Scene<'_>) {
    let mut brief = Draft::text("the tea is hot until noon");
    brief.content.lifecycle.expires = Some(time(50));
    let brief = scene.remember(brief).await;
    let mut kept = Draft::text("the tea is kept for a minute");
    kept.content.consent.retention = Some(Span::seconds(60));
    kept.time.created = Some(time(10));
    let kept = scene.remember(kept).await;
    let mut past = Draft::text("the tea was green");
    past.time.valid_from = Some(time(-100));
    past.time.valid_to = Some(time(20));
    let past = scene.remember(past).await;
    let view = scene.look().await;
    let texts = |now: i64, valid_at: Option<i64>| {
        let filter = Filter { valid_at: valid_at.map(time), ..Filter::default() };
        let view = &view;
        async move {
            let found = gather(&**view, "tea", Corpus::Memories, &filter, time(now)).await;
            let mut ids: Vec<_> = found.iter().map(|one| one.signals.id).collect();
            ids.sort_unstable();
            ids
        }
    };
    let ids = |versions: &[&yore_domain::memory::Version]| {
        let mut ids: Vec<_> = versions.iter().map(|version| version.id.bytes()).collect();
        ids.sort_unstable();
        ids
    };
    assert_eq!(texts(20, None).await, ids(&[&brief, &kept, &past]));
    assert_eq!(texts(21, None).await, ids(&[&brief, &kept]));
    assert_eq!(texts(50, None).await, ids(&[&kept]));
    assert_eq!(texts(70, None).await, ids(&[]));
    assert_eq!(texts(70, Some(0)).await, ids(&[&past]), "ended stays ended");
    assert_eq!(view.ended(time(49), 10).await.unwrap(), []);
    assert_eq!(view.ended(time(50), 10).await.unwrap(), [brief.memory]);
    assert_eq!(view.ended(time(70), 10).await.unwrap(), [brief.memory, kept.memory]);
    assert_eq!(view.ended(time(70), 1).await.unwrap(), [brief.memory]);
}

/// A vector that comes later makes its row findable by meaning, and is asked for until it comes.
pub async fn a_vector_finds_what_words_do_not(scene: &Scene<'_>) {
    scene.remember(Draft::text("prefers window seats")).await;
    scene.remember(Draft::text("owns a bicycle")).await;
    let view = scene.look().await;
    let waiting = view.unembedded("sentence", 10).await.unwrap();
    let texts: Vec<&str> = waiting.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(texts, ["owns a bicycle", "prefers window seats"], "newest first");
    assert_eq!(view.unembedded("sentence", 1).await.unwrap().len(), 1);

    let towards = |axis: usize| {
        let mut values = vec![0i8; 384];
        values[axis] = 127;
        Vector { model: "sentence".into(), scale: 1.0 / 127.0, values }
    };
    let row = row_of(&*view, "window seats").await;
    scene.commit(vec![Write::Vector { row, vector: towards(3) }]).await;
    let view = scene.look().await;
    let left = view.unembedded("sentence", 10).await.unwrap();
    assert_eq!(left.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>(), ["owns a bicycle"]);
    assert_eq!(view.unembedded("another", 10).await.unwrap().len(), 2);
    let (dense, statics) = (towards(3), indexing("airplane").statics);
    let filter = Filter::default();
    let search = Search {
        text: "airplane",
        tokens: &[],
        statics: statics.as_ref(),
        dense: Some(&dense),
        corpus: Corpus::Memories,
        filter: &filter,
        depth: 10,
        now: scene.tick(),
    };
    let found = view.search(&search).await.unwrap();
    let best = found.iter().find(|one| one.row == row).unwrap();
    assert!((best.signals.dense.unwrap() - 1.0).abs() < 0.01 && best.signals.listed);
    let stranger = Vector { model: "another".into(), ..towards(3) };
    let search = Search { dense: Some(&stranger), ..search };
    let found = view.search(&search).await.unwrap();
    assert!(found.iter().all(|one| one.signals.dense.is_none()), "models are never compared");
}

/// The turns around a match come along, and point at each other inside the answer.
pub async fn neighbours_come_along(scene: &Scene<'_>) {
    for text in ["where shall we meet", "at the fountain", "bring the map", "unrelated"] {
        let mut draft = Draft::text(text);
        draft.content.scope.session = (text != "unrelated").then(|| "s1".into());
        scene.remember(draft).await;
    }
    let talk = super::talks::talk(scene, "chat").await;
    super::talks::say(scene, &talk, "the fountain is dry").await;
    super::talks::say(scene, &talk, "then the bridge").await;
    let view = scene.look().await;
    let any = Filter::default();
    let found = gather(&*view, "fountain", Corpus::Both, &any, scene.tick()).await;
    let rows: Vec<RowKey> = found.iter().map(|one| one.row).collect();
    let loaded = view.load(&rows).await.unwrap();
    assert_eq!(loaded.len(), found.len());
    let text = |at: u32| super::text_of(&loaded[at as usize].1);
    for (start, next) in
        [("at the fountain", "bring the map"), ("the fountain is dry", "then the bridge")]
    {
        let at = (0u32..).zip(&found).find(|(at, _)| text(*at) == start).unwrap().0;
        let [_, _, after, _] = found[at as usize].signals.neighbours;
        assert_eq!(text(after.unwrap()), next);
        assert!(found[at as usize].signals.session.unwrap() > 0.0);
    }
}
