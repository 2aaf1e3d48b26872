//! Looking for a text in everything a vault holds, decrypted.
//!
//! Only what a transaction can see is looked at. What PostgreSQL keeps of changed rows until it
//! cleans up, and its journal, hold the same encrypted values; docs/threat-model.md says so.

use memchr::memmem::Finder;
use serde_json::Value;
use yore_domain::VaultId;
use yore_store::keeper::Traces;

use super::view;
use crate::error::Result;
use crate::pool::Conn;
use crate::store::Inner;
use crate::vault::Vault;

/// Tables with encrypted values: the column, what tells rows apart, and whether that is a number.
const SEALED: [(&str, &str, &str, Key); 27] = [
    ("setting", "data", "name", Key::Bytes),
    ("class", "data", "id", Key::Small),
    ("version", "data", "row", Key::Number),
    ("relation", "data", "memory", Key::Number),
    ("alias", "data", "mac", Key::Bytes),
    ("conversation", "data", "row", Key::Number),
    ("message", "data", "row", Key::Number),
    ("inside", "data", "message", Key::Number),
    ("document", "data", "row", Key::Sourced),
    ("grants", "data", "id", Key::Bytes),
    ("token", "data", "id", Key::Bytes),
    ("hold", "data", "id", Key::Bytes),
    ("rule", "data", "name", Key::Bytes),
    ("profile", "data", "version", Key::Number),
    ("procedure", "data", "memory", Key::Bytes),
    ("job", "data", "id", Key::Bytes),
    ("operation", "data", "mac", Key::Bytes),
    ("stream", "data", "mac", Key::Bytes),
    ("frame", "data", "number", Key::Number),
    ("letter", "data", "mac", Key::Bytes),
    ("blob_chunk", "data", "number", Key::Small),
    ("audit", "data", "seq", Key::Number),
    ("audit", "changes", "seq", Key::Number),
    ("checkpoint", "data", "seq", Key::Number),
    ("line", "checkpoint", "vault", Key::None),
    ("tail", "hash", "vault", Key::Clear),
    ("ledger", "message", "mac", Key::Clear),
];

/// How a row is named when its value is encrypted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    Bytes,
    Number,
    Small,
    Sourced,
    None,
    /// Not encrypted.
    Clear,
}

/// How many rows are read at a time.
const PAGE: i64 = 500;

/// Decrypts every value of a vault and hands it on with its table; `None` where it does not open.
pub(super) async fn every_value(
    conn: &Conn,
    vault: &Vault,
    mut see: impl FnMut(&str, Option<&[u8]>),
) -> Result<()> {
    for (number, (table, column, key, kind)) in SEALED.into_iter().enumerate() {
        let source = if kind == Key::Sourced { "source::bigint" } else { "0::bigint" };
        // A cursor, because a vault may be large; its name is used once in the transaction.
        let cursor = format!("walk_{number}_{table}");
        let own = conn.literal();
        conn.batch(&format!(
            "DECLARE {cursor} NO SCROLL CURSOR FOR
             SELECT {key}, {column}, {source} FROM {table}
             WHERE vault = {own} AND {column} IS NOT NULL"
        ))
        .await?;
        loop {
            let rows = conn.fetch(&format!("FETCH {PAGE} FROM {cursor}")).await?;
            if rows.is_empty() {
                break;
            }
            for row in rows {
                let name = match kind {
                    Key::Bytes => row.get::<_, Vec<u8>>(0),
                    Key::Number => row.get::<_, i64>(0).to_be_bytes().to_vec(),
                    Key::Small => row.get::<_, i32>(0).to_be_bytes().to_vec(),
                    Key::Sourced => {
                        let (row, source): (i64, i64) = (row.get(0), row.get(2));
                        [source.to_be_bytes(), row.to_be_bytes()].concat()
                    }
                    Key::None | Key::Clear => Vec::new(),
                };
                let value: &[u8] = row.get(1);
                if kind == Key::Clear {
                    see(table, Some(value));
                    continue;
                }
                let place = if column == "changes" { "outbox" } else { table };
                let opened = vault.open_bytes(place, &name, value).ok();
                see(table, opened.as_ref().map(|bytes| bytes.as_slice()));
            }
        }
        conn.batch(&format!("CLOSE {cursor}")).await?;
    }
    Ok(())
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
