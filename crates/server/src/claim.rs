//! Claims a data directory for one process, and tells others where that process listens.

use std::fs::{File, TryLockError};
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::place;

/// A data directory that this process alone uses, until it is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    data: PathBuf,
    _lock: File,
}

/// The wish of a server that stays: commands that serve the directory in turns leave it to the
/// server, and none begins anew. It ends with its value, and with the process.
#[derive(Debug)]
pub(crate) struct Wish {
    _lock: File,
}

impl Wish {
    /// Tells the commands. Blocks while another server wishes the same.
    pub(crate) fn express(data: &Path) -> Result<Self> {
        let path = place::wish(data);
        let lock = opened(&path)?;
        lock.lock().map_err(Error::file(&path))?;
        Ok(Self { _lock: lock })
    }

    /// Whether a server waits for the directory.
    pub(crate) fn is_expressed(data: &Path) -> bool {
        File::open(place::wish(data))
            .is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }
}

/// Opens a file that is there to be locked.
fn opened(path: &Path) -> Result<File> {
    let mut options = std::fs::OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map_err(Error::file(path))
}

/// What `run/server.json` says while a server is ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The process.
    pub pid: u32,
    /// Where it speaks plain HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "url::http")]
    pub http: Option<SocketAddr>,
    /// Where it speaks TLS.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "url::https")]
    pub https: Option<SocketAddr>,
    /// The authority that signed its certificate, as a PEM file, when it was made here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    /// Its socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<PathBuf>,
    /// Its version.
    pub version: String,
}

/// Addresses written as the URLs that a client can use.
mod url {
    use std::net::SocketAddr;

    use serde::{Deserialize, Deserializer, Serializer};

    macro_rules! scheme {
        ($name:ident, $prefix:literal) => {
            pub(super) mod $name {
                use super::*;

                pub(in super::super) fn serialize<S: Serializer>(
                    address: &Option<SocketAddr>,
                    serializer: S,
                ) -> Result<S::Ok, S::Error> {
                    match address {
                        Some(address) => {
                            serializer.collect_str(&format_args!(concat!($prefix, "{}"), address))
                        }
                        None => serializer.serialize_none(),
                    }
                }

                pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
                    deserializer: D,
                ) -> Result<Option<SocketAddr>, D::Error> {
                    let url = Option::<String>::deserialize(deserializer)?;
                    url.map(|url| url.trim_start_matches($prefix).parse())
                        .transpose()
                        .map_err(serde::de::Error::custom)
                }
            }
        };
    }

    scheme!(http, "http://");
    scheme!(https, "https://");
}

impl Claim {
    /// Claims a directory, or says which process has. Blocks, but never waits.
    pub(crate) fn take(data: &Path) -> Result<Self> {
        let path = place::lock(data);
        place::make(data)?;
        place::make(&data.join("run"))?;
        let mut lock = opened(&path)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let pid = std::fs::read_to_string(&path).unwrap_or_default();
                let pid = pid.trim().to_owned();
                return Err(Error::InUse { data: data.to_owned(), pid });
            }
            Err(TryLockError::Error(error)) => return Err(Error::file(&path)(error)),
        }
        lock.set_len(0)
            .and_then(|()| writeln!(lock, "{}", std::process::id()))
            .map_err(Error::file(&path))?;
        // What a process that was killed left behind would mislead others.
        place::remove(&place::note(data))?;
        place::remove(&place::socket(data))?;
        Ok(Self { data: data.to_owned(), _lock: lock })
    }

    /// Tells others where the server listens.
    pub(crate) fn announce(&self, note: &Note) -> Result<()> {
        let text = serde_json::to_vec_pretty(note).expect("invariant: a note is plain data");
        place::write(&place::note(&self.data), &text)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        for path in [place::note(&self.data), place::socket(&self.data)] {
            if let Err(error) = place::remove(&path) {
                tracing::warn!(%error, "a file of the ended server stays behind");
            }
        }
    }
}

impl Note {
    /// Whether it is of a server that stays; a command serves only the socket.
    #[must_use]
    pub const fn stays(&self) -> bool {
        self.http.is_some() || self.https.is_some()
    }

    /// Reads the note of a running server.
    #[must_use]
    pub fn read(data: &Path) -> Option<Self> {
        let text = std::fs::read(place::note(data)).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_claimed_once_and_freed_on_drop() {
        let place = tempfile::tempdir().unwrap();
        let first = Claim::take(place.path()).unwrap();
        let error = Claim::take(place.path()).unwrap_err().to_string();
        assert!(error.contains(&format!("(pid {})", std::process::id())), "{error}");
        let note = Note {
            pid: 1,
            http: Some(([127, 0, 0, 1], 7070).into()),
            https: None,
            ca: None,
            socket: None,
            version: "0".into(),
        };
        first.announce(&note).unwrap();
        assert_eq!(Note::read(place.path()), Some(note));
        drop(first);
        assert_eq!(Note::read(place.path()), None);
        Claim::take(place.path()).unwrap();
    }

    #[test]
    fn a_wish_is_heard_as_long_as_it_lasts() {
        let place = tempfile::tempdir().unwrap();
        assert!(!Wish::is_expressed(place.path()));
        drop(Claim::take(place.path()).unwrap());
        let wish = Wish::express(place.path()).unwrap();
        assert!(Wish::is_expressed(place.path()));
        drop(wish);
        assert!(!Wish::is_expressed(place.path()));
    }
}
