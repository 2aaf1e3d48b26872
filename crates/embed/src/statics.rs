//! The static table: one vector per token, summed.
//!
//! Rows carry a weight that is small for common tokens, folded into their scale. A text of a few
//! words costs microseconds, most of it in splitting the words.

use yore_kernels::{add_rows_i8, dot_i8, normalise};

use crate::{
    artefact::Reader,
    kin::Kin,
    model::{Embedder, Error, ModelId},
    packed::Packed,
    vector::{Quantised, inverse_length},
    wordpiece::Wordpiece,
};

/// A table of one int8 row per token.
#[derive(Debug)]
pub struct Static {
    wordpiece: &'static Wordpiece,
    dims: usize,
    weights: Box<[f32]>,
    units: Box<[f32]>,
    rows: Box<[i8]>,
    pub(crate) kin: Kin,
}

impl Static {
    /// The id of the built-in table.
    pub const ID: ModelId = ModelId::from_static("static-256@2");

    /// Loads the built-in table.
    pub(crate) fn builtin() -> Self {
        let bytes = include_bytes!(concat!(env!("OUT_DIR"), "/static-256.packed"));
        let mut reader = Reader::new(bytes, b"yore-st1");
        let (tokens, dims) = (reader.number(), reader.number());
        let weights = reader.floats(tokens);
        let rows = Packed::read(&mut reader, tokens, dims).all();
        reader.end();
        Self {
            wordpiece: Wordpiece::builtin(),
            dims,
            weights,
            units: rows.chunks_exact(dims).map(inverse_length).collect(),
            kin: Kin::new(Wordpiece::builtin(), &rows, dims),
            rows,
        }
    }

    /// Splits a text into tokens, without start and end.
    pub fn tokens(&self, text: &str) -> Vec<u16> {
        self.wordpiece.tokens(text)
    }

    /// Returns the rounded vector of a text given by its tokens; without known tokens it is zero.
    pub fn embed(&self, tokens: &[u16]) -> Quantised {
        Quantised::from_floats(&self.vector(tokens))
    }

    /// Returns the vector of a text given by its tokens, of length one or zero.
    pub fn vector(&self, tokens: &[u16]) -> Vec<f32> {
        let mut sum = vec![0f32; self.dims];
        add_rows_i8(&mut sum, &self.rows, tokens, &self.weights);
        normalise(&mut sum);
        sum
    }

    /// Returns a token's int8 row and the factor that brings it to length one.
    ///
    /// The cosine of two tokens is the dot product of their rows times both factors; it is zero
    /// for the special tokens.
    pub fn token_unit(&self, token: u16) -> (&[i8], f32) {
        (self.row(token), self.units[usize::from(token)])
    }

    /// Returns the factor that turns a token's int8 row into its weighted share of a text's vector.
    pub fn token_weight(&self, token: u16) -> f32 {
        self.weights[usize::from(token)]
    }

    /// Returns the cosine of two tokens.
    pub fn token_cosine(&self, a: u16, b: u16) -> f32 {
        let ((a, a_unit), (b, b_unit)) = (self.token_unit(a), self.token_unit(b));
        dot_i8(a, b) as f32 * a_unit * b_unit
    }

    fn row(&self, token: u16) -> &[i8] {
        &self.rows[usize::from(token) * self.dims..][..self.dims]
    }
}

impl Embedder for Static {
    fn id(&self) -> ModelId {
        Self::ID
    }

    fn dims(&self) -> usize {
        self.dims
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Error> {
        Ok(texts.iter().map(|text| self.vector(&self.tokens(text))).collect())
    }
}
