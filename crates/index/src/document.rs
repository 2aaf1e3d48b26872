//! What the caller hands in: documents, their metadata, and quantised vectors.

/// Dimensions of the static vectors every document carries.
pub const STATIC_DIMS: usize = 256;

/// Names a visibility class; documents of one class are visible together or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClassId(pub u32);

/// A quantised vector: `values × scale` has length one, so a cosine is a scaled integer dot product.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Vector<'a> {
    /// The int8 components.
    pub values: &'a [i8],
    /// The factor that brings the components back to unit length.
    pub scale: f32,
}

impl Vector<'_> {
    /// Quantises floats to int8 components and the scale that makes them unit length.
    #[must_use]
    pub fn quantise(values: &[f32]) -> (Vec<i8>, f32) {
        let peak = values.iter().fold(0f32, |peak, value| peak.max(value.abs()));
        if peak <= 0.0 || !peak.is_finite() {
            return (vec![0; values.len()], 0.0);
        }
        #[expect(clippy::cast_possible_truncation, reason = "the quotient lies in -127..=127")]
        let rounded: Vec<i8> =
            values.iter().map(|value| (value / peak * 127.0).round() as i8).collect();
        let norm =
            rounded.iter().map(|&value| f32::from(value) * f32::from(value)).sum::<f32>().sqrt();
        (rounded, 1.0 / norm)
    }
}

/// What filters and priors look at; the index stores it and hands it back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Meta {
    /// The caller's kind code.
    pub kind: u8,
    /// The caller's flags.
    pub flags: u8,
    /// When the document was written.
    pub created: i64,
    /// Start of validity.
    pub valid_from: i64,
    /// End of validity; `i64::MAX` is open.
    pub valid_to: i64,
    /// When the vault learnt it.
    pub recorded: i64,
    /// When it stopped being current knowledge; `i64::MAX` is never.
    pub retired: i64,
    /// When it expires; `i64::MAX` is never.
    pub expires: i64,
    /// The session it belongs to; 0 is none.
    pub session: u64,
    /// Its position in the session.
    pub ordinal: u32,
    /// The caller's prior, such as salience × feedback × demotion.
    pub weight: f32,
    /// A 64-bit Bloom filter of tags, defined by the caller.
    pub tags: u64,
}

impl Default for Meta {
    fn default() -> Meta {
        Meta {
            kind: 0,
            flags: 0,
            created: 0,
            valid_from: 0,
            valid_to: i64::MAX,
            recorded: 0,
            retired: i64::MAX,
            expires: i64::MAX,
            session: 0,
            ordinal: 0,
            weight: 1.0,
            tags: 0,
        }
    }
}

/// A document to be indexed.
#[derive(Clone, Copy, Debug)]
pub struct Document<'a> {
    /// The caller's row id, unique in the index.
    pub key: u64,
    /// The stable public id; breaks ties, so it must not depend on insertion order.
    pub id: [u8; 16],
    /// The visibility class.
    pub class: ClassId,
    /// The text to analyse; not kept.
    pub text: &'a str,
    /// Filter and prior data.
    pub meta: Meta,
    /// WordPiece ids of the text, capped by the caller.
    pub tokens: &'a [u16],
    /// The static vector, [`STATIC_DIMS`] wide.
    pub statics: Vector<'a>,
    /// The dense vector, if already embedded.
    pub dense: Option<Vector<'a>>,
}

/// Why a document or vector cannot be indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// A vector has the wrong number of components.
    #[error("invalid vector: {found} dimensions instead of {expected}")]
    Dimensions {
        /// What the index holds.
        expected: usize,
        /// What was given.
        found: usize,
    },
    /// A scale or weight is not a finite number.
    #[error("invalid vector or weight: not a finite number")]
    NotFinite,
    /// A visibility class holds as many documents as one partition can number.
    #[error("visibility class is full")]
    Full,
}

/// Says which tokens mean nearly the same, for token-level rescoring.
pub trait TokenTable {
    /// Returns the tokens near this one, itself included, each with its similarity from 0 to 1,
    /// or `None` for tokens that carry no meaning (stop words, punctuation).
    fn kin(&self, token: u16) -> Option<&[(u16, f32)]>;
}

impl<F: Fn(u16) -> Option<&'static [(u16, f32)]>> TokenTable for F {
    fn kin(&self, token: u16) -> Option<&[(u16, f32)]> {
        self(token)
    }
}
