//! Keeps the best k of a stream, with ties broken by document id.

use std::cmp::Ordering;

use crate::partition::Partition;

/// A document found by one list: its partition among the selected ones, its slot, its score.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hit {
    pub(crate) score: f32,
    pub(crate) part: u32,
    pub(crate) slot: u32,
}

/// A bounded best-first collection over the selected partitions.
pub(crate) struct Top<'a> {
    parts: &'a [&'a Partition],
    limit: usize,
    hits: Vec<Hit>,
    floor: f32,
}

impl<'a> Top<'a> {
    pub(crate) fn new(parts: &'a [&'a Partition], limit: usize) -> Top<'a> {
        Top {
            parts,
            limit,
            hits: Vec::with_capacity(limit.saturating_mul(2).min(4096)),
            floor: f32::NEG_INFINITY,
        }
    }

    /// The score below which nothing can enter any more.
    #[inline]
    pub(crate) fn floor(&self) -> f32 {
        self.floor
    }

    /// Adds a hit whose score reaches [`Top::floor`].
    #[inline]
    pub(crate) fn push(&mut self, hit: Hit) {
        if self.limit == 0 {
            return;
        }
        self.hits.push(hit);
        if self.hits.len() >= self.limit * 2 {
            self.cut();
        }
    }

    /// Returns the best hits, best first.
    pub(crate) fn finish(mut self) -> Vec<Hit> {
        self.cut();
        let parts = self.parts;
        self.hits.sort_unstable_by(|a, b| order(parts, a, b));
        self.hits
    }

    fn cut(&mut self) {
        if self.hits.len() <= self.limit || self.limit == 0 {
            return;
        }
        let parts = self.parts;
        let (_, last, _) =
            self.hits.select_nth_unstable_by(self.limit - 1, |a, b| order(parts, a, b));
        self.floor = last.score;
        self.hits.truncate(self.limit);
    }
}

fn order(parts: &[&Partition], a: &Hit, b: &Hit) -> Ordering {
    b.score.total_cmp(&a.score).then_with(|| {
        let (a, b) = (
            &parts[a.part as usize].docs[a.slot as usize],
            &parts[b.part as usize].docs[b.slot as usize],
        );
        a.id.cmp(&b.id).then_with(|| a.key.cmp(&b.key))
    })
}
