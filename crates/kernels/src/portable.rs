//! The definition of every kernel, in plain Rust.
//!
//! The float kernels are also compiled for AVX2 (`x86.rs` inlines them): sums run over eight
//! lanes and the loops hold no library calls, so the compiler can vectorise them without
//! changing a bit of the result.

use crate::{I16_LIMIT, Layer, PANEL, SIGN_ROWS, Shares};

const LANES: usize = 8;

// Adding this to a float of magnitude below 2^22 rounds it to an integer, which then sits in
// the low bits. Unlike a cast it vectorises on every processor.
const ROUND: f32 = 12_582_912.0;

pub(crate) fn dot_i8(a: &[i8], b: &[i8]) -> i32 {
    a.iter().zip(b).fold(0, |sum: i32, (&x, &y)| sum.wrapping_add(i32::from(x) * i32::from(y)))
}

pub(crate) fn scan_i8(query: &[i8], rows: &[i8], out: &mut [i32]) {
    for (row, sum) in out.iter_mut().enumerate() {
        *sum = dot_i8(query, &rows[row * query.len()..][..query.len()]);
    }
}

pub(crate) fn pick_i8(query: &[i8], rows: &[i8], picks: &[u32], out: &mut [i32]) {
    for (&row, product) in picks.iter().zip(out) {
        *product = dot_i8(query, &rows[row as usize * query.len()..][..query.len()]);
    }
}

pub(crate) fn scan_signs(shares: &[Shares], blocks: &[u8], out: &mut [u16]) {
    let (columns, _) = blocks.as_chunks::<SIGN_ROWS>();
    for (block, sums) in out.as_chunks_mut::<SIGN_ROWS>().0.iter_mut().enumerate() {
        sums.fill(0);
        for (column, shares) in columns[block * shares.len()..].iter().zip(shares) {
            for (sum, &signs) in sums.iter_mut().zip(column) {
                let (low, high) = (usize::from(signs & 15), usize::from(signs >> 4));
                *sum = sum.wrapping_add(u16::from(shares[low]) + u16::from(shares[16 + high]));
            }
        }
    }
}

#[inline(always)]
pub(crate) fn hamming(a: &[u64], b: &[u64]) -> u32 {
    a.iter().zip(b).map(|(x, y)| (x ^ y).count_ones()).sum()
}

#[inline(always)]
pub(crate) fn scan_hamming(query: &[u64], rows: &[u64], out: &mut [u32]) {
    for (row, bits) in out.iter_mut().enumerate() {
        *bits = hamming(query, &rows[row * query.len()..][..query.len()]);
    }
}

/// Columns that are summed at once. A block of sums stays in registers while every row adds to
/// it, and the rows, which lie apart in memory, are waited for together.
const BLOCK: usize = 64;

#[inline(always)]
pub(crate) fn add_rows_i8(sum: &mut [f32], table: &[i8], rows: &[u16], scales: &[f32]) {
    let width = sum.len();
    let mut first = 0;
    let (blocks, tail) = sum.as_chunks_mut::<BLOCK>();
    for block in blocks {
        let mut sums = *block;
        for &row in rows {
            let scale = scales[usize::from(row)];
            let values = &table[usize::from(row) * width + first..][..BLOCK];
            for (total, &value) in sums.iter_mut().zip(values) {
                *total += f32::from(value) * scale;
            }
        }
        *block = sums;
        first += BLOCK;
    }
    for &row in rows {
        let scale = scales[usize::from(row)];
        let values = &table[usize::from(row) * width + first..][..tail.len()];
        for (total, &value) in tail.iter_mut().zip(values) {
            *total += f32::from(value) * scale;
        }
    }
}

#[inline(always)]
pub(crate) fn quantise_i16(values: &[f32], out: &mut [i16]) -> f32 {
    let largest = largest(values);
    if largest == 0.0 {
        out.fill(0);
        return 0.0;
    }
    let limit = f32::from(I16_LIMIT);
    let factor = limit / largest;
    for (rounded, &value) in out.iter_mut().zip(values) {
        *rounded = (value * factor + ROUND).to_bits() as i16;
    }
    largest / limit
}

pub(crate) fn matmul_a16w8(layer: Layer<'_>, activations: &[i16], scales: &[f32], out: &mut [f32]) {
    let outputs = layer.scales.len();
    for (row, &scale) in scales.iter().enumerate() {
        let inputs = &activations[row * layer.inputs..][..layer.inputs];
        for output in 0..outputs {
            let weights = &layer.weights[output * layer.inputs..][..layer.inputs];
            let sum = dot_a16w8(inputs, weights);
            out[row * outputs + output] =
                output_from(sum, scale, layer.scales[output], layer.bias[output]);
        }
    }
}

#[inline(always)]
pub(crate) fn dot_a16w8(activations: &[i16], weights: &[i8]) -> i32 {
    activations
        .iter()
        .zip(weights)
        .fold(0, |sum: i32, (&x, &w)| sum.wrapping_add(i32::from(x) * i32::from(w)))
}

#[inline(always)]
pub(crate) fn output_from(sum: i32, row_scale: f32, weight_scale: f32, bias: f32) -> f32 {
    sum as f32 * (row_scale * weight_scale) + bias
}

#[inline(always)]
pub(crate) fn matmul_f32(panels: &[f32], bias: &[f32], activations: &[f32], out: &mut [f32]) {
    const ROWS: usize = 4;
    let outputs = bias.len();
    let inputs = panels.len() / outputs;
    let rows = out.len() / outputs;
    for (index, panel) in panels.chunks_exact(inputs * PANEL).enumerate() {
        let column = index * PANEL;
        let (panel, _) = panel.as_chunks::<PANEL>();
        let mut row = 0;
        while row < rows {
            let count = ROWS.min(rows - row);
            // A short last block repeats its last row, so that the inner loop has one shape.
            let lines: [&[f32]; ROWS] = std::array::from_fn(|i| {
                &activations[(row + i.min(count - 1)) * inputs..][..inputs]
            });
            let mut sums = [[0f32; PANEL]; ROWS];
            for (t, weights) in panel.iter().enumerate() {
                for (sum, line) in sums.iter_mut().zip(&lines) {
                    let input = line[t];
                    for (total, &weight) in sum.iter_mut().zip(weights) {
                        *total += input * weight;
                    }
                }
            }
            for (i, sum) in sums.iter().take(count).enumerate() {
                let line = &mut out[(row + i) * outputs + column..][..PANEL];
                for ((value, &total), &bias) in line.iter_mut().zip(sum).zip(&bias[column..]) {
                    *value = total + bias;
                }
            }
            row += count;
        }
    }
}

#[inline(always)]
pub(crate) fn dot_f32(a: &[f32], b: &[f32]) -> f32 {
    let (a, a_tail) = a.as_chunks::<LANES>();
    let (b, b_tail) = b.as_chunks::<LANES>();
    let mut lanes = [0f32; LANES];
    for (x, y) in a.iter().zip(b) {
        for lane in 0..LANES {
            lanes[lane] += x[lane] * y[lane];
        }
    }
    let tail: f32 = a_tail.iter().zip(b_tail).map(|(x, y)| x * y).sum();
    total(lanes) + tail
}

#[inline(always)]
pub(crate) fn add_layer_norm(values: &mut [f32], added: &[f32], gain: &[f32], bias: &[f32]) {
    const EPSILON: f32 = 1e-12;
    let width = gain.len();
    for (row, added) in values.chunks_exact_mut(width).zip(added.chunks_exact(width)) {
        for (value, &more) in row.iter_mut().zip(added) {
            *value += more;
        }
        let mean = sum_of(row, |value| value) / width as f32;
        let variance = sum_of(row, |value| (value - mean) * (value - mean)) / width as f32;
        let factor = 1.0 / (variance + EPSILON).sqrt();
        for ((value, &gain), &bias) in row.iter_mut().zip(gain).zip(bias) {
            *value = (*value - mean) * factor * gain + bias;
        }
    }
}

#[inline(always)]
pub(crate) fn softmax(scores: &mut [f32]) {
    let highest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    for score in scores.iter_mut() {
        *score = exp(*score - highest);
    }
    let factor = 1.0 / sum_of(scores, |score| score);
    for score in scores {
        *score *= factor;
    }
}

#[inline(always)]
pub(crate) fn gelu(values: &mut [f32]) {
    for value in values {
        *value = 0.5 * *value * (1.0 + erf(*value * std::f32::consts::FRAC_1_SQRT_2));
    }
}

#[inline(always)]
fn largest(values: &[f32]) -> f32 {
    let (chunks, tail) = values.as_chunks::<LANES>();
    let mut lanes = [0f32; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            let value = chunk[lane].abs();
            lanes[lane] = if value > lanes[lane] { value } else { lanes[lane] };
        }
    }
    let tail = tail.iter().map(|value| value.abs());
    lanes.into_iter().chain(tail).fold(0.0, f32::max)
}

#[inline(always)]
fn sum_of(values: &[f32], term: impl Fn(f32) -> f32) -> f32 {
    let (chunks, tail) = values.as_chunks::<LANES>();
    let mut lanes = [0f32; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] += term(chunk[lane]);
        }
    }
    total(lanes) + tail.iter().map(|&value| term(value)).sum::<f32>()
}

#[inline(always)]
fn total(lanes: [f32; LANES]) -> f32 {
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

/// `e^x` for `x ≤ 0`, relative error below 3e-7: 2 to a whole number by exponent bits, times 2 to
/// the rest by its Taylor series.
#[inline(always)]
fn exp(x: f32) -> f32 {
    let x = x * std::f32::consts::LOG2_E;
    let x = if x > -126.0 { x } else { -126.0 };
    let shifted = x + ROUND;
    let rest = x - (shifted - ROUND);
    let series = 1.0
        + rest
            * (std::f32::consts::LN_2
                + rest
                    * (0.240_226_5
                        + rest
                            * (0.055_504_11
                                + rest
                                    * (0.009_618_129
                                        + rest * (0.001_333_355_8 + rest * 0.000_154_035_3)))));
    let exponent = shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127);
    f32::from_bits(exponent << 23) * series
}

/// The error function by Abramowitz and Stegun 7.1.26, absolute error below 2e-7.
#[inline(always)]
fn erf(x: f32) -> f32 {
    let size = x.abs();
    let t = 1.0 / (1.0 + 0.327_591_1 * size);
    let series = ((((1.061_405_4 * t - 1.453_152) * t + 1.421_413_7) * t - 0.284_496_74) * t
        + 0.254_829_6)
        * t;
    (1.0 - series * exp(-size * size)).copysign(x)
}
