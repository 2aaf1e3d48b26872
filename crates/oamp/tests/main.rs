//! The protocol over a real vault and the real router.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first thing that fails"
)]

mod admin;
mod bad_input;
mod documents;
mod grants;
mod hiding;
mod knowledge;
mod model;
mod scenes;
mod stores;
mod streams;
mod suite;
mod support;
mod time;
mod walls;
