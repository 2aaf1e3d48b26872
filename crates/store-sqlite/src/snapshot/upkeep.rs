//! What tells an owner how the whole vault is: which memories need care, and what was said where.

use yore_domain::MemoryId;
use yore_store::snapshot::{Concern, Tally};

use super::View;

/// The condition of a concern with its two numbers, and what comes first.
fn condition(concern: Concern) -> (&'static str, [i64; 2], &'static str) {
    match concern {
        Concern::Unused(before) => {
            ("since < ?1 AND recalls = 0 AND ?2 = 0", [before.micros(), 0], "since")
        }
        Concern::Stale(since) => (
            "since < ?1 AND coalesce(recalled, 0) < ?1 AND ?2 = 0",
            [since.micros(), 0],
            "coalesce(recalled, since)",
        ),
        Concern::Ending(from, until) => {
            ("ends > ?1 AND ends < ?2", [from.micros(), until.micros()], "ends")
        }
        Concern::Changing(versions) => {
            ("head > ?1 AND ?2 = 0", [i64::from(versions), 0], "head DESC")
        }
    }
}

pub(super) fn concerning(
    view: &View<'_>,
    concern: Concern,
    limit: usize,
) -> rusqlite::Result<(u64, Vec<MemoryId>)> {
    let (condition, [first, second], order) = condition(concern);
    let count = format!("SELECT count(*) FROM memory WHERE status <= 1 AND {condition}");
    let count = view.conn.prepare_cached(&count)?.query_one([first, second], |row| row.get(0))?;
    let named = format!(
        "SELECT id FROM memory WHERE status <= 1 AND {condition} ORDER BY {order}, id LIMIT ?3"
    );
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut query = view.conn.prepare_cached(&named)?;
    let rows =
        query.query_map([first, second, limit], |row| row.get(0).map(MemoryId::from_bytes))?;
    Ok((count, rows.collect::<rusqlite::Result<_>>()?))
}

pub(super) fn tally(view: &View<'_>) -> rusqlite::Result<Vec<Tally>> {
    let mut query = view.conn.prepare_cached(
        "SELECT platform, strftime('%Y-%m', created / 1000000, 'unixepoch') AS month, count(*),
            sum(messages)
         FROM conversation GROUP BY platform, month ORDER BY month, platform",
    )?;
    let rows = query.query_map([], |row| {
        Ok(Tally {
            platform: row.get(0)?,
            month: row.get::<_, Option<String>>(1)?.unwrap_or_default(),
            conversations: row.get(2)?,
            messages: row.get(3)?,
        })
    })?;
    rows.collect()
}
