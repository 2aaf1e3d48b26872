//! What can go wrong below the store, and how the rest of the program hears of it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::ErrorCode;
use yore_domain::Error as DomainError;
use yore_store::CommitError;
use yore_store::key::KeyError;

/// A result whose failure is the store's own.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why the store could not open, read or write.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The master key is not the one the directory was made with.
    #[error("wrong key or passphrase for this data directory")]
    WrongKey,
    /// The master key could not be obtained or is unusable.
    #[error("{0}")]
    Key(String),
    /// Another process holds the directory.
    #[error("another process uses this data directory (pid {0})")]
    InUse(String),
    /// A move into the directory was begun and not finished.
    #[error("a move into {path} was begun and not finished")]
    Half {
        /// Which directory.
        path: PathBuf,
    },
    /// The file was written by a newer version.
    #[error(
        "this vault was written by a newer version of yore: {path} has schema {found}, this version knows {known}"
    )]
    Newer {
        /// Which file.
        path: PathBuf,
        /// Its schema.
        found: u32,
        /// The newest schema known here.
        known: u32,
    },
    /// The file is not a vault that this key opens.
    #[error("{path} is damaged, cut short or not a vault of this data directory")]
    Foreign {
        /// Which file.
        path: PathBuf,
    },
    /// A file operation failed.
    #[error("{path}: {source}")]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// SQLite failed.
    #[error("sqlite: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// A stored value cannot be read.
    #[error("a stored value is not what it should be: {0}")]
    Json(#[from] serde_json::Error),
    /// A stored value breaks an invariant.
    #[error("damaged vault: {0}")]
    Damaged(String),
    /// The thread that writes the vault is gone.
    #[error("the writer of the vault has stopped")]
    Stopped,
    /// An outcome of the domain.
    #[error(transparent)]
    Domain(#[from] DomainError),
}

impl Error {
    /// Names the file an I/O failure concerns.
    pub(crate) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::File { path: path.to_owned(), source }
    }
}

impl Error {
    /// Whether what is stored is to blame, so that trying again does not help.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Sqlite(source) => matches!(
                source.sqlite_error_code(),
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
            ),
            Self::Foreign { .. } | Self::Json(_) | Self::Damaged(_) => true,
            Self::WrongKey
            | Self::Key(_)
            | Self::InUse(_)
            | Self::Half { .. }
            | Self::Newer { .. }
            | Self::File { .. }
            | Self::Stopped
            | Self::Domain(_) => false,
        }
    }

    /// Says what is in the way when coming back later may help.
    pub(crate) fn busy(&self) -> Option<String> {
        let code = match self {
            Self::Sqlite(source) => source.sqlite_error_code()?,
            Self::Domain(DomainError::Busy { reason, .. }) => return Some(reason.clone()),
            Self::WrongKey
            | Self::Key(_)
            | Self::InUse(_)
            | Self::Half { .. }
            | Self::Newer { .. }
            | Self::Foreign { .. }
            | Self::File { .. }
            | Self::Json(_)
            | Self::Damaged(_)
            | Self::Stopped
            | Self::Domain(_) => return None,
        };
        let known = [
            (ErrorCode::DiskFull, "the disk is full"),
            (ErrorCode::SystemIoFailure, "the disk is full or fails"),
            (ErrorCode::ReadOnly, "the data directory cannot be written"),
            (ErrorCode::CannotOpen, "the data directory cannot be written"),
            (ErrorCode::PermissionDenied, "the data directory cannot be written"),
            (ErrorCode::DatabaseBusy, "the vault is locked"),
            (ErrorCode::DatabaseLocked, "the vault is locked"),
        ];
        known.iter().find(|(known, _)| *known == code).map(|(_, reason)| (*reason).to_owned())
    }
}

impl From<KeyError> for Error {
    fn from(error: KeyError) -> Self {
        match error {
            KeyError::Unusable(what) => Self::Key(what),
            KeyError::File { path, source } => Self::File { path, source },
        }
    }
}

impl From<Error> for DomainError {
    fn from(error: Error) -> Self {
        match (error.busy(), error) {
            (_, Error::Domain(error)) => error,
            (_, Error::Newer { found, .. }) => Self::Unsupported {
                what: format!("a vault of schema {found}, written by a newer version of yore"),
            },
            (Some(reason), _) => Self::Busy { reason, retry_after: Duration::from_secs(5) },
            (None, error) => Self::internal(error),
        }
    }
}

impl From<Error> for CommitError {
    fn from(error: Error) -> Self {
        Self::Failed(error.into())
    }
}
