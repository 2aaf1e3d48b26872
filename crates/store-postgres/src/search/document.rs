//! Documents as a search sees them, and which of them a lens and a filter select.

use tokio_postgres::Row;
use yore_domain::query::Filter;
use yore_store::Source;

use crate::error::Result;
use crate::pool::Param;
use crate::snapshot::{View, id_in, ids};

use super::source_code;

/// The columns that [`Document::of`] reads.
pub(super) const COLUMNS: &str = "d.row, d.home, d.id, d.live, d.head, d.own, d.seen, d.kind,
    d.status, d.created, d.valid_from, d.valid_to, d.recorded, d.expires, d.session, d.ordinal,
    d.length";
/// How many columns that are.
pub(super) const WIDTH: usize = 17;

/// What is in clear of a document.
#[derive(Clone, Debug)]
pub(super) struct Document {
    pub(super) row: i64,
    pub(super) home: i64,
    pub(super) id: [u8; 16],
    pub(super) live: bool,
    pub(super) head: bool,
    pub(super) own: i32,
    pub(super) seen: i32,
    pub(super) kind: u8,
    pub(super) status: u8,
    pub(super) created: i64,
    pub(super) valid_from: i64,
    pub(super) valid_to: i64,
    pub(super) recorded: i64,
    pub(super) expires: i64,
    pub(super) session: i64,
    pub(super) ordinal: i64,
    pub(super) length: u32,
}

impl Document {
    /// Reads the columns of [`COLUMNS`], which begin at the given one.
    pub(super) fn of(row: &Row, first: usize) -> Result<Self> {
        let code = |column: usize| u8::try_from(row.get::<_, i16>(column)).unwrap_or(u8::MAX);
        Ok(Self {
            row: row.get(first),
            home: row.get(first + 1),
            id: id_in(row, first + 2)?,
            live: row.get(first + 3),
            head: row.get(first + 4),
            own: row.get(first + 5),
            seen: row.get(first + 6),
            kind: code(first + 7),
            status: code(first + 8),
            created: row.get(first + 9),
            valid_from: row.get(first + 10),
            valid_to: row.get(first + 11),
            recorded: row.get(first + 12),
            expires: row.get(first + 13),
            session: row.get(first + 14),
            ordinal: row.get(first + 15),
            length: row.get::<_, i32>(first + 16).cast_unsigned(),
        })
    }

    /// What breaks ties.
    pub(super) const fn rank(&self) -> ([u8; 16], i64) {
        (self.id, self.row)
    }

    /// Which partition it lies in.
    pub(super) const fn partition(&self) -> (bool, i32, i32) {
        (self.live, self.own, self.seen)
    }
}

/// The partitions of one corpus that a search may look at.
#[derive(Debug)]
pub(super) struct Scope {
    pub(super) source: Source,
    code: i16,
    past: bool,
    own: Vec<i32>,
    seen: Vec<i32>,
}

/// The condition on a document `d`, over the first five parameters.
pub(super) const SELECTED: &str = "d.vault = $1 AND d.source = $2 AND (d.live OR $3)
    AND d.own = ANY($4) AND d.seen = ANY($5)";

impl Scope {
    pub(super) fn of(view: &View<'_>, filter: &Filter, source: Source) -> Self {
        let travels = filter.as_of.is_some() || filter.valid_at.is_some();
        let past = travels || !filter.statuses.iter().all(|status| status.is_live());
        Self {
            source,
            code: source_code(source),
            past: past && source == Source::Version,
            own: ids(&view.selection.narrowed(filter)),
            seen: view.seen.clone(),
        }
    }

    /// The parameters of [`SELECTED`] after the vault, and further ones.
    pub(super) fn with<'a>(&'a self, more: &[Param<'a>]) -> Vec<Param<'a>> {
        let mut params: Vec<Param<'a>> = vec![&self.code, &self.past, &self.own, &self.seen];
        params.extend_from_slice(more);
        params
    }
}
