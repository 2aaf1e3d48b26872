//! A file that memorywire made, or will read: SQLite with FTS5 and the tables of sqlite-vec.
//!
//! The vectors lie in the tables behind `vec0`, whose layout is read and written here without the
//! extension, so that nothing needs to be loaded and every search is exact: conditions first, then
//! distances. Files made here open in memorywire, and the other way round.

mod schema;
mod vec0;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use serde_json::json;
use yore_rank::{StoreHit, rrf};

use super::vectors::{DIMENSIONS, Embedder, distance};
use crate::error::{Error, Result};
use crate::record::{Found, Question, Record, Type, Whose};
use crate::slot::Depth;
use crate::store::{Capabilities, Capability, Health, Keeps, MemoryStore, Page};

const BACKEND: &str = "sqlite-vec";
/// How long a write waits for another process.
const BUSY: Duration = Duration::from_secs(5);
/// Rows of one page of a list.
const PAGE: usize = 500;
/// The constant of the fusion of words and vectors inside the file.
const RRF: f32 = 60.0;
const COLUMNS: &str = "rowid, id, agent_id, user_id, type, content, metadata, confidence, source, \
     created_at, updated_at, expires_at, last_recalled_at";
/// What is neither forgotten nor waiting for a person.
const LIVE: &str = "deleted_at IS NULL";

/// A memorywire database in a file, or in memory.
#[derive(Debug, Clone)]
pub struct SqliteVec {
    path: PathBuf,
    connection: Arc<Mutex<Connection>>,
    embedder: Arc<dyn Embedder>,
}

impl SqliteVec {
    /// Opens a file and makes in it what is not there yet. `:memory:` is a database that lasts as
    /// long as this value.
    pub fn open(path: &Path, embedder: Arc<dyn Embedder>) -> Result<Self> {
        let connection = match path.to_str() {
            Some(":memory:") => Connection::open_in_memory()?,
            Some(_) | None => Connection::open(path)?,
        };
        connection.busy_timeout(BUSY)?;
        connection.pragma_update(None, "secure_delete", true)?;
        schema::prepare(&connection)?;
        Ok(Self { path: path.to_owned(), connection: Arc::new(Mutex::new(connection)), embedder })
    }

    /// Works with the file on a thread that may wait.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection, &dyn Embedder) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let Self { connection, embedder, .. } = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&mut connection.lock(), &*embedder));
        done.await.map_err(|error| Error::Database(error.to_string()))?
    }

    /// Changes the file, all or nothing.
    async fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>, &dyn Embedder) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.run(|connection, embedder| {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = work(&transaction, embedder)?;
            transaction.commit()?;
            Ok(done)
        })
        .await
    }
}

impl MemoryStore for SqliteVec {
    fn capabilities(&self) -> Capabilities {
        Capabilities::from([
            Capability::Semantic,
            Capability::Episodic,
            Capability::Procedural,
            Capability::Emotional,
            Capability::Fts,
            Capability::Vector,
            Capability::RecallTracking,
        ])
    }

    fn keeps(&self) -> Keeps {
        Keeps::Columns
    }

    fn health(&self) -> BoxFuture<'_, Result<Health>> {
        let path = self.path.display().to_string();
        async move {
            let count = self
                .run(|connection, _| {
                    let sql = format!("SELECT count(*) FROM memories WHERE {LIVE}");
                    Ok(connection.query_row(&sql, [], |row| row.get::<_, i64>(0))?)
                })
                .await?;
            Ok(Health::ok(BACKEND)
                .with("db_path", path)
                .with("memory_count", count)
                .with("schema_version", 1))
        }
        .boxed()
    }

    fn remember<'a>(&'a self, record: &'a Record) -> BoxFuture<'a, Result<String>> {
        let record = record.clone();
        async move {
            self.change(move |transaction, embedder| {
                write(transaction, embedder, &record)?;
                Ok(record.id)
            })
            .await
        }
        .boxed()
    }

    fn replace<'a>(&'a self, place: &'a str, record: &'a Record) -> BoxFuture<'a, Result<String>> {
        // A row keeps the name it has in the file, whatever its canonical id.
        let record = Record { id: place.to_owned(), ..record.clone() };
        async move { self.remember(&record).await }.boxed()
    }

    fn locate<'a>(
        &'a self,
        whose: &'a Whose,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>>> {
        let (whose, id) = (whose.clone(), id.to_owned());
        async move {
            self.run(move |connection, _| Ok(rowid(connection, &whose, &id)?.map(|_| id))).await
        }
        .boxed()
    }

    fn recall<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<Vec<Found>>> {
        let question = question.clone();
        async move {
            self.run(move |connection, embedder| search(connection, embedder, &question)).await
        }
        .boxed()
    }

    fn list<'a>(&'a self, whose: &'a Whose, after: Option<&'a str>) -> BoxFuture<'a, Result<Page>> {
        let (whose, after) = (whose.clone(), after.unwrap_or_default().to_owned());
        async move {
            self.run(move |connection, _| {
                let sql = format!(
                    "SELECT {COLUMNS} FROM memories WHERE agent_id = ?1 AND {LIVE} \
                     AND (?2 IS NULL OR user_id = ?2) AND id > ?3 ORDER BY id LIMIT {PAGE}"
                );
                let mut statement = connection.prepare_cached(&sql)?;
                let rows = statement.query_map(params![whose.agent, whose.user, after], found)?;
                let items = rows.map(|row| row.map(|(_, found)| found));
                let items = items.collect::<std::result::Result<Vec<_>, _>>()?;
                let full = items.len() == PAGE;
                let next = items.last().filter(|_| full).map(|last| last.place.clone());
                Ok(Page { items, next })
            })
            .await
        }
        .boxed()
    }

    fn forget<'a>(
        &'a self,
        whose: &'a Whose,
        place: &'a str,
        depth: Depth,
    ) -> BoxFuture<'a, Result<bool>> {
        let (whose, place) = (whose.clone(), place.to_owned());
        async move {
            self.change(move |transaction, _| {
                let Some(rowid) = rowid(transaction, &whose, &place)? else { return Ok(false) };
                match depth {
                    Depth::Tombstone => {
                        transaction.execute(
                            "UPDATE memories SET deleted_at = max(updated_at, ?2), \
                             updated_at = max(updated_at, ?2) WHERE rowid = ?1",
                            params![rowid, now(transaction)?],
                        )?;
                    }
                    Depth::Erase => erase(transaction, rowid, &place)?,
                }
                note(transaction, "forget", &whose, &place, depth == Depth::Erase)?;
                Ok(true)
            })
            .await
        }
        .boxed()
    }

    fn touch<'a>(&'a self, places: &'a [String], at: i64) -> BoxFuture<'a, Result<()>> {
        let places = places.to_vec();
        async move {
            self.change(move |transaction, _| {
                let mut touch = transaction
                    .prepare_cached("UPDATE memories SET last_recalled_at = ?2 WHERE id = ?1")?;
                for place in places {
                    touch.execute(params![place, at])?;
                }
                Ok(())
            })
            .await
        }
        .boxed()
    }
}

/// The time by the database's own clock: the only one at hand where nobody says when.
fn now(connection: &Connection) -> Result<i64> {
    let sql = "SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)";
    Ok(connection.query_row(sql, [], |row| row.get(0))?)
}

fn rowid(connection: &Connection, whose: &Whose, place: &str) -> Result<Option<i64>> {
    let sql = format!(
        "SELECT rowid FROM memories WHERE id = ?1 AND agent_id = ?2 \
         AND (?3 IS NULL OR user_id = ?3) AND {LIVE}"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    Ok(statement.query_row(params![place, whose.agent, whose.user], |row| row.get(0)).optional()?)
}

/// Writes a row, its words and its vector, in place of what was there under its id.
fn write(transaction: &Transaction<'_>, embedder: &dyn Embedder, record: &Record) -> Result<()> {
    let old: Option<(i64, String)> = transaction
        .prepare_cached("SELECT rowid, content FROM memories WHERE id = ?1")?
        .query_row([&record.id], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    if let Some((rowid, content)) = &old {
        forget_words(transaction, *rowid, content)?;
    }
    let metadata = serde_json::to_string(&record.metadata).unwrap_or_default();
    let rowid: i64 = transaction
        .prepare_cached(
            "INSERT INTO memories (id, agent_id, user_id, type, content, metadata, confidence, \
             source, created_at, updated_at, expires_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) \
             ON CONFLICT (id) DO UPDATE SET agent_id = ?2, user_id = ?3, type = ?4, content = ?5, \
             metadata = ?6, confidence = ?7, source = ?8, created_at = ?9, updated_at = ?10, \
             expires_at = ?11, deleted_at = NULL RETURNING rowid",
        )?
        .query_row(
            params![
                record.id,
                record.agent_id,
                record.user_id,
                record.kind.as_str(),
                record.content,
                metadata,
                record.confidence,
                record.source,
                record.created_at,
                record.updated_at,
                record.expires_at,
            ],
            |row| row.get(0),
        )?;
    transaction
        .prepare_cached("INSERT INTO memories_fts (rowid, content) VALUES (?1, ?2)")?
        .execute(params![rowid, record.content])?;
    let vector = embedder.embed(&record.content);
    if vector.len() != DIMENSIONS {
        return Err(Error::Database(format!("a vector must have {DIMENSIONS} numbers")));
    }
    vec0::put(transaction, rowid, &vector)?;
    procedure(transaction, record)?;
    note(transaction, "remember", &record.whose(), &record.id, false)
}

/// Keeps the machine that a procedural memory carries where memorywire looks for it.
fn procedure(transaction: &Transaction<'_>, record: &Record) -> Result<()> {
    transaction.execute("DELETE FROM procedures WHERE id = ?1", [&record.id])?;
    if record.kind != Type::Procedural {
        return Ok(());
    }
    let machine: serde_json::Value = serde_json::from_str(&record.content).unwrap_or_default();
    let Some(name) = machine.get("name").and_then(serde_json::Value::as_str) else {
        return Ok(());
    };
    let current = machine.get("current").or_else(|| machine.get("initial"));
    transaction.execute(
        "INSERT INTO procedures (id, agent_id, name, states, current, metadata, created_at, \
         updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            record.id,
            record.agent_id,
            name,
            record.content,
            current.and_then(serde_json::Value::as_str),
            serde_json::to_string(&record.metadata).unwrap_or_default(),
            record.created_at,
            record.updated_at,
        ],
    )?;
    Ok(())
}

/// Takes the words of a row out of the index. It must be told the words, and before they change.
fn forget_words(transaction: &Transaction<'_>, rowid: i64, content: &str) -> Result<()> {
    transaction
        .prepare_cached(
            "INSERT INTO memories_fts (memories_fts, rowid, content) VALUES ('delete', ?1, ?2)",
        )?
        .execute(params![rowid, content])?;
    Ok(())
}

fn erase(transaction: &Transaction<'_>, rowid: i64, place: &str) -> Result<()> {
    let sql = "SELECT content FROM memories WHERE rowid = ?1";
    let content: String = transaction.query_row(sql, [rowid], |row| row.get(0))?;
    forget_words(transaction, rowid, &content)?;
    vec0::remove(transaction, rowid)?;
    transaction.execute("DELETE FROM procedures WHERE id = ?1", [place])?;
    transaction.execute("DELETE FROM memories WHERE rowid = ?1", [rowid])?;
    // What memorywire logged of it holds its text.
    transaction.execute(
        "UPDATE audit_log SET payload = '{\"erased\":true}' WHERE memory_id = ?1",
        [place],
    )?;
    Ok(())
}

/// Writes a line of the file's own log, without any text.
fn note(
    transaction: &Transaction<'_>,
    operation: &str,
    whose: &Whose,
    place: &str,
    hard: bool,
) -> Result<()> {
    transaction
        .prepare_cached(
            "INSERT INTO audit_log (ts, operation, agent_id, user_id, memory_id, payload, result) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            now(transaction)?,
            operation,
            whose.agent,
            whose.user,
            place,
            json!({"id": place, "hard_delete": hard}).to_string(),
            json!({"id": place}).to_string(),
        ])?;
    Ok(())
}

fn found(row: &Row<'_>) -> rusqlite::Result<(i64, Found)> {
    let id: String = row.get("id")?;
    let kind: String = row.get("type")?;
    let metadata: Option<String> = row.get("metadata")?;
    let metadata = metadata.and_then(|text| serde_json::from_str(&text).ok());
    let record = Record {
        id: id.clone(),
        agent_id: row.get("agent_id")?,
        user_id: row.get("user_id")?,
        kind: Type::parse(&kind).unwrap_or(Type::Semantic),
        content: row.get("content")?,
        metadata: metadata.unwrap_or_default(),
        confidence: row.get::<_, Option<f64>>("confidence")?.unwrap_or(1.0),
        source: row.get("source")?,
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
        expires_at: row.get("expires_at")?,
        extra: crate::record::Object::new(),
    };
    let found = Found { recalled_at: row.get("last_recalled_at")?, ..Found::new(id, record, 0.0) };
    Ok((row.get("rowid")?, found))
}

/// Finds the best by words and by vectors among exactly the rows that fit.
fn search(
    connection: &Connection,
    embedder: &dyn Embedder,
    question: &Question,
) -> Result<Vec<Found>> {
    let candidates = (question.k * 4).max(20);
    let sql = format!(
        "SELECT {COLUMNS} FROM memories WHERE agent_id = ?1 AND {LIVE} \
         AND (?2 IS NULL OR user_id = ?2) AND (?3 IS NULL OR created_at >= ?3) \
         AND (expires_at IS NULL OR expires_at > ?4)"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let Question { whose, created_from, now, .. } = question;
    let rows = statement.query_map(params![whose.agent, whose.user, created_from, now], found)?;
    let mut fitting: BTreeMap<i64, Found> = BTreeMap::new();
    for row in rows {
        let (rowid, found) = row?;
        if question.admits(&found.record) {
            fitting.insert(rowid, found);
        }
    }
    let query = embedder.embed(&question.query);
    let mut near: Vec<(i64, f32)> = Vec::with_capacity(fitting.len());
    vec0::each(connection, fitting.keys().copied(), |rowid, stored| {
        near.push((rowid, distance(&query, stored)));
    })?;
    near.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
    near.truncate(candidates);
    let by_words = words(connection, &question.query, &fitting, candidates)?;
    let list = |rows: Vec<i64>| rows.into_iter().map(|key| StoreHit { key, score: 0.0 }).collect();
    let lists: [Vec<StoreHit<i64>>; 2] =
        [list(near.into_iter().map(|(rowid, _)| rowid).collect()), list(by_words)];
    let best = rrf(&lists, RRF).into_iter().take(question.k);
    Ok(best
        .filter_map(|hit| {
            let found = fitting.remove(&hit.key)?;
            Some(Found { score: f64::from(hit.score), ..found })
        })
        .collect())
}

/// The rows that have any word of the query, the best first.
fn words(
    connection: &Connection,
    query: &str,
    fitting: &BTreeMap<i64, Found>,
    most: usize,
) -> Result<Vec<i64>> {
    let words: Vec<String> = query
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(|word| format!("\"{word}\""))
        .collect();
    if words.is_empty() {
        return Ok(Vec::new());
    }
    let sql = "SELECT rowid FROM memories_fts WHERE memories_fts MATCH ?1 ORDER BY rank";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([words.join(" OR ")])?;
    let mut best = Vec::new();
    while let Some(row) = rows.next()? {
        let rowid: i64 = row.get(0)?;
        if fitting.contains_key(&rowid) {
            best.push(rowid);
        }
        if best.len() == most {
            break;
        }
    }
    Ok(best)
}
