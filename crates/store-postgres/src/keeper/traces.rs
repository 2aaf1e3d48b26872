//! Looking for a text in everything a vault holds, decrypted.
//!
//! Only what a transaction can see is looked at. What PostgreSQL keeps of changed rows until it
//! cleans up, and its journal, hold the same encrypted values; docs/threat-model.md says so.

use memchr::memmem::Finder;
use serde_json::Value;
use tokio_postgres::Row;
use yore_domain::VaultId;
use yore_store::keeper::Traces;

use super::view;
use crate::error::Result;
use crate::pool::Conn;
use crate::store::Inner;
use crate::vault::Vault;

/// What is encrypted: the table, the column, and the bytes by which the cipher knows a row.
const SEALED: [(&str, &str, &str); 28] = [
    ("setting", "data", "name"),
    ("class", "data", "int4send(id)"),
    ("memory", "said", "int8send(row)"),
    ("version", "data", "int8send(row)"),
    ("relation", "data", "int8send(memory) || int8send(number::bigint)"),
    ("alias", "data", "mac"),
    ("conversation", "data", "int8send(row)"),
    ("message", "data", "int8send(row)"),
    ("inside", "data", "int8send(message)"),
    ("document", "data", "int8send(source::bigint) || int8send(row)"),
    ("grants", "data", "id"),
    ("token", "data", "id"),
    ("hold", "data", "id"),
    ("rule", "data", "name"),
    ("profile", "data", "whose || int8send(version)"),
    ("procedure", "data", "memory"),
    ("job", "data", "id"),
    ("operation", "data", "mac"),
    ("stream", "data", "mac"),
    ("frame", "data", "stream || int8send(number)"),
    ("letter", "data", "mac"),
    ("blob", "origin", "hash"),
    ("blob_chunk", "data", "hash"),
    ("audit", "data", "int8send(seq)"),
    ("audit", "changes", "int8send(seq)"),
    ("checkpoint", "data", "int8send(seq)"),
    ("ledger", "data", "mac || message"),
    ("line", "checkpoint", "''::bytea"),
];

/// What is in clear and has no form that the database would check.
const CLEAR: [(&str, &str); 2] = [("tail", "hash"), ("ledger", "message")];

/// How many rows are read at a time.
const PAGE: i64 = 500;

/// Decrypts every value of a vault and hands it on with its table; `None` where it does not open.
pub(super) async fn every_value(
    conn: &Conn,
    vault: &Vault,
    mut see: impl FnMut(&str, Option<&[u8]>),
) -> Result<()> {
    for (table, column, key) in SEALED {
        // A piece of an attachment is known by the name under which the attachment came.
        let more = match table {
            "blob_chunk" => {
                "number, (SELECT origin FROM blob b WHERE b.vault = t.vault AND b.hash = t.hash)"
            }
            _ => "0, NULL::bytea",
        };
        let what = format!("{column}, {key}, {more}");
        every_row(conn, table, column, &what, |row| {
            let (sealed, key): (&[u8], &[u8]) = (row.get(0), row.get(1));
            let place = if column == "changes" { "outbox" } else { table };
            let opened = match table {
                "blob_chunk" => vault.chunk(key, row.get(3), row.get(2)),
                _ => Ok(key.to_vec()),
            };
            let opened = opened.and_then(|key| vault.open_bytes(place, &key, sealed)).ok();
            see(table, opened.as_ref().map(|bytes| bytes.as_slice()));
        })
        .await?;
    }
    for (table, column) in CLEAR {
        every_row(conn, table, column, column, |row| see(table, Some(row.get(0)))).await?;
    }
    Ok(())
}

/// Hands on every row of a table in which a column has a value.
async fn every_row(
    conn: &Conn,
    table: &str,
    column: &str,
    what: &str,
    mut see: impl FnMut(&Row),
) -> Result<()> {
    // A cursor, because a vault may be large; its name is used once in the transaction.
    let cursor = format!("walk_{table}_{column}");
    let own = conn.literal();
    conn.batch(&format!(
        "DECLARE {cursor} NO SCROLL CURSOR FOR
         SELECT {what} FROM {table} t WHERE vault = {own} AND {column} IS NOT NULL"
    ))
    .await?;
    loop {
        let rows = conn.fetch(&format!("FETCH {PAGE} FROM {cursor}")).await?;
        if rows.is_empty() {
            break;
        }
        rows.iter().for_each(&mut see);
    }
    conn.batch(&format!("CLOSE {cursor}")).await
}

pub(super) async fn search(inner: &Inner, id: VaultId, text: &str) -> Result<Traces> {
    let (conn, vault) = view(inner, id).await?;
    conn.batch("SET LOCAL statement_timeout = 0").await?;
    let mut traces = Traces::default();
    let spelt = Value::from(text).to_string();
    let spelt = &spelt.as_bytes()[1..spelt.len() - 1];
    let finders = [Finder::new(text), Finder::new(spelt)];
    every_value(&conn, &vault, |table, opened| {
        let Some(bytes) = opened else {
            traces.found.push(format!("a row of {table} that does not open"));
            return;
        };
        traces.scanned += bytes.len() as u64;
        if finders.iter().any(|finder| finder.find(bytes).is_some()) {
            traces.found.push(format!("a row of {table}"));
        }
    })
    .await?;
    conn.roll_back().await?;
    Ok(traces)
}
