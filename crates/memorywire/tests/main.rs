//! The protocol over a real vault and the real router.

#![expect(clippy::unwrap_used, reason = "a test that fails here has failed")]

mod agents;
mod approval;
mod carriers;
mod conformance;
mod consolidate;
mod expire;
#[expect(dead_code, reason = "the servers of other adapters are not needed here")]
#[path = "../../router/tests/fakes.rs"]
mod fakes;
mod faults;
mod forget;
mod governance;
mod graph;
#[path = "../../router/tests/http.rs"]
mod http;
mod large;
mod merge;
mod microbench;
mod poison;
mod procedures;
mod published;
mod recall;
mod recover;
mod remember;
mod stores;
mod support;
mod together;
