//! What changed, in order. It stands in the rows of the audit chain: a commit writes both anyway,
//! and so touches one table less.
//!
//! A row counts the changes made by then. The count only grows, so a change is found by halving.

use rusqlite::{Connection, OptionalExtension, Row};
use yore_domain::change::{Change, What};
use yore_domain::{Seq, Timestamp};

use crate::select::json;

/// The changes of one commit, as its row of the audit chain holds them.
#[derive(Debug, Default)]
pub(crate) struct Told(Vec<u8>);

impl Told {
    /// Adds a change.
    pub(crate) fn push(&mut self, what: &What) -> serde_json::Result<()> {
        self.0.push(if self.0.is_empty() { b'[' } else { b',' });
        serde_json::to_writer(&mut self.0, what)
    }

    /// Returns the column, nothing when nothing changed.
    pub(crate) fn into_column(mut self) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        self.0.push(b']');
        Some(String::from_utf8(self.0).expect("invariant: JSON is UTF-8"))
    }
}

/// Returns the number of the last change, 0 when there is none.
pub(crate) fn last(conn: &Connection) -> rusqlite::Result<u64> {
    let last = conn
        .prepare_cached("SELECT change FROM audit ORDER BY seq DESC LIMIT 1")?
        .query_one([], |row| row.get(0))
        .optional()?;
    Ok(last.unwrap_or(0))
}

/// Returns the changes after one, at most so many.
pub(crate) fn after(conn: &Connection, seq: u64, limit: usize) -> rusqlite::Result<Vec<Change>> {
    let mut found = Vec::new();
    let Some(entry) = entry_after(conn, seq)? else { return Ok(found) };
    let mut statement = conn.prepare_cached(
        "SELECT at, change, changes FROM audit WHERE seq >= ?1 AND changes IS NOT NULL ORDER BY seq",
    )?;
    let mut rows = statement.query([entry])?;
    while found.len() < limit
        && let Some(row) = rows.next()?
    {
        let told = told(row)?;
        found
            .extend(told.into_iter().filter(|change| change.seq.0 > seq).take(limit - found.len()));
    }
    Ok(found)
}

/// Returns when a change was made and what its commit told, as stored.
pub(crate) fn stored(conn: &Connection, seq: u64) -> rusqlite::Result<Option<(i64, String)>> {
    let Some(before) = seq.checked_sub(1) else { return Ok(None) };
    let Some(entry) = entry_after(conn, before)? else { return Ok(None) };
    conn.prepare_cached("SELECT at, changes FROM audit WHERE seq = ?1")?
        .query_one([entry], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
}

/// Reads the columns at, change and changes.
fn told(row: &Row<'_>) -> rusqlite::Result<Vec<Change>> {
    let at = Timestamp::from_micros(row.get(0)?);
    let last: u64 = row.get(1)?;
    let told: Vec<What> = json(row, 2)?;
    let before = last.saturating_sub(told.len() as u64);
    let numbered = (before + 1..).zip(told);
    Ok(numbered.map(|(seq, what)| Change { seq: Seq(seq), at, what }).collect())
}

/// Returns the first entry of the chain that holds a change after the given one. Who asks is
/// mostly up to date: the search begins at the end and takes longer and longer steps back.
fn entry_after(conn: &Connection, seq: u64) -> rusqlite::Result<Option<u64>> {
    let mut count = conn.prepare_cached(
        "SELECT seq, change FROM audit WHERE seq <= ?1 ORDER BY seq DESC LIMIT 1",
    )?;
    let mut count = |entry: u64| -> rusqlite::Result<Option<(u64, u64)>> {
        count.query_one([entry], |row| Ok((row.get(0)?, row.get(1)?))).optional()
    };
    let Some((mut after, newest)) = count(i64::MAX.cast_unsigned())? else { return Ok(None) };
    if newest <= seq {
        return Ok(None);
    }
    let mut step = 1;
    let mut before = loop {
        let back = after.saturating_sub(step);
        match count(back)? {
            Some((entry, change)) if change > seq => after = entry,
            Some((entry, _)) => break entry,
            None => break 0,
        }
        step *= 2;
    };
    while after - before > 1 {
        let middle = before + (after - before) / 2;
        match count(middle)? {
            Some((entry, change)) if change > seq => after = entry,
            Some(_) | None => before = middle,
        }
    }
    Ok(Some(after))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::{prop_assert, prop_assert_eq, proptest};

    use super::*;

    /// A chain whose entries told of so many changes each.
    fn chain(told: &[u64]) -> Connection {
        let conn = Connection::open_in_memory().unwrap();
        let schema = "CREATE TABLE audit (seq INTEGER PRIMARY KEY, at INTEGER, change INTEGER, changes TEXT)";
        conn.execute_batch(schema).unwrap();
        let mut change = 0;
        for (seq, told) in (1_u64..).zip(told) {
            let mut outbox = Told::default();
            for _ in 0..*told {
                outbox.push(&What::Profile { user: None }).unwrap();
            }
            change += told;
            let row = (seq, seq * 10, change, outbox.into_column());
            conn.execute("INSERT INTO audit VALUES (?1, ?2, ?3, ?4)", row).unwrap();
        }
        conn
    }

    proptest! {
        #[test]
        fn every_change_is_found_by_its_number(told in vec(0_u64..4, 0..60), limit in 1_usize..9) {
            let conn = chain(&told);
            let all: u64 = told.iter().sum();
            prop_assert_eq!(last(&conn).unwrap(), all);
            for seq in 0..=all + 1 {
                let found = after(&conn, seq, limit).unwrap();
                let numbers: Vec<u64> = found.iter().map(|change| change.seq.0).collect();
                let expected: Vec<u64> = (seq + 1..=all).take(limit).collect();
                prop_assert_eq!(numbers, expected);
                prop_assert!(stored(&conn, seq).unwrap().is_some() == (1..=all).contains(&seq));
            }
        }
    }
}
