//! The kernels for x86-64 with AVX2: intrinsics for the integer ones, and the portable float
//! ones compiled again with wider registers. Dense layers use VNNI or a matrix unit where there is one.

mod signs;
pub(crate) mod tiles;
mod vnni;

use std::arch::x86_64::{
    __m256i, _MM_HINT_T0, _mm_add_epi32, _mm_cvtsi128_si32, _mm_hadd_epi32, _mm_loadu_si128,
    _mm_prefetch, _mm256_add_epi32, _mm256_castsi256_si128, _mm256_cvtepi8_epi16,
    _mm256_extracti128_si256, _mm256_loadu_si256, _mm256_madd_epi16, _mm256_setzero_si256,
};

use crate::{Heads, Layer, attention, dispatch::Table, portable};

/// The table for a processor with AVX2 and POPCNT.
pub(crate) const TABLE: Table = Table {
    has_tiles: false,
    dot_i8,
    scan_i8,
    pick_i8,
    scan_signs: signs::scan_signs,
    hamming,
    scan_hamming,
    add_rows_i8,
    quantise_i16,
    matmul_a16w8,
    matmul_f32,
    dot_f32,
    add_layer_norm,
    softmax,
    gelu,
    attend,
};

/// The same for one that has AVX-512 and VNNI, too.
pub(crate) const VNNI: Table = Table {
    pick_i8: vnni::pick_i8,
    scan_signs: signs::scan_signs_wide,
    add_rows_i8: wide::add_rows_i8,
    quantise_i16: wide::quantise_i16,
    matmul_a16w8: vnni::matmul_a16w8,
    softmax: wide::softmax,
    gelu: wide::gelu,
    attend: wide::attend,
    ..TABLE
};

/// The same for one that has a matrix unit, too.
pub(crate) const TILES: Table =
    Table { has_tiles: true, matmul_a16w8: tiles::matmul_a16w8, ..VNNI };

/// Values in one 256-bit register of 16-bit lanes.
const STEP: usize = 16;

#[target_feature(enable = "avx2")]
fn dot_i8(a: &[i8], b: &[i8]) -> i32 {
    let (a, a_tail) = a.as_chunks::<STEP>();
    let (b, b_tail) = b.as_chunks::<STEP>();
    let (a_pairs, a_last) = a.as_chunks::<2>();
    let (b_pairs, b_last) = b.as_chunks::<2>();
    // Two sums, so that one addition need not wait for the other.
    let mut even = _mm256_setzero_si256();
    let mut odd = even;
    for (x, y) in a_pairs.iter().zip(b_pairs) {
        even = add_products(even, widened(&x[0]), widened(&y[0]));
        odd = add_products(odd, widened(&x[1]), widened(&y[1]));
    }
    for (x, y) in a_last.iter().zip(b_last) {
        even = add_products(even, widened(x), widened(y));
    }
    total(_mm256_add_epi32(even, odd)).wrapping_add(portable::dot_i8(a_tail, b_tail))
}

#[target_feature(enable = "avx2")]
fn scan_i8(query: &[i8], rows: &[i8], out: &mut [i32]) {
    for (row, sum) in out.iter_mut().enumerate() {
        *sum = dot_i8(query, &rows[row * query.len()..][..query.len()]);
    }
}

#[target_feature(enable = "avx2")]
fn pick_i8(query: &[i8], rows: &[i8], picks: &[u32], out: &mut [i32]) {
    for (at, (&row, product)) in picks.iter().zip(out).enumerate() {
        fetch(rows, query.len(), picks.get(at + AHEAD));
        *product = dot_i8(query, &rows[row as usize * query.len()..][..query.len()]);
    }
}

/// How many rows ahead are asked for: they lie apart, and the memory takes longer than a product.
const AHEAD: usize = 12;

/// Asks the memory for a row that will be needed soon.
#[inline(always)]
fn fetch(rows: &[i8], width: usize, row: Option<&u32>) {
    const LINE: usize = 64;
    let Some(&row) = row else { return };
    for line in rows[row as usize * width..][..width].chunks(LINE) {
        // SAFETY: every x86-64 has SSE, and the address is that of a slice.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr()) };
    }
}

/// Output rows are taken in pairs and activations in blocks of up to four rows: eight sums,
/// two weights and one activation stay in registers, and so do the addresses.
#[target_feature(enable = "avx2")]
fn matmul_a16w8(layer: Layer<'_>, activations: &[i16], scales: &[f32], out: &mut [f32]) {
    // A tile of activations this large stays in the first-level cache while all weights pass.
    const TILE: usize = 12 * 1024;
    let tile = (TILE / layer.inputs.max(1)).max(BLOCK);
    let outputs = layer.scales.len();
    let mut first = 0;
    while first < scales.len() {
        let rows = balanced(scales.len() - first, tile);
        let mut job = Job {
            layer,
            activations: &activations[first * layer.inputs..][..rows * layer.inputs],
            scales: &scales[first..][..rows],
            out: &mut out[first * outputs..][..rows * outputs],
        };
        for output in (0..outputs - outputs % 2).step_by(2) {
            job.columns::<2>(output);
        }
        if outputs % 2 == 1 {
            job.columns::<1>(outputs - 1);
        }
        first += rows;
    }
}

/// Activation rows in one block of sums.
const BLOCK: usize = 4;

/// The size of the next part when `rest` is cut into the fewest parts of at most `limit`.
fn balanced(rest: usize, limit: usize) -> usize {
    rest.div_ceil(rest.div_ceil(limit))
}

struct Job<'a> {
    layer: Layer<'a>,
    activations: &'a [i16],
    scales: &'a [f32],
    out: &'a mut [f32],
}

impl Job<'_> {
    /// Fills `C` columns of the output, from `output` on.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn columns<const C: usize>(&mut self, output: usize) {
        let mut row = 0;
        while row < self.scales.len() {
            let rows = balanced(self.scales.len() - row, BLOCK);
            match rows {
                1 => self.block::<1, C>(row, output),
                2 => self.block::<2, C>(row, output),
                3 => self.block::<3, C>(row, output),
                _ => self.block::<BLOCK, C>(row, output),
            }
            row += rows;
        }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn block<const R: usize, const C: usize>(&mut self, row: usize, output: usize) {
        let inputs = self.layer.inputs;
        // Loops, not closures: a closure would be compiled without the wider registers.
        let mut activations = [&self.activations[..0]; R];
        for (r, line) in activations.iter_mut().enumerate() {
            *line = &self.activations[(row + r) * inputs..][..inputs];
        }
        let mut weights = [&self.layer.weights[..0]; C];
        for (c, line) in weights.iter_mut().enumerate() {
            *line = &self.layer.weights[(output + c) * inputs..][..inputs];
        }
        let even = inputs - inputs % STEP;
        let mut sums = [[_mm256_setzero_si256(); C]; R];
        for at in (0..even).step_by(STEP) {
            let mut wide = [_mm256_setzero_si256(); C];
            for c in 0..C {
                // SAFETY: `at + STEP <= even <= inputs`, the length of every slice here.
                wide[c] = widened(unsafe { &*weights[c].as_ptr().add(at).cast() });
            }
            for r in 0..R {
                // SAFETY: as above; the load needs no alignment.
                let values = unsafe { _mm256_loadu_si256(activations[r].as_ptr().add(at).cast()) };
                for c in 0..C {
                    sums[r][c] = add_products(sums[r][c], values, wide[c]);
                }
            }
        }
        let outputs = self.layer.scales.len();
        for r in 0..R {
            for c in 0..C {
                let tail = portable::dot_a16w8(&activations[r][even..], &weights[c][even..]);
                self.out[(row + r) * outputs + output + c] = portable::output_from(
                    total(sums[r][c]).wrapping_add(tail),
                    self.scales[row + r],
                    self.layer.scales[output + c],
                    self.layer.bias[output + c],
                );
            }
        }
    }
}

/// Sixteen int8 values as int16.
#[target_feature(enable = "avx2")]
#[inline]
fn widened(values: &[i8; STEP]) -> __m256i {
    // SAFETY: the reference covers the 16 bytes loaded, and the load needs no alignment.
    _mm256_cvtepi8_epi16(unsafe { _mm_loadu_si128(values.as_ptr().cast()) })
}

/// Adds the products of sixteen int16 pairs to eight int32 sums.
#[target_feature(enable = "avx2")]
#[inline]
fn add_products(sum: __m256i, a: __m256i, b: __m256i) -> __m256i {
    _mm256_add_epi32(sum, _mm256_madd_epi16(a, b))
}

#[target_feature(enable = "avx2")]
#[inline]
fn total(sums: __m256i) -> i32 {
    let halves = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    let pairs = _mm_hadd_epi32(halves, halves);
    _mm_cvtsi128_si32(_mm_hadd_epi32(pairs, pairs))
}

/// Compiles portable kernels again for wider registers.
macro_rules! widen {
    ($features:literal $($from:ident::$name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {$(
        #[target_feature(enable = $features)]
        pub(super) fn $name($($argument: $type),*) $(-> $result)? {
            $from::$name($($argument),*)
        }
    )*};
}

widen! {
    "avx2,popcnt"
    portable::hamming(a: &[u64], b: &[u64]) -> u32;
    portable::scan_hamming(query: &[u64], rows: &[u64], out: &mut [u32]);
    portable::add_rows_i8(sum: &mut [f32], table: &[i8], rows: &[u16], scales: &[f32]);
    portable::quantise_i16(values: &[f32], out: &mut [i16]) -> f32;
    portable::matmul_f32(panels: &[f32], bias: &[f32], activations: &[f32], out: &mut [f32]);
    portable::dot_f32(a: &[f32], b: &[f32]) -> f32;
    portable::add_layer_norm(values: &mut [f32], added: &[f32], gain: &[f32], bias: &[f32]);
    portable::softmax(scores: &mut [f32]);
    portable::gelu(values: &mut [f32]);
    attention::attend(heads: Heads<'_>, out: &mut [f32]);
}

/// The same with the registers of AVX-512.
mod wide {
    use super::{Heads, attention, portable};

    widen! {
        "avx2,popcnt,avx512f,avx512bw,avx512dq,avx512vl"
        portable::add_rows_i8(sum: &mut [f32], table: &[i8], rows: &[u16], scales: &[f32]);
        portable::quantise_i16(values: &[f32], out: &mut [i16]) -> f32;
        portable::softmax(scores: &mut [f32]);
        portable::gelu(values: &mut [f32]);
        attention::attend(heads: Heads<'_>, out: &mut [f32]);
    }
}
