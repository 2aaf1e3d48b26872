//! Opening encrypted files: connections with their pragmas, and files replaced as a whole.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::error::{Error, Result};
use crate::key::Key;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The one connection that writes.
    Writer,
    /// One of several that read.
    Reader,
}

/// How connections are set up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tuning {
    /// Overwrites what is deleted. Off only to prove that the search for traces can find any.
    pub(crate) secure_delete: bool,
    /// Page cache of the writer in KiB.
    pub(crate) writer_kib: u32,
    /// Page cache of each reader in KiB.
    pub(crate) reader_kib: u32,
}

/// The files of one vault.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    pub(crate) db: PathBuf,
    pub(crate) index: PathBuf,
}

impl Files {
    pub(crate) fn new(db: PathBuf) -> Self {
        let index = db.with_extension("idx");
        Self { db, index }
    }

    pub(crate) fn wal(&self) -> PathBuf {
        with_suffix(&self.db, "-wal")
    }

    /// Every file that belongs to the vault, whether it exists or not.
    pub(crate) fn all(&self) -> [PathBuf; 5] {
        [
            self.db.clone(),
            self.wal(),
            with_suffix(&self.db, "-shm"),
            with_suffix(&self.db, "-journal"),
            self.index.clone(),
        ]
    }
}

pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Opens an encrypted database and proves that the key fits.
pub(crate) fn connect(path: &Path, key: &Key, role: Role, tuning: Tuning) -> Result<Connection> {
    let mut flags = OpenFlags::SQLITE_OPEN_NO_MUTEX;
    flags |= match role {
        Role::Writer => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
        Role::Reader => OpenFlags::SQLITE_OPEN_READ_ONLY,
    };
    let conn = keyed(path, key, flags)?;
    conn.busy_timeout(Duration::from_secs(5))?;
    match conn.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())) {
        Ok(()) => {}
        Err(error) => {
            return Err(match error.sqlite_error_code() {
                Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                    Error::Foreign { path: path.to_owned() }
                }
                _ => error.into(),
            });
        }
    }
    let cache = match role {
        Role::Writer => tuning.writer_kib,
        Role::Reader => tuning.reader_kib,
    };
    conn.pragma_update(None, "cache_size", -i64::from(cache))?;
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    conn.pragma_update(None, "mmap_size", 0)?;
    conn.pragma_update(None, "foreign_keys", true)?;
    conn.pragma_update(None, "trusted_schema", false)?;
    conn.set_prepared_statement_cache_capacity(96);
    if role == Role::Writer {
        let mode: String =
            conn.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
        if mode != "wal" {
            return Err(Error::Damaged(format!("{} refuses the WAL", path.display())));
        }
        conn.pragma_update(None, "synchronous", "FULL")?;
        conn.pragma_update(None, "secure_delete", tuning.secure_delete)?;
        // A journal that keeps its length is synced without touching the file system's own
        // books; an erasure empties it.
        conn.pragma_update(None, "journal_size_limit", 8 << 20)?;
        // The writer checkpoints between commits, so that no commit pays for it by chance.
        conn.pragma_update(None, "wal_autocheckpoint", 0)?;
    }
    Ok(conn)
}

/// SQLCipher would write to standard error by itself; failures reach the caller anyway.
const SILENCE: &str = "PRAGMA cipher_log_level = NONE";

/// Waits, once per process, until SQLCipher takes keys.
///
/// SQLite calls itself initialised before it initialises SQLCipher. Whoever opens a file in
/// between, while another thread opens the first one, has its key refused for no fault of the key.
fn awaken() {
    static AWAKE: Once = Once::new();
    AWAKE.call_once(|| {
        for _ in 0..1000 {
            let keyed = Connection::open_in_memory()
                .and_then(|conn| conn.execute_batch(&format!("{SILENCE}; PRAGMA key = 'any'")));
            match keyed {
                Ok(()) => return,
                // If it never does, the file that is being opened says so.
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    });
}

/// Opens a database and gives it its key without proving that it fits.
pub(crate) fn keyed(path: &Path, key: &Key, flags: OpenFlags) -> Result<Connection> {
    awaken();
    let conn = Connection::open_with_flags(path, flags)?;
    conn.execute_batch(SILENCE)?;
    conn.pragma_update(None, "key", crate::key::pragma(key).as_str())?;
    // Processors have instructions for this hash; the default one takes three times as long.
    conn.execute_batch("PRAGMA cipher_hmac_algorithm = HMAC_SHA256")?;
    Ok(conn)
}

/// Moves the whole journal into the database and empties it; false while readers hold it.
pub(crate) fn truncate_wal(conn: &Connection) -> Result<bool> {
    let busy: i64 = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    Ok(busy == 0)
}

/// Writes a file so that a crash leaves either the old or the new content.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    replace_with(path, |file| file.write_all(bytes))
}

/// The same for what is written piece by piece.
pub(crate) fn replace_with(
    path: &Path,
    write: impl FnOnce(&mut std::fs::File) -> std::io::Result<()>,
) -> Result<()> {
    let fresh = with_suffix(path, ".new");
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&fresh).map_err(Error::file(&fresh))?;
    write(&mut file).and_then(|()| file.sync_all()).map_err(Error::file(&fresh))?;
    drop(file);
    std::fs::rename(&fresh, path).map_err(Error::file(path))?;
    sync_parent(path)
}

/// Whether a file is missing or holds nothing.
pub(crate) fn is_empty(path: &Path) -> Result<bool> {
    match std::fs::metadata(path) {
        Ok(about) => Ok(about.len() == 0),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(Error::file(path)(error)),
    }
}

/// Makes a rename or removal in a directory durable.
pub(crate) fn sync_parent(path: &Path) -> Result<()> {
    let Some(parent) = path.parent() else { return Ok(()) };
    #[cfg(unix)]
    std::fs::File::open(parent).and_then(|dir| dir.sync_all()).map_err(Error::file(parent))?;
    #[cfg(not(unix))]
    let _ = parent; // A directory cannot be opened as a file there.
    Ok(())
}

/// Removes a file; one that is not there is fine.
pub(crate) fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::file(path)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}
