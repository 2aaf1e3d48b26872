//! What can go wrong between a caller and a server.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use yore_domain::HoldId;

/// A result whose failure is the client's.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The target cannot be read.
    #[error("not an address of a server: {0}")]
    Target(String),
    /// A file of certificate authorities cannot be used.
    #[error("certificate authorities in {path}: {reason}")]
    Authorities {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Nobody answered there.
    #[error("cannot reach the server at {target}: {reason}")]
    Unreachable {
        /// Where.
        target: String,
        /// What the network said.
        reason: String,
    },
    /// The answer did not come in time.
    #[error("no answer within {} s", .0.as_secs())]
    Timeout(Duration),
    /// The server said no.
    #[error("{}", .0.message)]
    Refused(Refusal),
    /// The answer is not what the API promises.
    #[error("unexpected answer: {0}")]
    Answer(String),
}

impl Error {
    pub(crate) fn target(what: impl Into<String>) -> Self {
        Self::Target(what.into())
    }

    /// Returns the server's refusal, if this is one.
    #[must_use]
    pub const fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            Self::Target(_)
            | Self::Authorities { .. }
            | Self::Unreachable { .. }
            | Self::Timeout(_)
            | Self::Answer(_) => None,
        }
    }
}

/// What a server says when it does not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Refusal {
    /// The HTTP status; not part of the body.
    #[serde(skip)]
    pub status: u16,
    /// The stable code.
    pub code: String,
    /// What happened, for people.
    pub message: String,
    /// The hold to decide, when the operation waits for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<HoldId>,
    /// When to come back; sent as a header.
    #[serde(skip)]
    pub retry_after: Option<Duration>,
}

/// The body of a refusal.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Refused {
    /// What happened.
    pub error: Refusal,
}
