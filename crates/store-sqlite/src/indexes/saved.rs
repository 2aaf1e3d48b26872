//! The bytes of a saved state: three parts, and behind them how long each is.

use std::io::{self, Write};

use yore_index::Index;

use super::state::{Beside, State};

const MAGIC: &[u8; 8] = b"yoreidx4";
const PARTS: usize = 3;

/// Counts what goes through.
struct Counted<'a> {
    out: &'a mut dyn Write,
    bytes: u64,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Writes a state. The indexes carry their own checksums; the caller encrypts the whole.
pub(super) fn write(state: &State, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(MAGIC)?;
    let mut out = Counted { out, bytes: 0 };
    let mut ends = Vec::with_capacity(PARTS);
    out.write_all(&postcard::to_stdvec(&state.beside).map_err(io::Error::other)?)?;
    ends.push(out.bytes);
    for index in [&state.versions, &state.messages] {
        index.snapshot(&mut out)?;
        ends.push(out.bytes);
    }
    ends.iter().try_for_each(|end| out.write_all(&end.to_le_bytes()))
}

/// Reads a state, or nothing when the bytes are not one.
pub(super) fn state_of(bytes: &[u8]) -> Option<State> {
    let parts = bytes.strip_prefix(MAGIC)?;
    let (parts, ends) = parts.split_at_checked(parts.len().checked_sub(PARTS * 8)?)?;
    let mut ends = ends.chunks_exact(8).map(|end| {
        let end = u64::from_le_bytes(*end.first_chunk()?);
        usize::try_from(end).ok()
    });
    let mut begin = 0;
    let mut next = || {
        let end = ends.next()??;
        let part = parts.get(begin..end)?;
        begin = end;
        Some(part)
    };
    let beside: Beside = postcard::from_bytes(next()?).ok()?;
    let versions = Index::restore(next()?).ok()?;
    let messages = Index::restore(next()?).ok()?;
    (begin == parts.len()).then(|| State::assembled(versions, messages, beside))
}
