//! Posting lists (slot and term frequency in one word) and the length code of a document.
//!
//! Most terms are in few documents and most postings are of few terms. A short list is a plain
//! vector; a long one is cut into blocks that hold the distances between slots in a byte or two
//! each, with a plain tail that takes what is new. A change inside decodes one block.

use crate::codec::{get_varint, put_varint};

/// Slots are numbered below this, so that a slot and a frequency share 32 bits.
pub(crate) const SLOT_LIMIT: u32 = 1 << 28;
const FREQUENCY_BITS: u32 = 4;
const FREQUENCY_MASK: u32 = (1 << FREQUENCY_BITS) - 1;
/// Entries of a full block; a list with fewer is not packed.
const BLOCK: usize = 256;
/// Stands in a packed entry for a frequency that has a byte of its own.
const ESCAPE: u64 = 3;

/// The documents of one partition that hold a term, ascending by slot.
#[derive(Clone, Debug)]
pub(crate) enum List {
    One(u32),
    Few(Vec<u32>),
    Many(Box<Run>),
}

/// A long list: packed blocks, then what came since.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    blocks: Vec<Block>,
    tail: Vec<u32>,
    /// Entries in the blocks.
    packed: usize,
}

/// Some entries in a row, packed.
#[derive(Clone, Debug)]
struct Block {
    /// The slots of its first and its last entry.
    first: u32,
    last: u32,
    count: u32,
    bytes: Box<[u8]>,
}

impl Block {
    /// Packs entries, of which there is at least one.
    fn pack(entries: &[u32]) -> Self {
        let mut bytes = Vec::with_capacity(entries.len() * 2);
        let first = slot_of(entries[0]);
        let mut next = first;
        for &entry in entries {
            let (slot, frequency) = (slot_of(entry), u64::from(frequency_of(entry)));
            let distance = u64::from(slot - next) << 2;
            match frequency {
                1..=3 => put_varint(&mut bytes, distance | (frequency - 1)),
                _ => {
                    put_varint(&mut bytes, distance | ESCAPE);
                    bytes.push(frequency as u8);
                }
            }
            next = slot + 1;
        }
        Self { first, last: next - 1, count: entries.len() as u32, bytes: bytes.into() }
    }

    #[inline]
    fn each(&self, mut take: impl FnMut(u32)) {
        let mut rest = &*self.bytes;
        let mut next = self.first;
        for _ in 0..self.count {
            let Some(word) = word(&mut rest) else { return };
            let slot = next + (word >> 2) as u32;
            let frequency = if word & 3 == ESCAPE {
                let Some((&byte, after)) = rest.split_first() else { return };
                rest = after;
                u32::from(byte)
            } else {
                (word & 3) as u32 + 1
            };
            take(slot << FREQUENCY_BITS | frequency);
            next = slot + 1;
        }
    }

    fn entries(&self) -> Vec<u32> {
        let mut entries = Vec::with_capacity(self.count as usize + 1);
        self.each(|entry| entries.push(entry));
        entries
    }
}

/// Reads a number that mostly has one byte or two.
#[inline]
fn word(rest: &mut &[u8]) -> Option<u64> {
    match **rest {
        [low, ref after @ ..] if low < 0x80 => {
            *rest = after;
            Some(u64::from(low))
        }
        [low, high, ref after @ ..] if high < 0x80 => {
            *rest = after;
            Some(u64::from(low & 0x7f) | u64::from(high) << 7)
        }
        _ => get_varint(rest),
    }
}

impl List {
    /// How many documents there are.
    pub(crate) fn len(&self) -> usize {
        match self {
            List::One(_) => 1,
            List::Few(entries) => entries.len(),
            List::Many(run) => run.packed + run.tail.len(),
        }
    }

    /// Hands out every entry, ascending.
    #[inline]
    pub(crate) fn each(&self, mut take: impl FnMut(u32)) {
        match self {
            List::One(entry) => take(*entry),
            List::Few(entries) => entries.iter().copied().for_each(take),
            List::Many(run) => {
                run.blocks.iter().for_each(|block| block.each(&mut take));
                run.tail.iter().copied().for_each(take);
            }
        }
    }

    /// Begins at the first entry.
    pub(crate) fn walk(&self) -> Walk<'_> {
        match self {
            List::One(entry) => {
                Walk { blocks: &[], open: Vec::new(), at: 0, tail: std::slice::from_ref(entry) }
            }
            List::Few(entries) => Walk { blocks: &[], open: Vec::new(), at: 0, tail: entries },
            List::Many(run) => {
                Walk { blocks: &run.blocks, open: Vec::new(), at: 0, tail: &run.tail }
            }
        }
    }

    pub(crate) fn insert(&mut self, entry: u32) {
        match self {
            List::One(only) => *self = List::Few(vec![(*only).min(entry), (*only).max(entry)]),
            List::Few(entries) => {
                place(entries, entry);
                if entries.len() >= 2 * BLOCK {
                    let mut run = Run { tail: std::mem::take(entries), ..Run::default() };
                    run.seal();
                    *self = List::Many(Box::new(run));
                }
            }
            List::Many(run) => run.insert(entry),
        }
    }

    /// Removes the slot's entry; returns whether the list is now empty.
    pub(crate) fn remove(&mut self, slot: u32) -> bool {
        match self {
            List::One(entry) => slot_of(*entry) == slot,
            List::Few(entries) => {
                take_out(entries, slot);
                entries.is_empty()
            }
            List::Many(run) => {
                run.remove(slot);
                run.packed == 0 && run.tail.is_empty()
            }
        }
    }

    pub(crate) fn memory(&self) -> usize {
        match self {
            List::One(_) => 0,
            List::Few(entries) => entries.capacity() * size_of::<u32>(),
            List::Many(run) => {
                size_of::<Run>()
                    + run.tail.capacity() * size_of::<u32>()
                    + run.blocks.capacity() * size_of::<Block>()
                    + run.blocks.iter().map(|block| block.bytes.len()).sum::<usize>()
            }
        }
    }
}

impl Run {
    /// Packs full blocks of the tail.
    fn seal(&mut self) {
        let full = self.tail.len() / BLOCK * BLOCK;
        for entries in self.tail[..full].chunks_exact(BLOCK) {
            reserve(&mut self.blocks, 1);
            self.blocks.push(Block::pack(entries));
        }
        self.packed += full;
        self.tail = self.tail[full..].to_vec();
    }

    fn insert(&mut self, entry: u32) {
        let slot = slot_of(entry);
        if self.blocks.last().is_none_or(|last| last.last < slot) {
            place(&mut self.tail, entry);
            if self.tail.len() >= BLOCK {
                self.seal();
            }
            return;
        }
        let at = self.blocks.partition_point(|block| block.last < slot);
        let mut entries = self.blocks[at].entries();
        place(&mut entries, entry);
        self.packed += 1;
        if entries.len() < 2 * BLOCK {
            self.blocks[at] = Block::pack(&entries);
        } else {
            let (left, right) = entries.split_at(BLOCK);
            self.blocks[at] = Block::pack(right);
            self.blocks.insert(at, Block::pack(left));
        }
    }

    fn remove(&mut self, slot: u32) {
        let at = self.blocks.partition_point(|block| block.last < slot);
        let Some(block) = self.blocks.get_mut(at) else {
            take_out(&mut self.tail, slot);
            return;
        };
        let mut entries = block.entries();
        if !take_out(&mut entries, slot) {
            return;
        }
        self.packed -= 1;
        if entries.is_empty() {
            self.blocks.remove(at);
        } else {
            *block = Block::pack(&entries);
        }
    }
}

/// A walk through a list, a stretch of slots at a time.
#[derive(Debug)]
pub(crate) struct Walk<'a> {
    blocks: &'a [Block],
    /// The block that a stretch ended in, and how far it was read.
    open: Vec<u32>,
    at: usize,
    tail: &'a [u32],
}

impl Walk<'_> {
    /// Hands out the entries of slots below this one that were not handed out before.
    #[inline]
    pub(crate) fn below(&mut self, end: u32, mut take: impl FnMut(u32)) {
        while let Some(&entry) = self.open.get(self.at) {
            if slot_of(entry) >= end {
                return;
            }
            take(entry);
            self.at += 1;
        }
        while let Some((block, rest)) = self.blocks.split_first() {
            if block.first >= end {
                return;
            }
            self.blocks = rest;
            if block.last < end {
                block.each(&mut take);
                continue;
            }
            self.open.clear();
            block.each(|entry| self.open.push(entry));
            self.at = self.open.partition_point(|&entry| slot_of(entry) < end);
            self.open[..self.at].iter().copied().for_each(take);
            return;
        }
        let cut = self.tail.partition_point(|&entry| slot_of(entry) < end);
        let (here, later) = self.tail.split_at(cut);
        self.tail = later;
        here.iter().copied().for_each(take);
    }
}

fn place(entries: &mut Vec<u32>, entry: u32) {
    reserve(entries, 1);
    if entries.last().is_none_or(|&last| last < entry) {
        entries.push(entry);
    } else {
        let at = entries.partition_point(|&other| other < entry);
        entries.insert(at, entry);
    }
}

/// Removes the slot's entry; returns whether it was there.
fn take_out(entries: &mut Vec<u32>, slot: u32) -> bool {
    let at = entries.partition_point(|&entry| slot_of(entry) < slot);
    let there = entries.get(at).is_some_and(|&entry| slot_of(entry) == slot);
    if there {
        entries.remove(at);
    }
    there
}

pub(crate) fn entry(slot: u32, frequency: u32) -> u32 {
    slot << FREQUENCY_BITS | cap_frequency(frequency)
}

pub(crate) fn cap_frequency(frequency: u32) -> u32 {
    frequency.min(FREQUENCY_MASK)
}

#[inline]
pub(crate) fn slot_of(entry: u32) -> u32 {
    entry >> FREQUENCY_BITS
}

#[inline]
pub(crate) fn frequency_of(entry: u32) -> u32 {
    entry & FREQUENCY_MASK
}

/// Grows by an eighth instead of doubling: resident memory is the limit here, not appends.
pub(crate) fn reserve<T>(vec: &mut Vec<T>, extra: usize) {
    if vec.capacity() - vec.len() < extra {
        vec.reserve_exact(extra.max(vec.len() / 8).max(2));
    }
}

/// The frequency a term counts with: beyond a few, more of the same adds nothing.
#[must_use]
pub fn frequency_as_scored(frequency: u32) -> u32 {
    cap_frequency(frequency)
}

/// The length a text is scored with: longer ones are rounded down.
#[must_use]
pub fn length_as_scored(length: u32) -> u32 {
    length_of(length_code(length))
}

/// Codes a length in one byte: exact below 128, then eight steps to the octave.
pub(crate) fn length_code(length: u32) -> u8 {
    if length < 128 {
        return length as u8;
    }
    let octave = length.ilog2() - 7;
    let step = (length >> (octave + 4)) & 7;
    (128 + octave * 8 + step).min(255) as u8
}

/// Returns the length a code stands for.
pub(crate) fn length_of(code: u8) -> u32 {
    if code < 128 {
        return u32::from(code);
    }
    let (octave, step) = (u32::from(code - 128) / 8, u32::from(code - 128) % 8);
    (8 + step) << (octave + 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_codes_are_monotone_and_close() {
        let mut last = 0;
        for length in (0..5000).chain((5000..4_000_000).step_by(997)) {
            let code = length_code(length);
            assert!(code >= last);
            last = code;
            let decoded = length_of(code);
            assert!(
                decoded <= length && f64::from(length - decoded) <= f64::from(length) / 8.0,
                "{length} {decoded}"
            );
        }
    }

    fn slots(list: &List) -> Vec<u32> {
        let mut found = Vec::new();
        list.each(|entry| found.push(slot_of(entry)));
        found
    }

    #[test]
    fn a_list_stays_sorted_through_inserts_and_removals() {
        let mut list = List::One(entry(5, 1));
        for slot in [9, 2, 7, 1] {
            list.insert(entry(slot, 3));
        }
        assert_eq!(slots(&list), [1, 2, 5, 7, 9]);
        assert!(!list.remove(5));
        assert!(!list.remove(6));
        assert_eq!(slots(&list), [1, 2, 7, 9]);
        for slot in [1, 2, 7] {
            assert!(!list.remove(slot));
        }
        assert!(list.remove(9));
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(40))]
        #[test]
        fn a_long_list_holds_what_a_map_would(
            first in proptest::collection::btree_map(0u32..20_000, 1u32..16, 1..3000),
            changes in proptest::collection::vec((0u32..20_000, 1u32..16), 0..400),
            stretch in 1u32..9000,
        ) {
            let mut known = std::collections::BTreeMap::new();
            let mut list: Option<List> = None;
            let put = |list: &mut Option<List>, slot: u32, frequency: u32| {
                let new = entry(slot, frequency);
                match list {
                    Some(list) => list.insert(new),
                    None => *list = Some(List::One(new)),
                }
            };
            for (&slot, &frequency) in &first {
                put(&mut list, slot, frequency);
                known.insert(slot, frequency);
            }
            for &(slot, frequency) in &changes {
                if known.remove(&slot).is_some() {
                    if list.as_mut().is_some_and(|list| list.remove(slot)) {
                        list = None;
                    }
                } else {
                    put(&mut list, slot, frequency);
                    known.insert(slot, frequency);
                }
            }
            let expected: Vec<u32> = known.iter().map(|(&s, &f)| entry(s, f)).collect();
            let mut found = Vec::new();
            if let Some(list) = &list {
                list.each(|entry| found.push(entry));
                proptest::prop_assert_eq!(list.len(), expected.len());
                let (mut walk, mut walked, mut end) = (list.walk(), Vec::new(), 0);
                while end < 20_000 {
                    end += stretch;
                    walk.below(end, |entry| walked.push(entry));
                    proptest::prop_assert!(walked.last().is_none_or(|&last| slot_of(last) < end));
                }
                proptest::prop_assert_eq!(&walked, &found);
            }
            proptest::prop_assert_eq!(found, expected);
        }
    }
}
