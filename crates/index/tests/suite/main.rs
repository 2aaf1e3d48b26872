//! The guarantees of the index as a whole.

mod behaviour;
mod common;
mod isolation;
mod snapshot;
