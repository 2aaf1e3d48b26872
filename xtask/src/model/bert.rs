//! The f32 reference pass of the transformer, and the names of its parts.

use anyhow::Result;
use yore_kernels::{Heads, add_layer_norm, attend, gelu, matmul_f32, panels_from};

use super::source::Tensors;

pub(crate) const VOCABULARY: usize = 30_522;
pub(crate) const WIDTH: usize = 384;
pub(crate) const INNER: usize = 1_536;
pub(crate) const LAYERS: usize = 6;
pub(crate) const HEADS: usize = 12;
pub(crate) const POSITIONS: usize = 256;

/// The dense parts of layer `index`, with their number of inputs, in the order of the pass.
pub(crate) fn dense_parts(index: usize) -> [(Vec<String>, usize); 4] {
    let layer = format!("encoder.layer.{index}");
    let head = |name| format!("{layer}.attention.self.{name}");
    [
        (vec![head("query"), head("key"), head("value")], WIDTH),
        (vec![format!("{layer}.attention.output.dense")], WIDTH),
        (vec![format!("{layer}.intermediate.dense")], WIDTH),
        (vec![format!("{layer}.output.dense")], INNER),
    ]
}

/// The two normalisations of layer `index`, after attention and at the end.
pub(crate) fn norm_parts(index: usize) -> [String; 2] {
    let layer = format!("encoder.layer.{index}");
    [format!("{layer}.attention.output.LayerNorm"), format!("{layer}.output.LayerNorm")]
}

/// The normalisation of the input.
pub(crate) const INPUT_NORM: &str = "embeddings.LayerNorm";

/// Position vectors with the vector of the only token type added.
pub(crate) fn positions(tensors: &Tensors) -> Result<Vec<f32>> {
    let kind = &tensors.get("embeddings.token_type_embeddings.weight")?[..WIDTH];
    let positions = tensors.get("embeddings.position_embeddings.weight")?;
    Ok(positions[..POSITIONS * WIDTH]
        .iter()
        .zip(kind.iter().cycle())
        .map(|(position, kind)| position + kind)
        .collect())
}

/// Word vectors, one row per token.
pub(crate) fn words(tensors: &Tensors) -> Result<&[f32]> {
    tensors.get("embeddings.word_embeddings.weight")
}

type Pair = (Vec<f32>, Vec<f32>);

struct Layer {
    dense: [Pair; 4],
    norms: [Pair; 2],
}

/// The transformer in f32.
pub(crate) struct Bert {
    words: Vec<f32>,
    positions: Vec<f32>,
    input_norm: Pair,
    layers: Vec<Layer>,
}

impl Bert {
    /// Takes the weights out of the published tensors.
    pub(crate) fn from_tensors(tensors: &Tensors) -> Result<Self> {
        let norm = |name: &str| tensors.pair(&[name.to_owned()]);
        let dense = |(parts, inputs): &(Vec<String>, usize)| -> Result<Pair> {
            let (weights, bias) = tensors.pair(parts)?;
            Ok((panels_from(&weights, *inputs), bias))
        };
        let layers = (0..LAYERS)
            .map(|index| {
                let [a, b, c, d] = dense_parts(index);
                let [first, second] = norm_parts(index);
                Ok(Layer {
                    dense: [dense(&a)?, dense(&b)?, dense(&c)?, dense(&d)?],
                    norms: [norm(&first)?, norm(&second)?],
                })
            })
            .collect::<Result<_>>()?;
        Ok(Self {
            words: words(tensors)?.to_vec(),
            positions: positions(tensors)?,
            input_norm: norm(INPUT_NORM)?,
            layers,
        })
    }

    /// Returns the mean of the last hidden state of one text.
    pub(crate) fn mean(&self, tokens: &[usize]) -> Vec<f32> {
        self.means(tokens, tokens.len())
    }

    /// Returns the mean of the last hidden state of many texts of `length` tokens each, row after row.
    pub(crate) fn means(&self, tokens: &[usize], length: usize) -> Vec<f32> {
        let rows = tokens.len();
        let mut state = Vec::with_capacity(rows * WIDTH);
        let mut extra = Vec::with_capacity(rows * WIDTH);
        for (at, &token) in tokens.iter().enumerate() {
            state.extend_from_slice(&self.words[token * WIDTH..][..WIDTH]);
            extra.extend_from_slice(&self.positions[at % length * WIDTH..][..WIDTH]);
        }
        add_layer_norm(&mut state, &extra, &self.input_norm.0, &self.input_norm.1);
        let mut heads = vec![0f32; rows * 3 * WIDTH];
        let mut inner = vec![0f32; rows * INNER];
        let mut mixed = vec![0f32; rows * WIDTH];
        for layer in &self.layers {
            let [qkv, out, up, down] = &layer.dense;
            let [middle, end] = &layer.norms;
            matmul_f32(&qkv.0, &qkv.1, &state, &mut heads);
            let texts = heads.chunks_exact(length * 3 * WIDTH);
            for (values, mixed) in texts.zip(mixed.chunks_exact_mut(length * WIDTH)) {
                let heads = Heads { values, width: WIDTH, size: WIDTH / HEADS };
                attend(heads, mixed);
            }
            matmul_f32(&out.0, &out.1, &mixed, &mut extra);
            add_layer_norm(&mut state, &extra, &middle.0, &middle.1);
            matmul_f32(&up.0, &up.1, &state, &mut inner);
            gelu(&mut inner);
            matmul_f32(&down.0, &down.1, &inner, &mut extra);
            add_layer_norm(&mut state, &extra, &end.0, &end.1);
        }
        state
            .chunks_exact(length * WIDTH)
            .flat_map(|text| {
                let mut mean = vec![0f32; WIDTH];
                for row in text.chunks_exact(WIDTH) {
                    for (sum, value) in mean.iter_mut().zip(row) {
                        *sum += value / length as f32;
                    }
                }
                mean
            })
            .collect()
    }
}
