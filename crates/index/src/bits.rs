//! Ascending numbers as the gaps between them, in few bits: small gaps are common and some are
//! large, so a gap says its own length (Exp-Golomb), above a number of low bits that suits the list.

/// Writes bits, the lowest first.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    bytes: &'a mut Vec<u8>,
    open: u64,
    filled: u32,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(bytes: &'a mut Vec<u8>) -> Self {
        Self { bytes, open: 0, filled: 0 }
    }

    /// Writes at most 48 bits.
    fn put(&mut self, value: u64, count: u32) {
        self.open |= value << self.filled;
        self.filled += count;
        while self.filled >= 8 {
            self.bytes.push(self.open as u8);
            self.open >>= 8;
            self.filled -= 8;
        }
    }

    /// Writes a gap above so many low bits.
    pub(crate) fn gap(&mut self, gap: u32, low: u32) {
        let (upper, length) = upper(gap, low);
        self.put(1 << length, length + 1);
        self.put(upper & ones(length), length);
        self.put(u64::from(gap) & ones(low), low);
    }

    /// Writes a small count in as many bits; it is at least one.
    pub(crate) fn unary(&mut self, count: u32) {
        self.put(1 << (count - 1), count);
    }

    /// Ends the last byte.
    pub(crate) fn finish(mut self) {
        self.put(0, 7);
    }
}

/// The part of a gap above its low bits, plus one, and how many bits of it follow its first.
fn upper(gap: u32, low: u32) -> (u64, u32) {
    let upper = (u64::from(gap) >> low) + 1;
    (upper, upper.ilog2())
}

/// How many low bits suit these gaps best.
pub(crate) fn low_bits(gaps: impl Iterator<Item = u32> + Clone) -> u32 {
    let bits = |low: u32| -> u32 { gaps.clone().map(|gap| 2 * upper(gap, low).1 + 1 + low).sum() };
    let mut best = (bits(0), 0);
    for low in 1..32 {
        let found = bits(low);
        if found >= best.0 {
            break;
        }
        best = (found, low);
    }
    best.1
}

/// Reads what [`Writer`] wrote.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// At least the next 57 bits; zeros after the end.
    #[inline]
    fn window(&self) -> u64 {
        let rest = self.bytes.get(self.at / 8..).unwrap_or_default();
        let word = match rest.first_chunk::<8>() {
            Some(word) => u64::from_le_bytes(*word),
            None => rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
        };
        word >> (self.at % 8)
    }

    #[inline]
    pub(crate) fn gap(&mut self, low: u32) -> Option<u32> {
        let window = self.window();
        let length = window.trailing_zeros();
        if length > 32 {
            return None;
        }
        let all = 2 * length + 1 + low;
        let rest = if all <= 57 {
            self.at += all as usize;
            window >> (length + 1)
        } else {
            self.at += length as usize + 1;
            let rest = self.window();
            self.at += (length + low) as usize;
            rest
        };
        let upper = (1 << length) - 1 + (rest & ones(length));
        let gap = upper << low | rest >> length & ones(low);
        u32::try_from(gap).ok().filter(|_| self.is_inside())
    }

    #[inline]
    pub(crate) fn unary(&mut self) -> Option<u32> {
        let count = self.window().trailing_zeros() + 1;
        self.at += count as usize;
        (count <= 57 && self.is_inside()).then_some(count)
    }

    /// Whether everything was read and nothing but the rest of a byte is left, all zeros.
    pub(crate) fn is_done(&self) -> bool {
        self.is_inside() && self.bytes.len() * 8 - self.at < 8 && self.window() == 0
    }

    #[inline]
    fn is_inside(&self) -> bool {
        self.at <= self.bytes.len() * 8
    }
}

/// So many ones.
#[inline]
const fn ones(count: u32) -> u64 {
    (1 << count) - 1
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn gaps() -> impl Strategy<Value = Vec<u32>> {
        let some = prop_oneof![0u32..3, 0u32..2000, any::<u32>(), Just(u32::MAX)];
        vec(some, 0..60)
    }

    proptest! {
        #[test]
        fn gaps_come_back_above_any_number_of_low_bits(gaps in gaps(), low in 0u32..32) {
            for low in [low, low_bits(gaps.iter().copied())] {
                let mut bytes = Vec::new();
                let mut out = Writer::new(&mut bytes);
                for (at, &gap) in (0..).zip(&gaps) {
                    out.gap(gap, low);
                    out.unary(at % 15 + 1);
                }
                out.finish();
                let mut read = Reader::new(&bytes);
                for (at, &gap) in (0..).zip(&gaps) {
                    prop_assert_eq!(read.gap(low), Some(gap));
                    prop_assert_eq!(read.unary(), Some(at % 15 + 1));
                }
                prop_assert!(read.is_done());
            }
        }

        #[test]
        fn what_is_not_there_is_not_read(bytes in vec(any::<u8>(), 0..12), low in 0u32..32) {
            let mut read = Reader::new(&bytes);
            let most = bytes.len() * 8;
            for _ in 0..=most {
                if read.gap(low).is_none() {
                    break;
                }
                prop_assert!(read.at <= most);
            }
        }
    }

    #[test]
    fn what_is_left_over_is_noticed() {
        let mut bytes = Vec::new();
        let mut out = Writer::new(&mut bytes);
        out.gap(9, 2);
        out.finish();
        let done = |bytes: &[u8]| {
            let mut read = Reader::new(bytes);
            read.gap(2) == Some(9) && read.is_done()
        };
        assert!(done(&bytes));
        assert!(!done(&[bytes.as_slice(), &[0]].concat()), "a byte more");
        *bytes.last_mut().unwrap() |= 0x80;
        assert!(!done(&bytes), "a bit more");
    }
}
