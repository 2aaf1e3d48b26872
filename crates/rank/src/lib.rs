//! Turns raw signals into an order: fusion by score, context, priors, hints, and the relevance cutoff.
//!
//! Everything is a pure function of its arguments: no clock, no store. The caller gathers
//! candidates (from `yore-index` or from PostgreSQL), says how old and how trusted each one is, and gets
//! them back in order, each with the named numbers that put it there.
//!
//! One formula and one set of constants serve all data. A weight may depend only on stated features: whether
//! a candidate has a session, whether vectors are there, and what the caller says it prefers.
//!
//! Start at [`fuse`]; [`Cutoff`] decides when nothing is the right answer; `stores.rs` fuses the answers of
//! several stores, for which scores are not comparable; [`bm25`] is what words are worth; [`promote`] says what short-term memory is worth and
//! [`overlap`] which texts say nearly the same.

pub mod bm25;
mod cutoff;
mod fuse;
pub mod overlap;
mod prior;
pub mod promote;
mod stores;

pub use cutoff::{Cutoff, Evidence, asks_whether};
pub use fuse::{Candidate, Mix, Query, Ranked, Signals, Weights, fuse};
pub use prior::{DEMOTION, Feedback, Hint, Prior, decay, recency, scope_match};
pub use stores::{StoreHit, StoreWeight, max, rrf, weighted};
