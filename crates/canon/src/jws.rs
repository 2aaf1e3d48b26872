//! Compact JSON Web Signatures (RFC 7515), attached or detached, and the JWTs built on them.
//!
//! Verification goes in steps so that a caller can look up a key in between: [`Compact::parse`]
//! reads the header and refuses every algorithm but EdDSA and ES256 before any key is
//! touched, then [`Compact::verify`] or [`Compact::verify_detached`] checks the signature.
//! Claims such as `exp` and `aud` are judged elsewhere. Shared-secret tokens have one
//! function of their own, [`verify_hs256`], so that no key can ever be taken for a secret.

use serde_json::{Value, json};

use crate::encode;
use crate::hash::{Sha256, hmac_sha256_matches};
use crate::json::{self, Limits, Object};
use crate::key::{self, Algorithm, Signature, SigningKey, VerifyingKey};

/// The longest compact text that is parsed.
pub const MAX_LENGTH: usize = 2 << 20;

const HEADER_LIMITS: Limits = Limits { bytes: 8 * 1024, depth: 8, nodes: 256 };

/// Why a signature text was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is longer than any signature accepted here.
    #[error("signature text of {0} bytes is too long")]
    TooLong(usize),
    /// The text is not three parts of base64url.
    #[error("not a compact signature: {0}")]
    Form(&'static str),
    /// The header or the claims are not strict JSON.
    #[error("invalid {0}: {1}")]
    Json(&'static str, json::Error),
    /// A member of the header has the wrong type.
    #[error("invalid header member {0}")]
    Member(&'static str),
    /// The header demands an extension.
    #[error("critical header extensions are not supported")]
    Critical,
    /// The algorithm is not one of those accepted.
    #[error("algorithm is not accepted")]
    Algorithm,
    /// The payload is absent where it is needed.
    #[error("payload is detached")]
    Detached,
    /// The payload is not the one that was expected.
    #[error("payload is not the expected one")]
    Payload,
    /// The signature is malformed or wrong.
    #[error(transparent)]
    Signature(#[from] key::Error),
}

/// The members of a protected header that verification needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The algorithm, already known to be an accepted one.
    pub algorithm: Algorithm,
    /// The name of the key, if the signer gave one.
    pub kid: Option<String>,
    /// The media type of the whole object, if the signer gave one.
    pub typ: Option<String>,
}

/// A parsed compact signature whose key has not been looked up yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compact {
    header: Header,
    protected: String,
    payload: Option<Vec<u8>>,
    signature: Signature,
}

impl Compact {
    /// Parses `header.payload.signature`, or `header..signature` with the payload detached.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let [protected, payload, signature] = parts(text)?;
        let header = header_object(protected)?;
        let algorithm = header
            .get("alg")
            .and_then(Value::as_str)
            .and_then(Algorithm::from_jose)
            .ok_or(Error::Algorithm)?;
        let payload = match payload {
            "" => None,
            text => Some(part(text, "payload is not base64url")?),
        };
        Ok(Self {
            header: Header {
                algorithm,
                kid: optional(&header, "kid")?,
                typ: optional(&header, "typ")?,
            },
            protected: protected.to_owned(),
            payload,
            signature: Signature::from_slice(
                algorithm,
                &part(signature, "signature is not base64url")?,
            )?,
        })
    }

    /// Returns the protected header.
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the payload before its signature is checked, to find out who claims to sign.
    pub fn unverified_payload(&self) -> Option<&[u8]> {
        self.payload.as_deref()
    }

    /// Checks the signature over the attached payload and returns that payload.
    pub fn verify(&self, key: &VerifyingKey) -> Result<&[u8], Error> {
        let payload = self.payload.as_deref().ok_or(Error::Detached)?;
        self.check(payload, key)?;
        Ok(payload)
    }

    /// Checks the signature over a payload the caller rebuilt; an attached one must equal it.
    pub fn verify_detached(&self, payload: &[u8], key: &VerifyingKey) -> Result<(), Error> {
        if self.payload.as_deref().is_some_and(|attached| attached != payload) {
            return Err(Error::Payload);
        }
        self.check(payload, key)
    }

    fn check(&self, payload: &[u8], key: &VerifyingKey) -> Result<(), Error> {
        let input = signing_input(&self.protected, payload);
        Ok(key.verify(input.as_bytes(), &self.signature)?)
    }
}

/// Returns the payload that stands for a digest: `{"sha256":"<64 hex digits>"}`.
pub fn digest_payload(digest: &Sha256) -> String {
    format!(r#"{{"sha256":"{}"}}"#, digest.to_hex())
}

/// A signature that is still to be made, by a key that lies elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsigned {
    protected: String,
    input: String,
}

impl Unsigned {
    /// Prepares a signature; the header has `alg`, `kid` and, if given, `typ`.
    pub fn new(algorithm: Algorithm, kid: &str, typ: Option<&str>, payload: &[u8]) -> Self {
        let protected = protected(algorithm, kid, typ);
        let input = signing_input(&protected, payload);
        Self { protected, input }
    }

    /// Returns the bytes to sign.
    pub fn input(&self) -> &[u8] {
        self.input.as_bytes()
    }

    /// Returns the compact form with the payload.
    pub fn attached(&self, signature: &[u8; 64]) -> String {
        format!("{}.{}", self.input, encode::base64url(signature))
    }

    /// Returns the compact form without the payload.
    pub fn detached(&self, signature: &[u8; 64]) -> String {
        format!("{}..{}", self.protected, encode::base64url(signature))
    }
}

/// Signs a payload and attaches it; the header has `alg`, `kid` and, if given, `typ`.
pub fn sign(key: &SigningKey, kid: &str, typ: Option<&str>, payload: &[u8]) -> String {
    let unsigned = Unsigned::new(key.algorithm(), kid, typ, payload);
    unsigned.attached(key.sign(unsigned.input()).as_bytes())
}

/// Signs a payload and leaves it out; the header has exactly `alg` and `kid`.
pub fn sign_detached(key: &SigningKey, kid: &str, payload: &[u8]) -> String {
    let unsigned = Unsigned::new(key.algorithm(), kid, None, payload);
    unsigned.detached(key.sign(unsigned.input()).as_bytes())
}

/// Returns the flattened JSON form of a compact text.
pub fn flattened(compact: &str) -> Result<Value, Error> {
    let [protected, payload, signature] = parts(compact)?;
    Ok(json!({"protected": protected, "payload": payload, "signature": signature}))
}

/// Reads a payload as the claims of a JWT.
pub fn claims(payload: &[u8]) -> Result<Object, Error> {
    let limits = Limits { bytes: 64 * 1024, depth: 16, nodes: 4096 };
    json::parse_object(payload, limits).map_err(|error| Error::Json("claims", error))
}

/// Checks a token signed with a shared secret (HS256 alone) and returns its payload.
pub fn verify_hs256(token: &str, secret: &[u8]) -> Result<Vec<u8>, Error> {
    let [protected, payload, signature] = parts(token)?;
    let header = header_object(protected)?;
    if header.get("alg").and_then(Value::as_str) != Some("HS256") {
        return Err(Error::Algorithm);
    }
    let tag = part(signature, "signature is not base64url")?;
    let bytes = part(payload, "payload is not base64url")?;
    let signed = &token[..protected.len() + 1 + payload.len()];
    if hmac_sha256_matches(secret, signed.as_bytes(), &tag) {
        Ok(bytes)
    } else {
        Err(Error::Signature(key::Error::Invalid))
    }
}

fn parts(text: &str) -> Result<[&str; 3], Error> {
    if text.len() > MAX_LENGTH {
        return Err(Error::TooLong(text.len()));
    }
    let mut parts = text.split('.');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(header), Some(payload), Some(signature), None) => Ok([header, payload, signature]),
        _ => Err(Error::Form("expected three parts")),
    }
}

fn part(text: &str, complaint: &'static str) -> Result<Vec<u8>, Error> {
    encode::from_base64url(text).map_err(|_| Error::Form(complaint))
}

fn header_object(protected: &str) -> Result<Object, Error> {
    let bytes = part(protected, "header is not base64url")?;
    let header =
        json::parse_object(&bytes, HEADER_LIMITS).map_err(|error| Error::Json("header", error))?;
    if header.contains_key("crit") {
        return Err(Error::Critical);
    }
    Ok(header)
}

fn optional(header: &Object, name: &'static str) -> Result<Option<String>, Error> {
    match header.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(Error::Member(name)),
    }
}

fn protected(algorithm: Algorithm, kid: &str, typ: Option<&str>) -> String {
    let mut header = json!({"alg": algorithm.jose(), "kid": kid});
    if let Some(typ) = typ {
        header["typ"] = json!(typ);
    }
    encode::base64url(crate::jcs::canonical(&header).as_bytes())
}

fn signing_input(protected: &str, payload: &[u8]) -> String {
    format!("{protected}.{}", encode::base64url(payload))
}

#[cfg(test)]
mod tests;
