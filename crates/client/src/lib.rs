//! A typed client of the native HTTP API, and the one list of that API's operations.
//!
//! [`api`] names every operation with its input and output; the server implements the same
//! list, so the two cannot drift apart. [`Client`] carries the calls over a Unix socket, over
//! plain HTTP on the loopback interface, or over TLS with a certificate authority of one's own
//! or the system's.
//!
//! This crate decides nothing, stores nothing and retries nothing: a call is sent once, and a
//! caller that wants to repeat a write safely gives it an operation id.
//!
//! Start at [`api::Endpoint`], then [`Client::call`]. [`agent::Agent`] speaks UAMP over the same
//! connection; it alone takes a stream up again that breaks off.

pub mod agent;
pub mod api;
mod client;
mod connect;
mod error;
pub mod input;
pub mod openapi;
mod sse;
mod target;

pub use client::{Client, Credential};
pub use error::{Error, Refusal, Refused, Result};
pub use target::Target;
