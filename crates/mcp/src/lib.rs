//! The Model Context Protocol: a carrier for every dialect.
//!
//! Tools, resources and subscriptions come from the engine's registry of dialects; a protocol
//! that is added there appears here without new code. This crate translates between MCP's
//! frames and the dialects' JSON, and decides nothing: credentials are handed on with every
//! request and judged by the engine. It keeps no memory of its own besides what a legacy
//! session subscribed to.
//!
//! Both lifecycles share every endpoint: requests that name 2026-07-28 stand alone, older
//! clients open a session first. Three ways lead in: [`routes`] (Streamable HTTP), [`stdio`]
//! (this process holds the vault) and [`relay`] (stdio here, the vault behind another
//! server's `/mcp`).
//!
//! Start at `server.rs`, then `tools.rs`; `gate.rs` is what every HTTP request passes first.

mod caller;
mod complete;
mod confirm;
mod failure;
#[cfg(feature = "conformance-fixtures")]
mod fixtures;
mod follow;
mod gate;
mod http;
mod log;
mod metadata;
mod native;
mod options;
mod page;
mod prompts;
mod relay;
mod resources;
mod server;
mod stdio;
mod tools;

pub use http::routes;
pub use options::{Options, ToolNames};
pub use relay::{Here, Nearby, Relayed, Upstream, relay, relay_on};
pub use server::Mcp;
pub use stdio::{stdio, stdio_on};

/// What the audit chain calls this protocol.
const PROTOCOL: &str = "mcp";

/// Where a client may name an operation, so that a retry is not done twice; over HTTP the
/// header of the native API says the same.
const OPERATION_META: &str = "yore/operation-id";
