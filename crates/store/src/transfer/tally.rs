//! Counting and digesting rows, so that two stores can be compared without holding either.
//!
//! The digest is a sum over the rows: backends that find rows by keyed digests hand them out in
//! an order of their own.

use std::collections::BTreeMap;

use yore_canon::chain;
use yore_canon::hash::Blake3;

use super::Row;

/// A sum of digests, and of how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    count: u64,
    words: [u64; 4],
}

impl Sum {
    /// Adds a digest as a number of 256 bits.
    fn add(&mut self, digest: [u8; 32]) {
        self.count += 1;
        let mut carry = false;
        for (word, bytes) in self.words.iter_mut().zip(digest.chunks_exact(8)) {
            let mut one = [0; 8];
            one.copy_from_slice(bytes);
            let (sum, over) = word.overflowing_add(u64::from_le_bytes(one));
            let (sum, again) = sum.overflowing_add(carry.into());
            (*word, carry) = (sum, over || again);
        }
    }
}

/// What was read of a vault.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    sums: BTreeMap<&'static str, Sum>,
    lost: BTreeMap<&'static str, u64>,
    /// The entry of the audit chain that was read last.
    last: Option<(u64, Option<Blake3>)>,
    broken: u64,
}

impl Tally {
    /// Adds a row.
    pub fn add(&mut self, row: &Row) {
        if let Row::Lost(what) = row {
            *self.lost.entry(what).or_default() += 1;
            return;
        }
        if let Row::Entry(entry) = row {
            let (last, before) = self.last.take().unwrap_or((0, None));
            let hash = <[u8; 32]>::try_from(entry.hash.as_slice()).ok().map(Blake3::from_bytes);
            let follows = entry.seq == last + 1
                && hash == Some(chain::link(before.as_ref(), entry.data.as_bytes()));
            self.broken += u64::from(!follows);
            self.last = Some((entry.seq, hash));
        }
        self.sums.entry(row.kind()).or_default().add(row.digest());
    }

    /// How many rows were read.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.sums.values().map(|sum| sum.count).sum()
    }

    /// How many rows there are of each kind.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.sums.iter().map(|(kind, sum)| (*kind, sum.count)).collect()
    }

    /// What stays behind, and how often.
    #[must_use]
    pub const fn lost(&self) -> &BTreeMap<&'static str, u64> {
        &self.lost
    }

    /// How many entries of the audit chain do not follow the one before.
    #[must_use]
    pub const fn broken(&self) -> u64 {
        self.broken
    }

    /// One digest of everything.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut hasher = Blake3::hasher();
        for (kind, sum) in &self.sums {
            hasher.update(kind).update([0]).update(sum.count.to_le_bytes());
            for word in sum.words {
                hasher.update(word.to_le_bytes());
            }
        }
        hasher.finish().to_hex()
    }

    /// Says in what two differ; nothing when they are the same.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut kinds: Vec<&str> = self.sums.keys().chain(other.sums.keys()).copied().collect();
        kinds.sort_unstable();
        kinds.dedup();
        let of = |tally: &Self, kind: &str| tally.sums.get(kind).copied().unwrap_or_default();
        kinds
            .into_iter()
            .filter_map(|kind| {
                let (here, there) = (of(self, kind), of(other, kind));
                if here == there {
                    None
                } else if here.count == there.count {
                    Some(format!("{kind}: as many, but not the same"))
                } else {
                    Some(format!("{kind}: {} and {}", here.count, there.count))
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(rows: &[Row]) -> Tally {
        let mut tally = Tally::default();
        rows.iter().for_each(|row| tally.add(row));
        tally
    }

    #[test]
    fn the_order_of_rows_does_not_matter_and_everything_else_does() {
        let setting = |name: &str, value: u64| Row::Setting(name.into(), value.into());
        let both = tally(&[setting("a", 1), setting("b", 2)]);
        assert_eq!(both.differences(&tally(&[setting("b", 2), setting("a", 1)])), [""; 0]);
        assert_eq!(both.digest(), tally(&[setting("b", 2), setting("a", 1)]).digest());
        let other = tally(&[setting("a", 2), setting("b", 1)]);
        assert_eq!(both.differences(&other), ["settings: as many, but not the same"]);
        assert_ne!(both.digest(), other.digest());
        let twice = tally(&[setting("a", 1), setting("b", 2), setting("b", 2)]);
        assert_eq!(both.differences(&twice), ["settings: 2 and 3"]);
        let lost = tally(&[setting("a", 1), setting("b", 2), Row::Lost("statements")]);
        assert!(both.differences(&lost).is_empty() && lost.lost()["statements"] == 1);
    }

    #[test]
    fn a_sum_carries_from_word_to_word() {
        let (mut sum, mut one) = (Sum::default(), [0; 32]);
        one[0] = 1;
        sum.add([0xff; 32]);
        sum.add(one);
        assert_eq!(sum, Sum { count: 2, words: [0; 4] });
    }
}
