//! The Universal Memory Protocol: portable, signed records over one engine.
//!
//! A record ([`wire`]) is one statement of a memory. This crate reads and writes it byte for
//! byte, in both versions of the protocol, and translates between it and the model (`map`); it
//! answers the protocol's operations for every carrier ([`Ump`] is a `Dialect`), serves them
//! over HTTP ([`routes`]), reads and writes the file forms ([`files`]) and frames records for a
//! model ([`rehydrate`]).
//!
//! Nothing here decides who may do what, and nothing here stores: every operation is a call of
//! the engine. Start at [`Ump`], then `operations.rs`.

mod audit;
mod capabilities;
mod dialect;
mod emit;
mod error;
pub mod files;
pub mod id;
mod integrity;
mod map;
mod operations;
pub mod rehydrate;
mod remember;
mod revise;
mod routes;
mod schema;
mod seals;
mod stream;
mod token;
pub mod wire;

use std::sync::Arc;

use yore_engine::Engine;
use yore_engine::dialect::OperationSchema;

use crate::seals::Seals;

pub use capabilities::Export;
pub use error::Refusal;
pub use integrity::{redact, verified};
pub use routes::routes;
pub use schema::record as record_schema;
pub use token::{credential, grant_id, issue};

/// What the audit chain and carriers call this protocol.
pub const NAME: &str = "ump";

/// What the operator decides.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where the HTTP binding is reached from outside, for the well-known document.
    pub endpoint: Option<String>,
    /// The owner that the well-known document names.
    pub owner: Option<String>,
    /// The exports that the well-known document lists.
    pub exports: Vec<Export>,
    /// Whether what the reference tolerates is refused.
    pub strict: Strictness,
}

/// How much is demanded beyond what the reference demands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strictness {
    /// A record may lack provenance; a scope that a record does not have does not keep it out.
    #[default]
    Lenient,
    /// Records need provenance, foreign signers are refused and scopes match exactly.
    Strict,
}

/// The protocol over one engine. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Ump {
    engine: Engine,
    options: Arc<Options>,
    operations: Arc<[OperationSchema]>,
    seals: Arc<Seals>,
}

impl Ump {
    /// Speaks the protocol for an engine.
    #[must_use]
    pub fn new(engine: Engine, options: Options) -> Self {
        Self {
            engine,
            options: Arc::new(options),
            operations: schema::operations().into(),
            seals: Arc::new(Seals::new()),
        }
    }
}
