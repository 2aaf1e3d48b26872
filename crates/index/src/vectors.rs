//! Contiguous int8 rows with a sign-bit plane, and the two scans over them.

use yore_kernels::{dot_i8, scan_hamming, scan_i8};

use crate::document::{Meta, Vector};
use crate::partition::Partition;
use crate::postings::reserve;
use crate::top::{Hit, Top};

/// Up to this many selected rows every row is compared exactly.
const EXACT_LIMIT: usize = 4_000;
/// Rows rescored exactly after the sign-bit scan: at least this many …
const RESCORE_FLOOR: usize = 2_000;
/// … and at least this share of the selected rows.
const RESCORE_SHARE: usize = 25;
/// Rows compared in one call of a kernel.
const BLOCK: usize = 512;
/// Distances looked at together when picking the near ones.
const STRIPE: usize = 32;

/// Vectors of one kind in one partition; rows are dense, slots say whose they are.
#[derive(Debug)]
pub(crate) struct Plane {
    dims: usize,
    words: usize,
    values: Vec<i8>,
    scales: Vec<f32>,
    // Signs around zero, not around a mean: a mean would carry other documents into the comparison.
    bits: Vec<u64>,
    slots: Vec<u32>,
}

impl Plane {
    pub(crate) fn new(dims: usize) -> Plane {
        Plane {
            dims,
            words: dims.div_ceil(64),
            values: Vec::new(),
            scales: Vec::new(),
            bits: Vec::new(),
            slots: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Makes room for so many rows.
    pub(crate) fn expect(&mut self, rows: usize) {
        self.values.reserve_exact(rows * self.dims);
        self.bits.reserve_exact(rows * self.words);
        self.scales.reserve_exact(rows);
        self.slots.reserve_exact(rows);
    }

    pub(crate) fn push(&mut self, slot: u32, vector: Vector<'_>) -> u32 {
        let row = self.slots.len();
        reserve(&mut self.values, self.dims);
        reserve(&mut self.bits, self.words);
        reserve(&mut self.scales, 1);
        reserve(&mut self.slots, 1);
        self.values.extend_from_slice(vector.values);
        self.scales.push(vector.scale);
        self.slots.push(slot);
        self.bits.extend(signs(vector.values));
        u32::try_from(row).expect("invariant: a partition has at most 2^28 rows")
    }

    /// Removes a row by moving the last one into its place; returns the slot whose row moved.
    pub(crate) fn swap_remove(&mut self, row: u32) -> Option<u32> {
        let (row, last) = (row as usize, self.slots.len() - 1);
        self.values.copy_within(last * self.dims.., row * self.dims);
        self.values[last * self.dims..].fill(0);
        self.values.truncate(last * self.dims);
        self.bits.copy_within(last * self.words.., row * self.words);
        self.bits.truncate(last * self.words);
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
            + self.bits.capacity() * 8
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
}

impl Which {
    fn of(self, part: &Partition) -> &Plane {
        match self {
            Which::Statics => &part.statics,
            Which::Dense => &part.dense,
        }
    }
}

pub(crate) fn cosine(a: Vector<'_>, b: Vector<'_>) -> f32 {
    dot_i8(a.values, b.values) as f32 * a.scale * b.scale
}

fn signs(values: &[i8]) -> impl Iterator<Item = u64> + '_ {
    values.chunks(64).map(|chunk| {
        chunk.iter().enumerate().fold(0u64, |word, (at, &value)| word | u64::from(value > 0) << at)
    })
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
    by_signs(parts, which, query, depth, admit, rows)
}

/// Compares the given slots by their static vectors.
pub(crate) fn nearest_of(
    parts: &[&Partition],
    slots: impl Iterator<Item = (u32, u32)>,
    query: Vector<'_>,
    depth: usize,
    admit: &dyn Fn(u64, &Meta) -> bool,
) -> Vec<Hit> {
    let mut sieve = Sieve::new(parts, Which::Statics, query, depth, admit);
    for (part, slot) in slots {
        let home = parts[part as usize];
        let row = home.docs[slot as usize].statics;
        sieve.offer(
            part as usize,
            row as usize,
            dot_i8(home.statics.vector(row).values, query.values),
        );
    }
    sieve.finish().0
}

fn by_signs(
    parts: &[&Partition],
    which: Which,
    query: Vector<'_>,
    depth: usize,
    admit: &dyn Fn(u64, &Meta) -> bool,
    rows: usize,
) -> Vec<Hit> {
    let wanted: Vec<u64> = signs(query.values).collect();
    // Distances crowd around one value: four tables keep one increment from waiting for the last.
    let mut tables = vec![[0u32; 4]; query.values.len() + 65];
    let mut distances: Vec<u16> = Vec::with_capacity(rows);
    let mut block = [0u32; BLOCK];
    for part in parts {
        let plane = which.of(part);
        for rows in plane.bits.chunks(BLOCK * plane.words) {
            let block = &mut block[..rows.len() / plane.words];
            scan_hamming(&wanted, rows, block);
            for (at, &distance) in block.iter().enumerate() {
                tables[distance as usize][at & 3] += 1;
            }
            distances.extend(block.iter().map(|&distance| distance as u16));
        }
    }
    let histogram: Vec<u32> = tables.iter().map(|counts| counts.iter().sum()).collect();
    let mut goal = RESCORE_FLOOR.max(rows / RESCORE_SHARE).max(depth * 4);
    loop {
        // Every row at the limiting distance is taken, so the cut never depends on row order.
        let limit = limit_for(&histogram, goal);
        let mut sieve = Sieve::new(parts, which, query, depth, admit);
        let mut base = 0;
        for (at, part) in parts.iter().enumerate() {
            let count = which.of(part).len();
            for (stripe, near) in distances[base..base + count].chunks(STRIPE).enumerate() {
                // Most stripes hold nothing near enough; the minimum tells without a branch per row.
                if near.iter().fold(u16::MAX, |least, &distance| least.min(distance)) > limit {
                    continue;
                }
                for (row, &distance) in (stripe * STRIPE..).zip(near) {
                    if distance <= limit {
                        let values = which.of(part).vector(row as u32).values;
                        sieve.offer(at, row, dot_i8(values, query.values));
                    }
                }
            }
            base += count;
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

fn limit_for(histogram: &[u32], goal: usize) -> u16 {
    let mut seen = 0usize;
    for (distance, &count) in histogram.iter().enumerate() {
        seen += count as usize;
        if seen >= goal {
            return distance as u16;
        }
    }
    u16::MAX
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
