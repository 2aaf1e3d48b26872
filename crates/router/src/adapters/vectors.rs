//! Vectors as the databases hold them.

use std::fmt::Debug;

/// How many numbers a vector of a memorywire database has.
pub const DIMENSIONS: usize = 384;

/// Makes vectors of texts. It may take a while; it is never called where others wait.
pub trait Embedder: Debug + Send + Sync {
    /// The vector of a text, of length 1 and [`DIMENSIONS`] numbers.
    fn embed(&self, text: &str) -> Vec<f32>;
}

/// The vector as little-endian bytes.
pub(super) fn bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// The squared distance to a vector in bytes. Bytes that do not fit are infinitely far.
pub(super) fn distance(query: &[f32], stored: &[u8]) -> f32 {
    if stored.len() != query.len() * 4 {
        return f32::INFINITY;
    }
    let stored = stored
        .chunks_exact(4)
        .map(|four| f32::from_le_bytes(four.try_into().expect("invariant: chunks of four bytes")));
    let sum: f32 = query.iter().zip(stored).map(|(a, b)| (a - b) * (a - b)).sum();
    if sum.is_finite() { sum } else { f32::INFINITY }
}

/// The vector as pgvector reads it.
pub(super) fn literal(vector: &[f32]) -> String {
    let numbers: Vec<String> = vector.iter().map(f32::to_string).collect();
    format!("[{}]", numbers.join(","))
}
