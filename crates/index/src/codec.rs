//! The per-document blob: its terms with frequencies (for purging and rescoring) and its tokens.

use crate::bits;

/// The most that a term's frequency counts as.
const MOST: u32 = 15;

/// Packs terms (ascending ids) and tokens into one allocation, the tokens first: every search
/// reads those of all its candidates. Only which tokens there are is kept, each once, ascending.
pub(crate) fn pack(terms: &[(u32, u32)], tokens: &[u16]) -> Box<[u8]> {
    let mut distinct: Vec<u32> = tokens.iter().copied().map(u32::from).collect();
    distinct.sort_unstable();
    distinct.dedup();
    let mut packed = Vec::with_capacity(distinct.len() * 2 + 4);
    put_list(&mut packed, distinct.iter().map(|token| (*token, None)));
    let mut blob = Vec::with_capacity(terms.len() * 2 + packed.len() + 8);
    put_varint(&mut blob, packed.len() as u64);
    blob.extend_from_slice(&packed);
    put_list(&mut blob, terms.iter().map(|(term, frequency)| (*term, Some(*frequency))));
    blob.into_boxed_slice()
}

/// Packs ascending numbers, some with a small count: how many there are, the low bits of each
/// gap, the gaps.
fn put_list(out: &mut Vec<u8>, list: impl ExactSizeIterator<Item = (u32, Option<u32>)> + Clone) {
    put_varint(out, list.len() as u64);
    if list.len() == 0 {
        return;
    }
    let gaps = list.clone().scan(0, |next, (number, _)| {
        let gap = number - *next;
        *next = number.wrapping_add(1);
        Some(gap)
    });
    let low = bits::low_bits(gaps.clone());
    out.push(low as u8);
    let mut bits = bits::Writer::new(out);
    for (gap, (_, count)) in gaps.zip(list) {
        bits.gap(gap, low);
        if let Some(count) = count {
            bits.unary(count);
        }
    }
    bits.finish();
}

/// A list being read.
pub(crate) struct List<'a> {
    bits: bits::Reader<'a>,
    low: u32,
    left: u64,
    next: u32,
}

impl<'a> List<'a> {
    fn open(mut bytes: &'a [u8]) -> Self {
        let left = get_varint(&mut bytes).unwrap_or(0);
        let (low, bytes) = match bytes.split_first() {
            Some((&low, rest)) if left > 0 => (u32::from(low), rest),
            Some(_) | None => (0, bytes),
        };
        Self { bits: bits::Reader::new(bytes), low: low.min(31), left, next: 0 }
    }

    #[inline]
    fn number(&mut self) -> Option<u32> {
        self.left = self.left.checked_sub(1)?;
        let number = self.next.wrapping_add(self.bits.gap(self.low)?);
        self.next = number.wrapping_add(1);
        Some(number)
    }

    /// Reads to the end and says whether all of it made sense.
    fn reads_whole(mut self, counted: bool, most: u32) -> bool {
        let mut least = Some(0);
        while self.left > 0 {
            let Some(number) = self.number() else { return false };
            if least.is_none_or(|least| number < least) || number > most {
                return false;
            }
            least = number.checked_add(1);
            if counted && self.bits.unary().is_none_or(|count| count > MOST) {
                return false;
            }
        }
        self.bits.is_done()
    }
}

/// Walks the terms of a blob.
pub(crate) struct Terms<'a>(List<'a>);

/// Opens a blob made by [`pack`].
pub(crate) fn terms(blob: &[u8]) -> Terms<'_> {
    Terms(List::open(split(blob).1))
}

impl Iterator for Terms<'_> {
    type Item = (u32, u32);

    #[inline]
    fn next(&mut self) -> Option<(u32, u32)> {
        Some((self.0.number()?, self.0.bits.unary()?))
    }
}

/// Walks the tokens of a blob, each once, ascending.
pub(crate) fn tokens(blob: &[u8]) -> impl Iterator<Item = u16> + '_ {
    let mut list = List::open(split(blob).0);
    std::iter::from_fn(move || list.number().map(|token| token as u16))
}

/// Whether a blob holds what it says and nothing after it.
pub(crate) fn is_whole(blob: &[u8]) -> bool {
    let mut rest = blob;
    let length = get_varint(&mut rest).and_then(|length| usize::try_from(length).ok());
    let Some((tokens, terms)) = length.and_then(|length| rest.split_at_checked(length)) else {
        return false;
    };
    List::open(tokens).reads_whole(false, u32::from(u16::MAX))
        && List::open(terms).reads_whole(true, u32::MAX)
}

/// The bytes of the tokens, and what comes after.
#[inline]
fn split(blob: &[u8]) -> (&[u8], &[u8]) {
    let mut rest = blob;
    let length = get_varint(&mut rest).and_then(|length| usize::try_from(length).ok()).unwrap_or(0);
    rest.split_at_checked(length).unwrap_or((&[], &[]))
}

pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[inline]
pub(crate) fn get_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, tail) = rest.split_first()?;
        *rest = tail;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_packed_comes_back(
            ids in prop::collection::btree_map(any::<u32>(), 1u32..16, 0..60),
            words in prop::collection::vec(any::<u16>(), 0..60),
        ) {
            let pairs: Vec<(u32, u32)> = ids.into_iter().collect();
            let blob = pack(&pairs, &words);
            prop_assert_eq!(terms(&blob).collect::<Vec<_>>(), pairs);
            let distinct: std::collections::BTreeSet<u16> = words.iter().copied().collect();
            prop_assert!(is_whole(&blob));
            prop_assert_eq!(tokens(&blob).collect::<Vec<_>>(), Vec::from_iter(distinct));
        }
    }
}
