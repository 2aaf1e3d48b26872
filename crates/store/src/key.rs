//! Keys: 32 bytes that are wiped, never printed, and wrapped whenever they lie on disk.
//!
//! Every backend uses these, so that a vault means the same wherever it lies: the person's
//! master key wraps a random root key, and from the root come the catalog's key and the key
//! that wraps every vault's own random key.

mod source;

use std::ops::Range;
use std::path::{Path, PathBuf};

use aes_gcm::aead::{Aead, AeadInPlace, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Nonce, Tag};
use yore_canon::hash;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

pub use source::{Cost, KeyKind, MasterKey, Stretch};

const NONCE: usize = 12;
const TAG: usize = 16;
/// How long a wrapped key is: nonce, key, tag.
pub const WRAPPED: usize = NONCE + 32 + TAG;

/// Why a master key could not be obtained or is unusable.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// It is not a key, or not one that may be used.
    #[error("{0}")]
    Unusable(String),
    /// Its file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

impl KeyError {
    fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::File { path: path.to_owned(), source }
    }
}

/// A secret key.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct Key([u8; 32]);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    /// Draws a key.
    #[must_use]
    pub fn random() -> Self {
        Self(random())
    }

    /// Makes a key of bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Makes a key of bytes, if they are 32.
    #[must_use]
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// Returns the bytes.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Derives the key for one purpose (one block of HKDF-Expand).
    #[must_use]
    pub fn derive(&self, purpose: &str) -> Self {
        let mut info = purpose.as_bytes().to_vec();
        info.push(1);
        Self(hash::hmac_sha256(&self.0, &info))
    }

    /// Encrypts bytes so that only this key and the same context open them.
    #[must_use]
    pub fn seal(&self, context: &[u8], plain: &[u8]) -> Vec<u8> {
        let nonce: [u8; NONCE] = random();
        let sealed = self
            .cipher()
            .encrypt(Nonce::from_slice(&nonce), Payload { msg: plain, aad: context })
            .expect("invariant: AES-GCM takes any message that fits in memory");
        [nonce.as_slice(), &sealed].concat()
    }

    /// Opens what [`Key::seal`] made; `None` when key, context or bytes are other ones.
    #[must_use]
    pub fn open(&self, context: &[u8], sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let (nonce, body) = sealed.split_at_checked(NONCE)?;
        self.cipher()
            .decrypt(Nonce::from_slice(nonce), Payload { msg: body, aad: context })
            .ok()
            .map(Zeroizing::new)
    }

    /// Opens the same where it lies and returns where the plain bytes are.
    #[must_use]
    pub fn open_in_place(&self, context: &[u8], sealed: &mut [u8]) -> Option<Range<usize>> {
        let end = sealed.len().checked_sub(TAG)?;
        let (nonce, rest) = sealed.split_at_mut_checked(NONCE)?;
        let (body, tag) = rest.split_at_mut_checked(end.checked_sub(NONCE)?)?;
        self.cipher()
            .decrypt_in_place_detached(
                Nonce::from_slice(nonce),
                context,
                body,
                Tag::from_slice(tag),
            )
            .ok()?;
        Some(NONCE..end)
    }

    /// Encrypts another key.
    #[must_use]
    pub fn wrap(&self, context: &[u8], key: &Self) -> Vec<u8> {
        self.seal(context, &key.0)
    }

    /// Decrypts another key; `None` when this is not the key it is under.
    #[must_use]
    pub fn unwrap(&self, context: &[u8], wrapped: &[u8]) -> Option<Self> {
        self.open(context, wrapped).and_then(|bytes| Self::from_slice(&bytes))
    }

    fn cipher(&self) -> Aes256Gcm {
        Aes256Gcm::new((&self.0).into())
    }
}

/// Draws random bytes from the system.
#[must_use]
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("invariant: the system has a source of randomness");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrapped_key_opens_only_with_its_key_and_context() {
        let (outer, inner) = (Key::random(), Key::random());
        let wrapped = outer.wrap(b"a", &inner);
        assert_eq!(wrapped.len(), WRAPPED);
        assert_eq!(outer.unwrap(b"a", &wrapped), Some(inner.clone()));
        assert_eq!(outer.unwrap(b"b", &wrapped), None);
        assert_eq!(Key::random().unwrap(b"a", &wrapped), None);
        for index in 0..wrapped.len() {
            let mut spoilt = wrapped.clone();
            spoilt[index] ^= 1;
            assert_eq!(outer.unwrap(b"a", &spoilt), None, "byte {index}");
        }
    }

    #[test]
    fn purposes_give_different_keys_and_nothing_is_printed() {
        let key = Key::from_bytes([7; 32]);
        assert_ne!(key.derive("a"), key.derive("b"));
        assert_eq!(key.derive("a"), key.derive("a"));
        assert_eq!(format!("{key:?}"), "Key(..)");
    }
}
