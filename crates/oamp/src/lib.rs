//! The Open Agent Memory Protocol, 1.0 to 1.3: governed knowledge under grants.
//!
//! A knowledge entry ([`wire`]) is the head of one memory. This crate checks documents and
//! translates between them and the model (`map`), answers the protocol's operations for every
//! carrier ([`Oamp`] is a `Dialect`), serves them over HTTP and as a stream over WebSockets
//! ([`routes`]), and reads grants in the protocol's own form ([`credential`]).
//!
//! Nothing here decides who may do what: labels, ceilings, handling and existence hiding are
//! the lens of the permit, which the engine asks for on every surface alike. Start at [`Oamp`],
//! then `operations.rs`.

mod accept;
mod audit;
mod capabilities;
mod dialect;
mod error;
mod export;
mod import;
mod map;
mod operations;
mod person;
mod routes;
mod schema;
mod socket;
mod stream;
mod token;
pub mod wire;

use std::sync::Arc;

use yore_engine::Engine;
use yore_engine::dialect::OperationSchema;

pub use error::Refusal;
pub use routes::{PATHS, routes, unknown};
pub use token::credential;
pub use wire::Strictness;

/// What the audit chain and carriers call this protocol.
pub const NAME: &str = "oamp";
/// The highest version that is spoken.
pub const VERSION: &str = "1.3.0";
/// The header that carries a grant beside another credential.
pub const GRANT_HEADER: &str = "oamp-grant";

/// What the operator decides.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Whether what the protocol's own examples leave out is refused.
    pub strict: Strictness,
}

/// The protocol over one engine. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Oamp {
    engine: Engine,
    options: Options,
    operations: Arc<[OperationSchema]>,
}

impl Oamp {
    /// Speaks the protocol for an engine.
    #[must_use]
    pub fn new(engine: Engine, options: Options) -> Self {
        Self { engine, options, operations: schema::operations().into() }
    }
}
