//! Makes one list of the lists of several stores.
//!
//! Scores of different stores cannot be compared, and a store may lie. So a store counts by the
//! order of its list, or by its scores scaled to its own best; a score that is no number, or is
//! negative, counts as none, and no score counts for more than 1. Two hits are one fact when
//! their words are the same, whatever ids they carry; an id with other words than the majority
//! gives it is not believed. With a quorum, a fact stands only as high as that many stores place
//! it, so that a store alone can lift nothing.
//!
//! Everything here is a pure function of its arguments.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use yore_rank::{StoreHit, max, rrf, weighted};

use crate::record::Record;

/// How lists become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fusion {
    /// By places: the sum of 1 / (k + place), places counted from 0.
    #[default]
    Rrf,
    /// By the best score any store gives. A store that lies can win; it is here because the
    /// protocol has it.
    Max,
    /// By the weighted sum of scores, each store's scaled to its own best.
    Weighted,
}

/// The rules of one fusion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// How lists become one.
    pub fusion: Fusion,
    /// The constant of `rrf`.
    pub rrf_k: f32,
    /// How many stores must have a fact before it counts.
    pub quorum: usize,
}

impl Default for Rules {
    fn default() -> Self {
        Self { fusion: Fusion::Rrf, rrf_k: 60.0, quorum: 1 }
    }
}

/// What one store answered, the best first.
#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    /// The store's name.
    pub store: String,
    /// How much it counts in weighted fusion.
    pub weight: f32,
    /// Its answers and their scores.
    pub hits: Vec<(Record, f64)>,
}

/// A fact in the fused list.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// What it says, as the first of the stores that have it tells it.
    pub record: Record,
    /// How high it stands; comparable within one list only.
    pub score: f64,
    /// The stores that have it, in their order.
    pub stores: Vec<String>,
    /// The ids of what lifted it through relations.
    pub supporting: Vec<String>,
}

/// A fact while lists are read: where it was seen.
#[derive(Debug, Default)]
struct Fact<'a> {
    /// (lane, place, record), one for each lane, in the order of lanes.
    seen: Vec<(usize, usize, &'a Record)>,
}

impl Fact<'_> {
    /// The id that most stores give it; among equals, the earliest store's.
    fn id(&self) -> &str {
        let mut votes: BTreeMap<&str, usize> = BTreeMap::new();
        for (_, _, record) in &self.seen {
            *votes.entry(&record.id).or_default() += 1;
        }
        let most = votes.values().copied().max().unwrap_or(0);
        let named = self.seen.iter().map(|(_, _, record)| record.id.as_str());
        named.into_iter().find(|id| votes.get(id) == Some(&most)).unwrap_or_default()
    }

    fn body(&self) -> Option<&Record> {
        let id = self.id();
        self.seen.iter().map(|(_, _, record)| *record).find(|record| record.id == id)
    }

    /// The earliest place, to order equals.
    fn first(&self) -> (usize, usize) {
        self.seen.iter().map(|(lane, place, _)| (*place, *lane)).min().unwrap_or_default()
    }
}

/// Fuses lists, the best first. Lanes of one name count as one store.
#[must_use]
pub fn fuse(lanes: &[Lane], rules: Rules) -> Vec<Hit> {
    let mut facts: BTreeMap<String, Fact<'_>> = BTreeMap::new();
    let mut keyed: Vec<Vec<StoreHit<String>>> = Vec::with_capacity(lanes.len());
    for (lane, list) in lanes.iter().enumerate() {
        let mut keys = Vec::with_capacity(list.hits.len());
        for (place, (record, score)) in list.hits.iter().enumerate() {
            let key = record.hash();
            let fact = facts.entry(key.clone()).or_default();
            if fact.seen.last().is_none_or(|(last, _, _)| *last != lane) {
                fact.seen.push((lane, place, record));
            }
            keys.push(StoreHit { key, score: sound(*score) });
        }
        keyed.push(keys);
    }
    let given = contributions(lanes, &keyed, rules);
    let mut hits: Vec<((usize, usize), Hit)> = facts
        .iter()
        .filter_map(|(key, fact)| {
            let given = given.get(key)?;
            let score = standing(given.values().copied(), rules)?;
            let stores: BTreeSet<usize> = fact.seen.iter().map(|(lane, _, _)| *lane).collect();
            let mut names: Vec<String> =
                stores.into_iter().map(|lane| lanes[lane].store.clone()).collect();
            names.dedup();
            let mut record = fact.body()?.clone();
            fact.id().clone_into(&mut record.id);
            let hit = Hit { record, score, stores: names, supporting: Vec::new() };
            Some((fact.first(), hit))
        })
        .collect();
    hits.sort_by(|(a_first, a), (b_first, b)| {
        b.score
            .total_cmp(&a.score)
            .then_with(|| b.stores.len().cmp(&a.stores.len()))
            .then_with(|| a_first.cmp(b_first))
            .then_with(|| a.record.id.cmp(&b.record.id))
    });
    one_for_each_id(hits.into_iter().map(|(_, hit)| hit).collect())
}

/// Lifts what is related to others of the list, once each, by its least distance: the score is
/// multiplied by 1 + factor / (1 + distance). Nothing new enters the list.
pub fn boost(hits: &mut [Hit], links: &[Link], factor: f64, hops: u8) {
    let known: BTreeSet<String> = hits.iter().map(|hit| hit.record.id.clone()).collect();
    for hit in hits.iter_mut() {
        let near: Vec<(u8, &str)> = links
            .iter()
            .filter(|link| link.to == hit.record.id && link.from != link.to)
            .filter(|link| known.contains(&link.from))
            .map(|link| (link.distance.max(1), link.from.as_str()))
            .filter(|(distance, _)| *distance <= hops)
            .collect();
        let Some(least) = near.iter().map(|(distance, _)| *distance).min() else { continue };
        hit.score *= 1.0 + factor / (1.0 + f64::from(least));
        let anchors: BTreeSet<&str> =
            near.iter().filter(|(distance, _)| *distance == least).map(|(_, from)| *from).collect();
        hit.supporting = anchors.into_iter().map(str::to_owned).collect();
    }
    hits.sort_by(|a, b| b.score.total_cmp(&a.score));
}

/// A relation that a store knows of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The canonical id it was asked for.
    pub from: String,
    /// The canonical id of what is related.
    pub to: String,
    /// How many steps away.
    pub distance: u8,
}

/// A score that can do no harm: what is no finite number from 0 on counts as 0.
fn sound(score: f64) -> f32 {
    let score = score as f32;
    if score.is_finite() { score.max(0.0) } else { 0.0 }
}

/// What each store gives each fact.
fn contributions(
    lanes: &[Lane],
    keyed: &[Vec<StoreHit<String>>],
    rules: Rules,
) -> BTreeMap<String, BTreeMap<String, f64>> {
    let mut given: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
    for (lane, hits) in lanes.iter().zip(keyed) {
        let one = std::slice::from_ref(hits);
        let values = match rules.fusion {
            Fusion::Rrf => rrf(one, rules.rrf_k),
            Fusion::Max => max(one),
            Fusion::Weighted => weighted(one, &[sound(f64::from(lane.weight))]),
        };
        for StoreHit { key, score } in values {
            let score = match rules.fusion {
                Fusion::Max => score.min(1.0),
                Fusion::Rrf | Fusion::Weighted => score,
            };
            let stores = given.entry(key).or_default();
            let best = stores.entry(lane.store.clone()).or_insert(f64::from(score));
            *best = best.max(f64::from(score));
        }
    }
    given
}

/// How high a fact stands by what its stores give it; `None` when they are too few.
fn standing(given: impl Iterator<Item = f64>, rules: Rules) -> Option<f64> {
    let mut given: Vec<f64> = given.collect();
    let quorum = rules.quorum.max(1);
    if given.len() < quorum {
        return None;
    }
    given.sort_by(|a, b| b.total_cmp(a));
    let agreed = given[quorum - 1];
    Some(match (rules.fusion, quorum) {
        (Fusion::Max, _) => agreed,
        (Fusion::Rrf | Fusion::Weighted, 1) => given.iter().sum(),
        // What fewer stores than the quorum say on top of it must not count.
        (Fusion::Rrf | Fusion::Weighted, _) => agreed * quorum as f64,
    })
}

/// Leaves one fact for each id: the one that most stores have, else the higher one.
fn one_for_each_id(hits: Vec<Hit>) -> Vec<Hit> {
    let mut best: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (index, hit) in hits.iter().enumerate() {
        let standing = best.entry(&hit.record.id).or_insert((hit.stores.len(), index));
        if hit.stores.len() > standing.0 {
            *standing = (hit.stores.len(), index);
        }
    }
    let kept: BTreeSet<usize> = best.into_values().map(|(_, index)| index).collect();
    let mut index = 0;
    let mut hits = hits;
    hits.retain(|_| {
        index += 1;
        kept.contains(&(index - 1))
    });
    hits
}

#[cfg(test)]
mod tests;
