//! A file as rows, table by table.

use rusqlite::{Connection, OptionalExtension as _, Row as Found};
use yore_canon::encode;
use yore_domain::conversation::Conversation;
use yore_domain::memory::Relation;
use yore_domain::{BlobHash, TenantId, Timestamp, VaultId};
use yore_store::plan::Operation;
use yore_store::transfer::{
    Counters, EntryRow, Indexed, Kept, MemoryRow, MessageRow, Outlet, Row, Tip, VersionRow,
};
use yore_store::{RowKey, Source, Vector};

use crate::error::{Error, Result};
use crate::key::Key;
use crate::select::json;
use crate::vault::SEED;
use crate::{books, said};

const MEMORIES: &str = "SELECT row, id, head, head_row, class, status, kind, since, created, ends,
    statement, legal_hold, recalled, recalls, followed, overridden, ignored, contradicted, demoted
    FROM memory ORDER BY row";
const VERSIONS: &str = "SELECT row, id, memory, number, class, status, recorded, entry, salt, data,
    tokens, model, scale, statics FROM version ORDER BY row";
const MESSAGES: &str = "SELECT m.row, m.conversation, m.position, m.data, i.data,
    u.message IS NOT NULL, m.tokens, m.model, m.scale, m.statics
    FROM message m LEFT JOIN inside i ON i.message = m.row LEFT JOIN unread u ON u.message = m.row
    ORDER BY m.row";
const PIECES: &str = "SELECT c.hash, c.number, c.bytes FROM blob_chunk c
    JOIN blob b ON b.hash = c.hash WHERE b.size IS NOT NULL";
const FRAMES: &str = "SELECT f.sender, f.stream, f.number, f.bytes FROM frame f
    JOIN stream s ON s.sender = f.sender AND s.id = f.stream";
const ENTRIES: &str =
    "SELECT seq, at, operation, agent, data, hash, change, changes FROM audit ORDER BY seq";

/// What is found by what it says itself.
const KEPT: [(Kept, &str); 7] = [
    (Kept::Grant, "grants"),
    (Kept::Token, "token"),
    (Kept::Hold, "hold"),
    (Kept::Profile, "profile"),
    (Kept::Procedure, "procedure"),
    (Kept::Job, "job"),
    (Kept::Stream, "stream"),
];

/// Puts every row of a file out, in an order in which they can be taken in.
pub(super) fn walk(conn: &Connection, out: &mut Outlet) -> Result<()> {
    let seed: String =
        conn.query_row("SELECT value FROM setting WHERE name = ?1", [SEED], |row| row.get(0))?;
    let seed = encode::from_hex(&seed).ok().and_then(|bytes| Key::from_slice(&bytes));
    out.put_blocking(Row::Seed(
        seed.ok_or_else(|| Error::Damaged("the signing key is unreadable".into()))?,
    ))?;
    out.put_blocking(Row::Counters(counters(conn)?))?;
    let mut each = |sql: &str, read: fn(&Found<'_>) -> rusqlite::Result<Row>| -> Result<()> {
        let mut statement = conn.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            out.put_blocking(read(row)?)?;
        }
        Ok(())
    };
    each("SELECT id, data FROM class ORDER BY id", |row| {
        Ok(Row::Class(row.get(0)?, json(row, 1)?))
    })?;
    each("SELECT name, value FROM setting WHERE name NOT LIKE 'store:%'", |row| {
        Ok(Row::Setting(row.get(0)?, json(row, 1)?))
    })?;
    each(MEMORIES, |row| Ok(Row::Memory(Box::new(memory(row)?))))?;
    each(VERSIONS, |row| Ok(Row::Version(Box::new(version(row)?))))?;
    // Links have no number of their own: they count from the first of their memory.
    let links = "SELECT memory, row_number() OVER (PARTITION BY memory ORDER BY rowid) - 1, kind,
        target FROM relation";
    each(links, |row| {
        let relation = Relation { kind: row.get(2)?, target: row.get(3)? };
        Ok(Row::Relation(row.get(0)?, row.get(1)?, relation))
    })?;
    each("SELECT namespace, name, kind, target, number FROM alias", |row| {
        Ok(Row::Alias(row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
    })?;
    each("SELECT row, class, messages, updated, data FROM conversation ORDER BY row", |row| {
        let mut talk: Conversation = json(row, 4)?;
        talk.updated = Timestamp::from_micros(row.get(3)?);
        Ok(Row::Talk(row.get(0)?, row.get(1)?, row.get(2)?, Box::new(talk)))
    })?;
    each(MESSAGES, |row| Ok(Row::Message(Box::new(message(row)?))))?;
    each("SELECT hash, size FROM blob WHERE size IS NOT NULL", |row| {
        Ok(Row::Blob(BlobHash(row.get(0)?), row.get(1)?))
    })?;
    each(PIECES, |row| Ok(Row::Piece(BlobHash(row.get(0)?), row.get(1)?, row.get(2)?)))?;
    each("SELECT source, row, model, scale, bytes FROM vector", |row| {
        let source = if row.get::<_, u8>(0)? == 0 { Source::Version } else { Source::Message };
        Ok(Row::Vector(RowKey { source, row: row.get(1)? }, vector(row, 2)?))
    })?;
    for (kept, table) in KEPT {
        let mut statement = conn.prepare(&format!("SELECT data FROM {table}"))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            out.put_blocking(Row::Kept(kept, row.get(0)?))?;
        }
    }
    kept_in_order(conn, out)
}

/// What is kept in order of arrival, and the catalog's own.
fn kept_in_order(conn: &Connection, out: &mut Outlet) -> Result<()> {
    let mut each = |sql: &str, read: fn(&Found<'_>) -> rusqlite::Result<Row>| -> Result<()> {
        let mut statement = conn.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            out.put_blocking(read(row)?)?;
        }
        Ok(())
    };
    each("SELECT position, data FROM rule", |row| Ok(Row::Rule(row.get(0)?, row.get(1)?)))?;
    each(FRAMES, |row| Ok(Row::Frame(row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
    each("SELECT seq, data FROM letter ORDER BY seq", |row| {
        Ok(Row::Letter(row.get(0)?, row.get(1)?))
    })?;
    each("SELECT caller, id, fingerprint, result, at FROM operation", |row| {
        let operation = Operation {
            caller: row.get(0)?,
            id: row.get(1)?,
            fingerprint: row.get(2)?,
            result: json(row, 3)?,
        };
        Ok(Row::Operation(Box::new(operation), row.get(4)?))
    })?;
    each("SELECT namespace, name, message, kind, at FROM ledger", |row| {
        Ok(Row::Grave(row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
    })?;
    each(ENTRIES, |row| Ok(Row::Entry(Box::new(entry(row)?))))?;
    each("SELECT memory, seq FROM audit_target", |row| Ok(Row::Named(row.get(0)?, row.get(1)?)))?;
    each("SELECT seq, data FROM checkpoint", |row| Ok(Row::Checkpoint(row.get(0)?, row.get(1)?)))?;
    let catalog: bool = conn.query_row(
        "SELECT count(*) > 0 FROM sqlite_schema WHERE name = 'tenant'",
        [],
        |row| row.get(0),
    )?;
    if catalog {
        each("SELECT id, name FROM tenant", |row| {
            Ok(Row::Tenant(TenantId::from_bytes(row.get(0)?), row.get(1)?))
        })?;
        each("SELECT mac, vault FROM locate", |row| {
            Ok(Row::Place(row.get(0)?, VaultId::from_bytes(row.get(1)?)))
        })?;
    }
    Ok(())
}

fn counters(conn: &Connection) -> Result<Counters> {
    let last = |table: &str| {
        conn.query_row("SELECT seq FROM sqlite_sequence WHERE name = ?1", [table], |row| row.get(0))
            .optional()
    };
    let epochs = books::epochs(conn)?;
    Ok(Counters {
        message: last("message")?.unwrap_or(0),
        letter: last("letter")?.unwrap_or(0),
        grants: epochs.grants,
        rules: epochs.rules,
    })
}

fn memory(row: &Found<'_>) -> rusqlite::Result<MemoryRow> {
    Ok(MemoryRow {
        row: row.get(0)?,
        id: row.get(1)?,
        head: row.get(2)?,
        head_row: row.get(3)?,
        class: row.get(4)?,
        status: row.get(5)?,
        kind: row.get(6)?,
        since: row.get(7)?,
        created: row.get(8)?,
        ends: row.get(9)?,
        statement: row.get(10)?,
        legal_hold: row.get(11)?,
        recalled: row.get(12)?,
        recalls: row.get(13)?,
        followed: row.get(14)?,
        overridden: row.get(15)?,
        ignored: row.get(16)?,
        contradicted: row.get(17)?,
        demoted: row.get(18)?,
    })
}

fn version(row: &Found<'_>) -> rusqlite::Result<VersionRow> {
    Ok(VersionRow {
        row: row.get(0)?,
        id: row.get(1)?,
        memory: row.get(2)?,
        number: row.get(3)?,
        class: row.get(4)?,
        status: row.get(5)?,
        recorded: row.get(6)?,
        entry: row.get(7)?,
        salt: row.get(8)?,
        data: row.get(9)?,
        indexed: indexed(row, 10)?,
    })
}

fn message(row: &Found<'_>) -> rusqlite::Result<MessageRow> {
    Ok(MessageRow {
        row: row.get(0)?,
        talk: row.get(1)?,
        position: row.get(2)?,
        message: said::message(row, 3)?,
        inside: row.get(4)?,
        unread: row.get(5)?,
        indexed: indexed(row, 6)?,
    })
}

fn entry(row: &Found<'_>) -> rusqlite::Result<EntryRow> {
    Ok(EntryRow {
        seq: row.get(0)?,
        at: row.get(1)?,
        operation: row.get(2)?,
        agent: row.get(3)?,
        data: row.get(4)?,
        hash: row.get(5)?,
        change: row.get(6)?,
        changes: row.get(7)?,
    })
}

/// Reads the columns tokens, model, scale and statics.
fn indexed(row: &Found<'_>, first: usize) -> rusqlite::Result<Option<Indexed>> {
    let Some(tokens) = row.get_ref(first)?.as_blob_or_null()? else { return Ok(None) };
    let tokens =
        tokens.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    Ok(Some(Indexed { tokens, statics: vector(row, first + 1)? }))
}

/// Reads the columns model, scale and bytes.
fn vector(row: &Found<'_>, first: usize) -> rusqlite::Result<Vector> {
    Ok(Vector {
        model: row.get(first)?,
        scale: row.get(first + 1)?,
        values: row.get_ref(first + 2)?.as_blob()?.iter().map(|byte| byte.cast_signed()).collect(),
    })
}

/// Where the audit chain ends.
pub(super) fn tip(conn: &Connection) -> Result<Tip> {
    let sql = "SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1";
    Ok(conn.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
}

/// How much there is of what people ask for.
pub(super) fn counts(conn: &Connection) -> Result<Vec<(&'static str, u64)>> {
    let tables = [
        ("memories", "memory"),
        ("versions", "version"),
        ("conversations", "conversation"),
        ("messages", "message"),
        ("attachments", "blob WHERE size IS NOT NULL"),
        ("vectors", "vector"),
        ("audit entries", "audit"),
    ];
    let count = |(name, table): (&'static str, &str)| {
        let sql = format!("SELECT count(*) FROM {table}");
        Ok((name, conn.query_row(&sql, [], |row| row.get(0))?))
    };
    tables.into_iter().map(count).collect()
}
