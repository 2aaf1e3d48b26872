//! The bytes of a saved state: three parts, each after its length.

use yore_index::Index;

use super::state::{Beside, State};

const MAGIC: &[u8; 8] = b"yoreidx2";

/// Writes a state. The indexes carry their own checksums; the caller encrypts the whole.
pub(super) fn bytes_of(state: &State) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let mut out = MAGIC.to_vec();
    part(&mut out, &postcard::to_stdvec(&state.beside)?);
    for index in [&state.versions, &state.messages] {
        let mut bytes = Vec::new();
        index.snapshot(&mut bytes)?;
        part(&mut out, &bytes);
    }
    Ok(out)
}

/// Reads a state, or nothing when the bytes are not one.
pub(super) fn state_of(bytes: &[u8]) -> Option<State> {
    let mut rest = bytes.strip_prefix(MAGIC)?;
    let beside: Beside = postcard::from_bytes(next(&mut rest)?).ok()?;
    let versions = Index::restore(next(&mut rest)?).ok()?;
    let messages = Index::restore(next(&mut rest)?).ok()?;
    rest.is_empty().then(|| State::assembled(versions, messages, beside))
}

fn part(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn next<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk::<8>()?;
    let (found, after) =
        after.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    *rest = after;
    Some(found)
}
