//! As much CBOR (RFC 8949) as authenticators write: whole numbers, bytes, texts, lists and maps
//! of definite length.

/// How deep values may lie in each other.
const DEEPEST: usize = 8;

/// Bytes that are read from front to back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

/// The beginning of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item<'a> {
    /// A whole number.
    Number(i64),
    /// Bytes.
    Bytes(&'a [u8]),
    /// A text.
    Text(&'a str),
    /// A list of so many values, which follow.
    List(u64),
    /// So many pairs of values, which follow.
    Map(u64),
    /// `true`, `false`, `null` and their like, which carry nothing that matters here.
    Simple,
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// What was not read yet.
    pub(crate) const fn rest(self) -> &'a [u8] {
        self.0
    }

    /// Reads the beginning of the next value; nothing when the bytes say none.
    pub(crate) fn item(&mut self) -> Option<Item<'a>> {
        let first = *self.take(1)?.first()?;
        let (major, low) = (first >> 5, first & 0x1f);
        let argument = match low {
            0..=23 => u64::from(low),
            24..=27 => {
                let bytes = self.take(1 << (low - 24))?;
                bytes.iter().fold(0, |sum, byte| (sum << 8) | u64::from(*byte))
            }
            _ => return None,
        };
        match major {
            0 => i64::try_from(argument).ok().map(Item::Number),
            1 => i64::try_from(argument).ok().map(|number| Item::Number(-1 - number)),
            2 => Some(Item::Bytes(self.take(usize::try_from(argument).ok()?)?)),
            3 => {
                let bytes = self.take(usize::try_from(argument).ok()?)?;
                std::str::from_utf8(bytes).ok().map(Item::Text)
            }
            4 => Some(Item::List(argument)),
            5 => Some(Item::Map(argument)),
            7 => Some(Item::Simple),
            _ => None,
        }
    }

    /// Passes over a whole value.
    pub(crate) fn skip(&mut self) -> Option<()> {
        self.skip_within(DEEPEST)
    }

    fn skip_within(&mut self, depth: usize) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        let inside = match self.item()? {
            Item::List(count) => count,
            Item::Map(pairs) => pairs.checked_mul(2)?,
            Item::Number(_) | Item::Bytes(_) | Item::Text(_) | Item::Simple => 0,
        };
        // Each value has at least a byte, so a count that lies ends with the bytes.
        (0..inside).try_for_each(|_| self.skip_within(depth))
    }

    /// The number of pairs of the map that comes next.
    pub(crate) fn map(&mut self) -> Option<u64> {
        match self.item()? {
            Item::Map(pairs) => Some(pairs),
            Item::Number(_) | Item::Bytes(_) | Item::Text(_) | Item::List(_) | Item::Simple => None,
        }
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Option<Item<'_>> {
        Reader::new(bytes).item()
    }

    #[test]
    fn values_of_the_appendix_of_rfc_8949() {
        assert_eq!(read(&[0x17]), Some(Item::Number(23)));
        assert_eq!(read(&[0x18, 0x64]), Some(Item::Number(100)));
        assert_eq!(read(&[0x19, 0x03, 0xe8]), Some(Item::Number(1000)));
        assert_eq!(read(&[0x38, 0x63]), Some(Item::Number(-100)));
        assert_eq!(read(&[0x44, 1, 2, 3, 4]), Some(Item::Bytes(&[1, 2, 3, 4])));
        assert_eq!(read(b"\x64IETF"), Some(Item::Text("IETF")));
        assert_eq!(read(&[0x83, 1, 2, 3]), Some(Item::List(3)));
        assert_eq!(read(&[0xa1, 1, 2]), Some(Item::Map(1)));
        assert_eq!(read(&[0xf5]), Some(Item::Simple));
    }

    #[test]
    fn what_is_cut_off_endless_or_too_deep_is_nothing() {
        for wrong in [&[][..], &[0x18], &[0x44, 1], &[0x5f], &[0x9f], &[0xc0], &[0x61, 0xff]] {
            assert_eq!(read(wrong), None, "{wrong:x?}");
        }
        let skip = |bytes: &[u8]| Reader::new(bytes).skip();
        assert_eq!(skip(&[0x82, 0x81, 1, 0xa1, 1, 2]), Some(()));
        assert_eq!(skip(&[0x81; 64]), None);
        assert_eq!(skip(&[0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]), None);
    }
}
