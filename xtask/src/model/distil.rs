//! Distils the transformer into one vector per token.
//!
//! Each token is read alone; the outputs are centred, turned onto their 256 strongest directions
//! and weighted so that common tokens count little. The method is Model2Vec's; the weight is the
//! smooth inverse frequency of a token whose rank in the vocabulary stands for its rank in text.

use std::{
    io::Write,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use super::{
    bert::{Bert, VOCABULARY, WIDTH},
    eigen,
};

pub(crate) const DIMS: usize = 256;
const BATCH: usize = 64;
const START: usize = 101;
const END: usize = 102;
/// Padding, unknown, start, end and mask carry no meaning and get a zero row.
const SILENT: [usize; 5] = [0, 100, START, END, 103];
const SMOOTHING: f64 = 1e-4;

/// Returns the mean output for each token read alone, row after row.
pub(crate) fn token_vectors(bert: &Bert) -> Vec<f32> {
    let mut vectors = vec![0f32; VOCABULARY * WIDTH];
    let done = AtomicUsize::new(0);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let part = VOCABULARY.div_ceil(threads * BATCH) * BATCH;
    thread::scope(|scope| {
        for (index, rows) in vectors.chunks_mut(part * WIDTH).enumerate() {
            let done = &done;
            scope.spawn(move || {
                for (batch, rows) in rows.chunks_mut(BATCH * WIDTH).enumerate() {
                    let first = index * part + batch * BATCH;
                    let count = rows.len() / WIDTH;
                    let tokens: Vec<usize> =
                        (first..first + count).flat_map(|token| [START, token, END]).collect();
                    rows.copy_from_slice(&bert.means(&tokens, 3));
                    let done = done.fetch_add(count, Ordering::Relaxed) + count;
                    eprint!("\rdistil: {done} of {VOCABULARY} tokens");
                    // A lost progress line is no reason to stop.
                    let _ = std::io::stderr().flush();
                }
            });
        }
    });
    eprintln!();
    vectors
}

/// Returns the weighted rows of [`DIMS`] values.
pub(crate) fn table_from(vectors: &[f32]) -> Vec<f32> {
    let mut centre = vec![0f64; WIDTH];
    for row in vectors.chunks_exact(WIDTH) {
        for (sum, &value) in centre.iter_mut().zip(row) {
            *sum += f64::from(value) / VOCABULARY as f64;
        }
    }
    let centred: Vec<f64> = vectors
        .iter()
        .zip(centre.iter().cycle())
        .map(|(&value, mean)| f64::from(value) - mean)
        .collect();
    eprintln!("distil: principal directions");
    let directions = eigen::strongest(covariance(&centred), WIDTH, DIMS);
    let harmonic: f64 = (0..VOCABULARY).map(|rank| 1.0 / (rank + 2) as f64).sum();
    let mut table = Vec::with_capacity(VOCABULARY * DIMS);
    for (token, row) in centred.chunks_exact(WIDTH).enumerate() {
        let frequency = 1.0 / (token + 2) as f64 / harmonic;
        let weight =
            if SILENT.contains(&token) { 0.0 } else { SMOOTHING / (SMOOTHING + frequency) };
        table.extend(directions.chunks_exact(WIDTH).map(|direction| {
            let value: f64 = row.iter().zip(direction).map(|(a, b)| a * b).sum();
            (value * weight) as f32
        }));
    }
    table
}

fn covariance(rows: &[f64]) -> Vec<f64> {
    let mut sums = vec![0f64; WIDTH * WIDTH];
    for row in rows.chunks_exact(WIDTH) {
        for (line, &left) in sums.chunks_exact_mut(WIDTH).zip(row) {
            for (sum, &right) in line.iter_mut().zip(row) {
                *sum += left * right;
            }
        }
    }
    sums
}
