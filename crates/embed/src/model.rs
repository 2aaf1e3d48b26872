//! What every embedding model offers, and how it can fail.

use std::{borrow::Cow, fmt};

/// The name and version of a model; vectors of different ids are never compared.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModelId(Cow<'static, str>);

impl ModelId {
    /// Names a model known when the program is built.
    pub const fn from_static(id: &'static str) -> Self {
        Self(Cow::Borrowed(id))
    }

    /// Names a model known from configuration or from stored vectors.
    pub fn new(id: impl Into<String>) -> Self {
        Self(Cow::Owned(id.into()))
    }

    /// Returns the id as text, such as `static-256@2`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ModelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A model that turns texts into vectors of length one.
pub trait Embedder: Send + Sync + fmt::Debug {
    /// Returns the name and version of the model.
    fn id(&self) -> ModelId;

    /// Returns the number of dimensions of every vector.
    fn dims(&self) -> usize;

    /// Returns one vector per text, in order.
    ///
    /// # Errors
    /// A remote model fails when its endpoint does; the built-in ones never fail.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Error>;
}

/// Why a model gave no vectors.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration names no usable endpoint.
    #[error("invalid embedding endpoint: {0}")]
    Config(String),
    /// The endpoint could not be reached or did not answer in time.
    #[error("embedding endpoint unreachable: {0}")]
    Unreachable(String),
    /// The endpoint refused the request.
    #[error("embedding endpoint answered status {status}")]
    Refused {
        /// The HTTP status.
        status: u16,
    },
    /// The answer was larger than allowed.
    #[error("embedding answer larger than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// The answer was not what the interface promises.
    #[error("invalid embedding answer: {0}")]
    Answer(String),
    /// A vector has another number of dimensions than configured.
    #[error("embedding has {found} dimensions, expected {expected}")]
    Dimensions {
        /// The configured number.
        expected: usize,
        /// The number in the answer.
        found: usize,
    },
}
