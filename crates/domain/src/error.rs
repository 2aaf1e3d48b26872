//! The closed set of outcomes that are not success.

use std::time::Duration;

use crate::HoldId;

/// A result whose failure is one of the domain's outcomes.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation did not happen. Every protocol maps each of these to its own status and code.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No credential, or one that does not verify.
    #[error("not authenticated: {reason}")]
    Unauthenticated {
        /// What was wrong with the credential, without repeating it.
        reason: String,
    },
    /// The credential is good but does not cover this.
    #[error("forbidden: {reason}")]
    Forbidden {
        /// What the grant lacks.
        reason: String,
    },
    /// It does not exist, or the caller may not know that it does.
    #[error("not found")]
    NotFound,
    /// The input breaks a rule of the model.
    #[error("invalid {path}: {reason}")]
    Invalid {
        /// Where in the input, dotted.
        path: String,
        /// What is wrong there.
        reason: String,
    },
    /// The state moved on, or the id is taken.
    #[error("conflict: {reason}")]
    Conflict {
        /// What collided.
        reason: String,
        /// The winner's id, where the caller may know it.
        winner: Option<String>,
    },
    /// Consent, retention or a legal hold forbids it.
    #[error("consent: {reason}")]
    Consent {
        /// Which rule.
        reason: String,
    },
    /// A signature is absent where one is needed, or does not verify.
    #[error("signature: {reason}")]
    Signature {
        /// What failed.
        reason: String,
    },
    /// The request is understood and this server does not do it.
    #[error("unsupported: {what}")]
    Unsupported {
        /// The feature.
        what: String,
    },
    /// A size limit was passed.
    #[error("{what} is larger than {limit}")]
    TooLarge {
        /// What was too large.
        what: String,
        /// The limit, with its unit.
        limit: String,
    },
    /// The caller's budget is used up.
    #[error("rate limited, retry after {} s", retry_after.as_secs().max(1))]
    RateLimited {
        /// When to come back.
        retry_after: Duration,
    },
    /// The server cannot take it now.
    #[error("busy: {reason}")]
    Busy {
        /// What is in the way.
        reason: String,
        /// When to come back.
        retry_after: Duration,
    },
    /// The operation waits for a person's decision; nothing was written.
    #[error("pending approval: {hold}")]
    Held {
        /// The hold to decide.
        hold: HoldId,
    },
    /// A fault of ours. The source goes to the log, never to the client.
    #[error("internal error")]
    Internal(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// Returns the stable code that clients and `docs/errors/` use.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unauthenticated { .. } => "unauthenticated",
            Self::Forbidden { .. } => "forbidden",
            Self::NotFound => "not_found",
            Self::Invalid { .. } => "invalid",
            Self::Conflict { .. } => "conflict",
            Self::Consent { .. } => "consent",
            Self::Signature { .. } => "signature",
            Self::Unsupported { .. } => "unsupported",
            Self::TooLarge { .. } => "too_large",
            Self::RateLimited { .. } => "rate_limited",
            Self::Busy { .. } => "busy",
            Self::Held { .. } => "pending_approval",
            Self::Internal(_) => "internal",
        }
    }

    /// Makes an [`Error::Invalid`].
    pub fn invalid(path: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Invalid { path: path.into(), reason: reason.into() }
    }

    /// Makes an [`Error::Forbidden`].
    pub fn forbidden(reason: impl Into<String>) -> Self {
        Self::Forbidden { reason: reason.into() }
    }

    /// Makes an [`Error::Unauthenticated`].
    pub fn unauthenticated(reason: impl Into<String>) -> Self {
        Self::Unauthenticated { reason: reason.into() }
    }

    /// Makes an [`Error::Conflict`] without a winner.
    pub fn conflict(reason: impl Into<String>) -> Self {
        Self::Conflict { reason: reason.into(), winner: None }
    }

    /// Makes an [`Error::Consent`].
    pub fn consent(reason: impl Into<String>) -> Self {
        Self::Consent { reason: reason.into() }
    }

    /// Makes an [`Error::TooLarge`].
    pub fn too_large(what: impl Into<String>, limit: impl ToString) -> Self {
        Self::TooLarge { what: what.into(), limit: limit.to_string() }
    }

    /// Makes an [`Error::Internal`] from any failure.
    pub fn internal(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Internal(source.into())
    }
}
