//! Ids cut short: what lists show is enough to name a thing again.

use std::fmt::Display;

use crate::failure::{Exit, Failure, Result};
use crate::output::clean;

/// The fewest characters that count as the beginning of an id.
const FEWEST: usize = 4;

/// Whether a text may be the beginning of an id.
pub(crate) fn plausible(text: &str) -> bool {
    (FEWEST..36).contains(&text.len()) && text.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
}

/// Returns the one id that begins so; `hint` says where ids are found.
pub(crate) fn one<T: Display + Copy + PartialEq>(
    ids: impl IntoIterator<Item = T>,
    text: &str,
    hint: &str,
) -> Result<T> {
    let wanted = text.to_ascii_lowercase();
    let mut found: Vec<T> = Vec::new();
    if plausible(text) {
        for id in ids {
            if id.to_string().starts_with(&wanted) && !found.contains(&id) {
                found.push(id);
            }
        }
    }
    match found.as_slice() {
        [id] => Ok(*id),
        [] => {
            Err(Failure::new(Exit::NotFound, format!("nothing is called {:?}", clean(text)))
                .hint(hint))
        }
        many => {
            let ids: Vec<String> = many.iter().take(5).map(ToString::to_string).collect();
            Err(Failure::usage(format!("{text:?} is the beginning of {} ids", many.len()))
                .hint(format!("give more of it: {}", ids.join(", "))))
        }
    }
}

#[cfg(test)]
mod tests {
    use yore_domain::MemoryId;

    use super::*;

    #[test]
    fn a_beginning_names_one_id_or_none() {
        let a = MemoryId::from_bytes([0xab; 16]);
        let mut bytes = [0xab; 16];
        bytes[15] = 0;
        let b = MemoryId::from_bytes(bytes);
        assert_eq!(one([a], "ABABab", "").unwrap(), a);
        assert_eq!(one([a, a], "abab", "").unwrap(), a);
        assert_eq!(one([a, b], "abab", "").unwrap_err().exit, Exit::Usage);
        assert_eq!(one([a], "aba", "").unwrap_err().exit, Exit::NotFound, "too short to mean one");
        assert_eq!(one([a], "cafe", "").unwrap_err().exit, Exit::NotFound);
    }
}
