//! Searching: the lens and the filter become partitions and a predicate, the postings and the
//! vectors give candidates, and `yore-rank` scores their words.
//!
//! Statistics are summed over the selected partitions alone and ties are broken by id, exactly
//! as in the in-memory index: a row outside the selection changes no bit of any answer.

mod context;
mod document;
mod gather;
mod lexical;
mod sieve;

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use yore_domain::conversation::Conversation;
use yore_domain::query::Corpus;
use yore_domain::{Timestamp, limits};
use yore_store::inside::gist;
use yore_store::select::talk_possible;
use yore_store::snapshot::Loaded;
use yore_store::{Candidate, RowKey, Search, Source};

use crate::error::Result;
use crate::snapshot::{View, inside_of, limit_of};
use crate::vault::{Vault, numbered};

/// The number that columns use for a source.
pub(crate) const fn source_code(source: Source) -> i16 {
    match source {
        Source::Version => 0,
        Source::Message => 1,
    }
}

const fn source_of(code: i16) -> Source {
    if code == 0 { Source::Version } else { Source::Message }
}

/// The bytes by which a document is known to the cipher.
pub(crate) fn document_key(source: Source, row: i64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&i64::from(source_code(source)).to_be_bytes());
    key[8..].copy_from_slice(&row.to_be_bytes());
    key
}

/// The keyed number of a stem.
pub(crate) fn stem_number(vault: &Vault, stem: &str) -> i64 {
    vault.number("stem", stem.as_bytes())
}

/// The keyed number of a token.
pub(crate) fn token_number(vault: &Vault, token: u16) -> i64 {
    vault.number("token", &token.to_be_bytes())
}

/// A vector as the database reads it. Whole numbers: half precision holds them exactly.
pub(crate) fn literal(values: &[i8]) -> String {
    let mut text = String::with_capacity(values.len() * 4 + 2);
    text.push('[');
    for (at, value) in values.iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        text.push_str(&value.to_string());
    }
    text.push(']');
    text
}

pub(crate) async fn search(view: &View<'_>, search: &Search<'_>) -> Result<Vec<Candidate>> {
    let mut found = Vec::new();
    if search.corpus != Corpus::Messages {
        found = gather::gather(view, search, Source::Version).await?;
    }
    if search.corpus != Corpus::Memories && talk_possible(search.filter) {
        let mut said = gather::gather(view, search, Source::Message).await?;
        let shift = u32::try_from(found.len()).expect("invariant: candidates are few");
        for neighbour in said.iter_mut().flat_map(|one| one.signals.neighbours.iter_mut().flatten())
        {
            *neighbour += shift;
        }
        found.append(&mut said);
    }
    Ok(found)
}

/// Loads rows that a search named, in the order given.
pub(crate) async fn load(view: &View<'_>, rows: &[RowKey]) -> Result<Vec<(RowKey, Loaded)>> {
    let of = |source: Source| -> Vec<i64> {
        let rows = rows.iter().filter(|key| key.source == source);
        rows.map(|key| key.row.cast_signed()).collect()
    };
    let (versions, messages) = (of(Source::Version), of(Source::Message));
    let mut found: FxHashMap<RowKey, Loaded> = FxHashMap::default();
    if !versions.is_empty() {
        let rows = view
            .rows(
                "SELECT v.row, v.data, m.head_row = v.row
                 FROM version v JOIN memory m ON m.vault = $1 AND m.row = v.memory
                 WHERE v.vault = $1 AND v.row = ANY($2) AND v.class = ANY($3) AND m.class = ANY($3)",
                &[&versions, &view.seen],
            )
            .await?;
        for row in rows {
            let number: i64 = row.get(0);
            let version = view.vault.open_value("version", &numbered(number), row.get(1))?;
            let key = RowKey { source: Source::Version, row: number.cast_unsigned() };
            found.insert(key, Loaded::Memory { version: Box::new(version), head: row.get(2) });
        }
    }
    if !messages.is_empty() {
        let rows = view
            .rows(
                "SELECT m.row, m.data, m.position, c.row, c.data, c.updated
                 FROM message m JOIN conversation c ON c.vault = $1 AND c.row = m.conversation
                 WHERE m.vault = $1 AND m.row = ANY($2) AND c.class = ANY($3)",
                &[&messages, &view.seen],
            )
            .await?;
        for row in rows {
            let (number, home): (i64, i64) = (row.get(0), row.get(3));
            let message = view.vault.open_value("message", &numbered(number), row.get(1))?;
            let mut conversation: Conversation =
                view.vault.open_value("conversation", &numbered(home), row.get(4))?;
            conversation.updated = Timestamp::from_micros(row.get(5));
            let loaded = Loaded::Message {
                conversation: Box::new(conversation),
                position: row.get::<_, i64>(2).cast_unsigned(),
                message: Box::new(message),
            };
            let key = RowKey { source: Source::Message, row: number.cast_unsigned() };
            found.insert(key, loaded);
        }
    }
    // A row may be asked for twice.
    Ok(rows.iter().filter_map(|key| Some((*key, found.get(key)?.clone()))).collect())
}

/// Lists live heads and messages without a vector of a model, newest first.
pub(crate) async fn unembedded(
    view: &View<'_>,
    model: &str,
    limit: usize,
) -> Result<Vec<(RowKey, String)>> {
    let limit = limit.min(limits::PAGE);
    let rows = view
        .rows(
            "SELECT d.source, d.row FROM document d
             WHERE d.vault = $1 AND d.live AND d.own = ANY($2) AND d.seen = ANY($2)
                 AND NOT EXISTS (SELECT 1 FROM vector w WHERE w.vault = $1
                     AND w.source = d.source AND w.row = d.row AND w.model = $3)
             ORDER BY d.recorded DESC, d.source DESC, d.row DESC LIMIT $4",
            &[&view.seen, &model, &limit_of(limit)],
        )
        .await?;
    let keys: Vec<RowKey> = rows
        .iter()
        .map(|row| RowKey {
            source: source_of(row.get(0)),
            row: row.get::<_, i64>(1).cast_unsigned(),
        })
        .collect();
    let said: Vec<i64> = keys
        .iter()
        .filter(|key| key.source == Source::Message)
        .map(|key| key.row.cast_signed())
        .collect();
    let inside = if said.is_empty() { BTreeMap::new() } else { inside_of(view, &said).await? };
    let loaded = load(view, &keys).await?.into_iter();
    Ok(loaded
        .map(|(key, loaded)| match loaded {
            Loaded::Memory { version, .. } => (key, version.content.body.text),
            Loaded::Message { message, .. } => match inside.get(&key.row.cast_signed()) {
                Some(inside) => (key, gist(&message.text, inside)),
                None => (key, message.text),
            },
        })
        .collect())
}
