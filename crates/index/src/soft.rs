//! Token-level similarity: how well each token of the query is met by its best token in a document.

use std::cell::RefCell;

use yore_rank::bm25::idf;

use crate::document::TokenTable;

/// Query tokens compared; the heaviest are kept of a longer query.
const WIDTH: usize = 32;

thread_local! {
    // One number per token, all zero between searches: clearing what was set is cheaper than a fresh table.
    static PLACES: RefCell<Vec<u16>> = const { RefCell::new(Vec::new()) };
}

/// A query's tokens prepared against the selected documents.
#[derive(Debug)]
pub struct Soft {
    weights: Vec<f32>,
    mass: f32,
    // For each token near one of the query's, its place in `near` plus one.
    places: Vec<u16>,
    near: Vec<u16>,
    // By place, then by query token.
    similarities: Vec<f32>,
}

impl Soft {
    /// Prepares tokens. `holders` says how many of so many documents hold a token.
    #[must_use]
    pub fn new(
        documents: usize,
        holders: &dyn Fn(u16) -> usize,
        table: &dyn TokenTable,
        tokens: &[u16],
    ) -> Soft {
        let mut distinct: Vec<u16> = tokens.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        let mut queries: Vec<(&[(u16, f32)], f32)> = distinct
            .into_iter()
            .filter_map(|token| table.kin(token).map(|kin| (kin, idf(documents, holders(token)))))
            .collect();
        queries.sort_by(|a, b| b.1.total_cmp(&a.1));
        queries.truncate(WIDTH);
        let weights: Vec<f32> = queries.iter().map(|(_, weight)| *weight).collect();
        let mut soft = Soft {
            mass: weights.iter().sum(),
            weights,
            places: PLACES.take(),
            near: Vec::new(),
            similarities: Vec::new(),
        };
        soft.places.resize(1 << 16, 0);
        for (query, (kin, _)) in queries.into_iter().enumerate() {
            for &(token, similarity) in kin {
                soft.note(token, query, similarity);
            }
        }
        soft
    }

    fn note(&mut self, token: u16, query: usize, similarity: f32) {
        let width = self.weights.len();
        let place = &mut self.places[usize::from(token)];
        if *place == 0 {
            let Ok(next) = u16::try_from(self.near.len() + 1) else { return };
            *place = next;
            self.near.push(token);
            self.similarities.resize(self.near.len() * width, 0.0);
        }
        self.similarities[(usize::from(*place) - 1) * width + query] = similarity;
    }

    /// Returns the weighted share of the query that a document's tokens meet, 0 to 1.
    #[must_use]
    pub fn score(&self, tokens: impl Iterator<Item = u16>) -> f32 {
        let width = self.weights.len();
        if width == 0 || self.mass <= 0.0 {
            return 0.0;
        }
        let mut best = [0f32; WIDTH];
        for token in tokens {
            let place = usize::from(self.places[usize::from(token)]);
            if place == 0 {
                continue;
            }
            let near = &self.similarities[(place - 1) * width..place * width];
            for (best, &similarity) in best.iter_mut().zip(near) {
                *best = best.max(similarity);
            }
        }
        self.weights.iter().zip(best).map(|(weight, best)| weight * best).sum::<f32>() / self.mass
    }
}

impl Drop for Soft {
    fn drop(&mut self) {
        for &token in &self.near {
            self.places[usize::from(token)] = 0;
        }
        PLACES.set(std::mem::take(&mut self.places));
    }
}
