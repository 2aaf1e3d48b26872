//! memorywire: remember, recall, forget, merge and expire, for many agents in one vault.
//!
//! Every request names an agent, and what an agent remembers is the agent's own: `agent_id` and
//! `user_id` are the scope of a memory. This crate reads requests ([`wire`]), translates between
//! them and the model (`map`, `filter`), answers the five operations for every carrier
//! ([`Memorywire`] is a `Dialect`), serves them and their schemas over HTTP ([`routes`]), and
//! moves and draws the state machines that procedural memories carry (`procedure`, [`draw`]).
//!
//! Nothing here decides who may do what, except that nobody under a grant speaks as another
//! agent; nothing here stores. The vault is a store called [`STORE`]; others may stand beside it
//! (`elsewhere`). Start at [`Memorywire`], then `operations.rs`.

mod dialect;
pub mod draw;
mod elsewhere;
mod error;
mod expire;
mod filter;
mod forget;
mod governance;
mod look;
mod map;
mod merge;
mod operations;
mod procedure;
mod recall;
mod recover;
mod remember;
mod routes;
mod rows;
pub mod schema;
mod signing;
mod speaker;
pub mod wire;

use std::sync::Arc;

use yore_domain::HoldId;
use yore_engine::Engine;
use yore_engine::dialect::OperationSchema;

pub use elsewhere::Stores;
pub use error::Refusal;
pub use routes::routes;

/// What the audit chain and carriers call this protocol.
pub const NAME: &str = "memorywire";
/// What the vault is called among stores.
pub const STORE: &str = "yore";
/// What that store can do, in the protocol's words.
pub const CAPABILITIES: [&str; 9] = [
    "semantic",
    "episodic",
    "procedural",
    "emotional",
    "fts",
    "vector",
    "graph",
    "governance",
    "recall_tracking",
];
/// Where everything lies over HTTP.
pub const PREFIX: &str = "/memorywire/v0";
/// The page on which a person decides what waits, on this server.
const REVIEW: &str = "/app/review";

/// What the operator decides.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where the server is reached from outside; without it, addresses are paths on the server.
    pub url: Option<String>,
    /// Whether every request must name a person, or say that it means none.
    pub require_user: bool,
}

/// The protocol over one engine. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Memorywire {
    engine: Engine,
    options: Arc<Options>,
    operations: Arc<[OperationSchema]>,
    stores: Option<Stores>,
}

impl Memorywire {
    /// Speaks the protocol for an engine.
    #[must_use]
    pub fn new(engine: Engine, options: Options) -> Self {
        let operations = schema::operations().into();
        Self { engine, options: Arc::new(options), operations, stores: None }
    }

    /// Puts other stores beside the default vault.
    #[must_use]
    pub fn with_stores(mut self, stores: Stores) -> Self {
        self.stores = Some(stores);
        self
    }

    /// Where a person decides what waits.
    fn approval_url(&self, hold: HoldId) -> String {
        let url = self.options.url.as_deref().unwrap_or_default();
        format!("{}{REVIEW}/{hold}", url.trim_end_matches('/'))
    }
}

fn stores() -> Vec<String> {
    vec![STORE.to_owned()]
}
