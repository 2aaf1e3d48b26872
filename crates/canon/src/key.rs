//! Ed25519 and P-256 keys: sign, verify, and every spelling a key has.
//!
//! Ed25519 verification is strict (no small-order points, canonical encodings only). ES256
//! signatures are the raw 64 bytes of r and s; DER is refused, high s is valid.

use std::fmt;
use std::str::FromStr;

use ed25519_dalek::Signer as _;
use p256::ecdsa::signature::Verifier as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::encode::{self, Base};
use crate::hash::Sha256;
use crate::json::Object;

const MULTICODEC_ED25519: [u8; 2] = [0xed, 0x01];
const MULTICODEC_P256: [u8; 2] = [0x80, 0x24];

/// Why a key or a signature was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The bytes are not a usable public key.
    #[error("invalid {0} public key")]
    PublicKey(Algorithm),
    /// The bytes are not a usable private key.
    #[error("invalid {0} private key")]
    PrivateKey(Algorithm),
    /// The key is of a kind that is not supported here.
    #[error("unsupported key type")]
    Unsupported,
    /// A member of a JSON Web Key is missing or wrong.
    #[error("invalid key member {0}")]
    Member(&'static str),
    /// The text around a key or signature is not a known encoding.
    #[error("invalid encoding: {0}")]
    Encoding(#[from] encode::Error),
    /// The signature does not have the form its algorithm demands.
    #[error("malformed {0} signature")]
    Malformed(Algorithm),
    /// The signature belongs to another algorithm than the key.
    #[error("signature and key are of different algorithms")]
    Mismatch,
    /// The signature is well formed and wrong.
    #[error("signature does not verify")]
    Invalid,
}

/// A signature algorithm together with its curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// EdDSA over Curve25519.
    Ed25519,
    /// ECDSA over P-256 with SHA-256.
    P256,
}

impl Algorithm {
    /// Returns the JOSE name that is written: `EdDSA` or `ES256`.
    pub const fn jose(self) -> &'static str {
        match self {
            Self::Ed25519 => "EdDSA",
            Self::P256 => "ES256",
        }
    }

    /// Returns the algorithm a JOSE name stands for; RFC 9864's `Ed25519` is read as an alias.
    pub fn from_jose(name: &str) -> Option<Self> {
        match name {
            "EdDSA" | "Ed25519" => Some(Self::Ed25519),
            "ES256" => Some(Self::P256),
            _ => None,
        }
    }

    const fn prefix(self) -> &'static str {
        match self {
            Self::Ed25519 => "ed25519:",
            Self::P256 => "es256:",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Ed25519 => "Ed25519",
            Self::P256 => "P-256",
        })
    }
}

/// A signature with its algorithm, printed as `ed25519:` or `es256:` and standard base64.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Signature {
    algorithm: Algorithm,
    bytes: [u8; 64],
}

impl Signature {
    /// Wraps the 64 bytes of a signature.
    pub fn from_slice(algorithm: Algorithm, bytes: &[u8]) -> Result<Self, Error> {
        match bytes.try_into() {
            Ok(bytes) => Ok(Self { algorithm, bytes }),
            Err(_) => Err(Error::Malformed(algorithm)),
        }
    }

    /// Returns the algorithm that made this signature.
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Returns the 64 bytes of the signature.
    pub const fn as_bytes(&self) -> &[u8; 64] {
        &self.bytes
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.algorithm.prefix())?;
        formatter.write_str(&encode::base64(&self.bytes))
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl FromStr for Signature {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        for algorithm in [Algorithm::Ed25519, Algorithm::P256] {
            if let Some(rest) = text.strip_prefix(algorithm.prefix()) {
                return Self::from_slice(algorithm, &encode::from_base64(rest)?);
            }
        }
        Err(Error::Unsupported)
    }
}

impl Serialize for Signature {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Signature {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A private key; its bytes are wiped on drop and never printed.
#[derive(Clone)]
pub struct SigningKey(Private);

#[derive(Clone)]
enum Private {
    Ed25519(Box<ed25519_dalek::SigningKey>),
    P256(Box<p256::ecdsa::SigningKey>),
}

impl SigningKey {
    /// Makes a key from 32 random bytes that the caller drew.
    pub fn generate(algorithm: Algorithm, random: &[u8; 32]) -> Self {
        let mut seed = Zeroizing::new(*random);
        loop {
            match Self::from_seed(algorithm, &seed) {
                Ok(key) => return key,
                // One P-256 draw in 2^32 is not below the group order; the next is its digest.
                Err(_) => *seed = *Sha256::of(*seed).as_bytes(),
            }
        }
    }

    /// Reads a key from its seed (Ed25519) or scalar (P-256).
    pub fn from_seed(algorithm: Algorithm, seed: &[u8; 32]) -> Result<Self, Error> {
        match algorithm {
            Algorithm::Ed25519 => {
                Ok(Self(Private::Ed25519(Box::new(ed25519_dalek::SigningKey::from_bytes(seed)))))
            }
            Algorithm::P256 => p256::ecdsa::SigningKey::from_slice(seed)
                .map(|key| Self(Private::P256(Box::new(key))))
                .map_err(|_| Error::PrivateKey(algorithm)),
        }
    }

    /// Reads a private JSON Web Key and checks that its two halves belong together.
    pub fn from_jwk(jwk: &Value) -> Result<Self, Error> {
        let mut public = jwk.as_object().ok_or(Error::Member("kty"))?.clone();
        let secret = Zeroizing::new(match public.shift_remove("d") {
            Some(Value::String(text)) => text,
            Some(_) | None => return Err(Error::Member("d")),
        });
        let public = VerifyingKey::from_jwk(&Value::Object(public))?;
        let bytes = Zeroizing::new(encode::from_base64url(&secret)?);
        let seed = <&[u8; 32]>::try_from(bytes.as_slice()).map_err(|_| Error::Member("d"))?;
        let key = Self::from_seed(public.algorithm(), seed)?;
        if key.verifying_key() == public { Ok(key) } else { Err(Error::Member("d")) }
    }

    /// Returns the seed or scalar, for wrapping at rest.
    pub fn to_seed(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(match &self.0 {
            Private::Ed25519(key) => key.to_bytes(),
            Private::P256(key) => key.to_bytes().into(),
        })
    }

    /// Returns the algorithm of this key.
    pub const fn algorithm(&self) -> Algorithm {
        match self.0 {
            Private::Ed25519(_) => Algorithm::Ed25519,
            Private::P256(_) => Algorithm::P256,
        }
    }

    /// Returns the public half.
    pub fn verifying_key(&self) -> VerifyingKey {
        VerifyingKey(match &self.0 {
            Private::Ed25519(key) => Public::Ed25519(key.verifying_key()),
            Private::P256(key) => Public::P256(*key.verifying_key()),
        })
    }

    /// Signs a message; the nonce is deterministic for both algorithms.
    pub fn sign(&self, message: &[u8]) -> Signature {
        let bytes = match &self.0 {
            Private::Ed25519(key) => key.sign(message).to_bytes(),
            Private::P256(key) => {
                let signature: p256::ecdsa::Signature = key.sign(message);
                signature.to_bytes().into()
            }
        };
        Signature { algorithm: self.algorithm(), bytes }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SigningKey({} of {:?})", self.algorithm(), self.verifying_key())
    }
}

/// A public key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct VerifyingKey(Public);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Public {
    Ed25519(ed25519_dalek::VerifyingKey),
    P256(p256::ecdsa::VerifyingKey),
}

impl VerifyingKey {
    /// Reads 32 bytes of Ed25519 or 33 bytes of compressed P-256.
    pub fn from_bytes(algorithm: Algorithm, bytes: &[u8]) -> Result<Self, Error> {
        let invalid = || Error::PublicKey(algorithm);
        match algorithm {
            Algorithm::Ed25519 => {
                let bytes: &[u8; 32] = bytes.try_into().map_err(|_| invalid())?;
                let key = ed25519_dalek::VerifyingKey::from_bytes(bytes).map_err(|_| invalid())?;
                // A point has two encodings when its y fits twice in 255 bits; only one is a key.
                if key.is_weak() || key.to_edwards().compress().as_bytes() != bytes {
                    return Err(invalid());
                }
                Ok(Self(Public::Ed25519(key)))
            }
            Algorithm::P256 => match bytes {
                [2 | 3, ..] if bytes.len() == 33 => Self::from_point(bytes),
                _ => Err(invalid()),
            },
        }
    }

    pub(crate) fn from_point(sec1: &[u8]) -> Result<Self, Error> {
        p256::ecdsa::VerifyingKey::from_sec1_bytes(sec1)
            .map(|key| Self(Public::P256(key)))
            .map_err(|_| Error::PublicKey(Algorithm::P256))
    }

    /// Returns 32 bytes of Ed25519 or 33 bytes of compressed P-256.
    pub fn to_bytes(&self) -> Vec<u8> {
        match &self.0 {
            Public::Ed25519(key) => key.as_bytes().to_vec(),
            Public::P256(key) => key.to_sec1_point(true).as_bytes().to_vec(),
        }
    }

    /// Returns the algorithm of this key.
    pub const fn algorithm(&self) -> Algorithm {
        match self.0 {
            Public::Ed25519(_) => Algorithm::Ed25519,
            Public::P256(_) => Algorithm::P256,
        }
    }

    /// Checks a signature over a message.
    pub fn verify(&self, message: &[u8], signature: &Signature) -> Result<(), Error> {
        match (&self.0, signature.algorithm) {
            (Public::Ed25519(key), Algorithm::Ed25519) => {
                let signature = ed25519_dalek::Signature::from_bytes(&signature.bytes);
                key.verify_strict(message, &signature).map_err(|_| Error::Invalid)
            }
            (Public::P256(key), Algorithm::P256) => {
                let signature = p256::ecdsa::Signature::from_slice(&signature.bytes)
                    .map_err(|_| Error::Malformed(Algorithm::P256))?;
                key.verify(message, &signature).map_err(|_| Error::Invalid)
            }
            (Public::Ed25519(_), Algorithm::P256) | (Public::P256(_), Algorithm::Ed25519) => {
                Err(Error::Mismatch)
            }
        }
    }

    /// Returns the key bytes behind their multicodec prefix.
    pub fn to_multicodec(&self) -> Vec<u8> {
        let prefix = match self.algorithm() {
            Algorithm::Ed25519 => MULTICODEC_ED25519,
            Algorithm::P256 => MULTICODEC_P256,
        };
        [prefix.as_slice(), &self.to_bytes()].concat()
    }

    /// Reads key bytes behind a multicodec prefix.
    pub fn from_multicodec(bytes: &[u8]) -> Result<Self, Error> {
        let (prefix, key) = bytes.split_first_chunk::<2>().ok_or(Error::Unsupported)?;
        match *prefix {
            MULTICODEC_ED25519 => Self::from_bytes(Algorithm::Ed25519, key),
            MULTICODEC_P256 => Self::from_bytes(Algorithm::P256, key),
            _ => Err(Error::Unsupported),
        }
    }

    /// Returns the base58 multibase text: `z6Mk…` for Ed25519, `zDn…` for P-256.
    pub fn to_multibase(&self) -> String {
        encode::multibase(Base::Base58, &self.to_multicodec())
    }

    /// Reads a multibase text in any supported base.
    pub fn from_multibase(text: &str) -> Result<Self, Error> {
        let (_, bytes) = encode::from_multibase(text)?;
        Self::from_multicodec(&bytes)
    }

    /// Returns the public JSON Web Key with the members its thumbprint covers.
    pub fn to_jwk(&self) -> Value {
        match &self.0 {
            Public::Ed25519(key) => json!({
                "crv": "Ed25519",
                "kty": "OKP",
                "x": encode::base64url(key.as_bytes()),
            }),
            Public::P256(key) => {
                let point = key.to_sec1_point(false);
                let (x, y) = point.as_bytes()[1..].split_at(32);
                json!({
                    "crv": "P-256",
                    "kty": "EC",
                    "x": encode::base64url(x),
                    "y": encode::base64url(y),
                })
            }
        }
    }

    /// Reads a public JSON Web Key; one that carries a private half is refused.
    pub fn from_jwk(jwk: &Value) -> Result<Self, Error> {
        let jwk = jwk.as_object().ok_or(Error::Member("kty"))?;
        if jwk.contains_key("d") {
            return Err(Error::Member("d"));
        }
        if jwk.get("use").is_some_and(|usage| usage != "sig") {
            return Err(Error::Member("use"));
        }
        let key = match (text(jwk, "kty")?, text(jwk, "crv")?) {
            ("OKP", "Ed25519") => Self::from_bytes(Algorithm::Ed25519, &coordinate(jwk, "x")?)?,
            ("EC", "P-256") => {
                let point = [&[4], &coordinate(jwk, "x")?[..], &coordinate(jwk, "y")?[..]];
                Self::from_point(&point.concat())?
            }
            _ => return Err(Error::Unsupported),
        };
        match jwk.get("alg") {
            None => Ok(key),
            Some(Value::String(name)) if Algorithm::from_jose(name) == Some(key.algorithm()) => {
                Ok(key)
            }
            Some(_) => Err(Error::Member("alg")),
        }
    }

    /// Returns the RFC 7638 thumbprint; its usual text is base64url.
    pub fn thumbprint(&self) -> Sha256 {
        Sha256::of(crate::jcs::canonical(&self.to_jwk()))
    }
}

impl std::hash::Hash for VerifyingKey {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.to_bytes().hash(state);
    }
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.to_multibase())
    }
}

fn text<'a>(jwk: &'a Object, name: &'static str) -> Result<&'a str, Error> {
    jwk.get(name).and_then(Value::as_str).ok_or(Error::Member(name))
}

fn coordinate(jwk: &Object, name: &'static str) -> Result<[u8; 32], Error> {
    encode::from_base64url(text(jwk, name)?)?.try_into().map_err(|_| Error::Member(name))
}

#[cfg(test)]
mod tests;
