//! One process around one data directory: configuration, keys, TLS, listeners and the native
//! HTTP API.
//!
//! This crate assembles and holds no rules. Who may do what is decided in the engine; a route
//! translates a request into a call and an outcome into a status, and nothing else. What it
//! does decide is what never reaches the engine: which addresses are listened on, under which
//! names the server answers, how large and how slow a request may be.
//!
//! Only one process opens a data directory. `run/lock` says which, `run/server.json` where it
//! listens. A command that finds no server becomes one for a moment ([`attach`]), so that
//! commands which run at the same time share it.
//!
//! Start at [`Host`], then `app.rs` (routes and what surrounds them), `operations.rs` (the
//! native API) and `listen.rs` (connections).

mod app;
pub mod backup;
pub mod bucket;
mod claim;
mod clock;
pub mod config;
mod describe;
mod dpop;
mod error;
mod fetch;
mod guard;
mod host;
mod interrupt;
mod key;
mod listen;
pub mod mail;
mod metrics;
mod oauth;
mod operations;
pub mod place;
mod reply;
mod sign_in;
mod stores;
mod tls;
pub mod transfer;

pub use claim::Note;
pub use clock::SystemClock;
pub use config::{Config, Layers};
pub use error::{Error, Result};
pub use host::{Attached, Held, Host, Idle, Near, attach, discover, examine_database, proof};
pub use interrupt::interrupted;
pub use key::{KeySource, Obtained, local};
pub use listen::Listeners;
pub use tls::{authority, client_certificate, fingerprint, replaced_authorities};
pub use yore_web as web;
