//! Chooses, once, the version of every kernel that this processor can run.

use std::sync::OnceLock;

use crate::{Heads, Layer, portable};

/// One version of every kernel. Calling an entry is sound only if the processor has the
/// features it was compiled for, which [`table`] guarantees for the one it returns.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::type_complexity,
    reason = "a kernel's type is clearest spelt out next to its name"
)]
pub(crate) struct Table {
    pub(crate) dot_i8: unsafe fn(&[i8], &[i8]) -> i32,
    pub(crate) scan_i8: unsafe fn(&[i8], &[i8], &mut [i32]),
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
    dot_i8: portable::dot_i8,
    scan_i8: portable::scan_i8,
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
    attend: portable::attend,
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
        if is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vnni") {
            tables.push(crate::x86::VNNI);
        }
    }
    tables
}
