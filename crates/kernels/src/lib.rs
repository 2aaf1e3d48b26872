//! The arithmetic under search and embedding: int8 and 1-bit scans, and the few matrix and
//! vector operations a small transformer needs.
//!
//! Every function is safe, checks its lengths, and picks a version for AVX2, AVX-512 or a matrix
//! unit (AMX) at run time where the processor has it. The portable version is the definition: the
//! vector version gives the same bits for every input, floats included, because both do the same
//! operations in the same order and none of them fuses a multiply with an add. A text therefore
//! embeds to the same vector on every machine. On other processors the portable version is what
//! the compiler vectorises itself.
//!
//! This crate knows nothing of models, indexes or threads, and it is the only one in the
//! workspace with `unsafe`. Start with [`dot_i8`] and its vector version in `x86.rs`;
//! `dispatch.rs` chooses between them.

#![expect(
    unsafe_code,
    reason = "vector loads, calls into functions compiled for a detected feature, and a matrix unit"
)]

mod attention;
mod dispatch;
mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(test)]
mod tests;

use dispatch::table;

/// Largest magnitude [`quantise_i16`] produces; keeps a dot product with int8 weights of up to 2 000 inputs inside `i32`.
pub const I16_LIMIT: i16 = 8191;

/// Number of output columns in one panel of [`matmul_f32`].
pub const PANEL: usize = 16;

/// Rows in one block of [`scan_signs`].
pub const SIGN_ROWS: usize = 64;

/// What eight signs add to a row's sum in [`scan_signs`]: by the lower four bits of their byte,
/// then by the upper four. Each is below 128.
pub type Shares = [u8; 32];

/// A dense layer: int8 weights, one row of `inputs` values per output, with a scale and a bias per output.
#[derive(Clone, Copy, Debug)]
pub struct Layer<'a> {
    /// Number of inputs, the length of one weight row.
    pub inputs: usize,
    /// Weights, row after row.
    pub weights: &'a [i8],
    /// The same weights in the order of [`tiles_from`], where that gave any.
    pub tiles: Option<&'a [i8]>,
    /// The factor that turns a row's integers back into weights.
    pub scales: &'a [f32],
    /// Added to each output.
    pub bias: &'a [f32],
}

/// Inputs and outputs of which a layer must have a multiple to go through a matrix unit.
pub(crate) const TILE_INPUTS: usize = 64;
pub(crate) const TILE_OUTPUTS: usize = 32;

/// Query, key and value rows of one text, side by side in each row of `values`.
#[derive(Clone, Copy, Debug)]
pub struct Heads<'a> {
    /// Rows of `3 × width` values: queries, then keys, then values.
    pub values: &'a [f32],
    /// Width of the queries of one row, `count × size`.
    pub width: usize,
    /// Width of one head.
    pub size: usize,
}

/// Returns the dot product of two int8 vectors.
///
/// # Panics
/// If the lengths differ.
pub fn dot_i8(a: &[i8], b: &[i8]) -> i32 {
    assert_eq!(a.len(), b.len(), "dot_i8: lengths differ");
    // SAFETY: the table holds only functions whose processor features were detected.
    unsafe { (table().dot_i8)(a, b) }
}

/// Writes the dot product of `query` with each row of `rows` into `out`.
///
/// # Panics
/// If `rows` is not exactly `out.len()` rows of the query's length.
pub fn scan_i8(query: &[i8], rows: &[i8], out: &mut [i32]) {
    assert_eq!(rows.len(), query.len() * out.len(), "scan_i8: ragged rows");
    // SAFETY: as in `dot_i8`.
    unsafe { (table().scan_i8)(query, rows, out) }
}

/// Writes the dot product of `query` with each of the rows named by `picks` into `out`.
///
/// # Panics
/// If `rows` is ragged or has no such row, or if there are not as many results as picks.
pub fn pick_i8(query: &[i8], rows: &[i8], picks: &[u32], out: &mut [i32]) {
    let count = rows.len().checked_div(query.len()).unwrap_or(usize::MAX);
    assert_eq!(picks.len(), out.len(), "pick_i8: lengths differ");
    assert!(query.is_empty() || rows.len() == count * query.len(), "pick_i8: ragged rows");
    assert!(picks.iter().all(|&row| (row as usize) < count), "pick_i8: no such row");
    // SAFETY: as in `dot_i8`.
    unsafe { (table().pick_i8)(query, rows, picks, out) }
}

/// Writes for each row what its signs add up to.
///
/// Rows lie in blocks of [`SIGN_ROWS`]: first the first byte of signs of every row in it, then the
/// second, and so on; `shares` says for each of these bytes what it adds. Sums wrap at `u16`.
///
/// # Panics
/// If the blocks are not whole, there is not one result for each row, or a share is too large.
pub fn scan_signs(shares: &[Shares], blocks: &[u8], out: &mut [u16]) {
    assert_eq!(blocks.len(), shares.len() * out.len(), "scan_signs: lengths differ");
    assert_eq!(out.len() % SIGN_ROWS, 0, "scan_signs: ragged block");
    assert!(shares.as_flattened().iter().all(|&share| share < 128), "scan_signs: large share");
    // SAFETY: as in `dot_i8`.
    unsafe { (table().scan_signs)(shares, blocks, out) }
}

/// Returns the number of bits in which two bit planes differ.
///
/// # Panics
/// If the lengths differ.
pub fn hamming(a: &[u64], b: &[u64]) -> u32 {
    assert_eq!(a.len(), b.len(), "hamming: lengths differ");
    // SAFETY: as in `dot_i8`.
    unsafe { (table().hamming)(a, b) }
}

/// Writes the number of differing bits between `query` and each row of `rows` into `out`.
///
/// # Panics
/// If `rows` is not exactly `out.len()` rows of the query's length.
pub fn scan_hamming(query: &[u64], rows: &[u64], out: &mut [u32]) {
    assert_eq!(rows.len(), query.len() * out.len(), "scan_hamming: ragged rows");
    // SAFETY: as in `dot_i8`.
    unsafe { (table().scan_hamming)(query, rows, out) }
}

/// Adds rows of a table to `sum`, each times its scale: `rows` names them, and `scales` has one
/// factor for every row of the table.
///
/// # Panics
/// If the table is ragged or has no such row.
pub fn add_rows_i8(sum: &mut [f32], table: &[i8], rows: &[u16], scales: &[f32]) {
    assert_eq!(table.len(), sum.len() * scales.len(), "add_rows_i8: ragged table");
    // SAFETY: as in `dot_i8`.
    unsafe { (dispatch::table().add_rows_i8)(sum, table, rows, scales) }
}

/// Rounds `values` to int16 in ±[`I16_LIMIT`] and returns the factor that turns them back.
///
/// # Panics
/// If the lengths differ.
pub fn quantise_i16(values: &[f32], out: &mut [i16]) -> f32 {
    assert_eq!(values.len(), out.len(), "quantise_i16: lengths differ");
    // SAFETY: as in `dot_i8`.
    unsafe { (table().quantise_i16)(values, out) }
}

/// Applies a dense layer to rows of int16 activations, one scale per row, giving f32 rows.
///
/// Sums wrap at `i32`; activations within ±[`I16_LIMIT`] cannot reach it below 2 064 inputs. Others
/// are for layers without tiles, for a matrix unit takes no more bits.
///
/// # Panics
/// If a length does not fit `layer` and the number of rows in `scales`.
pub fn matmul_a16w8(layer: Layer<'_>, activations: &[i16], scales: &[f32], out: &mut [f32]) {
    let outputs = layer.scales.len();
    assert_eq!(layer.bias.len(), outputs, "matmul_a16w8: bias");
    assert_eq!(layer.weights.len(), outputs * layer.inputs, "matmul_a16w8: weights");
    assert!(
        layer.tiles.is_none_or(|tiles| tiles.len() == layer.weights.len()),
        "matmul_a16w8: tiles"
    );
    assert_eq!(activations.len(), scales.len() * layer.inputs, "matmul_a16w8: activations");
    assert_eq!(out.len(), scales.len() * outputs, "matmul_a16w8: output");
    // SAFETY: as in `dot_i8`.
    unsafe { (table().matmul_a16w8)(layer, activations, scales, out) }
}

/// Puts weights, one row of `inputs` values per output, into the order that this processor's
/// matrix unit takes them in. None where there is no such unit, or the layer does not fit it.
pub fn tiles_from(weights: &[i8], inputs: usize) -> Option<Box<[i8]>> {
    const QUAD: usize = 4;
    let whole = inputs > 0 && inputs.is_multiple_of(TILE_INPUTS);
    if !table().has_tiles || !whole || !weights.len().is_multiple_of(inputs * TILE_OUTPUTS) {
        return None;
    }
    let mut tiles = Vec::with_capacity(weights.len());
    for block in weights.chunks_exact(inputs * TILE_OUTPUTS) {
        for at in (0..inputs).step_by(TILE_INPUTS) {
            for half in block.chunks_exact(inputs * TILE_OUTPUTS / 2) {
                // A line of a tile holds four inputs of each of its outputs.
                for quad in (at..at + TILE_INPUTS).step_by(QUAD) {
                    for row in half.chunks_exact(inputs) {
                        tiles.extend_from_slice(&row[quad..quad + QUAD]);
                    }
                }
            }
        }
    }
    Some(tiles.into())
}

/// Applies a dense f32 layer to rows of activations, the weights packed by [`panels_from`].
///
/// # Panics
/// If the outputs are no multiple of [`PANEL`] or a length does not fit.
pub fn matmul_f32(panels: &[f32], bias: &[f32], activations: &[f32], out: &mut [f32]) {
    let outputs = bias.len();
    assert_eq!(outputs % PANEL, 0, "matmul_f32: outputs fill no panels");
    assert_eq!(panels.len() % outputs, 0, "matmul_f32: panels");
    let inputs = panels.len() / outputs;
    assert_eq!(activations.len() * outputs, out.len() * inputs, "matmul_f32: output");
    // SAFETY: as in `dot_i8`.
    unsafe { (table().matmul_f32)(panels, bias, activations, out) }
}

/// Packs a weight matrix, one row of `inputs` values per output, into the panels of [`matmul_f32`].
///
/// # Panics
/// If the outputs are no multiple of [`PANEL`].
pub fn panels_from(weights: &[f32], inputs: usize) -> Vec<f32> {
    assert_eq!(weights.len() % (inputs * PANEL), 0, "panels_from: outputs fill no panels");
    let mut panels = Vec::with_capacity(weights.len());
    for block in weights.chunks_exact(inputs * PANEL) {
        for input in 0..inputs {
            panels.extend((0..PANEL).map(|output| block[output * inputs + input]));
        }
    }
    panels
}

/// Returns the dot product of two f32 vectors.
///
/// # Panics
/// If the lengths differ.
pub fn dot_f32(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len(), "dot_f32: lengths differ");
    // SAFETY: as in `dot_i8`.
    unsafe { (table().dot_f32)(a, b) }
}

/// Scales a vector to length one; a zero vector stays zero.
pub fn normalise(values: &mut [f32]) {
    let length = dot_f32(values, values).sqrt();
    if length > 0.0 {
        for value in values {
            *value /= length;
        }
    }
}

/// Adds `added` to `values`, then normalises each row of `gain.len()` to mean zero and variance one and applies gain and bias.
///
/// # Panics
/// If a length does not fit.
pub fn add_layer_norm(values: &mut [f32], added: &[f32], gain: &[f32], bias: &[f32]) {
    assert_eq!(values.len(), added.len(), "add_layer_norm: lengths differ");
    assert_eq!(gain.len(), bias.len(), "add_layer_norm: gain and bias");
    assert_eq!(values.len() % gain.len(), 0, "add_layer_norm: ragged rows");
    // SAFETY: as in `dot_i8`.
    unsafe { (table().add_layer_norm)(values, added, gain, bias) }
}

/// Replaces scores by their softmax.
pub fn softmax(scores: &mut [f32]) {
    // SAFETY: as in `dot_i8`.
    unsafe { (table().softmax)(scores) }
}

/// Replaces values by their GELU (the error-function form).
pub fn gelu(values: &mut [f32]) {
    // SAFETY: as in `dot_i8`.
    unsafe { (table().gelu)(values) }
}

/// Computes scaled dot-product attention of one text over all its heads.
///
/// # Panics
/// If a length does not fit.
pub fn attend(heads: Heads<'_>, out: &mut [f32]) {
    assert_eq!(heads.width % heads.size, 0, "attend: heads do not fill the width");
    assert_eq!(heads.values.len(), out.len() * 3, "attend: output");
    assert_eq!(out.len() % heads.width, 0, "attend: ragged rows");
    // SAFETY: as in `dot_i8`.
    unsafe { (table().attend)(heads, out) }
}
