//! Why something could not be read or written.

use std::io;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a source, an archive or a part of one was refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    Io {
        /// Which file.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// A zip is damaged or not safe to open.
    #[error("{path}: {reason}")]
    Zip {
        /// Which zip.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A size limit was passed.
    #[error("{what} is larger than {limit}")]
    TooLarge {
        /// What.
        what: String,
        /// The limit, with its unit.
        limit: String,
    },
    /// A document has not the form it should have.
    #[error("{0}")]
    Form(String),
    /// An archive breaks a rule of its format.
    #[error("{what}: {reason}")]
    Archive {
        /// Which rule: `manifest`, `version`, `path`, `checksum`, `counts`, `entry`, `password`.
        what: &'static str,
        /// What was found, and what was expected.
        reason: String,
    },
    /// Whoever takes the items asked to stop.
    #[error("stopped: {0}")]
    Stopped(String),
}

impl Error {
    /// Makes an [`Error::Form`].
    pub fn form(reason: impl Into<String>) -> Self {
        Self::Form(reason.into())
    }

    pub(crate) fn archive(what: &'static str, reason: impl Into<String>) -> Self {
        Self::Archive { what, reason: reason.into() }
    }

    pub(crate) fn io(path: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }

    pub(crate) fn too_large(what: impl Into<String>, limit: impl ToString) -> Self {
        Self::TooLarge { what: what.into(), limit: limit.to_string() }
    }

    /// Whether reading should end instead of going on with the next part.
    #[must_use]
    pub fn stops(&self) -> bool {
        matches!(self, Self::Stopped(_))
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::Form(format!("not valid JSON: {error}"))
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        Self::Form(format!("the database cannot be read: {error}"))
    }
}
