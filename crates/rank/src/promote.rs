//! What short-term memory is worth: whether something has earned a place in long-term memory.
//!
//! A [`Scorer`] gives each item a score made of named parts, so that every decision can be
//! explained. [`Balanced`] is the usual one; [`Reference`] is the formula of memorywire's own
//! code. Others plug in by the trait.

use std::fmt;

/// What a scorer knows of an item in short-term memory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Item {
    /// Seconds since it was put there, or said again.
    pub age_seconds: f64,
    /// Seconds since it was put there, said again or recalled, whichever came last.
    pub idle_seconds: f64,
    /// How often recall returned it.
    pub recalls: u64,
    /// How important it was said to be, from 0 to 1.
    pub importance: Option<f64>,
    /// How sure it was said to be, from 0 to 1.
    pub confidence: Option<f64>,
    /// Whether a person marked it.
    pub flagged: bool,
}

/// One part of a score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// What it measures.
    pub name: &'static str,
    /// What was measured, from 0 to 1.
    pub value: f64,
    /// How much it counts.
    pub weight: f64,
}

/// A score and what it is made of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Score {
    /// The parts; an item that could not be scored has none.
    pub parts: Vec<Part>,
}

impl Score {
    fn of(parts: &[(&'static str, f64, f64)]) -> Self {
        let part = |&(name, value, weight)| Part { name, value, weight };
        Self { parts: parts.iter().map(part).collect() }
    }

    /// The weighted sum of the parts, from 0 to 1. What is no number counts as 0.
    #[must_use]
    pub fn total(&self) -> f64 {
        let sum: f64 = self.parts.iter().map(|part| part.value * part.weight).sum();
        if sum.is_nan() { 0.0 } else { sum.clamp(0.0, 1.0) }
    }
}

/// Judges what short-term memory is worth.
pub trait Scorer: fmt::Debug + Send + Sync {
    /// The name it is chosen by.
    fn name(&self) -> &'static str;

    /// Scores an item; one that it cannot score counts as 0.
    fn score(&self, item: &Item) -> Option<Score>;

    /// How many seconds an item may lie idle without being promoted before it is let go, where
    /// passes are so many seconds apart.
    fn patience_seconds(&self, cadence_seconds: f64) -> f64;
}

/// Recency, salience and confidence, of which salience counts most. What is used grows more
/// salient; recency counts from the last use.
#[derive(Clone, Copy, Debug, Default)]
pub struct Balanced;

impl Balanced {
    /// In how many seconds recency halves.
    const HALF_LIFE: f64 = 3600.0;
    /// How salient something is that nobody called important: alone it is not enough.
    const UNSTATED: f64 = 0.3;
    /// What each recall leaves of the distance to full salience.
    const PER_RECALL: f64 = 0.8;
    /// Recalls beyond which nothing changes any more.
    const RECALLS: u64 = 64;
    /// How long it waits: a day.
    const PATIENCE: f64 = 86_400.0;

    fn salience(item: &Item) -> f64 {
        let stated = item.importance.unwrap_or(Self::UNSTATED).clamp(0.0, 1.0);
        let stated = if item.flagged { 1.0 } else { stated };
        let recalls = i32::try_from(item.recalls.min(Self::RECALLS)).unwrap_or(i32::MAX);
        1.0 - (1.0 - stated) * Self::PER_RECALL.powi(recalls)
    }
}

impl Scorer for Balanced {
    fn name(&self) -> &'static str {
        "balanced"
    }

    fn score(&self, item: &Item) -> Option<Score> {
        let recency = f64::from(crate::recency(item.idle_seconds, Self::HALF_LIFE));
        let sure = item.confidence.unwrap_or(1.0).clamp(0.0, 1.0);
        Some(Score::of(&[
            ("recency", recency, 0.2),
            ("salience", Self::salience(item), 0.6),
            ("confidence", sure, 0.2),
        ]))
    }

    fn patience_seconds(&self, _cadence_seconds: f64) -> f64 {
        Self::PATIENCE
    }
}

/// The formula of memorywire's reference code.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reference;

impl Scorer for Reference {
    fn name(&self) -> &'static str {
        "reference"
    }

    fn score(&self, item: &Item) -> Option<Score> {
        let recalled = (item.recalls as f64 / 5.0).min(1.0);
        let fresh = (1.0 - item.age_seconds / 3600.0).clamp(0.0, 1.0);
        Some(Score::of(&[
            ("importance", item.importance.unwrap_or(0.5).clamp(0.0, 1.0), 0.5),
            ("recalls", recalled, 0.2),
            ("recency", fresh, 0.2),
            ("flagged", f64::from(u8::from(item.flagged)), 0.1),
        ]))
    }

    fn patience_seconds(&self, cadence_seconds: f64) -> f64 {
        2.0 * cadence_seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(scorer: &dyn Scorer, item: Item) -> f64 {
        scorer.score(&item).map_or(0.0, |score| score.total())
    }

    #[test]
    fn mw_101_the_reference_formula_gives_its_numbers() {
        let item = Item { importance: Some(0.8), recalls: 3, ..Item::default() };
        for (item, expected) in [
            (item, 0.4 + 0.12 + 0.2),
            (Item { age_seconds: 1800.0, ..item }, 0.4 + 0.12 + 0.1),
            (Item { age_seconds: 7200.0, ..item }, 0.4 + 0.12),
            (Item { recalls: 50, ..item }, 0.4 + 0.2 + 0.2),
            (Item { flagged: true, recalls: 50, importance: Some(1.0), ..item }, 1.0),
            (Item { importance: Some(9.0), ..item }, 0.5 + 0.12 + 0.2),
            (Item { age_seconds: -50.0, ..item }, 0.4 + 0.12 + 0.2),
        ] {
            let found = total(&Reference, item);
            assert!((found - expected).abs() < 1e-9, "{item:?}: {found} instead of {expected}");
        }
    }

    #[test]
    fn mw_105_recency_salience_and_confidence_each_move_the_score() {
        let fresh = Item { importance: Some(0.5), confidence: Some(0.8), ..Item::default() };
        let base = total(&Balanced, fresh);
        assert!(total(&Balanced, Item { idle_seconds: 3600.0, ..fresh }) < base);
        assert!(total(&Balanced, Item { importance: Some(0.9), ..fresh }) > base);
        assert!(total(&Balanced, Item { confidence: Some(0.2), ..fresh }) < base);
        assert!(total(&Balanced, Item { recalls: 1, ..fresh }) > base);
        assert!(total(&Balanced, Item { flagged: true, ..fresh }) > base);
        assert!(total(&Balanced, Item { recalls: u64::MAX, ..fresh }) <= 1.0);
    }

    #[test]
    fn what_nobody_called_important_earns_its_place_by_use_alone() {
        let plain = Item { confidence: Some(1.0), ..Item::default() };
        assert!(total(&Balanced, plain) < 0.6);
        assert!(total(&Balanced, Item { recalls: 1, ..plain }) >= 0.6);
    }

    #[test]
    fn mw_101_a_score_that_is_no_number_counts_as_nothing() {
        let of = |value, weight| Score::of(&[("odd", value, weight)]).total();
        assert_eq!(of(f64::NAN, 1.0), 0.0);
        assert_eq!(of(f64::INFINITY, 0.0), 0.0);
        assert_eq!(of(f64::INFINITY, 1.0), 1.0);
        assert_eq!(of(-3.0, 1.0), 0.0);
        assert_eq!(Score::default().total(), 0.0);
    }
}
