//! Chance that can be repeated: one seed makes one run.

use std::time::Duration;

/// A small generator (splitmix64). Nothing secret comes from it.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Another one, for somebody who works beside this one.
    pub(super) fn fork(&mut self) -> Self {
        Self(self.next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below a bound, which is not 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Whether something happens that happens once in so many times.
    pub(super) fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let at = self.below(from.len() as u64);
        &from[usize::try_from(at).unwrap_or_default()]
    }

    /// A time in milliseconds, from one up to another.
    pub(super) fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_micros(1000 * from + self.below(1000 * (to - from).max(1)))
    }

    /// An id, as clients make them.
    pub(super) fn uuid(&mut self) -> String {
        let (high, low) = (self.next(), self.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            0x8000 | (low >> 48) & 0x3fff,
            low & 0xffff_ffff_ffff,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_makes_one_run() {
        let (mut one, mut other) = (Random::new(7), Random::new(7));
        assert_eq!(one.uuid(), other.uuid());
        assert_eq!(one.fork().below(1000), other.fork().below(1000));
        assert_ne!(Random::new(8).uuid(), Random::new(7).uuid());
    }

    #[test]
    fn what_is_drawn_lies_inside_its_bounds() {
        let mut random = Random::new(1);
        for _ in 0..1000 {
            let time = random.millis(5, 9);
            assert!(time >= Duration::from_millis(5) && time < Duration::from_millis(9));
            assert!([1, 2, 3].contains(random.pick(&[1, 2, 3])));
        }
        let id = random.uuid();
        assert_eq!((id.len(), &id[14..15]), (36, "4"));
        assert!("89ab".contains(&id[19..20]), "{id}");
    }
}
