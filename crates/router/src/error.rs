//! Why a store did not do what it was asked.

use std::time::Duration;

/// A failure of one store, or of the request itself.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// The request breaks a rule, whichever store it is for.
    #[error("invalid {path}: {reason}")]
    Invalid {
        /// Where in the request.
        path: &'static str,
        /// What is wrong there.
        reason: String,
    },
    /// The store cannot do this.
    #[error("unsupported: {0}")]
    Unsupported(String),
    /// The store could not be reached, or went away in the middle.
    #[error("unreachable: {0}")]
    Unreachable(String),
    /// The store did not answer in time.
    #[error("no answer within {} ms", .0.as_millis())]
    Deadline(Duration),
    /// The store has failed so often that it is left alone for a while.
    #[error("left alone after repeated failures")]
    Open,
    /// The store answered with a status that means failure.
    #[error("answered with status {0}")]
    Status(u16),
    /// The store answered something that cannot be read.
    #[error("unreadable answer: {0}")]
    Garbage(String),
    /// The store's own database failed.
    #[error("database: {0}")]
    Database(String),
    /// The vault or the mapping failed.
    #[error("vault: {0}")]
    Vault(String),
}

/// What this crate's functions return.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A rule that a request breaks.
    pub fn invalid(path: &'static str, reason: impl Into<String>) -> Self {
        Self::Invalid { path, reason: reason.into() }
    }

    /// Whether the store is to blame, so that its breaker must count it.
    #[must_use]
    pub const fn blames_store(&self) -> bool {
        match self {
            Self::Unreachable(_)
            | Self::Deadline(_)
            | Self::Status(_)
            | Self::Garbage(_)
            | Self::Database(_) => true,
            Self::Invalid { .. } | Self::Unsupported(_) | Self::Open | Self::Vault(_) => false,
        }
    }

    /// Whether the same request may succeed later.
    #[must_use]
    pub const fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable(_)
            | Self::Deadline(_)
            | Self::Open
            | Self::Garbage(_)
            | Self::Database(_)
            | Self::Vault(_) => true,
            // What is too much, too early or broken on the other side may mend.
            Self::Status(code) => matches!(*code, 401 | 403 | 408 | 425 | 429 | 500..=599),
            Self::Invalid { .. } | Self::Unsupported(_) => false,
        }
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error.to_string())
    }
}

impl From<yore_domain::Error> for Error {
    fn from(error: yore_domain::Error) -> Self {
        Self::Vault(error.to_string())
    }
}
