//! Long work: durable, resumable, with progress.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{JobId, Timestamp};

/// Where a job stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// Not begun.
    #[default]
    Queued,
    /// Under way.
    Running,
    /// Done.
    Completed,
    /// Ended by a failure; `error` says which.
    Failed,
    /// Ended by request.
    Cancelled,
}

impl JobState {
    /// Whether it will never change again.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// A piece of long work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// What sort of work, such as `import` or `embed`.
    pub kind: String,
    /// Where it stands.
    pub state: JobState,
    /// What it was asked to do.
    pub input: Value,
    /// Where to go on after a restart.
    #[serde(default)]
    pub checkpoint: Value,
    /// What it did so far or in the end.
    #[serde(default)]
    pub report: Value,
    /// Units done.
    #[serde(default)]
    pub done: u64,
    /// Units in all, once known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When it was asked for.
    pub created: Timestamp,
    /// When it last moved.
    pub updated: Timestamp,
}
