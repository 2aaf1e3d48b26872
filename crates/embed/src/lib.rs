//! Turns text into vectors, without a network.
//!
//! Two models are part of the binary, both made from all-MiniLM-L6-v2: a [`Static`] table of one
//! 256-dimensional vector per token, cheap enough to run inside every write, and the
//! [`Transformer`] itself in int8, a few milliseconds a text. [`builtin`] gives both, each unpacked
//! when it is first used. An OpenAI-compatible endpoint ([`remote`]) stands behind the same [`Embedder`] trait.
//!
//! This crate stores nothing, caches nothing and starts no threads; vectors are compared by the
//! index. The same text gives the same vector on every machine. How the model files are made is
//! told in `models/README.md`.
//!
//! Start with [`model`] for the trait, then `wordpiece.rs`, `statics.rs` and `minilm.rs`.

use std::sync::LazyLock;

mod kin;
pub mod minilm;
pub mod model;
#[cfg(feature = "remote")]
pub mod remote;
pub mod statics;
pub mod vector;
pub mod wordpiece;

mod artefact;
mod packed;

pub use kin::Near;
pub use minilm::Transformer;
pub use model::{Embedder, Error, ModelId};
pub use statics::Static;
pub use vector::Quantised;
pub use wordpiece::Wordpiece;

/// The models inside the binary. A command that embeds nothing does not wait for either.
#[derive(Debug)]
pub struct Builtin {
    /// The static table.
    pub statics: LazyLock<Static>,
    /// The transformer.
    pub transformer: LazyLock<Transformer>,
}

/// Returns the built-in models.
pub fn builtin() -> &'static Builtin {
    static BUILTIN: Builtin = Builtin {
        statics: LazyLock::new(Static::builtin),
        transformer: LazyLock::new(Transformer::builtin),
    };
    &BUILTIN
}
