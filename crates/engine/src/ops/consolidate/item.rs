//! The items of short-term memory: which there are, what they score, and what should become of
//! them. Nothing here writes.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use yore_domain::kind::Kind;
use yore_domain::memory::Memory;
use yore_domain::query::{Filter, PageRequest};
use yore_domain::scope::{Scope, ScopeRule};
use yore_domain::{MemoryId, Result, Span, Timestamp, limits};
use yore_rank::promote::{Item, Score, Scorer};
use yore_store::Snapshot;

use super::{Consolidation, Fate, ScorePart, Scored};

/// Characters of a text that are shown.
const SHOWN: usize = 120;
/// The member of the structured body by which a person marks something.
const FLAGGED: &str = "user_flagged";
/// Passes that an item sees at least before it is let go.
const PASSES: i64 = 2;

/// Whose short-term memory it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Window {
    pub(crate) agent: Option<String>,
    pub(crate) user: Option<String>,
}

impl Window {
    /// The window of a scope.
    pub(crate) fn of(scope: &Scope) -> Self {
        Self { agent: scope.agent.clone(), user: scope.user.clone() }
    }
}

/// By what a pass decides.
#[derive(Clone, Debug)]
pub(super) struct Measure {
    pub(super) scorer: Arc<dyn Scorer>,
    pub(super) threshold: f64,
    pub(super) every: Span,
    pub(super) window: usize,
    pub(super) now: Timestamp,
}

/// An item that was scored, and the head by which it was: whoever moves it takes it from the pass.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) memory: MemoryId,
    pub(super) number: u32,
    pub(super) window: Window,
    pub(super) text: String,
    pub(super) score: Score,
    pub(super) total: f64,
    /// For how long nobody said or recalled it.
    idle: Span,
    /// Whether it states its own end, which is then left to it.
    ends: bool,
    pub(super) fate: Fate,
    pub(super) why: String,
}

impl Candidate {
    fn of(memory: &Memory, measure: &Measure) -> Self {
        let item = item(memory, measure.now);
        let score = measure.scorer.score(&item).unwrap_or_default();
        let head = &memory.head;
        Self {
            memory: head.memory,
            number: head.number,
            window: Window::of(&head.content.scope),
            text: beginning(&head.content.body.text),
            total: score.total(),
            score,
            idle: since(touched(memory), measure.now),
            ends: head.ends().is_some(),
            fate: Fate::Keep,
            why: String::new(),
        }
    }

    /// What is told about it.
    pub(super) fn told(self) -> Scored {
        let part = |part: &yore_rank::promote::Part| ScorePart {
            name: part.name.to_owned(),
            value: part.value,
            weight: part.weight,
        };
        Scored {
            memory: self.memory,
            agent: self.window.agent,
            user: self.window.user,
            text: self.text,
            score: self.total,
            parts: self.score.parts.iter().map(part).collect(),
            fate: self.fate,
            why: self.why,
            hold: None,
        }
    }
}

/// Reads the short-term memory that a pass is about, by window, and decides what should become of
/// each item.
pub(super) async fn candidates(
    snapshot: &dyn Snapshot,
    asked: &Consolidation,
    measure: &Measure,
) -> Result<Vec<Candidate>> {
    let scope =
        ScopeRule { agent: asked.agent.clone(), user: asked.user.clone(), ..ScopeRule::default() };
    let filter = Filter { kinds: vec![Kind::Working], scope, ..Filter::default() };
    let mut windows: BTreeMap<Window, Vec<Candidate>> = BTreeMap::new();
    let mut page = PageRequest { limit: limits::PAGE, ..PageRequest::default() };
    loop {
        let some = snapshot.memories(&filter, &page).await?;
        let lasting = |memory: &&Memory| memory.head.ends().is_none_or(|end| measure.now < end);
        for memory in some.items.iter().filter(lasting) {
            let candidate = Candidate::of(memory, measure);
            windows.entry(candidate.window.clone()).or_default().push(candidate);
        }
        match some.next {
            Some(next) => page.after = Some(next),
            None => break,
        }
    }
    for window in windows.values_mut() {
        decide(window, measure);
    }
    Ok(windows.into_values().flatten().collect())
}

/// Decides what should become of the items of one window, the best first.
fn decide(window: &mut [Candidate], measure: &Measure) {
    window.sort_by(|a, b| {
        b.total.total_cmp(&a.total).then(a.idle.cmp(&b.idle)).then(a.memory.cmp(&b.memory))
    });
    let cadence = measure.every.micros();
    let patience = measure.scorer.patience_seconds(cadence as f64 / 1e6);
    let mut stay = 0;
    for one in window {
        let (score, threshold) = (one.total, measure.threshold);
        let idle = one.idle.micros();
        let seen = idle > PASSES.saturating_mul(cadence);
        let spent = seen && idle as f64 / 1e6 > patience;
        (one.fate, one.why) = if score >= threshold {
            (Fate::Promote, format!("{score:.2} reaches {threshold:.2}"))
        } else if one.ends {
            (Fate::Keep, "it states its own end".to_owned())
        } else if spent {
            (Fate::Evict, format!("{score:.2} is below {threshold:.2}, and its time is over"))
        } else if seen && stay >= measure.window {
            (Fate::Evict, format!("{} others in its window are worth more", measure.window))
        } else {
            (Fate::Keep, format!("{score:.2} is below {threshold:.2}"))
        };
        stay += usize::from(one.fate == Fate::Keep);
    }
}

/// What a scorer is told of a memory.
fn item(memory: &Memory, now: Timestamp) -> Item {
    let content = &memory.head.content;
    let flag = content.body.structured.as_ref().and_then(|members| members.get(FLAGGED));
    let seconds = |from| since(from, now).micros() as f64 / 1e6;
    Item {
        age_seconds: seconds(memory.head.recorded),
        idle_seconds: seconds(touched(memory)),
        recalls: memory.usage.recalls,
        importance: content.lifecycle.salience,
        confidence: content.lifecycle.confidence,
        flagged: flag == Some(&Value::Bool(true)),
    }
}

/// When it was last said or recalled.
fn touched(memory: &Memory) -> Timestamp {
    memory.usage.recalled.map_or(memory.head.recorded, |at| at.max(memory.head.recorded))
}

fn since(from: Timestamp, now: Timestamp) -> Span {
    let micros = now.micros().saturating_sub(from.micros()).max(0);
    Span::try_from(micros).unwrap_or_default()
}

fn beginning(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use yore_domain::memory::{Draft, Usage, Version};
    use yore_rank::promote::{Balanced, Part, Reference};

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

    fn measure(scorer: impl Scorer + 'static) -> Measure {
        let (every, scorer) = (Span::seconds(60), Arc::new(scorer));
        Measure { scorer, threshold: 0.6, every, window: 3, now: NOW }
    }

    fn memory(seconds: u64, importance: f64) -> Memory {
        let mut draft = Draft::new(Kind::Working, "x".repeat(500));
        draft.content.lifecycle.salience = Some(importance);
        let then = NOW.minus(Span::seconds(seconds));
        let head = Version::first(MemoryId::random(), draft, then, None);
        Memory { head, since: then, usage: Usage::default(), legal_hold: false }
    }

    fn decided(memories: &[Memory], measure: &Measure) -> Vec<(f64, Fate)> {
        let mut window: Vec<_> =
            memories.iter().map(|memory| Candidate::of(memory, measure)).collect();
        decide(&mut window, measure);
        window.iter().map(|one| (one.total, one.fate)).collect()
    }

    #[test]
    fn mw_103_what_scores_is_promoted_what_is_old_goes_the_rest_waits() {
        let measure = measure(Reference);
        let of = |seconds, importance| decided(&[memory(seconds, importance)], &measure)[0].1;
        assert_eq!(of(0, 0.9), Fate::Promote);
        assert_eq!(of(0, 0.2), Fate::Keep);
        assert_eq!(of(120, 0.2), Fate::Keep, "exactly two passes are not more than two");
        assert_eq!(of(121, 0.2), Fate::Evict);
        assert_eq!(of(121, 1.0), Fate::Promote, "old but important");
        let mut lasting = memory(121, 0.2);
        lasting.head.content.lifecycle.expires = Some(NOW.plus(Span::days(1)));
        assert_eq!(decided(&[lasting], &measure)[0].1, Fate::Keep, "it states its own end");
        let mut recalled = memory(121, 0.2);
        recalled.usage.recalled = Some(NOW);
        assert_eq!(decided(&[recalled], &measure)[0].1, Fate::Keep, "just used");
    }

    #[test]
    fn mw_102_a_full_window_keeps_the_best_once_the_others_had_their_time() {
        let measure = measure(Balanced);
        let old: Vec<Memory> = (0..5_u32).map(|n| memory(300, 0.01 * f64::from(n))).collect();
        let fates: Vec<Fate> = decided(&old, &measure).iter().map(|one| one.1).collect();
        assert_eq!(fates, [Fate::Keep, Fate::Keep, Fate::Keep, Fate::Evict, Fate::Evict]);
        let new: Vec<Memory> = (0..5_u32).map(|n| memory(10, 0.01 * f64::from(n))).collect();
        assert!(decided(&new, &measure).iter().all(|one| one.1 == Fate::Keep), "too young to go");
    }

    #[test]
    fn mw_101_a_scorer_that_cannot_tell_counts_as_nothing() {
        #[derive(Debug)]
        struct Odd(Option<f64>);
        impl Scorer for Odd {
            fn name(&self) -> &'static str {
                "odd"
            }
            fn score(&self, _item: &Item) -> Option<Score> {
                let value = self.0?;
                Some(Score { parts: vec![Part { name: "odd", value, weight: 1.0 }] })
            }
            fn patience_seconds(&self, _cadence_seconds: f64) -> f64 {
                f64::INFINITY
            }
        }
        for (given, expected) in [(None, 0.0), (Some(f64::NAN), 0.0), (Some(7.0), 1.0)] {
            let found = decided(&[memory(9000, 1.0)], &measure(Odd(given)));
            let fate = if expected >= 0.6 { Fate::Promote } else { Fate::Keep };
            assert_eq!(found, [(expected, fate)], "{given:?}");
        }
    }

    #[test]
    fn mw_100_an_item_is_what_the_memory_says_and_how_it_fared() {
        let mut memory = memory(50, 0.4);
        memory.head.content.lifecycle.confidence = Some(0.7);
        memory.usage.recalls = 3;
        memory.usage.recalled = Some(NOW.minus(Span::seconds(20)));
        let flag = serde_json::Map::from_iter([(FLAGGED.to_owned(), true.into())]);
        memory.head.content.body.structured = Some(flag);
        let expected = Item {
            age_seconds: 50.0,
            idle_seconds: 20.0,
            recalls: 3,
            importance: Some(0.4),
            confidence: Some(0.7),
            flagged: true,
        };
        assert_eq!(item(&memory, NOW), expected);
        let told = Candidate::of(&memory, &measure(Balanced)).told();
        assert_eq!(told.text.chars().count(), SHOWN + 1);
    }
}
