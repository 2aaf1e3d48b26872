//! What is kept in order of arrival: changes, the audit chain, streams and letters; and the census.

use std::collections::BTreeMap;

use yore_domain::audit::Entry;
use yore_domain::change::{Change, What};
use yore_domain::stream::{Frame, Letter, Stream};
use yore_domain::{MemoryId, Seq, Timestamp};
use yore_store::snapshot::{AuditQuery, Census};

use super::{View, limit_of};
use crate::commit::post_name;
use crate::error::{Error, Result};
use crate::vault::{numbered, within};

pub(super) async fn changes(view: &View<'_>, after: Seq, limit: usize) -> Result<Vec<Change>> {
    // Every entry tells at least one change, so this many entries are always enough.
    let rows = view
        .rows(
            "SELECT seq, at, change, changes FROM audit
             WHERE vault = $1 AND change > $2 AND changes IS NOT NULL ORDER BY change LIMIT $3",
            &[&after.0.cast_signed(), &limit_of(limit)],
        )
        .await?;
    let mut found = Vec::new();
    for row in rows {
        let told: Vec<What> = view.vault.open_value("outbox", &numbered(row.get(0)), row.get(3))?;
        let at = Timestamp::from_micros(row.get(1));
        let last = row.get::<_, i64>(2).cast_unsigned();
        let before = last.saturating_sub(told.len() as u64);
        let numbered = (before + 1..).zip(told).filter(|(seq, _)| *seq > after.0);
        found.extend(numbered.map(|(seq, what)| Change { seq: Seq(seq), at, what }));
        if found.len() >= limit {
            found.truncate(limit);
            break;
        }
    }
    Ok(found)
}

pub(super) async fn audit(view: &View<'_>, query: &AuditQuery) -> Result<Vec<Entry>> {
    let order = if query.newest_first { "DESC" } else { "ASC" };
    // Two statements instead of one condition: the entries of a memory are found by number.
    let named = match query.memory {
        None => "$7::bytea IS NULL",
        Some(_) => {
            "a.seq IN (
                SELECT t.seq FROM memory m JOIN audit_target t ON t.vault = $1 AND t.memory = m.row
                    WHERE m.vault = $1 AND m.id = $7
                UNION SELECT v.entry FROM memory m JOIN version v ON v.vault = $1 AND v.memory = m.row
                    WHERE m.vault = $1 AND m.id = $7)"
        }
    };
    let sql = format!(
        "SELECT a.seq, a.data, a.hash, p.hash FROM audit a
         LEFT JOIN audit p ON p.vault = $1 AND p.seq = a.seq - 1
         WHERE a.vault = $1 AND a.seq > $2 AND ($3::text IS NULL OR a.operation = $3)
           AND ($4::bytea IS NULL OR a.agent = $4) AND a.at >= $5 AND a.at < $6 AND a.seq < $9
           AND {named}
         ORDER BY a.seq {order} LIMIT $8"
    );
    let agent = query.agent.as_deref().map(|agent| view.vault.mac("agent", &[agent]));
    let memory = query.memory.map(MemoryId::bytes);
    let memory = memory.as_ref().map(<[u8; 16]>::as_slice);
    let rows = view
        .rows(
            &sql,
            &[
                &query.after.0.cast_signed(),
                &query.operation,
                &agent,
                &query.from.map_or(i64::MIN, Timestamp::micros),
                &query.until.map_or(i64::MAX, Timestamp::micros),
                &memory,
                &limit_of(query.limit),
                &query.before.map_or(i64::MAX, |seq| seq.0.cast_signed()),
            ],
        )
        .await?;
    let hex = yore_canon::encode::hex;
    rows.iter()
        .map(|row| {
            let seq: i64 = row.get(0);
            Ok(Entry {
                seq: Seq(seq.cast_unsigned()),
                draft: view.vault.open_value("audit", &numbered(seq), row.get(1))?,
                hash: hex(row.get(2)),
                previous: row.get::<_, Option<&[u8]>>(3).map(hex).unwrap_or_default(),
            })
        })
        .collect()
}

pub(super) async fn census(view: &View<'_>) -> Result<Census> {
    // What the indexes take is not counted: it belongs to no vault alone.
    let row = view
        .row(
            "SELECT (SELECT count(*) FROM memory WHERE vault = $1 AND status <= 1),
                (SELECT count(*) FROM version WHERE vault = $1),
                (SELECT count(*) FROM conversation WHERE vault = $1),
                (SELECT count(*) FROM message WHERE vault = $1),
                (SELECT count(*) FROM blob WHERE vault = $1 AND size IS NOT NULL),
                (SELECT count(*) FROM hold WHERE vault = $1 AND state = 0),
                (SELECT coalesce(sum(pg_column_size(v.*)), 0) FROM version v WHERE vault = $1)
                    + (SELECT coalesce(sum(pg_column_size(m.*)), 0) FROM message m WHERE vault = $1)
                    + (SELECT coalesce(sum(pg_column_size(d.*)), 0) FROM document d WHERE vault = $1)
                    + (SELECT coalesce(sum(pg_column_size(a.*)), 0) FROM audit a WHERE vault = $1)
                    + (SELECT coalesce(sum(pg_column_size(b.*)), 0) FROM blob_chunk b WHERE vault = $1),
                (SELECT count(*) FROM document d WHERE vault = $1 AND d.live AND NOT EXISTS (
                    SELECT 1 FROM vector w WHERE w.vault = $1 AND w.source = d.source
                        AND w.row = d.row AND w.model = $2))",
            &[&view.model],
        )
        .await?
        .ok_or_else(|| Error::Damaged("nothing was counted".into()))?;
    let count = |column: usize| row.get::<_, i64>(column).cast_unsigned();
    Ok(Census {
        memories: count(0),
        versions: count(1),
        conversations: count(2),
        messages: count(3),
        blobs: count(4),
        pending: count(5),
        bytes: count(6),
        unembedded: count(7),
    })
}

pub(super) async fn stream(view: &View<'_>, sender: &str, id: &str) -> Result<Option<Stream>> {
    let mac = post_name(view.vault, "stream", sender, id);
    let row = view.row("SELECT data FROM stream WHERE vault = $1 AND mac = $2", &[&mac]).await?;
    row.map(|row| view.vault.open_value("stream", &mac, row.get(0))).transpose()
}

pub(super) async fn frames(
    view: &View<'_>,
    sender: &str,
    id: &str,
    from: u64,
    limit: usize,
) -> Result<Vec<Frame>> {
    let mac = post_name(view.vault, "stream", sender, id);
    let rows = view
        .rows(
            "SELECT number, data FROM frame WHERE vault = $1 AND stream = $2 AND number >= $3
             ORDER BY number LIMIT $4",
            &[&mac, &from.cast_signed(), &limit_of(limit)],
        )
        .await?;
    rows.iter()
        .map(|row| {
            let number: i64 = row.get(0);
            let bytes = view.vault.open_bytes("frame", &within(&mac, number), row.get(1))?;
            Ok(Frame { number: number.cast_unsigned(), bytes: bytes.to_vec() })
        })
        .collect()
}

pub(super) async fn letter(view: &View<'_>, sender: &str, id: &str) -> Result<Option<Letter>> {
    let mac = post_name(view.vault, "letter", sender, id);
    let row = view.row("SELECT data FROM letter WHERE vault = $1 AND mac = $2", &[&mac]).await?;
    row.map(|row| view.vault.open_value("letter", &mac, row.get(0))).transpose()
}

pub(super) async fn waiting(view: &View<'_>, inbox: &str) -> Result<Vec<(String, u64)>> {
    let inbox = view.vault.mac("inbox", &[inbox]);
    let sql = "SELECT mac, data FROM letter WHERE vault = $1 AND inbox = $2 AND state <= 1";
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for row in view.rows(sql, &[&inbox]).await? {
        let letter: Letter = view.vault.open_value("letter", row.get(0), row.get(1))?;
        *counts.entry(letter.sender).or_default() += 1;
    }
    Ok(counts.into_iter().collect())
}

pub(super) async fn letters(view: &View<'_>, inbox: &str, limit: usize) -> Result<Vec<Letter>> {
    let inbox = view.vault.mac("inbox", &[inbox]);
    let rows = view
        .rows(
            "SELECT mac, data FROM letter WHERE vault = $1 AND inbox = $2 AND state <= 1
             ORDER BY seq LIMIT $3",
            &[&inbox, &limit_of(limit)],
        )
        .await?;
    rows.iter().map(|row| view.vault.open_value("letter", row.get(0), row.get(1))).collect()
}
