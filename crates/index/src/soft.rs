//! Token-level similarity: how well each token of the query is met by its best token in a document.

use yore_kernels::scan_i8;

use crate::codec;
use crate::document::{TokenTable, Vector};
use crate::lexical::idf;
use crate::partition::Partition;

/// Cosines below this are noise between unrelated tokens.
const FLOOR: f32 = 0.35;
/// Query tokens compared; the heaviest are kept of a longer query.
const WIDTH: usize = 32;

/// A query's tokens prepared against the selected partitions.
pub(crate) struct Soft<'a> {
    table: &'a dyn TokenTable,
    // The query's rows side by side, with scale and weight of each.
    rows: Vec<i8>,
    queries: Vec<(f32, f32)>,
    mass: f32,
    // For each token met so far, where its similarities start in `similarities`, plus one.
    known: Vec<u16>,
    similarities: Vec<f32>,
}

impl<'a> Soft<'a> {
    pub(crate) fn new(parts: &[&Partition], table: &'a dyn TokenTable, tokens: &[u16]) -> Soft<'a> {
        let documents: usize = parts.iter().map(|part| part.len()).sum();
        let mut distinct: Vec<u16> = tokens.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        let mut queries: Vec<(Vector<'a>, f32)> = distinct
            .into_iter()
            .filter_map(|token| {
                let holders: usize =
                    parts.iter().map(|part| part.token_count(token) as usize).sum();
                table.row(token).map(|row| (row, idf(documents, holders)))
            })
            .collect();
        queries.sort_by(|a, b| b.1.total_cmp(&a.1));
        queries.truncate(WIDTH);
        let width = queries.first().map_or(0, |(row, _)| row.values.len());
        queries.retain(|(row, _)| row.values.len() == width);
        let rows = queries.iter().flat_map(|(row, _)| row.values).copied().collect();
        let queries: Vec<(f32, f32)> =
            queries.into_iter().map(|(row, weight)| (row.scale, weight)).collect();
        let mass = queries.iter().map(|(_, weight)| weight).sum();
        Soft { table, rows, queries, mass, known: vec![0; 1 << 16], similarities: Vec::new() }
    }

    /// Returns the weighted share of the query that the document's tokens meet, 0 to 1.
    pub(crate) fn score(&mut self, blob: &[u8]) -> f32 {
        let width = self.queries.len();
        if width == 0 || self.mass <= 0.0 {
            return 0.0;
        }
        let mut best = [0f32; WIDTH];
        for token in codec::tokens(blob) {
            let start = self.similarities_of(token);
            for (best, &similarity) in best.iter_mut().zip(&self.similarities[start..start + width])
            {
                *best = best.max(similarity);
            }
        }
        self.queries.iter().zip(best).map(|((_, weight), best)| weight * best).sum::<f32>()
            / self.mass
    }

    fn similarities_of(&mut self, token: u16) -> usize {
        let width = self.queries.len();
        let known = self.known[token as usize];
        // After 65 535 distinct tokens the number wraps and tokens are merely compared again.
        if known > 0 {
            return (known as usize - 1) * width;
        }
        let start = self.similarities.len();
        match self.table.row(token).filter(|row| row.values.len() * width == self.rows.len()) {
            Some(row) => {
                let mut products = [0i32; WIDTH];
                scan_i8(row.values, &self.rows, &mut products[..width]);
                self.similarities.extend(products.iter().zip(&self.queries).map(
                    |(&product, &(scale, _))| {
                        let cosine = product as f32 * row.scale * scale;
                        if cosine < FLOOR { 0.0 } else { cosine * cosine }
                    },
                ));
            }
            None => self.similarities.resize(start + width, 0.0),
        }
        self.known[token as usize] = (start / width + 1) as u16;
        start
    }
}
