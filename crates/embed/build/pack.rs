//! Writes what `src/packed.rs` reads: int8 matrices as prefix codes.
//!
//! Weights are spread like a bell whose width differs from row to row and from column to column.
//! Each row and each column therefore has a class, and both classes together choose the code.

/// The longest code in bits, as in `src/packed.rs`.
const LONGEST: u32 = 12;
/// How many classes lie between a width and twice that width.
const FINENESS: f64 = 3.0;

/// Packs a model file: its first part stays, its integers become packed matrices.
///
/// # Panics
/// If the file is not one of the two.
pub(crate) fn model(bytes: &[u8]) -> Vec<u8> {
    let number = |at: usize| {
        let bytes = bytes[8 + at * 4..][..4].try_into().expect("invariant: four bytes");
        u32::from_le_bytes(bytes) as usize
    };
    let shapes = match &bytes[..8] {
        b"yore-st1" => vec![(number(0), number(1))],
        b"yore-tf2" => {
            let [tokens, positions, width, inner] = std::array::from_fn(number);
            let layer = [(3 * width, width), (width, width), (inner, width), (width, inner)];
            let layers = (0..number(4)).flat_map(|_| layer);
            [(tokens, width), (positions, width)].into_iter().chain(layers).collect()
        }
        name => panic!("unknown model file {name:?}"),
    };
    let integers: usize = shapes.iter().map(|(rows, width)| rows * width).sum();
    let (head, mut rest) = bytes.split_at(bytes.len() - integers);
    let mut packed = head.to_vec();
    for (rows, width) in shapes {
        let (values, later) = rest.split_at(rows * width);
        matrix(values, width, &mut packed);
        rest = later;
    }
    packed
}

/// Appends a matrix of rows of `width` int8 values.
pub(crate) fn matrix(values: &[u8], width: usize, out: &mut Vec<u8>) {
    let (rows, columns) = classes(values, width);
    let contexts = usize::from(top(&rows) + top(&columns)) + 1;
    let mut counts = vec![[0u64; 256]; contexts];
    let cells = || {
        values.chunks_exact(width).zip(&rows).map(|(line, row)| {
            line.iter()
                .zip(&columns)
                .map(move |(&value, column)| (usize::from(row + column), value))
        })
    };
    for (context, value) in cells().flatten() {
        counts[context][usize::from(value)] += 1;
    }
    let codes: Vec<Code> = counts.iter().map(Code::of).collect();
    let lines: Vec<Vec<u8>> = cells().map(|line| coded(line, &codes)).collect();

    out.extend(number(contexts));
    for code in &codes {
        out.extend(code.lengths.chunks_exact(2).map(|pair| pair[0] | pair[1] << 4));
    }
    out.extend(&columns);
    out.extend(&rows);
    for line in &lines {
        out.extend(u16::try_from(line.len()).expect("invariant: a short line").to_le_bytes());
    }
    out.extend(number(lines.iter().map(Vec::len).sum()));
    out.extend(lines.iter().flatten());
}

fn number(number: usize) -> [u8; 4] {
    u32::try_from(number).expect("invariant: models are small").to_le_bytes()
}

fn top(classes: &[u8]) -> u8 {
    classes.iter().copied().max().unwrap_or(0)
}

/// The class of each row and of each column.
fn classes(values: &[u8], width: usize) -> (Vec<u8>, Vec<u8>) {
    let height = values.len() / width;
    let mut rows = vec![0f64; height];
    let mut columns = vec![0f64; width];
    for (line, row) in values.chunks_exact(width).zip(&mut rows) {
        for (&value, column) in line.iter().zip(&mut columns) {
            let square = f64::from(value.cast_signed()).powi(2);
            *row += square / width as f64;
            *column += square / height as f64;
        }
    }
    (steps(&rows), steps(&columns))
}

/// Mean squares on a scale of steps, the smallest of which is zero.
fn steps(squares: &[f64]) -> Vec<u8> {
    let step = |square: &f64| (square.max(1.0).log2() / 2.0 * FINENESS).round() as u8;
    let least = squares.iter().map(step).min().unwrap_or(0);
    squares.iter().map(|square| step(square) - least).collect()
}

/// Codes one line, the first value in the lowest bits.
fn coded(line: impl Iterator<Item = (usize, u8)>, codes: &[Code]) -> Vec<u8> {
    let (mut bytes, mut bits, mut have) = (Vec::new(), 0u64, 0);
    for (context, value) in line {
        let code = &codes[context];
        bits |= u64::from(code.words[usize::from(value)]) << have;
        have += u32::from(code.lengths[usize::from(value)]);
        while have >= 8 {
            bytes.push(bits as u8);
            bits >>= 8;
            have -= 8;
        }
    }
    if have > 0 {
        bytes.push(bits as u8);
    }
    bytes
}

/// A prefix code: how long each value's word is, and the words, their first bit lowest.
struct Code {
    lengths: [u8; 256],
    words: [u16; 256],
}

impl Code {
    fn of(counts: &[u64; 256]) -> Self {
        let mut counts = *counts;
        let lengths = loop {
            let lengths = lengths(&counts);
            if lengths.iter().all(|length| u32::from(*length) <= LONGEST) {
                break lengths;
            }
            // Flatter counts give shorter words.
            for count in counts.iter_mut().filter(|count| **count > 0) {
                *count = *count / 2 + 1;
            }
        };
        let (mut words, mut next) = ([0; 256], 0u16);
        for length in 1..=LONGEST as u8 {
            next <<= 1;
            for value in (0..256).filter(|value| lengths[*value] == length) {
                words[value] = next.reverse_bits() >> (16 - length);
                next += 1;
            }
        }
        Self { lengths, words }
    }
}

/// The lengths of the words of a Huffman code; a value that never occurs has none.
fn lengths(counts: &[u64; 256]) -> [u8; 256] {
    let mut lengths = [0; 256];
    let mut trees: Vec<(u64, Vec<usize>)> = (0..256)
        .filter(|value| counts[*value] > 0)
        .map(|value| (counts[value], vec![value]))
        .collect();
    if let [(_, only)] = trees.as_slice() {
        lengths[only[0]] = 1;
    }
    while trees.len() > 1 {
        trees.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| b.1.cmp(&a.1)));
        let (Some((least, mut values)), Some((second, others))) = (trees.pop(), trees.pop()) else {
            break;
        };
        values.extend(others);
        for value in &values {
            lengths[*value] += 1;
        }
        trees.push((least + second, values));
    }
    lengths
}
