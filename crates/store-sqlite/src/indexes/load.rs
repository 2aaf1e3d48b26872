//! Building the indexes from rows: all of them, or those that changed since a saved copy.

use std::collections::BTreeSet;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row};
use rustc_hash::FxHashSet;
use serde::Deserialize;
use yore_canon::hash::Blake3;
use yore_domain::change::What;
use yore_domain::memory::{Feedback, Version};
use yore_domain::{ConversationId, MemoryId, MessageId};
use yore_store::inside::{Inside, words};
use yore_store::plan::Indexing;
use yore_store::{RowKey, Source, Vector};

use super::state::{DENSE_DIMS, State, Usage};
use super::{DENSE_MODEL, Effect};
use crate::outbox;
use crate::said;
use crate::select::{its_versions, json};

const VERSIONS: &str = "SELECT v.row, v.memory, v.class, v.data, v.tokens, v.model, v.scale,
        v.statics, m.statement
    FROM memory m JOIN version v ON";
const TALKS: &str = "SELECT row, class, data FROM conversation";
const MESSAGES: &str = "SELECT m.row, m.conversation, c.class, m.id, m.position, m.at, m.data,
    m.tokens, m.model, m.scale, m.statics, i.data
    FROM message m JOIN conversation c ON c.row = m.conversation
    LEFT JOIN inside i ON i.message = m.row";

/// Up to so many rows without a vector are looked up one by one.
const LOOKED_UP: usize = 1000;

/// Builds everything from the rows, with the vectors of one model.
pub(super) fn rebuilt(conn: &Connection, model: Option<&str>) -> rusqlite::Result<State> {
    let model = match model {
        Some(model) => Some(model.to_owned()),
        None => stored_model(conn)?,
    };
    let dims = match &model {
        Some(model) => stored_dims(conn, model)?.unwrap_or(DENSE_DIMS),
        None => DENSE_DIMS,
    };
    let mut state = State::empty(dims, model);
    versions(
        conn,
        &mut state,
        &format!("{VERSIONS} v.memory = m.row WHERE m.status <> 4 ORDER BY v.row"),
        [],
    )?;
    talks(conn, &mut state, TALKS, [])?;
    messages(conn, &mut state, &format!("{MESSAGES} ORDER BY m.row"), [])?;
    usage(conn, &mut state)?;
    vectors(conn, &mut state)?;
    state.beside.inside = last_read(conn)?;
    state.beside.seq = outbox::last(conn)?;
    state.beside.mark = mark(conn, state.beside.seq)?;
    Ok(state)
}

/// Brings a saved state up to the rows; false when it cannot be of this vault's past.
pub(super) fn catch_up(conn: &Connection, state: &mut State) -> rusqlite::Result<bool> {
    let last = outbox::last(conn)?;
    let model = stored_model(conn)?;
    if state.beside.mark != mark(conn, state.beside.seq)?
        || (state.model().is_some() && state.model() != model.as_deref())
    {
        return Ok(false);
    }
    if let Some(model) = &model
        && stored_dims(conn, model)?.is_some_and(|dims| dims != state.versions.dense_dims())
    {
        return Ok(false);
    }
    state.beside.model = model;
    let (changed, talked) = changed_since(conn, state.beside.seq)?;
    for id in changed {
        let row: Option<u64> = conn
            .prepare_cached("SELECT row FROM memory WHERE id = ?1")?
            .query_one([id.bytes()], |row| row.get(0))
            .optional()?;
        if let Some(row) = row {
            state.forget(row);
            let sql = format!(
                "{VERSIONS} {} WHERE m.status <> 4 AND m.row = ?1 ORDER BY v.number",
                its_versions!()
            );
            versions(conn, state, &sql, [row])?;
        }
    }
    drop_lost_talks(conn, state)?;
    for id in talked {
        let row: Option<u64> = conn
            .prepare_cached("SELECT row FROM conversation WHERE id = ?1")?
            .query_one([id.bytes()], |row| row.get(0))
            .optional()?;
        if let Some(row) = row {
            state.forget_talk(row);
            talks(conn, state, &format!("{TALKS} WHERE row = ?1"), [row])?;
            messages(conn, state, &format!("{MESSAGES} WHERE c.row = ?1 ORDER BY m.row"), [row])?;
        }
    }
    // What attachments say leaves no trace in the outbox either.
    let sql = format!("{MESSAGES} WHERE i.number > ?1 ORDER BY m.row");
    messages(conn, state, &sql, [state.beside.inside])?;
    state.beside.inside = last_read(conn)?;
    usage(conn, state)?;
    pending_vectors(conn, state)?;
    state.beside.seq = last;
    Ok(true)
}

/// The number of what attachments say last.
fn last_read(conn: &Connection) -> rusqlite::Result<u64> {
    conn.query_one("SELECT coalesce(max(number), 0) FROM inside", [], |row| row.get(0))
}

/// What tells one past from another: a digest of the change that a state contains last.
pub(super) fn mark(conn: &Connection, seq: u64) -> rusqlite::Result<[u8; 32]> {
    let Some((at, told)) = outbox::stored(conn, seq)? else { return Ok([0; 32]) };
    let mut hasher = Blake3::hasher();
    hasher.update(seq.to_le_bytes()).update(at.to_le_bytes());
    Ok(*hasher.update(told).finish().as_bytes())
}

/// The model whose vectors the indexes are to hold; the first vector's until someone decides.
pub(super) fn stored_model(conn: &Connection) -> rusqlite::Result<Option<String>> {
    let set: Option<Option<String>> = conn
        .prepare_cached("SELECT value FROM setting WHERE name = ?1")?
        .query_one([DENSE_MODEL], |row| json(row, 0))
        .optional()?;
    Ok(set.flatten())
}

fn stored_dims(conn: &Connection, model: &str) -> rusqlite::Result<Option<usize>> {
    conn.prepare_cached("SELECT length(bytes) FROM vector WHERE model = ?1 LIMIT 1")?
        .query_one([model], |row| row.get(0))
        .optional()
}

fn changed_since(
    conn: &Connection,
    seq: u64,
) -> rusqlite::Result<(BTreeSet<MemoryId>, BTreeSet<ConversationId>)> {
    let (mut memories, mut talks) = (BTreeSet::new(), BTreeSet::new());
    for change in outbox::after(conn, seq, usize::MAX)? {
        match change.what {
            What::Memory { memory, .. } | What::Erased { memory, .. } => {
                memories.insert(memory);
            }
            What::Conversation { conversation, .. }
            | What::Message { conversation, .. }
            | What::ConversationErased { conversation, .. } => {
                talks.insert(conversation);
            }
            What::Profile { .. } | What::Hold { .. } | What::Grant { .. } | What::Job { .. } => {}
        }
    }
    Ok((memories, talks))
}

fn versions(
    conn: &Connection,
    state: &mut State,
    sql: &str,
    params: impl rusqlite::Params,
) -> rusqlite::Result<()> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    while let Some(row) = rows.next()? {
        let statement = row.get::<_, Option<String>>(8)?.unwrap_or_default();
        state.apply(Effect::Version {
            row: row.get(0)?,
            memory_row: row.get(1)?,
            class: row.get(2)?,
            version: Box::new(json::<Version>(row, 3)?),
            indexing: Indexing { statement, ..indexing(row, 4)? },
        });
    }
    Ok(())
}

fn talks(
    conn: &Connection,
    state: &mut State,
    sql: &str,
    params: impl rusqlite::Params,
) -> rusqlite::Result<()> {
    #[derive(Deserialize)]
    struct Head {
        #[serde(default)]
        scope: yore_domain::scope::Scope,
    }
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    while let Some(row) = rows.next()? {
        let head: Head = json(row, 2)?;
        state.apply(Effect::Conversation {
            row: row.get(0)?,
            class: row.get(1)?,
            session: head.scope.session,
        });
    }
    Ok(())
}

fn messages(
    conn: &Connection,
    state: &mut State,
    sql: &str,
    params: impl rusqlite::Params,
) -> rusqlite::Result<()> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    while let Some(row) = rows.next()? {
        state.apply(Effect::Message {
            row: row.get(0)?,
            conversation_row: row.get(1)?,
            class: row.get(2)?,
            id: MessageId::from_bytes(row.get(3)?),
            position: row.get(4)?,
            at: row.get(5)?,
            text: match row.get_ref(11)? {
                ValueRef::Null => said::words(row, 6)?,
                ValueRef::Integer(_)
                | ValueRef::Real(_)
                | ValueRef::Text(_)
                | ValueRef::Blob(_) => words(&said::words(row, 6)?, &json::<Vec<Inside>>(row, 11)?),
            },
            indexing: indexing(row, 7)?,
        });
    }
    Ok(())
}

/// Reads the four columns that make a row findable, when they are filled.
fn indexing(row: &Row<'_>, first: usize) -> rusqlite::Result<Indexing> {
    let Some(tokens) = row.get_ref(first)?.as_blob_or_null()? else {
        return Ok(Indexing::default());
    };
    let tokens =
        tokens.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    let vector = vector(row, first + 1)?;
    Ok(Indexing { tokens, statics: Some(vector), statement: String::new() })
}

/// Reads the columns model, scale and bytes.
fn vector(row: &Row<'_>, first: usize) -> rusqlite::Result<Vector> {
    Ok(Vector {
        model: row.get(first)?,
        scale: row.get(first + 1)?,
        values: row.get_ref(first + 2)?.as_blob()?.iter().map(|byte| byte.cast_signed()).collect(),
    })
}

fn usage(conn: &Connection, state: &mut State) -> rusqlite::Result<()> {
    let mut statement = conn.prepare_cached(
        "SELECT row, followed, overridden, ignored, contradicted, demoted FROM memory
         WHERE status <> 4
           AND (followed OR overridden OR ignored OR contradicted OR demoted)",
    )?;
    let found = statement.query_map([], |row| {
        let feedback = Feedback {
            followed: row.get(1)?,
            overridden: row.get(2)?,
            ignored: row.get(3)?,
            contradicted: row.get(4)?,
        };
        Ok((row.get(0)?, Usage { feedback, demoted: row.get(5)? }))
    })?;
    state.beside.usage = found.collect::<rusqlite::Result<_>>()?;
    Ok(())
}

fn vectors(conn: &Connection, state: &mut State) -> rusqlite::Result<()> {
    let Some(model) = state.model().map(str::to_owned) else { return Ok(()) };
    each_vector(conn, &model, |key, row| {
        state.set_vector(key, &vector(row, 2)?);
        Ok(())
    })
}

/// Goes through the vectors of a model: whose they are, and the rest from the third column on.
fn each_vector(
    conn: &Connection,
    model: &str,
    mut take: impl FnMut(RowKey, &Row<'_>) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let mut statement = conn
        .prepare_cached("SELECT source, row, model, scale, bytes FROM vector WHERE model = ?1")?;
    let mut rows = statement.query([model])?;
    while let Some(row) = rows.next()? {
        let source = if row.get::<_, u8>(0)? == 0 { Source::Version } else { Source::Message };
        take(RowKey { source, row: row.get(1)? }, row)?;
    }
    Ok(())
}

/// Vectors leave no trace in the outbox: whatever still lacks one is looked up.
fn pending_vectors(conn: &Connection, state: &mut State) -> rusqlite::Result<()> {
    let Some(model) = state.model().map(str::to_owned) else { return Ok(()) };
    let waiting: Vec<RowKey> = state
        .versions
        .pending()
        .map(|row| RowKey { source: Source::Version, row })
        .chain(state.messages.pending().map(|row| RowKey { source: Source::Message, row }))
        .collect();
    if waiting.len() > LOOKED_UP {
        // After an import nearly all wait, and few have a vector.
        let waiting: FxHashSet<(bool, u64)> =
            waiting.into_iter().map(|key| (key.source == Source::Message, key.row)).collect();
        return each_vector(conn, &model, |key, row| {
            if waiting.contains(&(key.source == Source::Message, key.row)) {
                state.set_vector(key, &vector(row, 2)?);
            }
            Ok(())
        });
    }
    let mut statement = conn.prepare_cached(
        "SELECT model, scale, bytes FROM vector WHERE source = ?1 AND row = ?2 AND model = ?3",
    )?;
    for key in waiting {
        let source = u8::from(key.source == Source::Message);
        let found =
            statement.query_one((source, key.row, &model), |row| vector(row, 0)).optional()?;
        if let Some(vector) = found {
            state.set_vector(key, &vector);
        }
    }
    Ok(())
}

fn drop_lost_talks(conn: &Connection, state: &mut State) -> rusqlite::Result<()> {
    let kept: BTreeSet<u64> = conn
        .prepare_cached("SELECT row FROM conversation")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let lost: Vec<u64> =
        state.beside.talks.keys().filter(|row| !kept.contains(row)).copied().collect();
    lost.into_iter().for_each(|row| state.forget_talk(row));
    Ok(())
}
