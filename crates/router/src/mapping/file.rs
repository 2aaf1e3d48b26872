//! The mapping in an encrypted file beside the vault.
//!
//! Everything in it follows from the vault and the stores: without it, delivery starts over and
//! finds by their canonical ids what the stores have. So it need not be safe against the loss of
//! a moment, only against the eyes of others, and is neither backed up nor audited.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use parking_lot::Mutex;
use rusqlite::{Connection, ErrorCode, OptionalExtension, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Kept, Mapping};
use crate::error::{Error, Result};
use crate::record::Record;

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS kept (
        store TEXT NOT NULL, id TEXT NOT NULL, place TEXT, data TEXT NOT NULL,
        PRIMARY KEY (store, id)) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS kept_by_place ON kept (store, place) WHERE place IS NOT NULL;
    CREATE INDEX IF NOT EXISTS kept_leaving ON kept (store)
        WHERE json_extract(data, '$.leaving');
    CREATE TABLE IF NOT EXISTS cursor (store TEXT PRIMARY KEY, at TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS staged (
        store TEXT NOT NULL, id TEXT NOT NULL, data TEXT NOT NULL,
        PRIMARY KEY (store, id)) WITHOUT ROWID;";
/// How long a write waits for another process.
const BUSY: Duration = Duration::from_secs(5);

/// A mapping that outlives the process.
#[derive(Clone, Debug)]
pub struct Lasting(Arc<Mutex<Connection>>);

impl Lasting {
    /// Opens the file, or makes it. One that the key does not open is no use to anybody and is
    /// made anew.
    pub fn open(path: &Path, key: &[u8; 32]) -> Result<Self> {
        let connection = match opened(path, key) {
            Ok(connection) => connection,
            Err(error) if error.sqlite_error_code() != Some(ErrorCode::NotADatabase) => {
                return Err(error.into());
            }
            Err(error) => {
                tracing::warn!(%error, "what is known of other stores is found out again");
                for suffix in ["", "-wal", "-shm"] {
                    let mut name = path.as_os_str().to_owned();
                    name.push(suffix);
                    match std::fs::remove_file(&name) {
                        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                            return Err(Error::Database(error.to_string()));
                        }
                        Ok(()) | Err(_) => {}
                    }
                }
                opened(path, key)?
            }
        };
        Ok(Self(Arc::new(Mutex::new(connection))))
    }

    /// Forgets what is known of stores that are no longer among these.
    pub fn keep_only(&self, stores: &[&str]) -> Result<()> {
        let names = text(&stores)?;
        for table in ["kept", "cursor", "staged"] {
            let sql =
                format!("DELETE FROM {table} WHERE store NOT IN (SELECT value FROM json_each(?1))");
            self.0.lock().execute(&sql, [&names])?;
        }
        Ok(())
    }

    /// The ids that a statement finds in a store.
    fn listed(&self, sql: &'static str, store: &str) -> BoxFuture<'static, Result<Vec<String>>> {
        let store = store.to_owned();
        self.run(move |connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let ids = statement.query_map([store], |row| row.get(0))?;
            Ok(ids.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Works with the file on a thread that may wait.
    fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> BoxFuture<'static, Result<T>> {
        let connection = Arc::clone(&self.0);
        let done = tokio::task::spawn_blocking(move || work(&connection.lock()));
        async move { done.await.map_err(|error| Error::Database(error.to_string()))? }.boxed()
    }
}

fn opened(path: &Path, key: &[u8; 32]) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    let key = yore_canon::encode::hex(key);
    connection.pragma_update(None, "key", format!("x'{key}'"))?;
    connection.busy_timeout(BUSY)?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "secure_delete", true)?;
    connection.execute_batch(SCHEMA)?;
    Ok(connection)
}

fn text(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::Database(error.to_string()))
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| Error::Database(error.to_string()))
}

impl Mapping for Lasting {
    fn get<'a>(&'a self, store: &'a str, id: &'a str) -> BoxFuture<'a, Result<Option<Kept>>> {
        let (store, id) = (store.to_owned(), id.to_owned());
        self.run(move |connection| {
            let sql = "SELECT data FROM kept WHERE store = ?1 AND id = ?2";
            let mut statement = connection.prepare_cached(sql)?;
            let kept =
                statement.query_row((store, id), |row| row.get::<_, String>(0)).optional()?;
            kept.map(|kept| read(&kept)).transpose()
        })
    }

    fn put<'a>(&'a self, store: &'a str, id: &'a str, kept: Kept) -> BoxFuture<'a, Result<()>> {
        let (store, id) = (store.to_owned(), id.to_owned());
        self.run(move |connection| {
            let data = text(&kept)?;
            connection
                .prepare_cached(
                    "INSERT INTO kept VALUES (?1, ?2, ?3, ?4) ON CONFLICT (store, id)
                     DO UPDATE SET place = excluded.place, data = excluded.data",
                )?
                .execute(params![store, id, kept.place, data])?;
            Ok(())
        })
    }

    fn remove<'a>(&'a self, store: &'a str, id: &'a str) -> BoxFuture<'a, Result<()>> {
        let (store, id) = (store.to_owned(), id.to_owned());
        self.run(move |connection| {
            connection
                .prepare_cached("DELETE FROM kept WHERE store = ?1 AND id = ?2")?
                .execute((store, id))?;
            Ok(())
        })
    }

    fn ids<'a>(&'a self, store: &'a str) -> BoxFuture<'a, Result<Vec<String>>> {
        self.listed("SELECT id FROM kept WHERE store = ?1", store)
    }

    fn leaving<'a>(&'a self, store: &'a str) -> BoxFuture<'a, Result<Vec<String>>> {
        let sql = "SELECT id FROM kept WHERE store = ?1 AND json_extract(data, '$.leaving')";
        self.listed(sql, store)
    }

    fn canonical<'a>(
        &'a self,
        store: &'a str,
        place: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>>> {
        let (store, place) = (store.to_owned(), place.to_owned());
        self.run(move |connection| {
            let sql = "SELECT id FROM kept WHERE store = ?1 AND place = ?2";
            let mut statement = connection.prepare_cached(sql)?;
            Ok(statement.query_row((store, place), |row| row.get(0)).optional()?)
        })
    }

    fn cursor<'a>(&'a self, store: &'a str) -> BoxFuture<'a, Result<Option<String>>> {
        let store = store.to_owned();
        self.run(move |connection| {
            let mut statement =
                connection.prepare_cached("SELECT at FROM cursor WHERE store = ?1")?;
            Ok(statement.query_row([store], |row| row.get(0)).optional()?)
        })
    }

    fn advance<'a>(&'a self, store: &'a str, cursor: String) -> BoxFuture<'a, Result<()>> {
        let store = store.to_owned();
        self.run(move |connection| {
            connection
                .prepare_cached("INSERT OR REPLACE INTO cursor VALUES (?1, ?2)")?
                .execute((store, cursor))?;
            Ok(())
        })
    }

    fn stage<'a>(&'a self, store: &'a str, record: Record) -> BoxFuture<'a, Result<()>> {
        let store = store.to_owned();
        self.run(move |connection| {
            let data = text(&record)?;
            connection
                .prepare_cached("INSERT OR REPLACE INTO staged VALUES (?1, ?2, ?3)")?
                .execute((store, record.id, data))?;
            Ok(())
        })
    }

    fn unstage<'a>(&'a self, store: &'a str, id: &'a str) -> BoxFuture<'a, Result<Option<Record>>> {
        let (store, id) = (store.to_owned(), id.to_owned());
        self.run(move |connection| {
            let sql = "DELETE FROM staged WHERE store = ?1 AND id = ?2 RETURNING data";
            let mut statement = connection.prepare_cached(sql)?;
            let staged =
                statement.query_row((store, id), |row| row.get::<_, String>(0)).optional()?;
            staged.map(|staged| read(&staged)).transpose()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_kept_outlives_the_process_and_is_not_readable() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("stores.db");
        let kept = Kept {
            place: Some("row-1".to_owned()),
            side: Some(serde_json::json!({"room": "cabinet of curiosities"})),
            ..Kept::default()
        };
        {
            let mapping = Lasting::open(&path, &[7; 32]).unwrap();
            mapping.put("a", "id", kept.clone()).await.unwrap();
            mapping.advance("a", "cursor-9".to_owned()).await.unwrap();
        }
        for entry in std::fs::read_dir(directory.path()).unwrap() {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            assert!(!bytes.windows(8).any(|some| some == b"cabinet "));
        }
        let mapping = Lasting::open(&path, &[7; 32]).unwrap();
        assert_eq!(mapping.get("a", "id").await.unwrap(), Some(kept));
        assert_eq!(mapping.get("b", "id").await.unwrap(), None);
        assert_eq!(mapping.canonical("a", "row-1").await.unwrap().as_deref(), Some("id"));
        assert_eq!(mapping.cursor("a").await.unwrap().as_deref(), Some("cursor-9"));
        mapping.put("a", "stays", Kept { leaving: true, ..Kept::default() }).await.unwrap();
        assert_eq!(mapping.ids("a").await.unwrap(), ["id", "stays"]);
        assert_eq!(mapping.leaving("a").await.unwrap(), ["stays"]);
        assert_eq!(mapping.ids("b").await.unwrap(), [""; 0]);
        mapping.keep_only(&["a", "b"]).unwrap();
        assert!(mapping.cursor("a").await.unwrap().is_some());
        mapping.remove("a", "id").await.unwrap();
        assert_eq!(mapping.canonical("a", "row-1").await.unwrap(), None);
        mapping.keep_only(&["b"]).unwrap();
        assert_eq!(mapping.cursor("a").await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_file_of_another_key_is_made_anew() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("stores.db");
        Lasting::open(&path, &[7; 32]).unwrap().advance("a", "1".to_owned()).await.unwrap();
        let mapping = Lasting::open(&path, &[8; 32]).unwrap();
        assert_eq!(mapping.cursor("a").await.unwrap(), None);
    }
}
