//! all-MiniLM-L6-v2 with int8 weights and int16 activations.
//!
//! Each weight row and each activation row has its own scale; everything between the dense
//! layers is f32. A text is the mean of its last hidden states, brought to length one.

use std::sync::OnceLock;

use yore_kernels::{
    Heads, Layer, add_layer_norm, add_rows_i8, attend, gelu, matmul_a16w8, normalise, quantise_i16,
    tiles_from,
};

use crate::{
    artefact::Reader,
    model::{Embedder, Error, ModelId},
    packed::Packed,
    vector::Quantised,
    wordpiece::{END, START, Wordpiece},
};

/// Dimensions of the transformer's vectors.
pub const DIMS: usize = 384;

/// Tokens of one pass over several texts; enough to share the weights, small enough for the cache.
const BATCH_TOKENS: usize = 512;

/// The transformer.
#[derive(Debug)]
pub struct Transformer {
    wordpiece: &'static Wordpiece,
    longest: usize,
    heads: usize,
    words: Packed,
    word_scales: Box<[f32]>,
    positions: Box<[f32]>,
    input_norm: Norm,
    blocks: Vec<Block>,
}

#[derive(Debug)]
struct Norm {
    gain: Box<[f32]>,
    bias: Box<[f32]>,
}

#[derive(Debug)]
struct Dense {
    inputs: usize,
    weights: Box<[i8]>,
    /// The weights as a matrix unit takes them, made when the first text comes.
    tiles: OnceLock<Option<Box<[i8]>>>,
    scales: Box<[f32]>,
    bias: Box<[f32]>,
}

#[derive(Debug)]
struct Block {
    attention: Dense,
    mix: Dense,
    attention_norm: Norm,
    up: Dense,
    down: Dense,
    output_norm: Norm,
}

impl Transformer {
    /// The id of the built-in transformer.
    pub const ID: ModelId = ModelId::from_static("minilm-l6-v2-int8@2");

    /// Loads the built-in transformer.
    pub(crate) fn builtin() -> Self {
        let bytes = include_bytes!(concat!(env!("OUT_DIR"), "/minilm-l6-v2.packed"));
        let mut reader = Reader::new(bytes, b"yore-tf2");
        let [tokens, longest, width, inner, blocks, heads] =
            std::array::from_fn(|_| reader.number());
        assert_eq!(width, DIMS, "invariant: the compiled-in model has 384 dimensions");
        let word_scales = reader.floats(tokens);
        let position_scales = reader.floats(longest);
        let input_norm = Norm::read(&mut reader, width);
        let mut blocks: Vec<Block> =
            (0..blocks).map(|_| Block::read(&mut reader, width, inner)).collect();
        let words = Packed::read(&mut reader, tokens, width);
        let positions = Packed::read(&mut reader, longest, width);
        for block in &mut blocks {
            block.read_weights(&mut reader);
        }
        reader.end();
        Self {
            wordpiece: Wordpiece::builtin(),
            longest,
            heads,
            words,
            word_scales,
            positions: floats(&positions.all(), &position_scales),
            input_norm,
            blocks,
        }
    }

    /// Returns the rounded vector of a text.
    pub fn embed(&self, text: &str) -> Quantised {
        Quantised::from_floats(&self.vector(text))
    }

    /// Returns the rounded vectors of several texts, in order; faster than one at a time.
    pub fn embed_all(&self, texts: &[&str]) -> Vec<Quantised> {
        self.vectors(texts).iter().map(|vector| Quantised::from_floats(vector)).collect()
    }

    /// Returns the vector of a text, of length one.
    pub fn vector(&self, text: &str) -> [f32; DIMS] {
        self.pass(&[self.tokens(text)])[0]
    }

    /// Returns the vectors of several texts, in order; faster than one at a time.
    pub fn vectors(&self, texts: &[&str]) -> Vec<[f32; DIMS]> {
        let texts: Vec<Vec<u16>> = texts.iter().map(|text| self.tokens(text)).collect();
        let mut vectors = Vec::with_capacity(texts.len());
        let mut rest = texts.as_slice();
        while !rest.is_empty() {
            let mut total = 0;
            let count = rest
                .iter()
                .take_while(|tokens| {
                    total += tokens.len();
                    total <= BATCH_TOKENS
                })
                .count()
                .max(1);
            let (batch, later) = rest.split_at(count);
            vectors.extend(self.pass(batch));
            rest = later;
        }
        vectors
    }

    /// Splits a text into tokens with start and end, cut to the longest text the model was made for.
    pub fn tokens(&self, text: &str) -> Vec<u16> {
        let mut tokens = vec![START];
        tokens.extend(self.wordpiece.first_tokens(text, self.longest - 2));
        tokens.push(END);
        tokens
    }

    fn pass(&self, texts: &[Vec<u16>]) -> Vec<[f32; DIMS]> {
        let mut state = self.input(texts);
        let rows = state.len() / DIMS;
        let inner_width = self.blocks.first().map_or(0, |block| block.up.bias.len());
        let mut rounding = Rounding::default();
        let mut heads = vec![0f32; rows * 3 * DIMS];
        let mut mixed = vec![0f32; rows * DIMS];
        let mut inner = vec![0f32; rows * inner_width];
        let mut output = vec![0f32; rows * DIMS];
        for block in &self.blocks {
            block.attention.apply(&state, &mut rounding, &mut heads);
            self.attend(texts, &heads, &mut mixed);
            block.mix.apply(&mixed, &mut rounding, &mut output);
            block.attention_norm.add(&mut state, &output);
            block.up.apply(&state, &mut rounding, &mut inner);
            gelu(&mut inner);
            block.down.apply(&inner, &mut rounding, &mut output);
            block.output_norm.add(&mut state, &output);
        }
        let mut first = 0;
        texts
            .iter()
            .map(|tokens| {
                let hidden = &state[first * DIMS..(first + tokens.len()) * DIMS];
                first += tokens.len();
                pooled(hidden)
            })
            .collect()
    }

    /// Attention inside each text.
    fn attend(&self, texts: &[Vec<u16>], heads: &[f32], mixed: &mut [f32]) {
        let mut first = 0;
        for tokens in texts {
            let (from, to) = (first * DIMS, (first + tokens.len()) * DIMS);
            let heads =
                Heads { values: &heads[3 * from..3 * to], width: DIMS, size: DIMS / self.heads };
            attend(heads, &mut mixed[from..to]);
            first += tokens.len();
        }
    }

    /// Word and position vectors, normalised, for all tokens of all texts.
    fn input(&self, texts: &[Vec<u16>]) -> Vec<f32> {
        let rows: usize = texts.iter().map(Vec::len).sum();
        let mut state = vec![0f32; rows * DIMS];
        let mut positions = Vec::with_capacity(rows * DIMS);
        let mut word = [0; DIMS];
        let mut lines = state.chunks_exact_mut(DIMS);
        for tokens in texts {
            for (&token, line) in tokens.iter().zip(&mut lines) {
                // The table is large and a text needs few of its rows: it stays packed.
                let token = usize::from(token);
                self.words.row(token, &mut word);
                add_rows_i8(line, &word, &[0], &self.word_scales[token..=token]);
            }
            positions.extend_from_slice(&self.positions[..tokens.len() * DIMS]);
        }
        self.input_norm.add(&mut state, &positions);
        state
    }
}

impl Embedder for Transformer {
    fn id(&self) -> ModelId {
        Self::ID
    }

    fn dims(&self) -> usize {
        DIMS
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Error> {
        Ok(self.vectors(texts).into_iter().map(Vec::from).collect())
    }
}

impl Norm {
    fn read(reader: &mut Reader, width: usize) -> Self {
        Self { gain: reader.floats(width), bias: reader.floats(width) }
    }

    fn add(&self, state: &mut [f32], added: &[f32]) {
        add_layer_norm(state, added, &self.gain, &self.bias);
    }
}

impl Dense {
    /// Reads scales and bias; the weights come later in the file.
    fn read(reader: &mut Reader, inputs: usize, outputs: usize) -> Self {
        let (scales, bias) = (reader.floats(outputs), reader.floats(outputs));
        Self { inputs, weights: Box::default(), tiles: OnceLock::new(), scales, bias }
    }

    fn apply(&self, input: &[f32], rounding: &mut Rounding, output: &mut [f32]) {
        rounding.integers.resize(input.len(), 0);
        rounding.scales.clear();
        let lines = rounding.integers.chunks_exact_mut(self.inputs);
        for (line, rounded) in input.chunks_exact(self.inputs).zip(lines) {
            rounding.scales.push(quantise_i16(line, rounded));
        }
        let layer = Layer {
            inputs: self.inputs,
            weights: &self.weights,
            tiles: self.tiles.get_or_init(|| tiles_from(&self.weights, self.inputs)).as_deref(),
            scales: &self.scales,
            bias: &self.bias,
        };
        matmul_a16w8(layer, &rounding.integers, &rounding.scales, output);
    }
}

impl Block {
    fn read(reader: &mut Reader, width: usize, inner: usize) -> Self {
        let attention = Dense::read(reader, width, 3 * width);
        let mix = Dense::read(reader, width, width);
        let up = Dense::read(reader, width, inner);
        let down = Dense::read(reader, inner, width);
        let attention_norm = Norm::read(reader, width);
        let output_norm = Norm::read(reader, width);
        Self { attention, mix, attention_norm, up, down, output_norm }
    }

    fn read_weights(&mut self, reader: &mut Reader) {
        let Self { attention, mix, up, down, .. } = self;
        for dense in [attention, mix, up, down] {
            dense.weights = Packed::read(reader, dense.bias.len(), dense.inputs).all();
        }
    }
}

/// Rows of integers, each times its scale.
fn floats(rows: &[i8], scales: &[f32]) -> Box<[f32]> {
    let rows = rows.chunks_exact(DIMS).zip(scales);
    rows.flat_map(|(row, scale)| row.iter().map(move |&value| f32::from(value) * scale)).collect()
}

/// Activations rounded for one dense layer, kept to reuse the memory.
#[derive(Default)]
struct Rounding {
    integers: Vec<i16>,
    scales: Vec<f32>,
}

/// The mean of the hidden states, brought to length one.
fn pooled(hidden: &[f32]) -> [f32; DIMS] {
    let mut sum = [0f32; DIMS];
    for row in hidden.chunks_exact(DIMS) {
        for (total, value) in sum.iter_mut().zip(row) {
            *total += value;
        }
    }
    normalise(&mut sum);
    sum
}
