//! What is kept in order of arrival: changes, the audit chain, streams and letters; and the census.

use rusqlite::{Connection, OptionalExtension, Row};
use yore_domain::audit::{Checkpoint, Entry};
use yore_domain::change::Change;
use yore_domain::stream::{Frame, Letter, Stream};
use yore_domain::{MemoryId, Seq, Timestamp};
use yore_store::snapshot::{AuditQuery, Census};

use super::View;
use super::books::{all, one};
use crate::outbox;
use crate::select::{its_versions, json};

pub(super) fn changes(view: &View<'_>, after: Seq, limit: usize) -> rusqlite::Result<Vec<Change>> {
    outbox::after(view.conn, after.0, limit)
}

pub(super) fn audit(view: &View<'_>, query: &AuditQuery) -> rusqlite::Result<Vec<Entry>> {
    let order = if query.newest_first { "DESC" } else { "ASC" };
    // Two statements instead of one condition: the entries of a memory are found by number.
    let named = match query.memory {
        None => "?6 IS NULL",
        Some(_) => {
            concat!(
                "a.seq IN (
                 SELECT t.seq FROM memory m JOIN audit_target t ON t.memory = m.row WHERE m.id = ?6
                 UNION SELECT v.entry FROM memory m JOIN version v
                     ON ",
                its_versions!(),
                "
                     WHERE m.id = ?6)"
            )
        }
    };
    let sql = format!(
        "SELECT a.seq, a.data, a.hash, p.hash FROM audit a
         LEFT JOIN audit p ON p.seq = a.seq - 1
         WHERE a.seq > ?1 AND (?2 IS NULL OR a.operation = ?2) AND (?3 IS NULL OR a.agent = ?3)
           AND a.at >= ?4 AND a.at < ?5 AND a.seq < ?8
           AND {named}
         ORDER BY a.seq {order} LIMIT ?7"
    );
    let mut statement = view.conn.prepare_cached(&sql)?;
    let rows = statement.query_map(
        (
            query.after.0,
            &query.operation,
            &query.agent,
            query.from.map_or(i64::MIN, Timestamp::micros),
            query.until.map_or(i64::MAX, Timestamp::micros),
            query.memory.map(MemoryId::bytes),
            query.limit,
            query.before.map_or(i64::MAX.cast_unsigned(), |seq| seq.0),
        ),
        entry_from,
    )?;
    rows.collect()
}

fn entry_from(row: &Row<'_>) -> rusqlite::Result<Entry> {
    let hex = |hash: [u8; 32]| yore_canon::encode::hex(&hash);
    Ok(Entry {
        seq: Seq(row.get(0)?),
        draft: json(row, 1)?,
        hash: hex(row.get(2)?),
        previous: row.get::<_, Option<[u8; 32]>>(3)?.map(hex).unwrap_or_default(),
    })
}

pub(super) fn checkpoint(view: &View<'_>) -> rusqlite::Result<Option<Checkpoint>> {
    one(view, "SELECT data FROM checkpoint ORDER BY seq DESC LIMIT 1", [])
}

pub(super) fn census(view: &View<'_>) -> rusqlite::Result<Census> {
    let unembedded = view.vault.indexes.read().unembedded() as u64;
    Ok(Census { unembedded, ..counts(view.conn)? })
}

/// What the tables of a vault hold.
pub(crate) fn counts(conn: &Connection) -> rusqlite::Result<Census> {
    conn.prepare_cached(
        "SELECT (SELECT count(*) FROM memory WHERE status <= 1),
                (SELECT count(*) FROM version),
                (SELECT count(*) FROM conversation),
                (SELECT count(*) FROM message),
                (SELECT count(*) FROM blob WHERE size IS NOT NULL),
                (SELECT count(*) FROM hold WHERE state = 0),
                (SELECT page_count FROM pragma_page_count)
                    * (SELECT page_size FROM pragma_page_size)",
    )?
    .query_one([], |row| {
        Ok(Census {
            memories: row.get(0)?,
            versions: row.get(1)?,
            conversations: row.get(2)?,
            messages: row.get(3)?,
            blobs: row.get(4)?,
            pending: row.get(5)?,
            bytes: row.get(6)?,
            unembedded: 0,
        })
    })
}

pub(super) fn stream(view: &View<'_>, sender: &str, id: &str) -> rusqlite::Result<Option<Stream>> {
    one(view, "SELECT data FROM stream WHERE sender = ?1 AND id = ?2", [sender, id])
}

pub(super) fn frames(
    view: &View<'_>,
    sender: &str,
    id: &str,
    from: u64,
    limit: usize,
) -> rusqlite::Result<Vec<Frame>> {
    view.conn
        .prepare_cached(
            "SELECT number, bytes FROM frame WHERE sender = ?1 AND stream = ?2 AND number >= ?3
             ORDER BY number LIMIT ?4",
        )?
        .query_map((sender, id, from, limit), |row| {
            Ok(Frame { number: row.get(0)?, bytes: row.get(1)? })
        })?
        .collect()
}

pub(super) fn letter(view: &View<'_>, sender: &str, id: &str) -> rusqlite::Result<Option<Letter>> {
    view.conn
        .prepare_cached("SELECT data FROM letter WHERE sender = ?1 AND id = ?2")?
        .query_one([sender, id], |row| json(row, 0))
        .optional()
}

pub(super) fn letters(view: &View<'_>, inbox: &str, limit: usize) -> rusqlite::Result<Vec<Letter>> {
    all(
        view,
        "SELECT data FROM letter WHERE inbox = ?1 AND state <= 1 ORDER BY seq LIMIT ?2",
        (inbox, limit),
    )
}

pub(super) fn waiting(view: &View<'_>, inbox: &str) -> rusqlite::Result<Vec<(String, u64)>> {
    view.conn
        .prepare_cached(
            "SELECT sender, count(*) FROM letter WHERE inbox = ?1 AND state <= 1
             GROUP BY sender ORDER BY sender",
        )?
        .query_map([inbox], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}
