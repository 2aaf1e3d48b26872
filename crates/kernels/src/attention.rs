//! Attention of one text, in plain Rust: two small products with a softmax between them.
//!
//! Every sum runs over its terms in order, whatever lies beside it, so blocks change no bit.

use crate::{Heads, portable::softmax};

/// Rows that go through a block together.
const ROWS: usize = 4;
/// Sums of a row that stay in registers side by side.
const WIDE: usize = 16;

type Block = [[f32; WIDE]; ROWS];

#[inline(always)]
pub(crate) fn attend(heads: Heads<'_>, out: &mut [f32]) {
    let Heads { values, width, size } = heads;
    let rows = out.len() / width;
    let padded = rows.next_multiple_of(WIDE);
    let factor = 1.0 / (size as f32).sqrt();
    // Keys are turned so that one query value meets many rows side by side.
    let mut keys = vec![0f32; size * padded];
    let mut scores = vec![0f32; ROWS * padded];
    for head in (0..width).step_by(size) {
        for row in 0..rows {
            let key = &values[row * 3 * width + width + head..][..size];
            let panel = &mut keys[row / WIDE * WIDE * size + row % WIDE..];
            for (turned, &value) in panel.iter_mut().step_by(WIDE).zip(key) {
                *turned = value * factor;
            }
        }
        let mut first = 0;
        while first < rows {
            let count = ROWS.min(rows - first);
            // A short last block repeats its last row, so that the inner loops have one shape.
            let lines: [usize; ROWS] = std::array::from_fn(|r| first + r.min(count - 1));
            let queries = lines.map(|row| &values[row * 3 * width + head..][..size]);
            for (panel, at) in keys.chunks_exact(size * WIDE).zip((0..padded).step_by(WIDE)) {
                let sums = against(&queries, panel);
                for (r, sums) in sums.iter().enumerate() {
                    scores[r * padded + at..][..WIDE].copy_from_slice(sums);
                }
            }
            for r in 0..count {
                softmax(&mut scores[r * padded..][..rows]);
            }
            let mut from = 0;
            while from < size {
                let wide = WIDE.min(size - from);
                let sums = mixed(
                    &scores,
                    padded,
                    |other| &values[other * 3 * width + 2 * width + head + from..][..wide],
                    rows,
                );
                for (r, sums) in sums.iter().enumerate().take(count) {
                    let place = (first + r) * width + head + from;
                    out[place..][..wide].copy_from_slice(&sums[..wide]);
                }
                from += wide;
            }
            first += count;
        }
    }
}

/// The products of some queries with sixteen keys.
#[inline(always)]
fn against(queries: &[&[f32]; ROWS], panel: &[f32]) -> Block {
    let mut sums = [[0f32; WIDE]; ROWS];
    let (panel, _) = panel.as_chunks::<WIDE>();
    let size = panel.len();
    let lines: [&[f32]; ROWS] =
        [&queries[0][..size], &queries[1][..size], &queries[2][..size], &queries[3][..size]];
    for (i, keys) in panel.iter().enumerate() {
        for r in 0..ROWS {
            add(&mut sums[r], lines[r][i], keys);
        }
    }
    sums
}

/// Sixteen or fewer columns of the values, each row weighed by its scores.
#[inline(always)]
fn mixed<'a>(
    scores: &[f32],
    padded: usize,
    value: impl Fn(usize) -> &'a [f32],
    rows: usize,
) -> Block {
    let mut sums = [[0f32; WIDE]; ROWS];
    for other in 0..rows {
        let value = value(other);
        let mut short = [0f32; WIDE];
        let value = match value.first_chunk::<WIDE>() {
            Some(whole) => whole,
            None => {
                short[..value.len()].copy_from_slice(value);
                &short
            }
        };
        for r in 0..ROWS {
            add(&mut sums[r], scores[r * padded + other], value);
        }
    }
    sums
}

#[inline(always)]
fn add(sums: &mut [f32; WIDE], factor: f32, values: &[f32; WIDE]) {
    for lane in 0..WIDE {
        sums[lane] += factor * values[lane];
    }
}
