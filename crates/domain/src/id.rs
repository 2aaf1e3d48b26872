//! Identifiers: 128 random bits each, a type per thing named.
//!
//! A [`MemoryId`] names a memory for its whole life; a [`VersionId`] names one immutable
//! version of it. Protocols spell the same id differently; what cannot be re-spelled is an
//! alias in the store.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Error;

macro_rules! uuid_id {
    ($($(#[$doc:meta])* $name:ident, $what:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// Makes a new random id.
            #[must_use]
            #[expect(clippy::disallowed_methods, reason = "the one place that makes ids")]
            pub fn random() -> Self {
                Self(Uuid::new_v4())
            }

            /// Wraps 16 bytes.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }

            /// Returns the 16 bytes.
            #[must_use]
            pub const fn bytes(self) -> [u8; 16] {
                *self.0.as_bytes()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($what, ":{}"), self.0.hyphenated())
            }
        }

        impl FromStr for $name {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self, Error> {
                Uuid::try_parse(text)
                    .map(Self)
                    .map_err(|_| Error::invalid(concat!($what, " id"), "not a UUID"))
            }
        }
    )*};
}

uuid_id! {
    /// Names a memory across all its versions.
    MemoryId, "memory";
    /// Names one immutable version of a memory.
    VersionId, "version";
    /// Names a conversation.
    ConversationId, "conversation";
    /// Names a message inside its conversation.
    MessageId, "message";
    /// Names a grant.
    GrantId, "grant";
    /// Names a bearer token's record.
    TokenId, "token";
    /// Names a key that a vault was put under.
    KeyId, "key";
    /// Names an operation that waits for a decision.
    HoldId, "hold";
    /// Names a durable job.
    JobId, "job";
    /// Names somebody who is told of changes over the web.
    WebhookId, "webhook";
    /// Names a vault.
    VaultId, "vault";
    /// Names a tenant.
    TenantId, "tenant";
}

impl VersionId {
    /// Makes a new id that sorts by the time of its making: versions are written in that order
    /// and found by it, so the newest lie together. The time is no secret, a version states it.
    #[must_use]
    pub fn at(time: crate::Timestamp) -> Self {
        let millis = u64::try_from(time.micros() / 1000).unwrap_or(0);
        let mut bytes = Self::random().bytes();
        bytes[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
        Self(uuid::Builder::from_bytes(bytes).with_version(uuid::Version::SortRand).into_uuid())
    }
}

impl VaultId {
    /// The catalog: the store's own books, kept like a vault but owned by nobody.
    pub const CATALOG: Self = Self(Uuid::nil());
}

impl TenantId {
    /// The tenant of a server that was never told about tenants.
    pub const DEFAULT: Self = Self(Uuid::nil());
}

/// The name of an agent, as its grant states it.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String")]
pub struct AgentId(String);

impl TryFrom<String> for AgentId {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        Self::new(text)
    }
}

impl AgentId {
    /// Checks length (1–256 bytes) and that there are no control characters.
    pub fn new(text: impl Into<String>) -> Result<Self, Error> {
        let text = text.into();
        if text.is_empty() || text.len() > 256 || text.chars().any(char::is_control) {
            return Err(Error::invalid(
                "agent",
                "must be 1 to 256 bytes without control characters",
            ));
        }
        Ok(Self(text))
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A position in a vault's outbox or audit chain; the first is 1.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The SHA-256 of an attachment's bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobHash(pub [u8; 32]);

impl BlobHash {
    /// Hashes the bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        use sha2::{Digest, Sha256};
        Self(Sha256::digest(bytes).into())
    }
}

/// Hashes an attachment that arrives in pieces.
#[derive(Clone, Debug, Default)]
pub struct BlobHasher(sha2::Sha256);

impl BlobHasher {
    /// Takes the next piece.
    pub fn update(&mut self, bytes: &[u8]) {
        sha2::Digest::update(&mut self.0, bytes);
    }

    /// Returns the hash of all of them.
    #[must_use]
    pub fn finish(self) -> BlobHash {
        BlobHash(sha2::Digest::finalize(self.0).into())
    }
}

impl fmt::Display for BlobHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BlobHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{self}")
    }
}

impl FromStr for BlobHash {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || Error::invalid("hash", "must be 64 hexadecimal digits");
        if text.len() != 64 || !text.is_ascii() {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| wrong())?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for BlobHash {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for BlobHash {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for BlobHash {
    fn schema_name() -> Cow<'static, str> {
        "BlobHash".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "description": "The SHA-256 of an attachment's bytes.",
            "type": "string",
            "pattern": "^[0-9a-f]{64}$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_print_and_parse() {
        let id = MemoryId::random();
        assert_eq!(id.to_string().parse::<MemoryId>().unwrap(), id);
        assert_eq!(id.bytes()[6] >> 4, 4, "version 4");
        assert!("msg-001".parse::<MemoryId>().is_err());
    }

    #[test]
    fn a_blob_hash_is_sha256_in_lower_case_hex() {
        let hash = BlobHash::of(b"");
        assert!(hash.to_string().starts_with("e3b0c442"));
        assert_eq!(hash.to_string().parse::<BlobHash>().unwrap(), hash);
        assert!("é".repeat(32).parse::<BlobHash>().is_err());
    }

    #[test]
    fn agent_names_are_bounded() {
        assert!(AgentId::new("").is_err());
        assert!(AgentId::new("a\nb").is_err());
        assert!(AgentId::new("x".repeat(257)).is_err());
        assert_eq!(AgentId::new("scheduler").unwrap().as_str(), "scheduler");
    }
}
