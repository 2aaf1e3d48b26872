//! The real server over a real encrypted vault in a temporary directory.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod agents;
mod api;
mod attach;
mod attachments;
mod identity;
mod lifecycle;
mod oauth;
mod quic;
mod quiet;
mod refusals;
mod routes;
mod sign_in;
mod support;
mod tls;
