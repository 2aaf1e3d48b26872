//! Int8 matrices as `build/pack.rs` writes them: rows of prefix codes, each of which can be read
//! alone.
//!
//! A matrix is, numbers little-endian: how many codes there are (`u32`); the codes, one length of
//! four bits for each of 256 values; a class for each column and for each row (`u8`), whose sum
//! chooses the code; the bytes of each row (`u16`) and of all (`u32`); the rows, each beginning at
//! a byte, the first value in its lowest bits.

use crate::artefact::Reader;

/// The longest code in bits.
const LONGEST: u32 = 12;
/// How many values are read between two looks at the bytes: four codes fit into 56 bits.
const STRIDE: usize = 4;

/// How many rows are read side by side.
const LANES: usize = 4;

/// A value in the low byte and the length of its code in the high one, by what bits come next.
type Code = [u16; 1 << LONGEST];

/// A packed matrix.
#[derive(Debug)]
pub(crate) struct Packed {
    codes: Vec<Code>,
    columns: &'static [u8],
    rows: &'static [u8],
    starts: Box<[u32]>,
    bytes: &'static [u8],
}

impl Packed {
    /// Reads a matrix of this shape.
    pub(crate) fn read(reader: &mut Reader, rows: usize, width: usize) -> Self {
        let codes = (0..reader.number()).map(|_| code(reader.take(128))).collect();
        let (columns, classes) = (reader.take(width), reader.take(rows));
        let (lengths, _) = reader.take(rows * 2).as_chunks::<2>();
        let mut next = 0;
        let starts = lengths
            .iter()
            .map(|length| {
                let start = next;
                next += u32::from(u16::from_le_bytes(*length));
                start
            })
            .collect();
        let length = reader.number();
        Self { codes, columns, rows: classes, starts, bytes: reader.take(length) }
    }

    /// Unpacks one row.
    pub(crate) fn row(&self, row: usize, out: &mut [i8]) {
        self.side_by_side(row, [out]);
    }

    /// Unpacks all rows.
    pub(crate) fn all(&self) -> Box<[i8]> {
        let width = self.columns.len();
        let mut values = vec![0; self.rows.len() * width];
        let mut row = 0;
        let mut groups = values.chunks_exact_mut(LANES * width);
        for group in &mut groups {
            let mut lines = group.chunks_exact_mut(width);
            let lines: [_; LANES] =
                std::array::from_fn(|_| lines.next().expect("invariant: a group has its rows"));
            self.side_by_side(row, lines);
            row += LANES;
        }
        for line in groups.into_remainder().chunks_exact_mut(width) {
            self.row(row, line);
            row += 1;
        }
        values.into()
    }

    /// Unpacks rows that follow each other. Where a value ends is known when it was looked up;
    /// while one row waits for that, another goes on.
    fn side_by_side<const N: usize>(&self, first: usize, mut out: [&mut [i8]; N]) {
        let mut lanes: [Lane<'_>; N] = std::array::from_fn(|lane| Lane {
            codes: &self.codes[usize::from(self.rows[first + lane])..],
            at: self.starts[first + lane] as usize,
            bits: 0,
            have: 0,
        });
        let width = self.columns.len();
        for from in (0..width).step_by(STRIDE) {
            for lane in &mut lanes {
                lane.refill(self.ahead(lane.at));
            }
            for column in from..width.min(from + STRIDE) {
                let class = usize::from(self.columns[column]);
                for (lane, line) in lanes.iter_mut().zip(&mut out) {
                    line[column] = lane.next(class);
                }
            }
        }
    }

    /// The next eight bytes; beyond the end there are zeros.
    fn ahead(&self, at: usize) -> u64 {
        let rest = &self.bytes[at.min(self.bytes.len())..];
        match rest.first_chunk() {
            Some(next) => u64::from_le_bytes(*next),
            None => rest.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte)),
        }
    }
}

/// Where the reading of one row stands.
struct Lane<'a> {
    codes: &'a [Code],
    at: usize,
    bits: u64,
    have: u32,
}

impl Lane<'_> {
    /// Takes as many of the next bytes as there is room for.
    fn refill(&mut self, ahead: u64) {
        self.bits |= ahead << self.have;
        let taken = (63 - self.have) / 8;
        self.at += taken as usize;
        self.have += taken * 8;
    }

    fn next(&mut self, class: usize) -> i8 {
        let found = self.codes[class][self.bits as usize % (1 << LONGEST)];
        self.bits >>= found >> 8;
        self.have -= u32::from(found >> 8);
        (found as u8).cast_signed()
    }
}

/// Makes the table of a code out of the lengths of its words.
fn code(nibbles: &[u8]) -> Code {
    let length = |value: u16| nibbles[usize::from(value / 2)] >> (value % 2 * 4) & 15;
    let mut table = [0; 1 << LONGEST];
    let mut next = 0u16;
    for bits in 1..=LONGEST as u8 {
        next <<= 1;
        for value in (0..256u16).filter(|value| length(*value) == bits) {
            let word = next.reverse_bits() >> (16 - bits);
            let places = table.iter_mut().skip(usize::from(word)).step_by(1 << bits);
            places.for_each(|place| *place = value | u16::from(bits) << 8);
            next += 1;
        }
    }
    table
}

#[cfg(test)]
#[expect(dead_code, reason = "the build script packs whole files")]
#[path = "../build/pack.rs"]
mod pack;

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn unpacked(values: &[u8], width: usize) -> Box<[i8]> {
        let mut packed = b"the file".to_vec();
        pack::matrix(values, width, &mut packed);
        let mut reader = Reader::new(packed.leak(), b"the file");
        let matrix = Packed::read(&mut reader, values.len() / width, width);
        reader.end();
        matrix.all()
    }

    proptest! {
        #[test]
        fn what_was_packed_comes_back(
            (width, values) in (1..40usize, 0..30usize)
                .prop_flat_map(|(width, rows)| (Just(width), vec(any::<u8>(), width * rows))),
            calm in any::<bool>(),
        ) {
            let values: Vec<u8> = values.iter().map(|value| if calm { value % 3 } else { *value }).collect();
            let found = unpacked(&values, width);
            prop_assert_eq!(bytemuck::cast_slice::<i8, u8>(&found), values.as_slice());
        }
    }

    #[test]
    fn rare_values_have_codes_that_are_not_too_long() {
        // Counts like those of Fibonacci make the longest codes there are.
        let (mut one, mut two) = (1usize, 1);
        let mut values = Vec::new();
        for value in 0..20 {
            values.extend(std::iter::repeat_n(value, one));
            (one, two) = (two, one + two);
        }
        let found = unpacked(&values, values.len());
        assert_eq!(bytemuck::cast_slice::<i8, u8>(&found), values.as_slice());
    }

    #[test]
    fn the_models_hold_the_integers_of_their_files() {
        macro_rules! packed {
            ($name:literal) => {
                include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".packed"))
            };
        }
        let layer = [(1152, 384), (384, 384), (1536, 384), (384, 1536)];
        let mut matrices = vec![(30_522, 384), (256, 384)];
        matrices.extend([layer; 6].into_iter().flatten());
        compare("minilm-l6-v2", packed!("minilm-l6-v2"), b"yore-tf2", &matrices);
        compare("static-256", packed!("static-256"), b"yore-st1", &[(30_522, 256)]);
    }

    fn compare(name: &str, packed: &'static [u8], magic: &[u8; 8], matrices: &[(usize, usize)]) {
        let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
        let file = fs::read(models.join(format!("{name}.int8.bin"))).unwrap();
        let integers: usize = matrices.iter().map(|(rows, width)| rows * width).sum();
        let (head, mut rest) = file.split_at(file.len() - integers);
        let mut reader = Reader::new(packed, magic);
        assert_eq!(reader.take(head.len() - magic.len()), &head[magic.len()..]);
        for &(rows, width) in matrices {
            let (expected, later) = rest.split_at(rows * width);
            let found = Packed::read(&mut reader, rows, width).all();
            assert!(bytemuck::cast_slice::<i8, u8>(&found) == expected, "{name}: {rows} × {width}");
            rest = later;
        }
        reader.end();
    }
}
