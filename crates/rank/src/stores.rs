//! Fusion across stores whose scores cannot be compared.

use std::collections::BTreeMap;

/// One answer of one store; the position in the list is its rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StoreHit<K> {
    /// What was found.
    pub key: K,
    /// The store's own score.
    pub score: f32,
}

/// How much a store counts.
pub type StoreWeight = f32;

/// Reciprocal rank fusion: the sum of 1 / (k + rank), ranks counted from 0.
#[must_use]
pub fn rrf<K: Ord + Clone>(stores: &[Vec<StoreHit<K>>], k: f32) -> Vec<StoreHit<K>> {
    combine(stores, |_, rank, _| 1.0 / (k + rank as f32), |a, b| a + b)
}

/// The best score any store gives.
#[must_use]
pub fn max<K: Ord + Clone>(stores: &[Vec<StoreHit<K>>]) -> Vec<StoreHit<K>> {
    combine(stores, |_, _, hit| hit.score, f32::max)
}

/// The weighted sum of scores, each store's divided by its best and clamped to 0..=1; missing weights are 1.
#[must_use]
pub fn weighted<K: Ord + Clone>(
    stores: &[Vec<StoreHit<K>>],
    weights: &[StoreWeight],
) -> Vec<StoreHit<K>> {
    let peaks: Vec<f32> =
        stores.iter().map(|hits| hits.iter().map(|hit| hit.score).fold(0.0, f32::max)).collect();
    combine(
        stores,
        |store, _, hit| {
            let share =
                if peaks[store] > 0.0 { (hit.score / peaks[store]).clamp(0.0, 1.0) } else { 0.0 };
            share * weights.get(store).copied().unwrap_or(1.0)
        },
        |a, b| a + b,
    )
}

fn combine<K: Ord + Clone>(
    stores: &[Vec<StoreHit<K>>],
    value: impl Fn(usize, usize, &StoreHit<K>) -> f32,
    merge: impl Fn(f32, f32) -> f32,
) -> Vec<StoreHit<K>> {
    let mut fused: BTreeMap<K, f32> = BTreeMap::new();
    for (store, hits) in stores.iter().enumerate() {
        let mut seen: Vec<&K> = Vec::with_capacity(hits.len());
        for (rank, hit) in hits.iter().enumerate() {
            // A store that names something twice counts once, at its better place.
            if seen.contains(&&hit.key) {
                continue;
            }
            seen.push(&hit.key);
            let value = value(store, rank, hit);
            let value = if value.is_finite() { value } else { 0.0 };
            fused
                .entry(hit.key.clone())
                .and_modify(|sum| *sum = merge(*sum, value))
                .or_insert(value);
        }
    }
    let mut hits: Vec<StoreHit<K>> =
        fused.into_iter().map(|(key, score)| StoreHit { key, score }).collect();
    hits.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.key.cmp(&b.key)));
    hits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(pairs: &[(&'static str, f32)]) -> Vec<StoreHit<&'static str>> {
        pairs.iter().map(|&(key, score)| StoreHit { key, score }).collect()
    }

    fn keys(hits: &[StoreHit<&'static str>]) -> Vec<&'static str> {
        hits.iter().map(|hit| hit.key).collect()
    }

    #[test]
    fn rrf_counts_ranks_from_zero() {
        let fused = rrf(&[list(&[("a", 9.0), ("b", 1.0)]), list(&[("b", 0.2), ("c", 0.1)])], 60.0);
        assert_eq!(keys(&fused), ["b", "a", "c"]);
        assert!((fused[0].score - (1.0 / 61.0 + 1.0 / 60.0)).abs() < 1e-7);
        assert!((fused[1].score - 1.0 / 60.0).abs() < 1e-7);
    }

    #[test]
    fn max_takes_the_best_and_ties_go_by_key() {
        let fused = max(&[list(&[("b", 0.5), ("a", 0.4)]), list(&[("a", 0.5)])]);
        assert_eq!(keys(&fused), ["a", "b"]);
    }

    #[test]
    fn weighted_normalises_each_store_and_clamps() {
        let stores =
            [list(&[("a", 20.0), ("b", 10.0), ("d", -4.0)]), list(&[("b", 0.8), ("c", 0.8)])];
        let even = weighted(&stores, &[]);
        assert_eq!(keys(&even), ["b", "a", "c", "d"]);
        assert!((even[0].score - 1.5).abs() < 1e-6);
        assert_eq!(even[3].score, 0.0);
        let second = weighted(&stores, &[0.1, 1.0]);
        assert_eq!(keys(&second), ["b", "c", "a", "d"]);
    }

    #[test]
    fn a_repeated_or_broken_hit_does_no_harm() {
        let fused = rrf(&[list(&[("a", 1.0), ("a", 1.0), ("b", f32::NAN)])], 60.0);
        assert!((fused[0].score - 1.0 / 60.0).abs() < 1e-7);
        let fused = max(&[list(&[("a", f32::NAN), ("b", 0.1)])]);
        assert_eq!(keys(&fused), ["b", "a"]);
    }
}
