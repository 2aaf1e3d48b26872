//! Many memory stores behind one door.
//!
//! A builder may already have a sqlite-vec file, a PostgreSQL with pgvector, a mem0, a Letta, a
//! Cognee or another Yore. This crate speaks to all of them at once: it asks them in parallel,
//! each within its own deadline, fuses what they answer so that none of them can shout the others
//! down, and brings each of them up to date from the vault's outbox after it was away.
//!
//! A memory has one canonical id, the same in every store. What a backend calls it, and what the
//! backend cannot hold, is kept in a [`Mapping`] that the caller hands in.
//!
//! Nothing here decides who may do what: the caller has asked the engine. No clock is read and no
//! model is held: times and vectors come from the caller.
//!
//! Start at [`MemoryStore`], what a backend must do, then [`Slot`], a backend with its name,
//! mapping and deadline, then [`Router`]. Fusion is in [`fuse`](mod@fuse); the adapters are in [`adapters`].

pub mod adapters;
pub mod adversary;
mod breaker;
pub mod config;
pub mod deliver;
pub mod envelope;
mod error;
mod filter;
pub mod fuse;
mod http;
mod mapping;
mod record;
mod router;
mod slot;
mod store;
pub mod suite;
mod upkeep;

pub use breaker::{Breaker, Patience};
pub use error::{Error, Result};
pub use filter::passes;
pub use mapping::{InMemory, Kept, Lasting, Mapping};
pub use record::{Found, Object, Question, Record, Type, Whose};
pub use router::{
    ANCHORS, Ask, Forgotten, Options, Recalled, Remembered, Report, Router, RouterHealth,
    WritePolicy,
};
pub use slot::{Approval, Depth, Forget, Put, Slot, Terms};
pub use store::{Capabilities, Capability, Health, Keeps, MemoryStore, Neighbour, Page};
pub use upkeep::{Action, Expire, Merge, Merged, Policy, Strategy};
