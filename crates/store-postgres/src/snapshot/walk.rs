//! Walking rows in order of time, a piece at a time.

use yore_domain::Timestamp;
use yore_domain::query::{Order, PageRequest, Position};

/// Rows fetched at once.
const FEWEST: usize = 32;
const MOST: usize = 512;

/// A place on the way: rows after it are still to come.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) newest_first: bool,
    pub(super) at: i64,
    pub(super) id: Vec<u8>,
    pub(super) chunk: i64,
}

impl Place {
    /// Where a page begins.
    pub(super) fn of(page: &PageRequest) -> Self {
        let newest_first = page.order == Order::NewestFirst;
        // Every id is less than seventeen bytes of ones, and more than none at all.
        let edge = if newest_first { (i64::MAX, vec![0xff; 17]) } else { (i64::MIN, Vec::new()) };
        let (at, id) = page.after.map_or(edge, |after| (after.at.micros(), after.id.to_vec()));
        let wanted = page.limit.saturating_add(page.offset).saturating_add(1);
        let chunk = i64::try_from(wanted.clamp(FEWEST, MOST)).unwrap_or(i64::MAX);
        Self { newest_first, at, id, chunk }
    }

    /// The condition and the order of a statement that goes on from here.
    pub(super) fn onward(&self, time: &str, id: &str, at: &str, after: &str) -> String {
        let (beyond, order) = if self.newest_first { ("<", "DESC") } else { (">", "ASC") };
        format!("({time}, {id}) {beyond} ({at}, {after}) ORDER BY {time} {order}, {id} {order}")
    }
}

/// Collects a page: skips the offset, stops after the limit, remembers where to go on.
#[derive(Debug)]
pub(super) struct Pager {
    skip: usize,
    limit: usize,
    taken: usize,
    last: Option<Position>,
    more: bool,
}

impl Pager {
    pub(super) fn of(page: &PageRequest) -> Self {
        Self { skip: page.offset, limit: page.limit, taken: 0, last: None, more: false }
    }

    /// Counts a row that passed: `Some(true)` shows it, `Some(false)` skips it, `None` ends.
    pub(super) fn count(&mut self, at: i64, id: [u8; 16]) -> Option<bool> {
        if self.skip > 0 {
            self.skip -= 1;
            return Some(false);
        }
        if self.taken == self.limit {
            self.more = self.limit > 0;
            return None;
        }
        self.taken += 1;
        self.last = Some(Position { at: Timestamp::from_micros(at), id });
        Some(true)
    }

    pub(super) fn next(&self) -> Option<Position> {
        self.last.filter(|_| self.more)
    }
}
