//! The protocol over a real vault, a real router and real sockets.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first thing that fails"
)]

mod agent;
mod discovery;
mod grpc;
mod hostile;
mod inboxes;
mod messages;
mod sockets;
mod streams;
mod support;
mod vectors;
