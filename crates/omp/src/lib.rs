//! The Open Memory Protocol 2.0: conversations and memories over REST.
//!
//! A conversation is kept as it was said; a memory record is the head of one memory. This crate
//! reads and writes the protocol's documents by the archive's own mapping (`map`), answers its
//! routes at the specification's root paths and under `/omp/v2` ([`routes`]), and says in
//! `/.well-known/omp` what the running server does.
//!
//! Nothing here decides who may do what: every route is one operation of the engine, and the
//! scopes of the protocol are names for the verbs of a grant (`scope`). Start at [`routes`], then
//! `conversations.rs` and `memories.rs`.

mod accept;
mod admin;
mod backup;
mod changes;
mod condition;
mod conversations;
mod cursor;
mod deletions;
mod discovery;
mod error;
mod flags;
mod guardian;
mod links;
mod map;
mod memories;
mod params;
mod range;
mod replace;
mod restore;
mod routes;
mod running;
pub mod schema;
mod scope;
mod search;
mod spool;
mod tenants;
mod upload;
mod webhooks;

use std::path::PathBuf;

use yore_domain::job::{Job, JobState};
use yore_engine::{Engine, VaultRef, Work};
use yore_http::Outward;

use error::Result;
use running::Running;
use spool::Spool;

pub use error::Refusal;
pub use routes::{PATHS, PREFIXES, routes};
pub use webhooks::Messenger;

/// What the audit chain and carriers call this protocol.
pub const NAME: &str = "omp";
/// The version that is spoken.
pub const VERSION: &str = "2.0";

/// What the operator decides.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether requests in clear text are answered. The protocol forbids it, so the server then
    /// claims no level of conformance.
    pub clear_text: bool,
    /// Where the server is reached over TLS, for those who come in clear text.
    pub tls_at: Option<String>,
    /// Whether a change must say which state it is about.
    pub require_if_match: bool,
    /// Where archives wait to be fetched or read. Absent means that there are no backups.
    pub spool: Option<PathBuf>,
    /// Bytes of an archive that is brought in.
    pub archive_bytes: u64,
    /// Where webhooks may lie.
    pub outward: Outward,
    /// The laws whose demands the server meets, as the operator declares.
    pub profiles: Vec<Profile>,
    /// Whether the operator signs agreements about health data.
    pub baa_available: bool,
    /// Where the data lies.
    pub regions: Vec<String>,
}

/// A law that a server may be declared to heed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Health: who sees it is named, the audit chain is never shortened.
    Hipaa,
    /// Money: the same, and revocation counts from the next request on.
    Glba,
    /// Children: nothing is stored before the age gate, and nothing without a parent's consent.
    Coppa,
    /// Models: what each was used for, how risky it was, whether a person looked at it.
    Traiga,
    /// The rights of people: to read, delete and take away.
    Tdpsa,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            clear_text: false,
            tls_at: None,
            require_if_match: false,
            spool: None,
            archive_bytes: 10 << 30,
            outward: Outward::default(),
            profiles: Vec::new(),
            baa_available: false,
            regions: Vec::new(),
        }
    }
}

/// The protocol over one engine. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Omp {
    engine: Engine,
    options: Options,
    running: Running,
}

impl Omp {
    /// Speaks the protocol for an engine.
    #[must_use]
    pub fn new(engine: Engine, options: Options) -> Self {
        Self { engine, options, running: Running::default() }
    }

    /// Goes on with backups and restores that the end of a server cut off. What cannot go on is
    /// marked as failed.
    pub async fn resume(&self) -> yore_domain::Result<()> {
        for (work, job, call) in self.engine.unfinished_work().await? {
            if self.running.has(job.id) {
                continue;
            }
            match work {
                Work::Archive => self.resume_backup(call, job).await,
                Work::Restore => self.resume_restore(call, job).await,
                // The web app's; it is not listed as unfinished.
                Work::Import => {}
            }
        }
        Ok(())
    }

    /// Stops backups and restores where they are, for the next start to go on with.
    pub async fn halt(&self) {
        self.running.halt().await;
    }

    /// Marks a job as failed that cannot go on.
    pub(crate) async fn give_up(&self, vault: VaultRef, mut job: Job) {
        if let Ok(spool) = self.spool() {
            spool.remove(&job);
        }
        job.state = JobState::Failed;
        job.error = Some("the server ended before it was done; begin again".to_owned());
        if let Err(error) = self.engine.abandon_work(vault, job).await {
            tracing::warn!(%error, "the end of a job could not be written down");
        }
    }

    /// Where archives wait.
    pub(crate) fn spool(&self) -> Result<Spool> {
        match &self.options.spool {
            Some(directory) => Ok(Spool::new(directory)),
            None => Err(Refusal::new(404, "not_found", "this server keeps no archives")),
        }
    }
}
