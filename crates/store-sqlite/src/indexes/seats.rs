//! Where memories sit in their sessions.
//!
//! A seat is counted inside one session and one class, in the order in which the memories began.
//! So it depends on nothing that a lens could hide, and building from rows gives the same seats.

use rustc_hash::FxHashMap;

/// A session and the class of the memories in it.
pub(super) type Bench = (u64, u32);

#[derive(Debug, Default)]
pub(super) struct Seats {
    benches: FxHashMap<Bench, Vec<u64>>,
    taken: FxHashMap<u64, Bench>,
}

impl Seats {
    /// Moves a memory to a bench, or off all of them. Returns others whose seat changed.
    pub(super) fn sit(&mut self, memory: u64, bench: Option<Bench>) -> Vec<u64> {
        let before = self.taken.get(&memory).copied();
        if before == bench {
            return Vec::new();
        }
        let mut moved = Vec::new();
        if let Some(before) = before {
            self.taken.remove(&memory);
            let row = self.benches.entry(before).or_default();
            let at = row.partition_point(|other| *other < memory);
            row.remove(at);
            moved.extend_from_slice(&row[at..]);
            if row.is_empty() {
                self.benches.remove(&before);
            }
        }
        if let Some(bench) = bench {
            self.taken.insert(memory, bench);
            let row = self.benches.entry(bench).or_default();
            let at = row.partition_point(|other| *other < memory);
            row.insert(at, memory);
            moved.extend_from_slice(&row[at + 1..]);
        }
        moved
    }

    /// The number of a memory's seat; zero without one.
    pub(super) fn number(&self, memory: u64) -> u32 {
        let Some(row) = self.taken.get(&memory).and_then(|bench| self.benches.get(bench)) else {
            return 0;
        };
        u32::try_from(row.partition_point(|other| *other < memory)).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_close_up_and_open_in_the_order_of_memories() {
        let mut seats = Seats::default();
        let numbers = |seats: &Seats| [1, 2, 3, 4].map(|memory| seats.number(memory));
        for memory in [1, 2, 4] {
            assert!(seats.sit(memory, Some((7, 0))).is_empty());
        }
        assert_eq!(numbers(&seats), [0, 1, 0, 2]);
        assert_eq!(seats.sit(2, Some((7, 1))), [4], "another class is another bench");
        assert_eq!(numbers(&seats), [0, 0, 0, 1]);
        assert_eq!(seats.sit(3, Some((7, 0))), [4]);
        assert_eq!(seats.sit(2, Some((7, 0))), [3, 4]);
        assert_eq!(numbers(&seats), [0, 1, 2, 3]);
        assert_eq!(seats.sit(1, None), [2, 3, 4]);
        assert!(seats.sit(1, None).is_empty());
        assert_eq!(numbers(&seats), [0, 0, 1, 2]);
    }
}
