//! The dense layer for processors with AVX-512 and VNNI, which multiply and add thirty-two pairs
//! of int16 in one step. Sums of integers come out the same in any order.

use std::arch::x86_64::{
    __m128i, __m512i, _mm_add_epi32, _mm_storeu_si128, _mm256_add_epi32, _mm256_castsi256_si128,
    _mm256_extracti128_si256, _mm256_hadd_epi32, _mm256_loadu_si256, _mm512_castsi512_si256,
    _mm512_cvtepi8_epi16, _mm512_dpwssd_epi32, _mm512_extracti64x4_epi64, _mm512_loadu_si512,
    _mm512_reduce_add_epi32, _mm512_setzero_si512,
};

use super::{AHEAD, balanced, fetch};
use crate::{Layer, portable};

/// Values in one 512-bit register of 16-bit lanes.
const STEP: usize = 32;
/// Outputs of one block: their sums become one register of four.
const COLUMNS: usize = 4;
/// Activation rows in one block: sixteen sums, and what is added to them, stay in registers.
const ROWS: usize = 4;
/// Activations that stay in the first-level cache while all weights pass.
const TILE: usize = 12 * 1024;

#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vnni")]
pub(super) fn matmul_a16w8(layer: Layer<'_>, activations: &[i16], scales: &[f32], out: &mut [f32]) {
    let outputs = layer.scales.len();
    let tile = (TILE / layer.inputs.max(1)).max(ROWS);
    let mut first = 0;
    while first < scales.len() {
        let rows = balanced(scales.len() - first, tile);
        let mut job = Job {
            layer,
            activations: &activations[first * layer.inputs..][..rows * layer.inputs],
            scales: &scales[first..][..rows],
            out: &mut out[first * outputs..][..rows * outputs],
        };
        for output in (0..outputs - outputs % COLUMNS).step_by(COLUMNS) {
            job.columns(output);
        }
        for output in outputs - outputs % COLUMNS..outputs {
            job.column(output);
        }
        first += rows;
    }
}

#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vnni")]
pub(super) fn pick_i8(query: &[i8], rows: &[i8], picks: &[u32], out: &mut [i32]) {
    let (width, even) = (query.len(), query.len() - query.len() % STEP);
    for (at, (&row, product)) in picks.iter().zip(out).enumerate() {
        fetch(rows, width, picks.get(at + AHEAD));
        let row = &rows[row as usize * width..][..width];
        let mut sum = _mm512_setzero_si512();
        for at in (0..even).step_by(STEP) {
            // SAFETY: `at + STEP <= even <= width`, the length of both; loads need no alignment.
            let (x, y) = unsafe {
                (
                    _mm256_loadu_si256(query.as_ptr().add(at).cast()),
                    _mm256_loadu_si256(row.as_ptr().add(at).cast()),
                )
            };
            sum = _mm512_dpwssd_epi32(sum, _mm512_cvtepi8_epi16(x), _mm512_cvtepi8_epi16(y));
        }
        let tail = portable::dot_i8(&query[even..], &row[even..]);
        *product = _mm512_reduce_add_epi32(sum).wrapping_add(tail);
    }
}

struct Job<'a> {
    layer: Layer<'a>,
    activations: &'a [i16],
    scales: &'a [f32],
    out: &'a mut [f32],
}

impl Job<'_> {
    /// Fills four columns of the output, from `output` on.
    #[target_feature(enable = "avx2,avx512f,avx512bw,avx512vnni")]
    #[inline]
    fn columns(&mut self, output: usize) {
        let mut row = 0;
        while row < self.scales.len() {
            let rows = balanced(self.scales.len() - row, ROWS);
            match rows {
                1 => self.block::<1>(row, output),
                2 => self.block::<2>(row, output),
                3 => self.block::<3>(row, output),
                _ => self.block::<ROWS>(row, output),
            }
            row += rows;
        }
    }

    #[target_feature(enable = "avx2,avx512f,avx512bw,avx512vnni")]
    #[inline]
    fn block<const R: usize>(&mut self, row: usize, output: usize) {
        let inputs = self.layer.inputs;
        // Loops, not closures: a closure would be compiled without the wider registers.
        let mut activations = [&self.activations[..0]; R];
        for (r, line) in activations.iter_mut().enumerate() {
            *line = &self.activations[(row + r) * inputs..][..inputs];
        }
        let mut weights = [&self.layer.weights[..0]; COLUMNS];
        for (c, line) in weights.iter_mut().enumerate() {
            *line = &self.layer.weights[(output + c) * inputs..][..inputs];
        }
        let even = inputs - inputs % STEP;
        let mut sums = [[_mm512_setzero_si512(); COLUMNS]; R];
        for at in (0..even).step_by(STEP) {
            let mut wide = [_mm512_setzero_si512(); COLUMNS];
            for c in 0..COLUMNS {
                // SAFETY: `at + STEP <= even <= inputs`, the length of every slice here; the load
                // needs no alignment.
                let bytes = unsafe { _mm256_loadu_si256(weights[c].as_ptr().add(at).cast()) };
                wide[c] = _mm512_cvtepi8_epi16(bytes);
            }
            for r in 0..R {
                // SAFETY: as above.
                let values = unsafe { _mm512_loadu_si512(activations[r].as_ptr().add(at).cast()) };
                for c in 0..COLUMNS {
                    sums[r][c] = _mm512_dpwssd_epi32(sums[r][c], values, wide[c]);
                }
            }
        }
        let outputs = self.layer.scales.len();
        for r in 0..R {
            let mut four = [0_i32; COLUMNS];
            // SAFETY: the array has the 16 bytes stored, and the store needs no alignment.
            unsafe { _mm_storeu_si128(four.as_mut_ptr().cast(), totals(&sums[r])) };
            for c in 0..COLUMNS {
                let tail = portable::dot_a16w8(&activations[r][even..], &weights[c][even..]);
                self.out[(row + r) * outputs + output + c] =
                    self.value(four[c].wrapping_add(tail), row + r, output + c);
            }
        }
    }

    /// Fills one column of the output.
    fn column(&mut self, output: usize) {
        let (inputs, outputs) = (self.layer.inputs, self.layer.scales.len());
        let weights = &self.layer.weights[output * inputs..][..inputs];
        for row in 0..self.scales.len() {
            let sum = portable::dot_a16w8(&self.activations[row * inputs..][..inputs], weights);
            self.out[row * outputs + output] = self.value(sum, row, output);
        }
    }

    #[inline(always)]
    fn value(&self, sum: i32, row: usize, output: usize) -> f32 {
        let Layer { scales, bias, .. } = self.layer;
        portable::output_from(sum, self.scales[row], scales[output], bias[output])
    }
}

/// The totals of four registers of sums, side by side.
#[target_feature(enable = "avx2,avx512f")]
#[inline]
fn totals(sums: &[__m512i; COLUMNS]) -> __m128i {
    let mut halves = [_mm512_castsi512_si256(sums[0]); COLUMNS];
    for c in 0..COLUMNS {
        let (low, high) =
            (_mm512_castsi512_si256(sums[c]), _mm512_extracti64x4_epi64::<1>(sums[c]));
        halves[c] = _mm256_add_epi32(low, high);
    }
    let pairs = _mm256_hadd_epi32(
        _mm256_hadd_epi32(halves[0], halves[1]),
        _mm256_hadd_epi32(halves[2], halves[3]),
    );
    _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256::<1>(pairs))
}
