//! Decentralised identifiers: `did:key` and `did:web`, and the URLs that name their keys.
//!
//! Nothing is fetched here. A `did:key` carries its key; a `did:web` says where its
//! [`Document`] lives, and the caller fetches that under its own network rules.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::json;
use crate::key::{self, VerifyingKey};

mod document;

pub use document::{DOCUMENT_LIMITS, Document, MAX_METHODS, Method};

const MAX_LENGTH: usize = 512;

/// Why an identifier or a document was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is not a DID.
    #[error("not a DID: {0}")]
    Syntax(&'static str),
    /// The DID is of another method than the operation needs.
    #[error("not a did:{0}")]
    Method(&'static str),
    /// The `did:web` does not name an https location.
    #[error("invalid did:web: {0}")]
    Web(&'static str),
    /// The key is not usable.
    #[error(transparent)]
    Key(#[from] key::Error),
    /// The document is not strict JSON or is too big.
    #[error("invalid DID document: {0}")]
    Json(#[from] json::Error),
    /// The document breaks the rules for DID documents.
    #[error("invalid DID document: {0}")]
    Document(&'static str),
    /// The document speaks for another identifier.
    #[error("DID document is for {found}, not {expected}")]
    WrongSubject {
        /// The identifier that was resolved.
        expected: Did,
        /// The identifier the document names.
        found: String,
    },
}

/// A syntactically valid DID of any method, without path, query or fragment.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Did(String);

impl Did {
    /// Returns the `did:key` of a public key.
    pub fn of_key(key: &VerifyingKey) -> Self {
        Self(format!("did:key:{}", key.to_multibase()))
    }

    /// Returns the text of this DID.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the method name, such as `key` or `web`.
    pub fn method(&self) -> &str {
        self.split().0
    }

    /// Returns what follows the method name.
    pub fn specific(&self) -> &str {
        self.split().1
    }

    fn split(&self) -> (&str, &str) {
        self.0["did:".len()..]
            .split_once(':')
            .expect("invariant: a parsed DID has a method and an identifier")
    }

    /// Returns the key of a `did:key`; only its usual base58 spelling is accepted.
    pub fn key(&self) -> Result<VerifyingKey, Error> {
        let ("key", text) = self.split() else {
            return Err(Error::Method("key"));
        };
        let key = VerifyingKey::from_multibase(text)?;
        if key.to_multibase() == text {
            Ok(key)
        } else {
            Err(Error::Syntax("did:key is not spelled in base58"))
        }
    }

    /// Returns the https URL where the document of a `did:web` lives.
    pub fn web_url(&self) -> Result<String, Error> {
        let ("web", location) = self.split() else {
            return Err(Error::Method("web"));
        };
        let mut segments = location.split(':');
        let authority = authority(segments.next().unwrap_or_default())?;
        let mut url = format!("https://{authority}");
        let mut at_root = true;
        for segment in segments {
            check_segment(segment)?;
            url.push('/');
            url.push_str(segment);
            at_root = false;
        }
        url.push_str(if at_root { "/.well-known/did.json" } else { "/did.json" });
        Ok(url)
    }

    /// Returns the host of a `did:web` in lower case, with its port if it names one.
    pub fn web_host(&self) -> Result<String, Error> {
        let ("web", location) = self.split() else {
            return Err(Error::Method("web"));
        };
        authority(location.split(':').next().unwrap_or_default())
    }
}

impl FromStr for Did {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text.len() > MAX_LENGTH {
            return Err(Error::Syntax("too long"));
        }
        let (method, specific) = text
            .strip_prefix("did:")
            .and_then(|rest| rest.split_once(':'))
            .ok_or(Error::Syntax("expected did:method:identifier"))?;
        let is_method_char = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        if method.is_empty() || !method.bytes().all(is_method_char) {
            return Err(Error::Syntax("invalid method name"));
        }
        if specific.is_empty() || specific.ends_with(':') {
            return Err(Error::Syntax("empty identifier"));
        }
        let mut bytes = specific.bytes();
        while let Some(byte) = bytes.next() {
            let valid = match byte {
                b'%' => {
                    bytes.next().is_some_and(|byte| byte.is_ascii_hexdigit())
                        && bytes.next().is_some_and(|byte| byte.is_ascii_hexdigit())
                }
                b'.' | b'-' | b'_' | b':' => true,
                _ => byte.is_ascii_alphanumeric(),
            };
            if !valid {
                return Err(Error::Syntax("character outside the DID alphabet"));
            }
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for Did {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Debug for Did {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Serialize for Did {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Did {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The name of one key of a DID: `did#fragment`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct KeyId {
    did: Did,
    fragment: String,
}

impl KeyId {
    /// Joins a DID and the fragment that names its key.
    pub fn new(did: Did, fragment: &str) -> Result<Self, Error> {
        let is_fragment_char =
            |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:@!$&'()*+,;=/?".contains(&byte);
        if fragment.is_empty()
            || fragment.len() > MAX_LENGTH
            || !fragment.bytes().all(is_fragment_char)
        {
            return Err(Error::Syntax("invalid fragment"));
        }
        Ok(Self { did, fragment: fragment.to_owned() })
    }

    /// Returns the name a `did:key` gives its only key.
    pub fn of_key(key: &VerifyingKey) -> Self {
        Self { did: Did::of_key(key), fragment: key.to_multibase() }
    }

    /// Returns the DID that controls the key.
    pub const fn did(&self) -> &Did {
        &self.did
    }

    /// Returns the part after `#`.
    pub fn fragment(&self) -> &str {
        &self.fragment
    }
}

impl FromStr for KeyId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (did, fragment) =
            text.split_once('#').ok_or(Error::Syntax("key id has no fragment"))?;
        Self::new(did.parse()?, fragment)
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}#{}", self.did, self.fragment)
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

fn authority(text: &str) -> Result<String, Error> {
    let lower = text.to_ascii_lowercase();
    let (host, port) = match lower.split_once("%3a") {
        Some((host, port)) => (host, Some(port)),
        None => (lower.as_str(), None),
    };
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    if host.len() > 253 || !host.split('.').all(is_label) {
        return Err(Error::Web("host is not a domain name"));
    }
    // URL parsers read a host whose last label is a number as an IPv4 address.
    let last = host.rsplit('.').next().unwrap_or_default();
    if last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x") {
        return Err(Error::Web("host is an address"));
    }
    match port {
        None => Ok(host.to_owned()),
        Some(port) => {
            let canonical = port.parse::<u16>().ok().filter(|number| *number > 0);
            match canonical {
                Some(number) if number.to_string() == port => Ok(format!("{host}:{number}")),
                Some(_) | None => Err(Error::Web("invalid port")),
            }
        }
    }
}

/// Refuses what a URL parser would not keep as one segment of the path.
fn check_segment(segment: &str) -> Result<(), Error> {
    if segment.is_empty() || segment.bytes().all(|byte| byte == b'.') {
        return Err(Error::Web("invalid path segment"));
    }
    for escape in segment.split('%').skip(1) {
        let byte = escape
            .get(..2)
            .and_then(|digits| u8::from_str_radix(digits, 16).ok())
            .ok_or(Error::Web("invalid path segment"))?;
        if byte <= b' ' || b"./\\%?#\x7f".contains(&byte) {
            return Err(Error::Web("invalid path segment"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
