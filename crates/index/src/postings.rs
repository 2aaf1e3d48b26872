//! Posting lists (slot and term frequency in one word) and the length code of a document.

/// Slots are numbered below this, so that a slot and a frequency share 32 bits.
pub(crate) const SLOT_LIMIT: u32 = 1 << 28;
const FREQUENCY_BITS: u32 = 4;
const FREQUENCY_MASK: u32 = (1 << FREQUENCY_BITS) - 1;

/// The documents of one partition that hold a term, ascending by slot.
#[derive(Clone, Debug)]
pub(crate) enum List {
    One(u32),
    Many(Vec<u32>),
}

impl List {
    pub(crate) fn entries(&self) -> &[u32] {
        match self {
            List::One(entry) => std::slice::from_ref(entry),
            List::Many(entries) => entries,
        }
    }

    pub(crate) fn insert(&mut self, entry: u32) {
        match self {
            List::One(only) => *self = List::Many(vec![(*only).min(entry), (*only).max(entry)]),
            List::Many(entries) => {
                reserve(entries, 1);
                if entries.last().is_none_or(|&last| last < entry) {
                    entries.push(entry);
                } else {
                    let at = entries.partition_point(|&other| other < entry);
                    entries.insert(at, entry);
                }
            }
        }
    }

    /// Removes the slot's entry; returns whether the list is now empty.
    pub(crate) fn remove(&mut self, slot: u32) -> bool {
        match self {
            List::One(entry) => slot_of(*entry) == slot,
            List::Many(entries) => {
                let at = entries.partition_point(|&entry| slot_of(entry) < slot);
                if entries.get(at).is_some_and(|&entry| slot_of(entry) == slot) {
                    entries.remove(at);
                }
                entries.is_empty()
            }
        }
    }

    pub(crate) fn memory(&self) -> usize {
        match self {
            List::One(_) => 0,
            List::Many(entries) => entries.capacity() * size_of::<u32>(),
        }
    }
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

    #[test]
    fn a_list_stays_sorted_through_inserts_and_removals() {
        let mut list = List::One(entry(5, 1));
        for slot in [9, 2, 7, 1] {
            list.insert(entry(slot, 3));
        }
        assert_eq!(list.entries().iter().map(|&e| slot_of(e)).collect::<Vec<_>>(), [1, 2, 5, 7, 9]);
        assert!(!list.remove(5));
        assert!(!list.remove(6));
        assert_eq!(list.entries().iter().map(|&e| slot_of(e)).collect::<Vec<_>>(), [1, 2, 7, 9]);
        for slot in [1, 2, 7] {
            assert!(!list.remove(slot));
        }
        assert!(list.remove(9));
    }
}
