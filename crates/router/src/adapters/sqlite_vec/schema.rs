//! Version 1 of memorywire's tables.

use rusqlite::{Connection, OptionalExtension};

use super::super::vectors::DIMENSIONS;
use crate::error::{Error, Result};

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS memories (
    id TEXT PRIMARY KEY,
    agent_id TEXT NOT NULL,
    user_id TEXT,
    type TEXT NOT NULL CHECK (type IN ('semantic', 'episodic', 'procedural', 'emotional')),
    content TEXT NOT NULL,
    metadata TEXT,
    confidence REAL DEFAULT 1.0,
    source TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    expires_at INTEGER,
    deleted_at INTEGER,
    last_recalled_at INTEGER
);
CREATE INDEX IF NOT EXISTS idx_memories_agent ON memories (agent_id, type);
CREATE INDEX IF NOT EXISTS idx_memories_user ON memories (user_id);
CREATE INDEX IF NOT EXISTS idx_memories_created ON memories (created_at);
CREATE VIRTUAL TABLE IF NOT EXISTS memories_fts
    USING fts5 (content, content = 'memories', content_rowid = 'rowid');
CREATE TABLE IF NOT EXISTS procedures (
    id TEXT PRIMARY KEY,
    agent_id TEXT NOT NULL,
    name TEXT NOT NULL,
    states TEXT NOT NULL,
    current TEXT,
    metadata TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS episodes (
    id TEXT PRIMARY KEY,
    agent_id TEXT NOT NULL,
    title TEXT,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    memory_ids TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS audit_log (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    ts INTEGER NOT NULL,
    operation TEXT NOT NULL,
    agent_id TEXT,
    user_id TEXT,
    memory_id TEXT,
    payload TEXT NOT NULL,
    result TEXT,
    approved_by TEXT,
    approval_at INTEGER
);";

/// The tables behind `vec0`, as its version 0.1 makes them.
const VECTORS: &str = "
CREATE TABLE memories_vec_info (key text primary key, value any);
INSERT INTO memories_vec_info VALUES ('CREATE_VERSION', 'v0.1.9'), ('CREATE_VERSION_MAJOR', 0),
    ('CREATE_VERSION_MINOR', 1), ('CREATE_VERSION_PATCH', 9);
CREATE TABLE memories_vec_chunks (chunk_id INTEGER PRIMARY KEY AUTOINCREMENT,
    size INTEGER NOT NULL, validity BLOB NOT NULL, rowids BLOB NOT NULL);
CREATE TABLE memories_vec_rowids (rowid INTEGER PRIMARY KEY AUTOINCREMENT, id,
    chunk_id INTEGER, chunk_offset INTEGER);
CREATE TABLE memories_vec_vector_chunks00 (rowid PRIMARY KEY, vectors BLOB NOT NULL);";

/// Makes what is not there yet, and refuses a file whose vectors are of another size.
pub(super) fn prepare(connection: &Connection) -> Result<()> {
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    let sql = "SELECT sql FROM sqlite_schema WHERE name = 'memories_vec'";
    let vectors: Option<String> = connection.query_row(sql, [], |row| row.get(0)).optional()?;
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let made = make(connection, vectors.as_deref());
    connection.execute_batch(if made.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
    made
}

fn make(connection: &Connection, vectors: Option<&str>) -> Result<()> {
    let declared = format!("embedding float[{DIMENSIONS}]");
    match vectors {
        Some(sql) if sql.contains(&declared) => {}
        Some(_) => {
            let what = format!("vectors that have not {DIMENSIONS} numbers");
            return Err(Error::Unsupported(what));
        }
        None => {
            connection.execute_batch(VECTORS)?;
            // The table that sqlite-vec serves is only declared: making it would need the extension.
            connection.pragma_update(None, "writable_schema", true)?;
            let declaration = format!("CREATE VIRTUAL TABLE memories_vec USING vec0({declared})");
            let done = connection.execute(
                "INSERT INTO sqlite_schema (type, name, tbl_name, rootpage, sql) \
                 VALUES ('table', 'memories_vec', 'memories_vec', 0, ?1)",
                [declaration],
            );
            connection.pragma_update(None, "writable_schema", false)?;
            done?;
        }
    }
    connection.execute_batch(TABLES)?;
    Ok(())
}
