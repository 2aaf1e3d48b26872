//! Memories and their versions.

use rusqlite::{OptionalExtension, Row};
use yore_domain::memory::{Feedback, Memory, Usage, Version};
use yore_domain::query::{Filter, Page, PageRequest};
use yore_domain::{MemoryId, Timestamp, VersionId};

use super::walk::{Pager, Road, Step, walk};
use super::{View, choose};
use crate::indexes::statement_number;
use crate::select::{its_versions, json, kind_in, needs_value, status_in, version_passes};

const ROAD: Road = Road {
    newest: "SELECT row, created, id, status, kind FROM memory
        WHERE class = ?1 AND (created, id) < (?2, ?3) ORDER BY created DESC, id DESC LIMIT ?4",
    oldest: "SELECT row, created, id, status, kind FROM memory
        WHERE class = ?1 AND (created, id) > (?2, ?3) ORDER BY created, id LIMIT ?4",
};

/// Reads a memory. For an id that is missing a row of another memory is looked up in its place,
/// so that the time of the answer does not tell it from one that is hidden.
pub(super) fn memory(view: &View<'_>, id: MemoryId) -> rusqlite::Result<Option<Memory>> {
    let mut statement = view.conn.prepare_cached(
        "SELECT m.class, v.data, m.since, m.legal_hold, m.recalled, m.recalls, m.followed,
            m.overridden, m.ignored, m.contradicted, m.demoted, m.id = ?1
         FROM (SELECT max(row) AS last FROM memory) t
         CROSS JOIN memory m
            ON m.row = coalesce((SELECT row FROM memory WHERE id = ?1), 1 + ?2 % t.last)
         JOIN version v ON v.row = m.head_row",
    )?;
    statement
        .query_one((id.bytes(), instead(id)), |row| {
            let seen = row.get::<_, bool>(11)? & view.selection.has(row.get(0)?);
            seen.then(|| memory_from(row)).transpose()
        })
        .optional()
        .map(Option::flatten)
}

/// Which row is looked up where there is none: any, as long as the id says which.
fn instead(id: MemoryId) -> u32 {
    let [a, b, c, d, ..] = id.bytes();
    u32::from_be_bytes([a, b, c, d])
}

/// Reads a memory by its row, with the given version as its head.
fn memory_of(view: &View<'_>, row: u64, version: u64) -> rusqlite::Result<Option<Memory>> {
    view.conn
        .prepare_cached(
            "SELECT m.class, v.data, m.since, m.legal_hold, m.recalled, m.recalls, m.followed,
                m.overridden, m.ignored, m.contradicted, m.demoted
             FROM memory m JOIN version v ON v.memory = m.row WHERE m.row = ?1 AND v.row = ?2",
        )?
        .query_one((row, version), memory_from)
        .optional()
}

fn memory_from(row: &Row<'_>) -> rusqlite::Result<Memory> {
    Ok(Memory {
        head: json(row, 1)?,
        since: Timestamp::from_micros(row.get(2)?),
        legal_hold: row.get(3)?,
        usage: usage_of(row, 4)?,
    })
}

/// Reads the columns recalled, recalls, the four tallies and demoted.
pub(crate) fn usage_of(row: &Row<'_>, first: usize) -> rusqlite::Result<Usage> {
    Ok(Usage {
        recalled: row.get::<_, Option<i64>>(first)?.map(Timestamp::from_micros),
        recalls: row.get(first + 1)?,
        feedback: Feedback {
            followed: row.get(first + 2)?,
            overridden: row.get(first + 3)?,
            ignored: row.get(first + 4)?,
            contradicted: row.get(first + 5)?,
        },
        demoted: row.get(first + 6)?,
    })
}

pub(super) fn as_of(
    view: &View<'_>,
    id: MemoryId,
    at: Timestamp,
) -> rusqlite::Result<Option<Version>> {
    view.conn
        .prepare_cached(concat!(
            "SELECT m.class, v.class, v.data, m.id = ?1
             FROM (SELECT max(row) AS last FROM memory) t
             CROSS JOIN memory m
                ON m.row = coalesce((SELECT row FROM memory WHERE id = ?1), 1 + ?3 % t.last)
             JOIN version v ON ",
            its_versions!(),
            "
             WHERE v.recorded <= ?2 ORDER BY v.number DESC LIMIT 1"
        ))?
        .query_one((id.bytes(), at.micros(), instead(id)), |row| {
            Ok(visible_version(view, row)?.filter(|_| row.get(3) == Ok(true)))
        })
        .optional()
        .map(Option::flatten)
}

pub(super) fn history(view: &View<'_>, id: MemoryId) -> rusqlite::Result<Vec<Version>> {
    let mut statement = view.conn.prepare_cached(concat!(
        "SELECT m.class, v.class, v.data FROM memory m JOIN version v
            ON ",
        its_versions!(),
        "
         WHERE m.id = ?1 ORDER BY v.number"
    ))?;
    let rows = statement.query_map([id.bytes()], |row| visible_version(view, row))?;
    rows.filter_map(Result::transpose).collect()
}

pub(super) fn version(view: &View<'_>, id: VersionId) -> rusqlite::Result<Option<Version>> {
    view.conn
        .prepare_cached(
            "SELECT m.class, v.class, v.data FROM version v JOIN memory m ON m.row = v.memory
             WHERE v.id = ?1",
        )?
        .query_one([id.bytes()], |row| visible_version(view, row))
        .optional()
        .map(Option::flatten)
}

/// Reads the columns memory class, version class and data.
fn visible_version(view: &View<'_>, row: &Row<'_>) -> rusqlite::Result<Option<Version>> {
    let seen = view.selection.has(row.get(0)?) && view.selection.has(row.get(1)?);
    seen.then(|| json(row, 2)).transpose()
}

pub(super) fn list(
    view: &View<'_>,
    filter: &Filter,
    page: &PageRequest,
) -> rusqlite::Result<Page<Memory>> {
    let mut pager = Pager::of(page);
    let mut items = Vec::new();
    each(view, filter, page, |step, memory| {
        let memory = match memory {
            Found::Read(memory) => Some(memory),
            Found::Unread if pager.wants_value() => head_of(view, step.row)?.map(Box::new),
            Found::Unread => None,
        };
        match pager.count(step) {
            Some(true) => items.extend(memory.map(|memory| *memory)),
            Some(false) => {}
            None => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(Page { items, next: pager.next() })
}

pub(super) fn count(view: &View<'_>, filter: &Filter) -> rusqlite::Result<u64> {
    let travels = filter.as_of.is_some() || filter.valid_at.is_some();
    if !travels && !needs_value(filter) {
        return count_rows(view, filter);
    }
    let mut found = 0;
    let page = PageRequest { limit: usize::MAX, ..PageRequest::default() };
    each(view, filter, &page, |_, _| {
        found += 1;
        Ok(true)
    })?;
    Ok(found)
}

/// Counts where columns decide everything.
fn count_rows(view: &View<'_>, filter: &Filter) -> rusqlite::Result<u64> {
    let mut statement = view.conn.prepare_cached(
        "SELECT status, kind, count(*) FROM memory
         WHERE class = ?1 AND created >= ?2 AND created < ?3 GROUP BY status, kind",
    )?;
    let from = filter.from.map_or(i64::MIN, Timestamp::micros);
    let until = filter.until.map_or(i64::MAX, Timestamp::micros);
    let mut found = 0;
    for class in view.selection.narrowed(filter).ids() {
        let mut rows = statement.query((class, from, until))?;
        while let Some(row) = rows.next()? {
            if status_in(filter, row.get(0)?) && kind_in(filter, row.get(1)?) {
                found += row.get::<_, u64>(2)?;
            }
        }
    }
    Ok(found)
}

/// A memory that passed, read already if that was needed to know.
enum Found {
    Read(Box<Memory>),
    Unread,
}

/// Visits the memories that pass a filter, in the page's order.
fn each(
    view: &View<'_>,
    filter: &Filter,
    page: &PageRequest,
    mut visit: impl FnMut(&Step, Found) -> rusqlite::Result<bool>,
) -> rusqlite::Result<()> {
    let travels = filter.as_of.is_some() || filter.valid_at.is_some();
    // The past of a memory may have had another scope than its head has.
    let selection = if travels { view.selection.clone() } else { view.selection.narrowed(filter) };
    walk(view.conn, &ROAD, &selection, page, |step| {
        if travels {
            return match travelled(view, filter, &step)? {
                Some(memory) => visit(&step, Found::Read(Box::new(memory))),
                None => Ok(true),
            };
        }
        if !status_in(filter, step.status)
            || !kind_in(filter, step.kind)
            || filter.from.is_some_and(|from| step.at < from.micros())
            || filter.until.is_some_and(|until| until.micros() <= step.at)
        {
            return Ok(true);
        }
        if !needs_value(filter) {
            return visit(&step, Found::Unread);
        }
        match head_of(view, step.row)?.filter(|memory| version_passes(filter, &memory.head)) {
            Some(memory) => visit(&step, Found::Read(Box::new(memory))),
            None => Ok(true),
        }
    })
}

fn head_of(view: &View<'_>, row: u64) -> rusqlite::Result<Option<Memory>> {
    view.conn
        .prepare_cached(
            "SELECT m.class, v.data, m.since, m.legal_hold, m.recalled, m.recalls, m.followed,
                m.overridden, m.ignored, m.contradicted, m.demoted
             FROM memory m JOIN version v ON v.row = m.head_row WHERE m.row = ?1",
        )?
        .query_one([row], memory_from)
        .optional()
}

/// A memory as it stood or was true at another time, if that passes.
fn travelled(view: &View<'_>, filter: &Filter, step: &Step) -> rusqlite::Result<Option<Memory>> {
    let chosen = choose(view.conn, step.row, filter.as_of, filter.valid_at)?.filter(|chosen| {
        view.selection.has(chosen.class)
            && status_in(filter, chosen.status)
            && status_in(filter, chosen.standing)
    });
    let Some(chosen) = chosen else { return Ok(None) };
    let memory = memory_of(view, step.row, chosen.row)?;
    Ok(memory.filter(|memory| version_passes(filter, &memory.head)))
}

pub(super) fn said(view: &View<'_>, statement: &str) -> rusqlite::Result<Option<MemoryId>> {
    let number = statement_number(statement);
    let rows: Vec<u64> = view.vault.indexes.read().saying(number).collect();
    let mut query = view.conn.prepare_cached(
        "SELECT id, class FROM memory WHERE row = ?1 AND statement = ?2 AND status <= 1",
    )?;
    for row in rows {
        let found: Option<([u8; 16], u32)> =
            query.query_row((row, statement), |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        if let Some((id, _)) = found.filter(|(_, class)| view.selection.has(*class)) {
            return Ok(Some(MemoryId::from_bytes(id)));
        }
    }
    Ok(None)
}

pub(super) fn ended(
    view: &View<'_>,
    now: Timestamp,
    limit: usize,
) -> rusqlite::Result<Vec<MemoryId>> {
    let mut query = view.conn.prepare_cached(
        "SELECT id, class FROM memory
         WHERE ends IS NOT NULL AND ends <= ?1
             AND (status <= 1 OR (status <= 3 AND legal_hold = 0)) ORDER BY ends, id",
    )?;
    let mut rows = query.query([now.micros()])?;
    let mut found = Vec::new();
    while found.len() < limit
        && let Some(row) = rows.next()?
    {
        if view.selection.has(row.get(1)?) {
            found.push(MemoryId::from_bytes(row.get(0)?));
        }
    }
    Ok(found)
}
