//! What is put before a person, and what the person says.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Object;

/// An operation that waits, as whoever decides is shown it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ReviewRequest {
    /// Under which name it is decided.
    pub id: String,
    /// The operation.
    #[schemars(extend("enum" = ["remember", "forget", "merge"]))]
    pub operation: String,
    /// The agent whose memory it is.
    #[schemars(length(min = 1, max = 256))]
    pub agent_id: String,
    /// The request, as the operation's own schema describes it.
    pub request: Object,
    /// What it would change, against what is now.
    pub diff: Diff,
    /// Why it waits.
    pub reasoning: String,
    /// Where a person decides.
    pub approval_url: String,
}

/// Differences, each list sorted by field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Diff {
    /// What was not there.
    pub added: Vec<Member>,
    /// What would no longer be there.
    pub removed: Vec<Member>,
    /// What would be otherwise.
    pub modified: Vec<Change>,
}

/// A member and its value.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Member {
    /// The member, dotted.
    pub field: String,
    /// The value.
    pub value: Value,
}

/// A member and two values.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Change {
    /// The member, dotted.
    pub field: String,
    /// What it is now.
    pub before: Value,
    /// What it would become.
    pub after: Value,
}

/// Names what waits.
#[derive(Clone, Debug, Deserialize)]
pub struct Named {
    /// The name that was answered when it began to wait.
    pub id: String,
}

/// Decides what waits.
#[derive(Clone, Debug, Deserialize)]
pub struct Decide {
    /// The name that was answered when it began to wait.
    pub id: String,
    /// Whether it shall happen.
    pub approved: bool,
    /// A word for the record.
    pub reason: Option<String>,
}

/// What was decided.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ReviewResponse {
    /// Whether it happened.
    pub approved: bool,
    /// Who decided.
    pub reviewer: String,
    /// When, in milliseconds since 1970.
    pub reviewed_at: i64,
    /// A word for the record.
    pub reason: Option<String>,
}
