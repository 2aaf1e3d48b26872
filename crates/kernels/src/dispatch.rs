//! Chooses, once, the version of every kernel that this processor can run.

use std::sync::OnceLock;

use crate::{Heads, Layer, Shares, attention, portable};

/// One version of every kernel. Calling an entry is sound only if the processor has the
/// features it was compiled for, which [`table`] guarantees for the one it returns.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::type_complexity,
    reason = "a kernel's type is clearest spelt out next to its name"
)]
pub(crate) struct Table {
    /// Whether `matmul_a16w8` takes weights in the order of tiles.
    pub(crate) has_tiles: bool,
    pub(crate) dot_i8: unsafe fn(&[i8], &[i8]) -> i32,
    pub(crate) scan_i8: unsafe fn(&[i8], &[i8], &mut [i32]),
    pub(crate) pick_i8: unsafe fn(&[i8], &[i8], &[u32], &mut [i32]),
    pub(crate) scan_signs: unsafe fn(&[Shares], &[u8], &mut [u16]),
    pub(crate) hamming: unsafe fn(&[u64], &[u64]) -> u32,
    pub(crate) scan_hamming: unsafe fn(&[u64], &[u64], &mut [u32]),
    pub(crate) add_rows_i8: unsafe fn(&mut [f32], &[i8], &[u16], &[f32]),
    pub(crate) quantise_i16: unsafe fn(&[f32], &mut [i16]) -> f32,
    pub(crate) matmul_a16w8: unsafe fn(Layer<'_>, &[i16], &[f32], &mut [f32]),
    pub(crate) matmul_f32: unsafe fn(&[f32], &[f32], &[f32], &mut [f32]),
    pub(crate) dot_f32: unsafe fn(&[f32], &[f32]) -> f32,
    pub(crate) add_layer_norm: unsafe fn(&mut [f32], &[f32], &[f32], &[f32]),
    pub(crate) softmax: unsafe fn(&mut [f32]),
    pub(crate) gelu: unsafe fn(&mut [f32]),
    pub(crate) attend: unsafe fn(Heads<'_>, &mut [f32]),
}

pub(crate) const PORTABLE: Table = Table {
    has_tiles: false,
    dot_i8: portable::dot_i8,
    scan_i8: portable::scan_i8,
    pick_i8: portable::pick_i8,
    scan_signs: portable::scan_signs,
    hamming: portable::hamming,
    scan_hamming: portable::scan_hamming,
    add_rows_i8: portable::add_rows_i8,
    quantise_i16: portable::quantise_i16,
    matmul_a16w8: portable::matmul_a16w8,
    matmul_f32: portable::matmul_f32,
    dot_f32: portable::dot_f32,
    add_layer_norm: portable::add_layer_norm,
    softmax: portable::softmax,
    gelu: portable::gelu,
    attend: attention::attend,
};

/// Returns the fastest version this processor can run.
#[inline]
pub(crate) fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| tables().pop().unwrap_or(PORTABLE))
}

/// All versions this processor can run, the fastest last.
pub(crate) fn tables() -> Vec<Table> {
    let mut tables = vec![PORTABLE];
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt") {
        tables.push(crate::x86::TABLE);
        let wide = is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        if wide && is_x86_feature_detected!("avx512vnni") {
            tables.push(crate::x86::VNNI);
            if crate::x86::tiles::are_lent() {
                tables.push(crate::x86::TILES);
            }
        }
    }
    tables
}
