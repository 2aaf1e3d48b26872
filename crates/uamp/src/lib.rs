//! The Universal Agent Messaging Protocol 1.0: signed messages between agents, and streams of
//! answers that survive a lost connection and a restart.
//!
//! A message ([`Envelope`]) is checked in the order the protocol fixes, taken in once and durably
//! by the engine, and worked on ([`Uamp::receive`]). Answers are frames of a stream: kept before
//! they are sent, sent no further than the window allows, resumed from any frame on any transport
//! ([`Uamp::follow`]). HTTP, WebSocket and gRPC are encodings of these two functions ([`routes`]).
//!
//! This crate is a carrier: it knows no memory operation. Typed bodies go to the dialect they
//! name, and the engine alone says who may do what. Start at `receive.rs`, then `work.rs`.

mod body;
mod deliver;
mod delta;
mod discovery;
mod envelope;
pub mod framing;
pub mod grpc;
mod hub;
mod intent;
mod receive;
mod refusal;
mod reply;
mod resolve;
mod routes;
pub mod schema;
mod session;
mod signature;
mod socket;
mod token;
mod work;
mod writer;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use yore_domain::{Span, Timestamp};
use yore_engine::Engine;
use yore_engine::dialect::Registry;

use crate::hub::Hub;
use crate::resolve::Documents;

pub use body::Body;
pub use deliver::Delivery;
pub use envelope::{Envelope, Ids, Rejected};
pub use intent::Intent;
pub use receive::Receipt;
pub use refusal::{Code, Refusal};
pub use resolve::{Fetch, Web};
pub use routes::{PATHS, routes};

/// What the audit chain calls this protocol.
pub const NAME: &str = "uamp";
/// The media type of an envelope.
pub const MEDIA_TYPE: &str = "application/uamp+json;v=1";

/// Whether messages are taken in clear text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClearText {
    /// They are pointed to TLS.
    #[default]
    Refused,
    /// From this machine they are, because the operator says so.
    Loopback,
}

/// What the operator decides.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which message ids are taken.
    pub ids: Ids,
    /// Whether messages are taken in clear text.
    pub clear_text: ClearText,
    /// Where the server is reached from outside, for what it publishes.
    pub url: Option<String>,
    /// Bytes of an envelope.
    pub largest: usize,
    /// How far a message's time may lie from now.
    pub tolerance: Span,
    /// How long an answer may take.
    pub answer_within: Duration,
    /// How long a full window is waited for on a connection that need not acknowledge.
    pub patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ids: Ids::default(),
            clear_text: ClearText::default(),
            url: None,
            largest: 1 << 20,
            tolerance: Span::seconds(300),
            answer_within: Duration::from_secs(15 * 60),
            patience: Duration::from_secs(2),
        }
    }
}

/// The protocol over one engine. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Uamp(Arc<Core>);

/// What all transports share.
pub(crate) struct Core {
    engine: Engine,
    registry: Arc<Registry>,
    options: Options,
    documents: Documents,
    hub: Arc<Hub>,
    /// When this process began: what is older and unfinished was left by another.
    started: Timestamp,
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Uamp {
    /// Speaks the protocol for an engine; `fetch` gets the documents of senders on the web.
    #[must_use]
    pub fn new(
        engine: Engine,
        registry: Arc<Registry>,
        options: Options,
        fetch: Arc<dyn Fetch>,
    ) -> Self {
        let (documents, started) = (Documents::new(fetch), engine.now());
        let hub = Arc::default();
        Self(Arc::new(Core { engine, registry, options, documents, hub, started }))
    }
}
