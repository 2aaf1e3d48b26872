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
    // For each token near one of the query's, the place of its last link, plus one.
    places: Vec<u16>,
    links: Vec<Link>,
}

/// A token that is near one of the query's. Most are near one only, so what a token is near to
/// hangs together as a chain.
#[derive(Clone, Copy, Debug)]
struct Link {
    token: u16,
    /// The query's token.
    query: u16,
    /// The place of the link before it, plus one.
    before: u16,
    similarity: f32,
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
            links: Vec::with_capacity(queries.iter().map(|(kin, _)| kin.len()).sum()),
        };
        soft.places.resize(1 << 16, 0);
        for (query, (kin, _)) in (0..).zip(queries) {
            for &(token, similarity) in kin {
                soft.note(token, query, similarity);
            }
        }
        soft
    }

    fn note(&mut self, token: u16, query: u16, similarity: f32) {
        let place = &mut self.places[usize::from(token)];
        let Ok(next) = u16::try_from(self.links.len() + 1) else { return };
        self.links.push(Link { token, query, before: *place, similarity });
        *place = next;
    }

    /// Returns the weighted share of the query that a document's tokens meet, 0 to 1.
    #[must_use]
    pub fn score(&self, tokens: impl Iterator<Item = u16>) -> f32 {
        if self.weights.is_empty() || self.mass <= 0.0 {
            return 0.0;
        }
        let mut best = [0f32; WIDTH];
        for token in tokens {
            let mut place = usize::from(self.places[usize::from(token)]);
            while let Some(link) = place.checked_sub(1).map(|at| self.links[at]) {
                let best = &mut best[usize::from(link.query)];
                *best = best.max(link.similarity);
                place = usize::from(link.before);
            }
        }
        self.weights.iter().zip(best).map(|(weight, best)| weight * best).sum::<f32>() / self.mass
    }
}

impl Drop for Soft {
    fn drop(&mut self) {
        for link in &self.links {
            self.places[usize::from(link.token)] = 0;
        }
        PLACES.set(std::mem::take(&mut self.places));
    }
}
