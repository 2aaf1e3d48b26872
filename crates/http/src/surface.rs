//! What the server hands to every crate with routes.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use yore_engine::dialect::Registry;
use yore_engine::{Call, Engine};

/// How much one request may be and take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The bytes of a body.
    pub body: usize,
    /// The bytes of a body that carries many items.
    pub heavy_body: usize,
    /// How deep a document may nest.
    pub depth: usize,
    /// How long an answer may take.
    pub time: Duration,
    /// How long the answer to a heavy request may take.
    pub heavy_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 2 << 20,
            heavy_body: 16 << 20,
            depth: 32,
            time: Duration::from_secs(30),
            heavy_time: Duration::from_secs(600),
        }
    }
}

/// The engine as routes see it.
#[derive(Clone, Debug)]
pub struct Surface {
    /// The engine.
    pub engine: Engine,
    /// All dialects: each reads the credentials of its own form.
    pub registry: Arc<Registry>,
    /// How much a request may be and take.
    pub limits: Limits,
    /// Cancelled when the server ends, so that endless answers end too.
    pub stop: CancellationToken,
}

impl Surface {
    /// Assembles a surface with ordinary limits.
    #[must_use]
    pub fn new(engine: Engine, registry: Arc<Registry>) -> Self {
        Self { engine, registry, limits: Limits::default(), stop: CancellationToken::new() }
    }

    /// How many bytes of a body are taken in where an operation takes so many: never more than
    /// a plain body's from a stranger, who would else fill the memory without a credential.
    pub async fn taken(&self, call: &Call, bytes: usize) -> usize {
        if bytes <= self.limits.body || self.engine.believes(call).await {
            return bytes;
        }
        self.limits.body
    }
}
