//! Walking rows in order of time, class by class, so that a page costs what it shows.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use rusqlite::Connection;
use yore_domain::Timestamp;
use yore_domain::query::{Order, PageRequest, Position};

use crate::select::Selection;

/// Rows fetched at once from one class.
const FEWEST: usize = 8;
const MOST: usize = 256;

/// What is walked: statements that list one class after a place, newest and oldest first.
pub(super) struct Road {
    pub(super) newest: &'static str,
    pub(super) oldest: &'static str,
}

/// One row on the road.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Step {
    pub(super) at: i64,
    pub(super) id: [u8; 16],
    pub(super) row: u64,
    pub(super) status: u8,
    pub(super) kind: u8,
}

impl Step {
    pub(super) fn position(&self) -> Position {
        Position { at: Timestamp::from_micros(self.at), id: self.id }
    }
}

/// Hands steps to the visitor in order until it has enough. It says whether to go on.
///
/// Every class is a lane that is ordered by itself; the lanes are merged and refilled as they
/// run dry, so nothing is read twice and little is read in vain.
pub(super) fn walk(
    conn: &Connection,
    road: &Road,
    selection: &Selection,
    page: &PageRequest,
    mut visit: impl FnMut(Step) -> rusqlite::Result<bool>,
) -> rusqlite::Result<()> {
    let newest = page.order == Order::NewestFirst;
    let mut statement = conn.prepare_cached(if newest { road.newest } else { road.oldest })?;
    let edge = if newest { (i64::MAX, vec![0xff; 17]) } else { (i64::MIN, Vec::new()) };
    let start = page.after.map_or(edge, |after| (after.at.micros(), after.id.to_vec()));
    let wanted = page.limit.saturating_add(page.offset).saturating_add(1);
    let ids: Vec<u32> = selection.ids().collect();
    let chunk = (wanted / ids.len().max(1)).clamp(FEWEST, MOST);
    let mut refill = |class: u32, place: &(i64, Vec<u8>)| -> rusqlite::Result<VecDeque<Step>> {
        statement
            .query_map((class, place.0, &place.1, chunk), |row| {
                Ok(Step {
                    row: row.get(0)?,
                    at: row.get(1)?,
                    id: row.get(2)?,
                    status: row.get(3)?,
                    kind: row.get(4)?,
                })
            })?
            .collect()
    };
    // A heap gives its greatest first: the newest, or the least when the order is turned round.
    let ranked = |step: Step| if newest { (Some(step), None) } else { (None, Some(Reverse(step))) };
    let mut lanes: Vec<VecDeque<Step>> = Vec::with_capacity(ids.len());
    let mut heads = BinaryHeap::new();
    for (lane, class) in ids.iter().enumerate() {
        let mut steps = refill(*class, &start)?;
        heads.extend(steps.pop_front().map(|step| (ranked(step), lane)));
        lanes.push(steps);
    }
    while let Some(((up, down), lane)) = heads.pop() {
        let Some(step) = up.or(down.map(|Reverse(step)| step)) else { break };
        if !visit(step)? {
            break;
        }
        if lanes[lane].is_empty() {
            lanes[lane] = refill(ids[lane], &(step.at, step.id.to_vec()))?;
        }
        heads.extend(lanes[lane].pop_front().map(|step| (ranked(step), lane)));
    }
    Ok(())
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

    /// Whether the next row that passes would be shown, so that it is worth reading.
    pub(super) fn wants_value(&self) -> bool {
        self.skip == 0 && self.taken < self.limit
    }

    /// Counts a row that passed: `Some(true)` shows it, `Some(false)` skips it, `None` ends.
    pub(super) fn count(&mut self, step: &Step) -> Option<bool> {
        if self.skip > 0 {
            self.skip -= 1;
            return Some(false);
        }
        if self.taken == self.limit {
            self.more = self.limit > 0;
            return None;
        }
        self.taken += 1;
        self.last = Some(step.position());
        Some(true)
    }

    pub(super) fn next(&self) -> Option<Position> {
        self.last.filter(|_| self.more)
    }
}
