//! What can go wrong below the store, and how the rest of the program hears of it.

use std::time::Duration;

use tokio_postgres::error::SqlState;
use yore_domain::Error as DomainError;
use yore_store::CommitError;
use yore_store::key::KeyError;

/// A result whose failure is the store's own.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// When to try again what the database could not do now.
const LATER: Duration = Duration::from_secs(2);

/// Why the store could not open, read or write.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address of the database is not one.
    #[error("the address of the database: {0}")]
    Address(String),
    /// The database lacks something, or gives its user too much.
    #[error("the database: {0}")]
    Unfit(String),
    /// The tables were made by a newer version.
    #[error(
        "these tables were made by a newer version of yore: they have schema {found}, this version knows {known}"
    )]
    Newer {
        /// Their schema.
        found: i32,
        /// The newest schema known here.
        known: i32,
    },
    /// The master key is not the one the database was made with.
    #[error("wrong key or passphrase for this database")]
    WrongKey,
    /// The master key could not be obtained or is unusable.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Servers use the database, or vaults are being moved.
    #[error("the database is in use: {0}")]
    InUse(&'static str),
    /// A move into the database was begun and not finished.
    #[error("a move into this database was begun and not finished")]
    Half,
    /// All connections are in use.
    #[error("all connections to the database are in use")]
    Crowded,
    /// The database failed, or cannot be reached.
    #[error("postgres: {0}")]
    Postgres(#[from] tokio_postgres::Error),
    /// A stored value cannot be read.
    #[error("a stored value is not what it should be: {0}")]
    Json(#[from] serde_json::Error),
    /// A stored value breaks an invariant, or was changed by someone without the key.
    #[error("damaged vault: {0}")]
    Damaged(String),
    /// An outcome of the domain.
    #[error(transparent)]
    Domain(#[from] DomainError),
}

impl Error {
    /// Whether a row with this key was there already.
    pub(crate) fn is_taken(&self) -> bool {
        matches!(self, Self::Postgres(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION))
    }

    /// Names a second row with the same key as what it is to the caller.
    pub(crate) fn or_taken(self, what: Option<&'static str>) -> Self {
        match what {
            Some(what) if self.is_taken() => DomainError::conflict(what).into(),
            Some(_) | None => self,
        }
    }

    /// Says what is in the way when coming back later may help.
    fn busy(&self) -> Option<String> {
        let error = match self {
            Self::Crowded => return Some(self.to_string()),
            Self::Postgres(error) => error,
            Self::Address(_)
            | Self::Unfit(_)
            | Self::InUse(_)
            | Self::Half
            | Self::Newer { .. }
            | Self::WrongKey
            | Self::Key(_)
            | Self::Json(_)
            | Self::Damaged(_)
            | Self::Domain(_) => return None,
        };
        let Some(code) = error.code() else {
            return Some("the database cannot be reached".into());
        };
        let reason = match code.code() {
            "57014" | "55P03" => "the database took too long",
            "40001" | "40P01" => "the database had to give way",
            "25006" => "the database takes no writes here",
            code if code.starts_with("53") => "the database has run out of something",
            code if code.starts_with("57P") || code.starts_with("08") => {
                "the database cannot be reached"
            }
            _ => return None,
        };
        Some(reason.into())
    }
}

impl From<Error> for DomainError {
    fn from(error: Error) -> Self {
        match (error.busy(), error) {
            (_, Error::Domain(error)) => error,
            (Some(reason), error) => {
                tracing::warn!(%error, "{reason}");
                Self::Busy { reason, retry_after: LATER }
            }
            // The message of the database could repeat a value; its code cannot.
            (None, Error::Postgres(error)) => {
                let code = error.code().map_or("none", |code| code.code());
                Self::internal(format!("the database refused a statement, SQLSTATE {code}"))
            }
            (None, error) => Self::internal(error),
        }
    }
}

impl From<Error> for CommitError {
    fn from(error: Error) -> Self {
        Self::Failed(error.into())
    }
}
