//! The protocol over a real vault and the real router.

#![expect(clippy::unwrap_used, reason = "a test that fails here has failed")]

mod agents;
mod approval;
mod carriers;
mod conformance;
mod expire;
mod forget;
mod graph;
mod merge;
mod microbench;
mod procedures;
mod published;
mod recall;
mod recover;
mod remember;
mod stores;
mod support;
mod together;
