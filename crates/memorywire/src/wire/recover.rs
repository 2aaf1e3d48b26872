//! Recovery from poisoning: what is asked and what is reported.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use yore_domain::{Error, Result, limits};

use super::word::{Mode, Verdict};
use super::{names, share};

/// Sources that are trusted when the caller does not say.
const TRUSTED: [&str; 2] = ["user", "system"];

/// Takes out of an agent's memories what should not be trusted.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Recover {
    /// The agent whose memory it is.
    #[schemars(length(min = 1, max = 256))]
    pub agent_id: String,
    /// Only what is this person's.
    #[schemars(length(min = 1, max = 256))]
    pub user_id: Option<String>,
    /// Says that no person is meant, where the server wants one to be named.
    #[serde(default)]
    pub agent_only: bool,
    /// Sources whose word counts; user and system when left out.
    pub trusted_sources: Option<Vec<String>>,
    /// Whether what is unsure expires as well.
    #[serde(default)]
    pub mode: Mode,
    /// Less sure than this expires, where the mode says so; 0.75 when left out.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub confidence_below: Option<f64>,
    /// Whether what gives orders is put aside, too.
    #[serde(default = "yes")]
    pub use_detectors: bool,
    /// Whether anything is put aside at all.
    #[serde(default = "yes")]
    pub quarantine: bool,
    /// Whether nothing shall be left of what is purged.
    #[serde(default)]
    pub hard_delete: bool,
    /// Whether it only says what it would do.
    #[serde(default = "yes")]
    pub dry_run: bool,
}

/// Brings back what was put aside or forgotten.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Restore {
    /// The agent whose memory it is.
    #[schemars(length(min = 1, max = 256))]
    pub agent_id: String,
    /// Only what is this person's.
    #[schemars(length(min = 1, max = 256))]
    pub user_id: Option<String>,
    /// Says that no person is meant, where the server wants one to be named.
    #[serde(default)]
    pub agent_only: bool,
    /// What to bring back.
    pub ids: Vec<String>,
}

/// What a recovery found and did.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Recovered {
    /// How many memories were looked at.
    pub scanned: u64,
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// How many came from sources that are not trusted.
    pub purged: u64,
    /// How many were put aside.
    pub quarantined: u64,
    /// How many expired.
    pub expired: u64,
    /// How many stay.
    pub kept: u64,
    /// What was taken out, and why.
    pub actions: Vec<Deed>,
    /// Where a person decides, if rules hold what was to be done.
    pub pending: Vec<String>,
}

/// What happened to one memory.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Deed {
    /// The memory.
    pub id: String,
    /// What is to become of it.
    pub verdict: Verdict,
    /// Where it comes from, `unknown` where nobody said.
    pub source: String,
    /// Why.
    pub reason: String,
}

/// What came back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Restored {
    /// The memories that are recalled again.
    pub restored: Vec<String>,
    /// Ids of nothing that could come back.
    pub missing: Vec<String>,
    /// Where a person decides, if rules hold it.
    pub pending: Vec<String>,
}

fn yes() -> bool {
    true
}

impl Recover {
    pub(crate) fn check(&self) -> Result<()> {
        names(&self.agent_id, self.user_id.as_deref())?;
        share("confidence_below", self.confidence_below)?;
        if self.trusted_sources.as_ref().is_some_and(|names| names.len() > limits::PAGE) {
            return Err(Error::too_large("trusted_sources", limits::PAGE));
        }
        Ok(())
    }

    /// The sources whose word counts.
    pub(crate) fn trusted(&self) -> impl Iterator<Item = &str> {
        let named = self.trusted_sources.as_deref();
        let usual = TRUSTED.iter().copied().filter(move |_| named.is_none());
        named.unwrap_or_default().iter().map(String::as_str).chain(usual)
    }
}

impl Restore {
    pub(crate) fn check(&self) -> Result<()> {
        names(&self.agent_id, self.user_id.as_deref())?;
        if self.ids.is_empty() {
            return Err(Error::invalid("ids", "must not be empty"));
        }
        if self.ids.len() > limits::PAGE {
            return Err(Error::too_large("ids", limits::PAGE));
        }
        Ok(())
    }
}

impl Recovered {
    /// A report on a look at some memories.
    pub(crate) fn of(request: &Recover, scanned: u64) -> Self {
        Self {
            scanned,
            dry_run: request.dry_run,
            purged: 0,
            quarantined: 0,
            expired: 0,
            kept: 0,
            actions: Vec::new(),
            pending: Vec::new(),
        }
    }
}
