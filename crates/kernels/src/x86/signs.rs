//! Scans of signs with byte shuffles: a register of sixteen shares answers for as many rows as it
//! has bytes, so a table look-up costs what an addition does.

use std::arch::x86_64::{
    __m256i, __m512i, _mm_loadu_si128, _mm256_add_epi8, _mm256_add_epi16, _mm256_and_si256,
    _mm256_broadcastsi128_si256, _mm256_loadu_si256, _mm256_permute2x128_si256, _mm256_set1_epi8,
    _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_slli_epi16, _mm256_srli_epi16,
    _mm256_storeu_si256, _mm256_sub_epi16, _mm256_unpackhi_epi16, _mm256_unpacklo_epi16,
    _mm512_add_epi8, _mm512_add_epi16, _mm512_and_si512, _mm512_broadcast_i32x4,
    _mm512_loadu_si512, _mm512_permutex2var_epi64, _mm512_set1_epi8, _mm512_setr_epi64,
    _mm512_setzero_si512, _mm512_shuffle_epi8, _mm512_slli_epi16, _mm512_srli_epi16,
    _mm512_storeu_si512, _mm512_sub_epi16, _mm512_unpackhi_epi16, _mm512_unpacklo_epi16,
};

use crate::{SIGN_ROWS, Shares};

#[target_feature(enable = "avx2")]
pub(super) fn scan_signs(shares: &[Shares], blocks: &[u8], out: &mut [u16]) {
    let (columns, _) = blocks.as_chunks::<SIGN_ROWS>();
    let (out, _) = out.as_chunks_mut::<SIGN_ROWS>();
    for (block, sums) in out.iter_mut().enumerate() {
        let columns = &columns[block * shares.len()..][..shares.len()];
        let mut whole = [_mm256_setzero_si256(); 2];
        let mut upper = whole;
        for (column, shares) in columns.iter().zip(shares) {
            let (low, high) = halves(shares);
            for half in 0..2 {
                // SAFETY: a column has 64 bytes, two registers; the load needs no alignment.
                let signs = unsafe { _mm256_loadu_si256(column.as_ptr().add(32 * half).cast()) };
                let both = looked_up(signs, low, high);
                // Sums of two bytes side by side, and of the upper one alone: the lower is what is left.
                whole[half] = _mm256_add_epi16(whole[half], both);
                upper[half] = _mm256_add_epi16(upper[half], _mm256_srli_epi16::<8>(both));
            }
        }
        for half in 0..2 {
            let lower = _mm256_sub_epi16(whole[half], _mm256_slli_epi16::<8>(upper[half]));
            let first = _mm256_unpacklo_epi16(lower, upper[half]);
            let second = _mm256_unpackhi_epi16(lower, upper[half]);
            let place = sums[32 * half..].as_mut_ptr().cast::<__m256i>();
            // SAFETY: 32 sums of two bytes are left from `place` on, two registers.
            unsafe {
                _mm256_storeu_si256(place, _mm256_permute2x128_si256::<0x20>(first, second));
                _mm256_storeu_si256(place.add(1), _mm256_permute2x128_si256::<0x31>(first, second));
            }
        }
    }
}

/// The shares of lower and of upper halves of bytes, each for both lanes.
#[target_feature(enable = "avx2")]
#[inline]
fn halves(shares: &Shares) -> (__m256i, __m256i) {
    // SAFETY: the array has the 32 bytes loaded, and the loads need no alignment.
    unsafe {
        let place = shares.as_ptr();
        (
            _mm256_broadcastsi128_si256(_mm_loadu_si128(place.cast())),
            _mm256_broadcastsi128_si256(_mm_loadu_si128(place.add(16).cast())),
        )
    }
}

#[target_feature(enable = "avx2")]
#[inline]
fn looked_up(signs: __m256i, low: __m256i, high: __m256i) -> __m256i {
    let mask = _mm256_set1_epi8(15);
    let of_low = _mm256_shuffle_epi8(low, _mm256_and_si256(signs, mask));
    let upper = _mm256_and_si256(_mm256_srli_epi16::<4>(signs), mask);
    _mm256_add_epi8(of_low, _mm256_shuffle_epi8(high, upper))
}

#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn scan_signs_wide(shares: &[Shares], blocks: &[u8], out: &mut [u16]) {
    let mask = _mm512_set1_epi8(15);
    let first_half = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    let second_half = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    let (columns, _) = blocks.as_chunks::<SIGN_ROWS>();
    let (out, _) = out.as_chunks_mut::<SIGN_ROWS>();
    for (block, sums) in out.iter_mut().enumerate() {
        let columns = &columns[block * shares.len()..][..shares.len()];
        let mut whole = _mm512_setzero_si512();
        let mut upper = whole;
        for (column, shares) in columns.iter().zip(shares) {
            // SAFETY: a column has the 64 bytes loaded, the shares have 32, and loads need no alignment.
            let (signs, low, high) = unsafe {
                let place = shares.as_ptr();
                (
                    _mm512_loadu_si512(column.as_ptr().cast()),
                    _mm512_broadcast_i32x4(_mm_loadu_si128(place.cast())),
                    _mm512_broadcast_i32x4(_mm_loadu_si128(place.add(16).cast())),
                )
            };
            let of_low = _mm512_shuffle_epi8(low, _mm512_and_si512(signs, mask));
            let rest = _mm512_and_si512(_mm512_srli_epi16::<4>(signs), mask);
            let both = _mm512_add_epi8(of_low, _mm512_shuffle_epi8(high, rest));
            whole = _mm512_add_epi16(whole, both);
            upper = _mm512_add_epi16(upper, _mm512_srli_epi16::<8>(both));
        }
        let lower = _mm512_sub_epi16(whole, _mm512_slli_epi16::<8>(upper));
        let first = _mm512_unpacklo_epi16(lower, upper);
        let second = _mm512_unpackhi_epi16(lower, upper);
        let place = sums.as_mut_ptr().cast::<__m512i>();
        // SAFETY: a block has 64 sums of two bytes, two registers.
        unsafe {
            _mm512_storeu_si512(place, _mm512_permutex2var_epi64(first, first_half, second));
            let rest = _mm512_permutex2var_epi64(first, second_half, second);
            _mm512_storeu_si512(place.add(1), rest);
        }
    }
}
