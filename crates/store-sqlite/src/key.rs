//! Where keys lie: wrapped, beside what they open.
//!
//! The person's master key (a passphrase, a file, the environment) wraps a random root key
//! in `master.json`. From the root come the catalog's key and the key that wraps every
//! vault's own random key. So a new passphrase rewrites one small file, and a new root
//! never touches a vault.

pub(crate) mod root;

use yore_canon::encode;
pub(crate) use yore_store::key::{Key, WRAPPED, random};
use zeroize::Zeroizing;

use crate::error::{Error, Result};

/// The spelling SQLCipher takes as a raw key.
pub(crate) fn pragma(key: &Key) -> Zeroizing<String> {
    Zeroizing::new(format!("x'{}'", encode::hex(key.bytes())))
}

/// Splits a column of wrapped keys, the preferred one first.
pub(crate) fn wraps(column: &[u8]) -> Result<impl Iterator<Item = &[u8]>> {
    if column.is_empty() || !column.len().is_multiple_of(WRAPPED) {
        return Err(Error::Damaged("a wrapped key has the wrong length".into()));
    }
    Ok(column.chunks(WRAPPED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_holds_whole_keys() {
        let wrapped = Key::random().wrap(b"a", &Key::random());
        assert_eq!(wraps(&wrapped.repeat(2)).unwrap().count(), 2);
        assert!(wraps(&wrapped[1..]).is_err());
        assert!(wraps(&[]).is_err());
    }
}
