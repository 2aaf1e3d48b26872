//! Memories and their versions.

use rustc_hash::FxHashMap;
use tokio_postgres::Row;
use yore_domain::memory::{Feedback, Memory, Usage, Version};
use yore_domain::query::{Filter, Page, PageRequest};
use yore_domain::{MemoryId, Timestamp, VersionId};
use yore_store::select::{kind_in, needs_value, status_in, version_passes};

use super::walk::{Pager, Place};
use super::{View, id_in, ids, limit_of};
use crate::error::Result;
use crate::vault::numbered;

/// The columns that [`memory_from`] reads, of a memory `m` and one of its versions `v`.
const MEMORY: &str = "v.row, v.data, m.since, m.legal_hold, m.recalled, m.recalls, m.followed,
    m.overridden, m.ignored, m.contradicted, m.demoted";

pub(super) async fn memory(view: &View<'_>, id: MemoryId) -> Result<Option<Memory>> {
    let sql = format!(
        "SELECT {MEMORY} FROM memory m JOIN version v ON v.vault = $1 AND v.row = m.head_row
         WHERE m.vault = $1 AND m.id = $2 AND m.class = ANY($3)"
    );
    let row = view.row(&sql, &[&id.bytes().as_slice(), &view.seen]).await?;
    row.map(|row| memory_from(view, &row)).transpose()
}

fn memory_from(view: &View<'_>, row: &Row) -> Result<Memory> {
    Ok(Memory {
        head: version_from(view, row)?,
        since: Timestamp::from_micros(row.get(2)),
        legal_hold: row.get(3),
        usage: usage_of(row, 4),
    })
}

/// Reads the columns row and data.
fn version_from(view: &View<'_>, row: &Row) -> Result<Version> {
    view.vault.open_value("version", &numbered(row.get(0)), row.get(1))
}

/// Reads the columns recalled, recalls, the four tallies and demoted.
fn usage_of(row: &Row, first: usize) -> Usage {
    let recalls: i64 = row.get(first + 1);
    Usage {
        recalled: row.get::<_, Option<i64>>(first).map(Timestamp::from_micros),
        recalls: recalls.cast_unsigned(),
        feedback: feedback_of(row, first + 2),
        demoted: row.get(first + 6),
    }
}

/// Reads the four tallies.
pub(crate) fn feedback_of(row: &Row, first: usize) -> Feedback {
    let tally = |column: usize| row.get::<_, i64>(column).try_into().unwrap_or(u32::MAX);
    Feedback {
        followed: tally(first),
        overridden: tally(first + 1),
        ignored: tally(first + 2),
        contradicted: tally(first + 3),
    }
}

pub(super) async fn as_of(view: &View<'_>, id: MemoryId, at: Timestamp) -> Result<Option<Version>> {
    let row = view
        .row(
            "SELECT v.row, v.data, v.class FROM memory m
                 JOIN version v ON v.vault = $1 AND v.memory = m.row
             WHERE m.vault = $1 AND m.id = $2 AND m.class = ANY($3) AND v.recorded <= $4
             ORDER BY v.number DESC LIMIT 1",
            &[&id.bytes().as_slice(), &view.seen, &at.micros()],
        )
        .await?;
    row.filter(|row| view.has(row.get(2))).map(|row| version_from(view, &row)).transpose()
}

pub(super) async fn history(view: &View<'_>, id: MemoryId) -> Result<Vec<Version>> {
    let rows = view
        .rows(
            "SELECT v.row, v.data FROM memory m JOIN version v ON v.vault = $1 AND v.memory = m.row
             WHERE m.vault = $1 AND m.id = $2 AND m.class = ANY($3) AND v.class = ANY($3)
             ORDER BY v.number",
            &[&id.bytes().as_slice(), &view.seen],
        )
        .await?;
    rows.iter().map(|row| version_from(view, row)).collect()
}

pub(super) async fn version(view: &View<'_>, id: VersionId) -> Result<Option<Version>> {
    let row = view
        .row(
            "SELECT v.row, v.data FROM version v JOIN memory m ON m.vault = $1 AND m.row = v.memory
             WHERE v.vault = $1 AND v.id = $2 AND m.class = ANY($3) AND v.class = ANY($3)",
            &[&id.bytes().as_slice(), &view.seen],
        )
        .await?;
    row.map(|row| version_from(view, &row)).transpose()
}

pub(super) async fn list(
    view: &View<'_>,
    filter: &Filter,
    page: &PageRequest,
) -> Result<Page<Memory>> {
    let mut pager = Pager::of(page);
    let mut items = Vec::new();
    each(view, filter, page, |at, id, memory| {
        let shown = pager.count(at, id);
        items.extend(shown.filter(|shown| *shown).map(|_| memory));
        shown.is_some()
    })
    .await?;
    Ok(Page { items, next: pager.next() })
}

pub(super) async fn count(view: &View<'_>, filter: &Filter) -> Result<u64> {
    let travels = filter.as_of.is_some() || filter.valid_at.is_some();
    let mut found = 0;
    if travels || needs_value(filter) {
        let page = PageRequest { limit: usize::MAX, ..PageRequest::default() };
        each(view, filter, &page, |_, _, _| {
            found += 1;
            true
        })
        .await?;
        return Ok(found);
    }
    // Columns decide everything.
    let rows = view
        .rows(
            "SELECT status, kind, count(*) FROM memory
             WHERE vault = $1 AND class = ANY($2) AND created >= $3 AND created < $4
             GROUP BY status, kind",
            &[
                &ids(&view.selection.narrowed(filter)),
                &filter.from.map_or(i64::MIN, Timestamp::micros),
                &filter.until.map_or(i64::MAX, Timestamp::micros),
            ],
        )
        .await?;
    for row in rows {
        if status_in(filter, code(row.get(0))) && kind_in(filter, code(row.get(1))) {
            found += row.get::<_, i64>(2).cast_unsigned();
        }
    }
    Ok(found)
}

/// A small number of a column.
fn code(value: i16) -> u8 {
    u8::try_from(value).unwrap_or(u8::MAX)
}

/// Visits the memories that pass a filter, in the page's order, until the visitor has enough.
async fn each(
    view: &View<'_>,
    filter: &Filter,
    page: &PageRequest,
    mut visit: impl FnMut(i64, [u8; 16], Memory) -> bool,
) -> Result<()> {
    let travels = filter.as_of.is_some() || filter.valid_at.is_some();
    // The past of a memory may have had another scope than its head has.
    let classes = if travels { view.seen.clone() } else { ids(&view.selection.narrowed(filter)) };
    let mut place = Place::of(page);
    let onward = place.onward("m.created", "m.id", "$3", "$4");
    let sql = format!(
        "SELECT {MEMORY}, m.created, m.id, m.status, m.kind, m.row
         FROM memory m JOIN version v ON v.vault = $1 AND v.row = m.head_row
         WHERE m.vault = $1 AND m.class = ANY($2) AND {onward} LIMIT $5"
    );
    loop {
        let rows = view.rows(&sql, &[&classes, &place.at, &place.id, &place.chunk]).await?;
        let past = if travels { past(view, filter, &rows).await? } else { FxHashMap::default() };
        for row in &rows {
            let (at, id) = (row.get::<_, i64>(11), id_in(row, 12)?);
            let memory = if travels {
                let version = past.get(&row.get::<_, i64>(15));
                version
                    .map(|version| Ok(Memory { head: version.clone(), ..memory_from(view, row)? }))
            } else {
                let passes = status_in(filter, code(row.get(13)))
                    && kind_in(filter, code(row.get(14)))
                    && filter.from.is_none_or(|from| from.micros() <= at)
                    && filter.until.is_none_or(|until| at < until.micros());
                passes.then(|| memory_from(view, row))
            };
            let memory = memory.transpose()?;
            let unread = !travels && !needs_value(filter);
            let passed = memory.filter(|memory| unread || version_passes(filter, &memory.head));
            if let Some(memory) = passed
                && !visit(at, id, memory)
            {
                return Ok(());
            }
            (place.at, place.id) = (at, id.to_vec());
        }
        if limit_of(rows.len()) < place.chunk {
            return Ok(());
        }
    }
}

/// The versions that answer for memories at another time, where that passes.
async fn past(
    view: &View<'_>,
    filter: &Filter,
    memories: &[Row],
) -> Result<FxHashMap<i64, Version>> {
    let homes: Vec<i64> = memories.iter().map(|row| row.get(15)).collect();
    let chosen = chosen(view, &homes, filter).await?;
    let rows: Vec<i64> = chosen
        .values()
        .filter(|chosen| view.has(chosen.class) && chosen.passes(filter))
        .map(|chosen| chosen.row)
        .collect();
    let sql = "SELECT row, data, memory FROM version WHERE vault = $1 AND row = ANY($2)";
    let found = view.rows(sql, &[&rows]).await?;
    found.iter().map(|row| Ok((row.get(2), version_from(view, row)?))).collect()
}

/// A version picked from its chain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chosen {
    /// Its row.
    pub(crate) row: i64,
    /// Its own class.
    pub(crate) class: i32,
    /// Its status code.
    status: i16,
    /// The status code of the newest version known then.
    standing: i16,
}

impl Chosen {
    pub(crate) fn passes(&self, filter: &Filter) -> bool {
        status_in(filter, code(self.status)) && status_in(filter, code(self.standing))
    }
}

/// Picks the versions that answer for memories.
///
/// Only versions the vault had taken in at `as_of` count. Without `valid_at` the newest of them
/// answers; with it, the newest that had begun to be true, if it had not ended: what a later
/// version says from an earlier date replaces what was said before.
pub(crate) async fn chosen(
    view: &View<'_>,
    memories: &[i64],
    filter: &Filter,
) -> Result<FxHashMap<i64, Chosen>> {
    let horizon = filter.as_of.map_or(i64::MAX, Timestamp::micros);
    let rows = view
        .rows(
            "SELECT memory, row, class, status, valid_from, valid_to FROM version
             WHERE vault = $1 AND memory = ANY($2) AND recorded <= $3
             ORDER BY memory, number DESC",
            &[&memories, &horizon],
        )
        .await?;
    let mut found = FxHashMap::default();
    for chain in rows.chunk_by(|a, b| a.get::<_, i64>(0) == b.get::<_, i64>(0)) {
        let standing: i16 = chain[0].get(3);
        let begun = |row: &&Row| match filter.valid_at {
            None => true,
            Some(at) => row.get::<_, i64>(4) <= at.micros(),
        };
        let Some(row) = chain.iter().find(begun) else { continue };
        let ended = filter
            .valid_at
            .is_some_and(|at| row.get::<_, Option<i64>>(5).is_some_and(|end| end < at.micros()));
        if !ended {
            let chosen =
                Chosen { row: row.get(1), class: row.get(2), status: row.get(3), standing };
            found.insert(row.get(0), chosen);
        }
    }
    Ok(found)
}

pub(super) async fn said(view: &View<'_>, statement: &str) -> Result<Option<MemoryId>> {
    let mac = view.vault.mac("statement", &[statement]);
    let row = view
        .row(
            "SELECT id FROM memory WHERE vault = $1 AND statement = $2 AND status <= 1
                 AND class = ANY($3) ORDER BY row LIMIT 1",
            &[&mac, &view.seen],
        )
        .await?;
    row.map(|row| id_in(&row, 0).map(MemoryId::from_bytes)).transpose()
}

pub(super) async fn ended(view: &View<'_>, now: Timestamp, limit: usize) -> Result<Vec<MemoryId>> {
    let rows = view
        .rows(
            "SELECT id FROM memory WHERE vault = $1 AND ends IS NOT NULL AND ends <= $2
                 AND (status <= 1 OR (status <= 3 AND NOT legal_hold)) AND class = ANY($3)
             ORDER BY ends, id LIMIT $4",
            &[&now.micros(), &view.seen, &limit_of(limit)],
        )
        .await?;
    rows.iter().map(|row| id_in(row, 0).map(MemoryId::from_bytes)).collect()
}
