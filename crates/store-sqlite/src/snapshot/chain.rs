//! Which version of a memory stood, or was true, at some time.

use rusqlite::Connection;
use yore_domain::Timestamp;

use crate::select::its_versions;

/// A version picked from its chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    /// Its row.
    pub(crate) row: u64,
    /// Its own class.
    pub(crate) class: u32,
    /// Its status code.
    pub(crate) status: u8,
    /// The status code of the newest version known then.
    pub(crate) standing: u8,
}

/// Picks the version that answers for a memory.
///
/// Only versions the vault had taken in at `as_of` count. Without `valid_at` the newest of them
/// answers; with it, the newest that had begun to be true, if it had not ended: what a later
/// version says from an earlier date replaces what was said before.
pub(crate) fn choose(
    conn: &Connection,
    memory: u64,
    as_of: Option<Timestamp>,
    valid_at: Option<Timestamp>,
) -> rusqlite::Result<Option<Chosen>> {
    let mut statement = conn.prepare_cached(concat!(
        "SELECT v.row, v.class, v.status, v.data ->> '$.time.valid_from',
            v.data ->> '$.time.valid_to'
         FROM memory m JOIN version v
            ON ",
        its_versions!(),
        "
         WHERE m.row = ?1 AND v.recorded <= ?2 ORDER BY v.number DESC"
    ))?;
    let horizon = as_of.map_or(i64::MAX, Timestamp::micros);
    let mut rows = statement.query((memory, horizon))?;
    let mut standing = None;
    while let Some(row) = rows.next()? {
        let status: u8 = row.get(2)?;
        let standing = *standing.get_or_insert(status);
        let chosen = Chosen { row: row.get(0)?, class: row.get(1)?, status, standing };
        let Some(at) = valid_at.map(Timestamp::micros) else { return Ok(Some(chosen)) };
        if row.get::<_, i64>(3)? <= at {
            let ended = row.get::<_, Option<i64>>(4)?.is_some_and(|end| end < at);
            return Ok((!ended).then_some(chosen));
        }
    }
    Ok(None)
}
