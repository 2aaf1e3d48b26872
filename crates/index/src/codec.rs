//! The per-document blob: its terms with frequencies (for purging and rescoring) and its tokens.

/// Packs terms (ascending ids) and tokens into one allocation, the tokens first: every search
/// reads those of all its candidates. Only which tokens there are is kept, each once, ascending.
pub(crate) fn pack(terms: &[(u32, u32)], tokens: &[u16]) -> Box<[u8]> {
    let mut distinct = tokens.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let mut packed = Vec::with_capacity(distinct.len() * 2);
    let mut last = 0;
    for &token in &distinct {
        put_varint(&mut packed, u64::from(token - last));
        last = token;
    }
    let mut blob = Vec::with_capacity(terms.len() * 3 + packed.len() + 4);
    put_varint(&mut blob, packed.len() as u64);
    blob.extend_from_slice(&packed);
    put_varint(&mut blob, terms.len() as u64);
    let mut last = 0;
    for &(term, frequency) in terms {
        put_varint(&mut blob, u64::from(term - last) << 4 | u64::from(frequency));
        last = term;
    }
    blob.into_boxed_slice()
}

/// Walks the terms of a blob.
pub(crate) struct Terms<'a> {
    rest: &'a [u8],
    left: u64,
    last: u32,
}

/// Opens a blob made by [`pack`].
pub(crate) fn terms(blob: &[u8]) -> Terms<'_> {
    let (_, mut rest) = split(blob);
    let left = get_varint(&mut rest).unwrap_or(0);
    Terms { rest, left, last: 0 }
}

impl Iterator for Terms<'_> {
    type Item = (u32, u32);

    #[inline]
    fn next(&mut self) -> Option<(u32, u32)> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let word = get_varint(&mut self.rest)?;
        self.last = self.last.wrapping_add((word >> 4) as u32);
        Some((self.last, (word & 15) as u32))
    }
}

/// Walks the tokens of a blob, each once, ascending.
pub(crate) fn tokens(blob: &[u8]) -> impl Iterator<Item = u16> + '_ {
    let (mut rest, mut last) = (split(blob).0, 0u16);
    std::iter::from_fn(move || {
        last = last.wrapping_add(get_varint(&mut rest)? as u16);
        Some(last)
    })
}

/// Whether a blob holds what it says and nothing after it.
pub(crate) fn is_whole(blob: &[u8]) -> bool {
    let mut rest = blob;
    let length = get_varint(&mut rest).and_then(|length| usize::try_from(length).ok());
    let Some((mut tokens, mut rest)) = length.and_then(|length| rest.split_at_checked(length))
    else {
        return false;
    };
    let (mut token, mut first) = (0u64, true);
    while !tokens.is_empty() {
        let Some(step) = get_varint(&mut tokens) else { return false };
        token = token.saturating_add(step);
        if token > u64::from(u16::MAX) || (step == 0 && !first) {
            return false;
        }
        first = false;
    }
    let count = get_varint(&mut rest);
    count.is_some_and(|count| (0..count).all(|_| get_varint(&mut rest).is_some()))
        && rest.is_empty()
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
