//! BLAKE3 and SHA-256 digests as types, with the text forms the protocols use.

use std::fmt;
use std::str::FromStr;

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::Digest;

use crate::encode;

/// Why a text is not a digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text does not start with the name of the hash.
    #[error("digest does not start with {0}")]
    Prefix(&'static str),
    /// The digits after the name are not an encoding of bytes.
    #[error("invalid digest: {0}")]
    Encoding(#[from] encode::Error),
    /// The digest has another length than 32 bytes.
    #[error("digest has {0} bytes instead of 32")]
    Length(usize),
}

/// A 32-byte BLAKE3 digest, printed as `blake3:` and 52 letters of lower-case base32.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Blake3([u8; 32]);

/// A 32-byte SHA-256 digest, printed as `sha256:` and 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha256([u8; 32]);

impl Blake3 {
    /// Returns the digest of bytes.
    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        Self(blake3::hash(bytes.as_ref()).into())
    }

    /// Returns a hasher that takes its input in pieces.
    pub fn hasher() -> Blake3Hasher {
        Blake3Hasher(blake3::Hasher::new())
    }

    /// Returns a hasher whose digests are unrelated to those of every other context.
    pub fn hasher_for(context: &'static str) -> Blake3Hasher {
        Blake3Hasher(blake3::Hasher::new_derive_key(context))
    }
}

impl Sha256 {
    /// Returns the digest of bytes.
    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        Self(sha2::Sha256::digest(bytes.as_ref()).into())
    }

    /// Returns a hasher that takes its input in pieces.
    pub fn hasher() -> Sha256Hasher {
        Sha256Hasher(sha2::Sha256::new())
    }
}

macro_rules! digest {
    ($name:ident, $prefix:literal, $print:path, $read:path) => {
        impl $name {
            /// Wraps digest bytes computed elsewhere.
            pub const fn from_bytes(bytes: [u8; 32]) -> Self {
                Self(bytes)
            }

            /// Returns the digest bytes.
            pub const fn as_bytes(&self) -> &[u8; 32] {
                &self.0
            }

            /// Returns 64 lower-case hexadecimal digits.
            pub fn to_hex(&self) -> String {
                encode::hex(&self.0)
            }

            /// Reads 64 lower-case hexadecimal digits.
            pub fn from_hex(text: &str) -> Result<Self, Error> {
                Self::from_vec(encode::from_hex(text)?)
            }

            /// Returns 52 letters of lower-case base32.
            pub fn to_base32(&self) -> String {
                encode::base32(&self.0)
            }

            /// Reads 52 letters of lower-case base32.
            pub fn from_base32(text: &str) -> Result<Self, Error> {
                Self::from_vec(encode::from_base32(text)?)
            }

            fn from_vec(bytes: Vec<u8>) -> Result<Self, Error> {
                let length = bytes.len();
                <[u8; 32]>::try_from(bytes).map(Self).map_err(|_| Error::Length(length))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, "{}{}", $prefix, $print(&self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, formatter)
            }
        }

        impl FromStr for $name {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self, Error> {
                let digits = text.strip_prefix($prefix).ok_or(Error::Prefix($prefix))?;
                Self::from_vec($read(digits)?)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

digest!(Blake3, "blake3:", encode::base32, encode::from_base32);
digest!(Sha256, "sha256:", encode::hex, encode::from_hex);

/// A BLAKE3 computation in progress.
#[derive(Clone, Debug)]
pub struct Blake3Hasher(blake3::Hasher);

impl Blake3Hasher {
    /// Adds bytes to the input.
    pub fn update(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.0.update(bytes.as_ref());
        self
    }

    /// Returns the digest of everything added so far.
    pub fn finish(&self) -> Blake3 {
        Blake3(self.0.finalize().into())
    }
}

/// A SHA-256 computation in progress.
#[derive(Clone, Debug)]
pub struct Sha256Hasher(sha2::Sha256);

impl Sha256Hasher {
    /// Adds bytes to the input.
    pub fn update(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.0.update(bytes.as_ref());
        self
    }

    /// Returns the digest of everything added so far.
    pub fn finish(&self) -> Sha256 {
        Sha256(self.0.clone().finalize().into())
    }
}

fn mac(key: &[u8], message: &[u8]) -> Hmac<sha2::Sha256> {
    let mut mac = <Hmac<sha2::Sha256> as KeyInit>::new_from_slice(key)
        .expect("invariant: HMAC takes a key of any length");
    mac.update(message);
    mac
}

/// Returns the HMAC-SHA-256 tag of a message.
pub fn hmac_sha256(key: &[u8], message: &[u8]) -> [u8; 32] {
    mac(key, message).finalize().into_bytes().into()
}

/// Says in constant time whether a tag is the HMAC-SHA-256 of a message.
pub fn hmac_sha256_matches(key: &[u8], message: &[u8], tag: &[u8]) -> bool {
    mac(key, message).verify_slice(tag).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_digests_of_abc() {
        assert_eq!(
            Sha256::of("abc").to_string(),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(
            Blake3::of("abc").to_hex(),
            "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85"
        );
        assert_eq!(Blake3::of("abc").to_base32().len(), 52);
    }

    #[test]
    fn pieces_hash_like_the_whole() {
        assert_eq!(Blake3::hasher().update("a").update("bc").finish(), Blake3::of("abc"));
        assert_eq!(Sha256::hasher().update("ab").update("c").finish(), Sha256::of("abc"));
        assert_ne!(Blake3::hasher_for("one").finish(), Blake3::hasher_for("two").finish());
    }

    #[test]
    fn texts_of_another_hash_length_or_case_are_refused() {
        let text = Blake3::of("abc").to_string();
        assert_eq!(text.parse(), Ok(Blake3::of("abc")));
        assert_eq!(text.parse::<Sha256>(), Err(Error::Prefix("sha256:")));
        assert!(text.to_uppercase().parse::<Blake3>().is_err());
        assert_eq!("blake3:aa".parse::<Blake3>(), Err(Error::Length(1)));
        assert!(format!("blake3:{}", "z".repeat(52)).parse::<Blake3>().is_err());
        let upper = format!("sha256:{}", Sha256::of("").to_hex().to_uppercase());
        assert!(upper.parse::<Sha256>().is_err());
    }

    #[test]
    fn rfc_4231_hmac_case_2() {
        let tag = hmac_sha256(b"Jefe", b"what do ya want for nothing?");
        assert_eq!(
            encode::hex(&tag),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        assert!(hmac_sha256_matches(b"Jefe", b"what do ya want for nothing?", &tag));
        assert!(!hmac_sha256_matches(b"Jefe", b"what do ya want for nothing?", &tag[..31]));
        assert!(!hmac_sha256_matches(b"jefe", b"what do ya want for nothing?", &tag));
    }
}
