//! Writes the model files; the formats are described in `crates/embed/models/README.md` and read
//! by `yore-embed`.

use anyhow::Result;

use super::{
    bert::{self, HEADS, INNER, LAYERS, POSITIONS, VOCABULARY, WIDTH},
    distil::DIMS,
    source::Tensors,
};

/// Returns the transformer: a header, all floats, then all int8 matrices.
pub(crate) fn transformer(tensors: &Tensors) -> Result<Vec<u8>> {
    let mut floats = Vec::new();
    let mut integers = Vec::new();
    let words = Rounded::coarsely(bert::words(tensors)?, WIDTH);
    floats.extend(words.scales);
    integers.extend(words.values);
    let positions = Rounded::finely(&bert::positions(tensors)?, WIDTH);
    floats.extend(positions.scales);
    integers.extend(positions.values);
    let norm = |floats: &mut Vec<f32>, name: &str| -> Result<()> {
        let (gain, bias) = tensors.pair(&[name.to_owned()])?;
        floats.extend(gain);
        floats.extend(bias);
        Ok(())
    };
    norm(&mut floats, bert::INPUT_NORM)?;
    for index in 0..LAYERS {
        for (parts, inputs) in bert::dense_parts(index) {
            let (weights, bias) = tensors.pair(&parts)?;
            let weights = Rounded::finely(&weights, inputs);
            floats.extend(weights.scales);
            floats.extend(bias);
            integers.extend(weights.values);
        }
        for name in bert::norm_parts(index) {
            norm(&mut floats, &name)?;
        }
    }
    let header = [VOCABULARY, POSITIONS, WIDTH, INNER, LAYERS, HEADS];
    Ok(file(b"yore-tf2", &header, &floats, &integers))
}

/// Returns the static table: a header, a scale per token, then the int8 rows.
pub(crate) fn table(rows: &[f32]) -> Vec<u8> {
    let rows = Rounded::coarsely(rows, DIMS);
    file(b"yore-st1", &[VOCABULARY, DIMS], &rows.scales, &rows.values)
}

fn file(magic: &[u8; 8], header: &[usize], floats: &[f32], integers: &[i8]) -> Vec<u8> {
    let mut bytes = magic.to_vec();
    for &number in header {
        let number = u32::try_from(number).expect("model sizes are small");
        bytes.extend(number.to_le_bytes());
    }
    for float in floats {
        bytes.extend(float.to_le_bytes());
    }
    bytes.extend(integers.iter().map(|value| value.cast_unsigned()));
    bytes
}

/// How many steps the root mean square of a coarsely rounded row has.
const COARSE: f32 = 10.0;

/// Rows rounded to int8, each with the factor that turns it back.
struct Rounded {
    scales: Vec<f32>,
    values: Vec<i8>,
}

impl Rounded {
    /// Uses the whole range: what is multiplied layer after layer must not lose much.
    fn finely(rows: &[f32], width: usize) -> Self {
        Self::by(rows, width, finest)
    }

    /// Uses no more values than a vector of meaning needs; the fewer there are, the better they pack.
    fn coarsely(rows: &[f32], width: usize) -> Self {
        Self::by(rows, width, |row| {
            let square = row.iter().map(|value| value * value).sum::<f32>() / row.len() as f32;
            (square.sqrt() / COARSE).max(finest(row))
        })
    }

    fn by(rows: &[f32], width: usize, scale: impl Fn(&[f32]) -> f32) -> Self {
        let mut scales = Vec::with_capacity(rows.len() / width);
        let mut values = Vec::with_capacity(rows.len());
        for row in rows.chunks_exact(width) {
            let scale = scale(row);
            scales.push(scale);
            values.extend(
                row.iter().map(|value| if scale > 0.0 { (value / scale).round() as i8 } else { 0 }),
            );
        }
        Self { scales, values }
    }
}

/// The smallest scale that keeps a row within int8.
fn finest(row: &[f32]) -> f32 {
    row.iter().fold(0f32, |best, value| best.max(value.abs())) / 127.0
}
