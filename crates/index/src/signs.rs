//! The signs of rows, one bit a dimension, and the scan that says which rows may be near.
//!
//! Sixty-four rows lie together, byte by byte, so that a query meets all of them side by side. The
//! query keeps its numbers: what it is weighed against is only whether a row's are positive. That
//! orders rows far better than counting bits that differ would.

use yore_kernels::{SIGN_ROWS, Shares, scan_signs};

use crate::postings::reserve;

/// Dimensions in a byte.
const BYTE: usize = 8;
/// Rows looked at together when picking the near ones.
const STRIPE: usize = 32;
/// The most that one half of a byte may add.
const SHARE: u32 = 127;

/// The signs of the rows of one plane.
#[derive(Debug)]
pub(crate) struct Signs {
    /// Bytes of a row.
    width: usize,
    rows: usize,
    blocks: Vec<u8>,
}

impl Signs {
    pub(crate) fn new(dims: usize) -> Self {
        Self { width: dims.div_ceil(BYTE), rows: 0, blocks: Vec::new() }
    }

    /// Makes room for so many rows.
    pub(crate) fn expect(&mut self, rows: usize) {
        let all = (self.rows + rows).div_ceil(SIGN_ROWS) * SIGN_ROWS * self.width;
        self.blocks.reserve_exact(all.saturating_sub(self.blocks.len()));
    }

    pub(crate) fn push(&mut self, values: &[i8]) {
        if self.rows.is_multiple_of(SIGN_ROWS) {
            let block = SIGN_ROWS * self.width;
            reserve(&mut self.blocks, block);
            self.blocks.resize(self.blocks.len() + block, 0);
        }
        self.rows += 1;
        for (at, chunk) in values.chunks(BYTE).enumerate() {
            let byte = chunk.iter().rev().fold(0, |byte, value| byte << 1 | u8::from(*value > 0));
            let place = self.place(self.rows - 1, at);
            self.blocks[place] = byte;
        }
    }

    /// Removes a row by moving the last one into its place.
    pub(crate) fn swap_remove(&mut self, row: usize) {
        let last = self.rows - 1;
        for at in 0..self.width {
            let (to, from) = (self.place(row, at), self.place(last, at));
            self.blocks[to] = self.blocks[from];
            self.blocks[from] = 0;
        }
        self.rows = last;
        self.blocks.truncate(last.div_ceil(SIGN_ROWS) * SIGN_ROWS * self.width);
    }

    /// Says how near each row may be.
    pub(crate) fn weigh(&self, shares: &[Shares]) -> Weights {
        let mut rows = vec![0; self.blocks.len() / self.width.max(1)];
        scan_signs(shares, &self.blocks, &mut rows);
        // The last block has room for rows that are not there.
        rows.truncate(self.rows);
        let most = rows.chunks(STRIPE).map(|near| near.iter().fold(0, |most, one| most.max(*one)));
        Weights { most: most.collect(), rows }
    }

    pub(crate) fn memory(&self) -> usize {
        self.blocks.capacity()
    }

    fn place(&self, row: usize, at: usize) -> usize {
        (row / SIGN_ROWS * self.width + at) * SIGN_ROWS + row % SIGN_ROWS
    }
}

/// How near the rows of one plane may be, more being nearer.
#[derive(Debug)]
pub(crate) struct Weights {
    rows: Vec<u16>,
    /// The greatest of each stripe: most stripes hold nothing near, which costs one look.
    most: Vec<u16>,
}

impl Weights {
    /// The rows that weigh so much, in order.
    pub(crate) fn reaching(&self, limit: u16) -> impl Iterator<Item = u32> + '_ {
        self.stripes(limit).flat_map(move |(first, near)| {
            let reach = (first..).zip(near).filter(move |(_, weight)| **weight >= limit);
            reach.map(|(row, _)| row)
        })
    }

    /// The stripes that hold a row of such a weight, each with the number of its first row.
    fn stripes(&self, limit: u16) -> impl Iterator<Item = (u32, &[u16])> + '_ {
        let stripes = (0u32..).step_by(STRIPE).zip(self.rows.chunks(STRIPE)).zip(&self.most);
        stripes.filter(move |(_, most)| **most >= limit).map(|(stripe, _)| stripe)
    }
}

/// The greatest weight that at least so many rows reach; none where there are fewer rows.
pub(crate) fn limit_for(planes: &[Weights], goal: usize) -> u16 {
    let mut most: Vec<u16> = planes.iter().flat_map(|plane| &plane.most).copied().collect();
    let greatest = most.iter().copied().max().unwrap_or(0);
    // As many stripes hold a row of this weight, so at least as many rows reach it: only the
    // weights above need to be told apart.
    let least = match goal.checked_sub(1) {
        Some(at) if at < most.len() => *most.select_nth_unstable_by(at, |a, b| b.cmp(a)).1,
        Some(_) | None => 0,
    };
    let mut counts = vec![0usize; usize::from(greatest - least) + 1];
    for (_, near) in planes.iter().flat_map(|plane| plane.stripes(least)) {
        for above in near.iter().filter_map(|weight| weight.checked_sub(least)) {
            counts[usize::from(above)] += 1;
        }
    }
    let mut seen = 0;
    for (weight, count) in (least..=greatest).zip(counts).rev() {
        seen += count;
        if seen >= goal {
            return weight;
        }
    }
    0
}

/// What a query's dimensions add where a row's are positive: for every eight of them the sums of
/// all choices among the first four, then among the last, as small whole numbers.
pub(crate) fn shares(query: &[i8]) -> Vec<Shares> {
    let sums: Vec<[[i32; 16]; 2]> = query
        .chunks(BYTE)
        .map(|byte| {
            [0, 4].map(|first| {
                std::array::from_fn(|choice| {
                    let chosen = byte.iter().skip(first).take(4).enumerate();
                    chosen
                        .filter(|(bit, _)| choice >> bit & 1 == 1)
                        .map(|(_, value)| i32::from(*value))
                        .sum()
                })
            })
        })
        .collect();
    let halves = || sums.as_flattened().iter();
    let range = |half: &[i32; 16]| {
        let (least, most) = (half.iter().min(), half.iter().max());
        least.zip(most).map_or(0, |(least, most)| most.abs_diff(*least))
    };
    // Each half fits its bits, and all of them together those of a row's sum.
    let widest = halves().map(range).max().unwrap_or(0);
    let total: u32 = halves().map(range).sum();
    let rounding = u32::try_from(sums.len()).unwrap_or(u32::MAX);
    let room = u32::from(u16::MAX).saturating_sub(rounding).max(1);
    let step = widest.div_ceil(SHARE).max(total.div_ceil(room)).max(1);
    sums.iter()
        .map(|halves| {
            let mut shares = [0; 32];
            for (shares, half) in shares.chunks_exact_mut(16).zip(halves) {
                let least = half.iter().copied().min().unwrap_or(0);
                for (share, sum) in shares.iter_mut().zip(half) {
                    let rounded = (sum.abs_diff(least) + step / 2) / step;
                    *share = u8::try_from(rounded.min(SHARE)).unwrap_or(u8::MAX);
                }
            }
            shares
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn weighed(signs: &Signs, query: &[i8]) -> Vec<u16> {
        signs.weigh(&shares(query)).rows
    }

    proptest! {
        #[test]
        fn rows_weigh_the_same_wherever_they_lie(
            (query, rows) in (1usize..40).prop_flat_map(|dims| {
                (vec(any::<i8>(), dims), vec(vec(any::<i8>(), dims), 1..150))
            }),
            removed in vec(any::<prop::sample::Index>(), 0..60),
        ) {
            let mut signs = Signs::new(query.len());
            let alone = |row: &Vec<i8>| {
                let mut signs = Signs::new(query.len());
                signs.push(row);
                weighed(&signs, &query)[0]
            };
            let mut kept = Vec::new();
            for row in rows {
                signs.push(&row);
                kept.push(row);
            }
            for at in removed {
                if !kept.is_empty() {
                    let at = at.index(kept.len());
                    kept.swap_remove(at);
                    signs.swap_remove(at);
                }
            }
            let expected: Vec<u16> = kept.iter().map(alone).collect();
            prop_assert_eq!(weighed(&signs, &query), expected);
            prop_assert!(!kept.is_empty() || signs.blocks.is_empty());
        }

        #[test]
        fn the_limit_is_the_greatest_that_enough_rows_reach(
            planes in vec(vec(0u16..60, 0..200), 0..4), goal in 1usize..300,
        ) {
            let planes: Vec<Weights> = planes
                .into_iter()
                .map(|rows| {
                    let most = rows.chunks(STRIPE).filter_map(|near| near.iter().copied().max());
                    Weights { most: most.collect(), rows }
                })
                .collect();
            let limit = limit_for(&planes, goal);
            let mut all: Vec<u16> = planes.iter().flat_map(|plane| plane.rows.clone()).collect();
            all.sort_unstable_by(|a, b| b.cmp(a));
            prop_assert_eq!(limit, all.get(goal - 1).copied().unwrap_or(0));
            for plane in &planes {
                let plain = (0u32..).zip(&plane.rows).filter(|(_, weight)| **weight >= limit);
                let plain: Vec<u32> = plain.map(|(row, _)| row).collect();
                prop_assert_eq!(plane.reaching(limit).collect::<Vec<_>>(), plain);
            }
        }

        #[test]
        fn weights_follow_the_sum_over_positive_dimensions(
            (query, rows) in (1usize..600).prop_flat_map(|dims| {
                (vec(-127i8..=127, dims), vec(vec(any::<i8>(), dims), 2))
            }),
        ) {
            let mut signs = Signs::new(query.len());
            rows.iter().for_each(|row| signs.push(row));
            let sum = |row: &[i8]| -> i32 {
                let positive = query.iter().zip(row).filter(|(_, value)| **value > 0);
                positive.map(|(share, _)| i32::from(*share)).sum()
            };
            let weights = weighed(&signs, &query);
            let difference = sum(&rows[0]) - sum(&rows[1]);
            // At most five units a step, each half of a byte rounded by half a step on either side.
            let slack = 5 * (query.len() as i32 / 4 + 2);
            let found = i32::from(weights[0]) - i32::from(weights[1]);
            if difference > slack {
                prop_assert!(found > 0, "{difference} {found}");
            }
        }
    }

    #[test]
    fn no_query_makes_a_sum_that_wraps() {
        for dims in [1, 256, 384, 4096, 20_000] {
            let shares = shares(&vec![127; dims]);
            let most: u32 = shares
                .as_flattened()
                .chunks(16)
                .map(|half| u32::from(*half.iter().max().unwrap()))
                .sum();
            assert!(most > 0 && most <= u32::from(u16::MAX), "{dims}: {most}");
        }
        assert!(shares(&[0; 256]).as_flattened().iter().all(|share| *share == 0));
    }
}
