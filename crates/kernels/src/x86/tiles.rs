//! The dense layer for processors with a matrix unit (AMX), which multiplies sixteen rows of
//! sixty-four bytes with as many columns in one instruction.
//!
//! An activation has more bits than a byte: its upper and its lower seven go through the unit
//! apart, and the sums are put together again. Sums of integers come out the same in any order.
//! The instructions have no names in stable Rust yet, so they stand here as assembly.

use std::arch::asm;
use std::arch::x86_64::{
    __cpuid, __cpuid_count, _mm256_storeu_si256, _mm512_add_epi32, _mm512_add_ps, _mm512_and_si512,
    _mm512_cvtepi16_epi8, _mm512_cvtepi32_ps, _mm512_loadu_ps, _mm512_loadu_si512, _mm512_mul_ps,
    _mm512_set1_epi16, _mm512_set1_ps, _mm512_slli_epi32, _mm512_srai_epi16, _mm512_storeu_ps,
};
use std::cell::RefCell;

use super::vnni;
use crate::{Layer, TILE_INPUTS, TILE_OUTPUTS};

/// Rows of a tile.
const ROWS: usize = 16;
/// Bytes of a tile.
const TILE: usize = ROWS * TILE_INPUTS;
/// Bits of an activation that go through the unit at once.
const BITS: u32 = 7;
/// Bytes of activations, in both halves, for which all weights pass once.
const PASS: usize = 128 << 10;

/// The shape of all eight tiles: sixteen rows of sixty-four bytes.
#[repr(C, align(64))]
struct Shape {
    palette: u8,
    start: u8,
    reserved: [u8; 14],
    bytes: [u16; 16],
    rows: [u8; 16],
}

static SHAPE: Shape = Shape {
    palette: 1,
    start: 0,
    reserved: [0; 14],
    bytes: {
        let mut bytes = [0; 16];
        let mut at = 0;
        while at < 8 {
            bytes[at] = 64;
            at += 1;
        }
        bytes
    },
    rows: [16, 16, 16, 16, 16, 16, 16, 16, 0, 0, 0, 0, 0, 0, 0, 0],
};

/// Whether the processor has the unit and the system lends it to this process.
pub(crate) fn are_lent() -> bool {
    const UNIT_AND_BYTES: u32 = 0b11 << 24;
    const SAVED_BY_SYSTEM: u32 = 1 << 27;
    let told = __cpuid(0).eax >= 7
        && __cpuid(1).ecx & SAVED_BY_SYSTEM != 0
        && __cpuid_count(7, 0).edx & UNIT_AND_BYTES == UNIT_AND_BYTES;
    told && lent()
}

/// Linux gives the registers of the unit to whoever asks once, for all threads: they are large.
#[cfg(target_os = "linux")]
fn lent() -> bool {
    const ARCH_PRCTL: u64 = 158;
    const REQUEST: u64 = 0x1023;
    const TILE_DATA: u64 = 18;
    let answer: i64;
    // SAFETY: the call reads nothing but its numbers and writes no memory of this process.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") ARCH_PRCTL.cast_signed() => answer,
            in("rdi") REQUEST,
            in("rsi") TILE_DATA,
            out("rcx") _,
            out("r11") _,
            options(nostack),
        );
    }
    answer == 0
}

#[cfg(not(target_os = "linux"))]
const fn lent() -> bool {
    false
}

thread_local! {
    /// Activations in the order of tiles, both halves: one pass after the other uses it again.
    static SPLIT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vnni")]
pub(super) fn matmul_a16w8(layer: Layer<'_>, activations: &[i16], scales: &[f32], out: &mut [f32]) {
    let (inputs, outputs) = (layer.inputs, layer.scales.len());
    let fits = inputs.is_multiple_of(TILE_INPUTS) && outputs.is_multiple_of(TILE_OUTPUTS);
    let Some(tiles) = layer.tiles.filter(|tiles| fits && !tiles.is_empty()) else {
        return vnni::matmul_a16w8(layer, activations, scales, out);
    };
    let most = (PASS / (2 * inputs) / ROWS).max(1) * ROWS;
    let mut split = SPLIT.take();
    let mut sums = Sums([[[0; 16]; ROWS]; 4]);
    // SAFETY: the shape is a valid one, and the unit was lent before this was chosen.
    unsafe { asm!("ldtilecfg [{}]", in(reg) &raw const SHAPE, options(nostack, preserves_flags)) };
    let lines = activations.chunks(most * inputs).zip(scales.chunks(most));
    for ((activations, scales), out) in lines.zip(out.chunks_mut(most * outputs)) {
        split_into(&mut split, activations, inputs);
        let pair = 2 * TILE * (inputs / TILE_INPUTS);
        for (pass, weights) in tiles.chunks_exact(pair).enumerate() {
            for (block, values) in split.chunks_exact(pair).enumerate() {
                products(values, weights, &mut sums);
                put(layer, &sums, (block * ROWS, pass * TILE_OUTPUTS), scales, out);
            }
        }
    }
    // SAFETY: nothing here uses the tiles any more; the system need not save them now.
    unsafe { asm!("tilerelease", options(nostack, preserves_flags)) };
    SPLIT.set(split);
}

/// Puts activations into the order of tiles: for sixteen rows and sixty-four inputs the upper bits,
/// then the lower ones. Rows that are missing are zeros.
#[target_feature(enable = "avx512f,avx512bw")]
fn split_into(split: &mut Vec<u8>, activations: &[i16], inputs: usize) {
    let rows = activations.len() / inputs;
    split.clear();
    split.resize(rows.next_multiple_of(ROWS) * inputs * 2, 0);
    let low_bits = _mm512_set1_epi16((1 << BITS) - 1);
    for (row, line) in activations.chunks_exact(inputs).enumerate() {
        let (chunks, _) = line.as_chunks::<TILE_INPUTS>();
        for (at, chunk) in chunks.iter().enumerate() {
            let tile = (row / ROWS * (inputs / TILE_INPUTS) + at) * 2 * TILE;
            let place = tile + row % ROWS * TILE_INPUTS;
            let (upper, lower) = split[place..place + TILE + TILE_INPUTS].split_at_mut(TILE);
            for half in 0..2 {
                // SAFETY: a chunk has 64 numbers, two registers; both places have as many bytes,
                // and neither loads nor stores need alignment.
                unsafe {
                    let values = _mm512_loadu_si512(chunk.as_ptr().add(32 * half).cast());
                    let high = _mm512_cvtepi16_epi8(_mm512_srai_epi16::<BITS>(values));
                    let low = _mm512_cvtepi16_epi8(_mm512_and_si512(values, low_bits));
                    _mm256_storeu_si256(upper.as_mut_ptr().add(32 * half).cast(), high);
                    _mm256_storeu_si256(lower.as_mut_ptr().add(32 * half).cast(), low);
                }
            }
        }
    }
}

/// Sums of the upper and of the lower bits, each for the first and the last sixteen outputs.
#[repr(C, align(64))]
struct Sums([[[i32; 16]; ROWS]; 4]);

/// Multiplies sixteen rows with thirty-two outputs.
#[inline]
fn products(values: &[u8], weights: &[i8], sums: &mut Sums) {
    let length = values.len().min(weights.len());
    // SAFETY: the unit has its shape, every load is of a whole tile inside its slice, and every
    // store into an array as large. The compiler itself uses no tiles.
    unsafe {
        asm!(
            "tilezero tmm0",
            "tilezero tmm1",
            "tilezero tmm2",
            "tilezero tmm3",
            options(nostack, preserves_flags, nomem)
        );
        for at in (0..length).step_by(2 * TILE) {
            asm!(
                "tileloadd tmm4, [{values} + {line}*1]",
                "tileloadd tmm6, [{weights} + {line}*1]",
                "tdpbssd tmm0, tmm4, tmm6",
                "tileloadd tmm7, [{weights} + {line}*1 + 1024]",
                "tdpbssd tmm2, tmm4, tmm7",
                "tileloadd tmm5, [{values} + {line}*1 + 1024]",
                "tdpbssd tmm1, tmm5, tmm6",
                "tdpbssd tmm3, tmm5, tmm7",
                values = in(reg) values.as_ptr().add(at),
                weights = in(reg) weights.as_ptr().add(at),
                line = in(reg) TILE_INPUTS,
                options(nostack, preserves_flags, readonly)
            );
        }
        asm!(
            "tilestored [{sums} + {line}*1], tmm0",
            "tilestored [{sums} + {line}*1 + 1024], tmm1",
            "tilestored [{sums} + {line}*1 + 2048], tmm2",
            "tilestored [{sums} + {line}*1 + 3072], tmm3",
            sums = in(reg) sums.0.as_mut_ptr(),
            line = in(reg) TILE_INPUTS,
            options(nostack, preserves_flags)
        );
    }
}

/// Turns the sums of a block into outputs, as `portable::output_from` does.
#[target_feature(enable = "avx512f,avx512bw")]
fn put(
    layer: Layer<'_>,
    Sums(sums): &Sums,
    (row, output): (usize, usize),
    scales: &[f32],
    out: &mut [f32],
) {
    const LANES: usize = 16;
    let outputs = layer.scales.len();
    for (half, parts) in sums.as_chunks::<2>().0.iter().enumerate() {
        let output = output + half * LANES;
        let (weights, bias) = (&layer.scales[output..][..LANES], &layer.bias[output..][..LANES]);
        for (at, &scale) in scales[row..].iter().take(ROWS).enumerate() {
            let line = &mut out[(row + at) * outputs + output..][..LANES];
            // SAFETY: each of these is sixteen numbers of four bytes, and needs no alignment.
            unsafe {
                let upper = _mm512_loadu_si512(parts[0][at].as_ptr().cast());
                let lower = _mm512_loadu_si512(parts[1][at].as_ptr().cast());
                let sum = _mm512_add_epi32(_mm512_slli_epi32::<BITS>(upper), lower);
                let factor =
                    _mm512_mul_ps(_mm512_set1_ps(scale), _mm512_loadu_ps(weights.as_ptr()));
                let value = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), factor);
                let value = _mm512_add_ps(value, _mm512_loadu_ps(bias.as_ptr()));
                _mm512_storeu_ps(line.as_mut_ptr(), value);
            }
        }
    }
}
