//! Tests that stand outside every crate.
//!
//! This package depends on exactly what a protocol crate may depend on: the engine, the model
//! and the canonical forms. What does not compile here cannot be written in a protocol crate.
//! It exports nothing.
