//! Why a server could not start, or not go on.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// A result whose failure is the server's own.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a server could not start, or not go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration is wrong.
    #[error("configuration: {0}")]
    Config(String),
    /// The master key could not be obtained.
    #[error("master key: {0}")]
    Key(String),
    /// A file that can be made anew is not what it should be.
    #[error("{0}")]
    Damaged(String),
    /// Another process holds the data directory.
    #[error("another process uses the data directory {} (pid {pid})", data.display())]
    InUse {
        /// Which directory.
        data: PathBuf,
        /// The process.
        pid: String,
    },
    /// Plain HTTP was asked for where others could listen.
    #[error("refusing plain HTTP on {0}: it is not a loopback address, use TLS there")]
    Exposed(SocketAddr),
    /// An address cannot be listened on.
    #[error("cannot listen on {at}: {source}")]
    Bind {
        /// Which address.
        at: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// Certificates or their keys are unusable.
    #[error("tls: {0}")]
    Tls(String),
    /// A file operation failed.
    #[error("{}: {source}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The store could not be opened.
    #[error(transparent)]
    Store(#[from] yore_store_sqlite::Error),
    /// The database could not be opened.
    #[error(transparent)]
    Database(#[from] yore_store_postgres::Error),
    /// The engine said no.
    #[error("{said}{}", cause(.0), said = .0)]
    Engine(#[from] yore_domain::Error),
    /// A running server could not be reached.
    #[error(transparent)]
    Client(#[from] yore_client::Error),
    /// A thread of ours ended before its work did.
    #[error("interrupted: {0}")]
    Interrupted(String),
}

impl Error {
    /// Names the file an I/O failure concerns.
    pub(crate) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::File { path: path.to_owned(), source }
    }
}

/// What lies below an internal error: whoever starts a server may see it.
fn cause(error: &yore_domain::Error) -> String {
    std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default()
}
