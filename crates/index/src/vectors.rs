//! Contiguous int8 rows with a sign-bit plane, and the two scans over them.

use yore_kernels::{dot_i8, pick_i8, scan_i8};

use crate::document::{Meta, Vector};
use crate::partition::Partition;
use crate::postings::reserve;
use crate::signs::{Signs, Weights, limit_for, shares};
use crate::top::{Hit, Top};

/// Up to this many selected rows every row is compared exactly.
const EXACT_LIMIT: usize = 4_000;
/// Rows rescored exactly after the sign-bit scan: at least this many …
const RESCORE_FLOOR: usize = 2_000;
/// … and at least this share of the selected rows.
const RESCORE_SHARE: usize = 50;
/// The documents without a dense vector are looked for among all when they are at least this share.
const PENDING_SHARE: usize = 8;
/// Rows compared in one call of a kernel.
const BLOCK: usize = 512;

/// Vectors of one kind in one partition; rows are dense, slots say whose they are.
#[derive(Debug)]
pub(crate) struct Plane {
    dims: usize,
    values: Vec<i8>,
    scales: Vec<f32>,
    // Signs around zero, not around a mean: a mean would carry other documents into the comparison.
    signs: Signs,
    slots: Vec<u32>,
}

impl Plane {
    pub(crate) fn new(dims: usize) -> Plane {
        Plane {
            dims,
            values: Vec::new(),
            scales: Vec::new(),
            signs: Signs::new(dims),
            slots: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Makes room for so many rows.
    pub(crate) fn expect(&mut self, rows: usize) {
        self.values.reserve_exact(rows * self.dims);
        self.signs.expect(rows);
        self.scales.reserve_exact(rows);
        self.slots.reserve_exact(rows);
    }

    pub(crate) fn push(&mut self, slot: u32, vector: Vector<'_>) -> u32 {
        let row = self.slots.len();
        reserve(&mut self.values, self.dims);
        reserve(&mut self.scales, 1);
        reserve(&mut self.slots, 1);
        self.values.extend_from_slice(vector.values);
        self.scales.push(vector.scale);
        self.slots.push(slot);
        self.signs.push(vector.values);
        u32::try_from(row).expect("invariant: a partition has at most 2^28 rows")
    }

    /// Removes a row by moving the last one into its place; returns the slot whose row moved.
    pub(crate) fn swap_remove(&mut self, row: u32) -> Option<u32> {
        let (row, last) = (row as usize, self.slots.len() - 1);
        self.values.copy_within(last * self.dims.., row * self.dims);
        self.values[last * self.dims..].fill(0);
        self.values.truncate(last * self.dims);
        self.signs.swap_remove(row);
        self.scales.swap_remove(row);
        self.slots.swap_remove(row);
        self.slots.get(row).copied()
    }

    pub(crate) fn vector(&self, row: u32) -> Vector<'_> {
        let row = row as usize;
        Vector {
            values: &self.values[row * self.dims..(row + 1) * self.dims],
            scale: self.scales[row],
        }
    }

    pub(crate) fn cosine(&self, row: u32, query: Vector<'_>) -> f32 {
        cosine(self.vector(row), query)
    }

    pub(crate) fn memory(&self) -> usize {
        self.values.capacity()
            + self.scales.capacity() * 4
            + self.signs.memory()
            + self.slots.capacity() * 4
    }
}

/// Which plane of a partition a scan reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// The static vectors of all documents.
    Statics,
    /// The dense vectors of the documents that have one.
    Dense,
    /// The static vectors of the documents that have no dense one.
    Pending,
}

impl Which {
    fn of(self, part: &Partition) -> &Plane {
        match self {
            Which::Statics | Which::Pending => &part.statics,
            Which::Dense => &part.dense,
        }
    }
}

pub(crate) fn cosine(a: Vector<'_>, b: Vector<'_>) -> f32 {
    dot_i8(a.values, b.values) as f32 * a.scale * b.scale
}

/// Returns the nearest admitted documents of the selected partitions.
pub(crate) fn nearest(
    parts: &[&Partition],
    which: Which,
    query: Vector<'_>,
    depth: usize,
    admit: &dyn Fn(u64, &Meta) -> bool,
) -> Vec<Hit> {
    let rows: usize = parts.iter().map(|part| which.of(part).len()).sum();
    if rows <= EXACT_LIMIT {
        let mut sieve = Sieve::new(parts, which, query, depth, admit);
        for (at, part) in parts.iter().enumerate() {
            let plane = which.of(part);
            let mut products = [0i32; BLOCK];
            for (block, rows) in plane.values.chunks(BLOCK * plane.dims.max(1)).enumerate() {
                let products = &mut products[..rows.len() / plane.dims];
                scan_i8(query.values, rows, products);
                for (row, product) in (block * BLOCK..).zip(products) {
                    sieve.offer(at, row, *product);
                }
            }
        }
        return sieve.finish().0;
    }
    by_signs(parts, which, query, depth, admit, (rows, rows))
}

/// Returns the nearest by static vector of the documents that have no dense one yet.
pub(crate) fn nearest_pending(
    parts: &[&Partition],
    query: Vector<'_>,
    depth: usize,
    admit: &dyn Fn(u64, &Meta) -> bool,
) -> Vec<Hit> {
    let pending: usize = parts.iter().map(|part| part.pending.len()).sum();
    let rows: usize = parts.iter().map(|part| part.statics.len()).sum();
    // After an import nearly all wait, and the signs say which of them are worth a look. Of few,
    // looking at each costs less than weighing all the others with them.
    if pending > EXACT_LIMIT && pending * PENDING_SHARE >= rows {
        return by_signs(parts, Which::Pending, query, depth, admit, (rows, pending));
    }
    let mut sieve = Sieve::new(parts, Which::Pending, query, depth, admit);
    for (at, part) in parts.iter().enumerate() {
        for &slot in &part.pending {
            let row = part.docs[slot as usize].statics;
            sieve.offer(at, row as usize, dot_i8(part.statics.vector(row).values, query.values));
        }
    }
    sieve.finish().0
}

fn by_signs(
    parts: &[&Partition],
    which: Which,
    query: Vector<'_>,
    depth: usize,
    admit: &dyn Fn(u64, &Meta) -> bool,
    (rows, meant): (usize, usize),
) -> Vec<Hit> {
    let shares = shares(query.values);
    let weights: Vec<Weights> =
        parts.iter().map(|part| which.of(part).signs.weigh(&shares)).collect();
    let wanted = RESCORE_FLOOR.max(meant / RESCORE_SHARE).max(depth * 4);
    let mut goal = wanted * rows / meant.max(1);
    loop {
        // Every row of the least weight is taken, so the cut never depends on row order.
        let limit = limit_for(&weights, goal);
        let mut sieve = Sieve::new(parts, which, query, depth, admit);
        let mut picks = Vec::with_capacity(BLOCK);
        let mut products = [0i32; BLOCK];
        for (at, (part, weights)) in parts.iter().zip(&weights).enumerate() {
            let plane = which.of(part);
            let mut near = weights.reaching(limit);
            loop {
                picks.clear();
                picks.extend(near.by_ref().take(BLOCK));
                if picks.is_empty() {
                    break;
                }
                let products = &mut products[..picks.len()];
                pick_i8(query.values, &plane.values, &picks, products);
                for (row, product) in picks.iter().zip(products) {
                    sieve.offer(at, *row as usize, *product);
                }
            }
        }
        let (hits, admitted, refused) = sieve.finish();
        // A filter that refuses much leaves too few rescored rows: widen by what it lets through.
        let needed =
            (goal * (admitted + refused)).checked_div(admitted).unwrap_or(goal.saturating_mul(16));
        if refused == 0 || goal >= rows || (needed < goal * 2 && hits.len() >= depth) {
            return hits;
        }
        goal = needed.max(goal * 2).min(rows);
    }
}

/// Scores rows exactly and asks the filter only about those that would enter the list.
struct Sieve<'a> {
    parts: &'a [&'a Partition],
    which: Which,
    query: Vector<'a>,
    admit: &'a dyn Fn(u64, &Meta) -> bool,
    top: Top<'a>,
    admitted: usize,
    refused: usize,
}

impl<'a> Sieve<'a> {
    fn new(
        parts: &'a [&'a Partition],
        which: Which,
        query: Vector<'a>,
        depth: usize,
        admit: &'a dyn Fn(u64, &Meta) -> bool,
    ) -> Sieve<'a> {
        Sieve { parts, which, query, admit, top: Top::new(parts, depth), admitted: 0, refused: 0 }
    }

    #[inline]
    fn offer(&mut self, part: usize, row: usize, product: i32) {
        let plane = self.which.of(self.parts[part]);
        let score = product as f32 * plane.scales[row] * self.query.scale;
        if score >= self.top.floor() {
            let slot = plane.slots[row];
            let doc = &self.parts[part].docs[slot as usize];
            if self.which == Which::Pending && doc.dense().is_some() {
                return;
            }
            if (self.admit)(doc.key, &doc.meta) {
                self.admitted += 1;
                self.top.push(Hit { score, part: part as u32, slot });
            } else {
                self.refused += 1;
            }
        }
    }

    fn finish(self) -> (Vec<Hit>, usize, usize) {
        (self.top.finish(), self.admitted, self.refused)
    }
}
