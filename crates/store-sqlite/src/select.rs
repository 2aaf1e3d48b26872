//! What a lens selects, as a connection's transaction knows it.

use std::sync::Arc;

use rusqlite::Connection;
use yore_domain::class::Class;
use yore_policy::Lens;
pub(crate) use yore_store::select::{
    Selection, conversation_passes, kind_in, message_passes, needs_value, status_code, status_in,
    talk_possible, version_passes,
};

use crate::vault::Classes;

/// The condition that joins a memory `m` with all its versions `v`.
macro_rules! its_versions {
    () => {
        "(v.row = m.first_row OR (v.memory = m.row AND v.number > 1))"
    };
}
pub(crate) use its_versions;

/// Picks the classes a lens sees, as the connection's transaction knows them.
pub(crate) fn selection(
    conn: &Connection,
    lens: &Lens,
    classes: &Classes,
) -> rusqlite::Result<Selection> {
    let last: Option<u32> =
        conn.prepare_cached("SELECT max(id) FROM class")?.query_one([], |row| row.get(0))?;
    let mut known: Vec<(u32, Arc<Class>)> =
        classes.all().into_iter().filter(|(id, _)| Some(*id) <= last).collect();
    known.sort_unstable_by_key(|(id, _)| *id);
    // A commit may be visible before the cache has heard of its classes.
    if known.last().map(|(id, _)| *id) < last {
        known = stored(conn)?;
    }
    Ok(Selection::of(lens, known))
}

fn stored(conn: &Connection) -> rusqlite::Result<Vec<(u32, Arc<Class>)>> {
    let mut statement = conn.prepare_cached("SELECT id, data FROM class ORDER BY id")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, Arc::new(json(row, 1)?))))?;
    rows.collect()
}

/// Reads a column that holds a value as JSON.
pub(crate) fn json<T: serde::de::DeserializeOwned>(
    row: &rusqlite::Row<'_>,
    column: usize,
) -> rusqlite::Result<T> {
    let text = row.get_ref(column)?.as_str()?;
    serde_json::from_str(text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(
            column,
            rusqlite::types::Type::Text,
            Box::new(error),
        )
    })
}
