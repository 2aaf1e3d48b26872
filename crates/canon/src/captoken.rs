//! Capability tokens as bytes: `umpcap.<claims>.ed25519:<signature>`.
//!
//! The claims are canonical JSON in base64url; what is signed is the BLAKE3 digest of that
//! base64url text. Version, time, audience and scope are judged elsewhere.

use serde_json::Value;

use crate::did::{self, Did};
use crate::encode;
use crate::hash::Blake3;
use crate::jcs;
use crate::json::{self, Limits, Object};
use crate::key::{self, Algorithm, Signature, SigningKey, VerifyingKey};

const NAME: &str = "umpcap";
const SIGNATURE_PREFIX: &str = "ed25519:";
const MAX_LENGTH: usize = 16 * 1024;

const CLAIMS_LIMITS: Limits = Limits { bytes: 12 * 1024, depth: 8, nodes: 1024 };

/// Why a token was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is not three parts with the right names.
    #[error("not a capability token: {0}")]
    Form(&'static str),
    /// The claims are not strict JSON.
    #[error("invalid claims: {0}")]
    Claims(#[from] json::Error),
    /// The issuer is not a `did:key`.
    #[error("invalid issuer: {0}")]
    Issuer(#[from] did::Error),
    /// Only Ed25519 keys issue tokens.
    #[error("capability tokens need an Ed25519 key")]
    Algorithm,
    /// The signature is malformed or wrong.
    #[error(transparent)]
    Signature(#[from] key::Error),
}

/// A decoded token whose signature has not been checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    claims: Object,
    digest: Blake3,
    signature: Signature,
}

impl Token {
    /// Decodes a token; the signature is not checked yet.
    pub fn decode(text: &str) -> Result<Self, Error> {
        if text.len() > MAX_LENGTH {
            return Err(Error::Form("too long"));
        }
        let mut parts = text.split('.');
        let (Some(NAME), Some(payload), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(Error::Form("expected umpcap and two parts"));
        };
        let signature = signature
            .strip_prefix(SIGNATURE_PREFIX)
            .ok_or(Error::Form("signature is not ed25519"))?;
        let signature = encode::from_base64url(signature)
            .map_err(|_| Error::Form("signature is not base64url"))?;
        let claims =
            encode::from_base64url(payload).map_err(|_| Error::Form("claims are not base64url"))?;
        Ok(Self {
            claims: json::parse_object(&claims, CLAIMS_LIMITS)?,
            digest: Blake3::of(payload),
            signature: Signature::from_slice(Algorithm::Ed25519, &signature)?,
        })
    }

    /// Returns the claims before the signature is checked, to find out who claims to issue.
    pub const fn unverified_claims(&self) -> &Object {
        &self.claims
    }

    /// Returns what was signed and the signature, for whoever verifies elsewhere.
    pub fn proof(&self) -> (&Blake3, &Signature) {
        (&self.digest, &self.signature)
    }

    /// Checks the signature by a given key and returns the claims.
    pub fn verify(&self, key: &VerifyingKey) -> Result<&Object, Error> {
        key.verify(self.digest.as_bytes(), &self.signature)?;
        Ok(&self.claims)
    }

    /// Checks the signature by the key of the `did:key` in `iss`; returns that DID and the claims.
    pub fn verify_by_issuer(&self) -> Result<(Did, &Object), Error> {
        let issuer: Did =
            self.claims.get("iss").and_then(Value::as_str).unwrap_or_default().parse()?;
        let claims = self.verify(&issuer.key()?)?;
        Ok((issuer, claims))
    }
}

/// Encodes and signs claims.
pub fn encode(claims: &Object, key: &SigningKey) -> Result<String, Error> {
    if key.algorithm() != Algorithm::Ed25519 {
        return Err(Error::Algorithm);
    }
    let unsigned = Unsigned::new(claims);
    let signature = key.sign(unsigned.digest().as_bytes());
    Ok(unsigned.signed(signature.as_bytes()))
}

/// A token whose key lies elsewhere: what is to be signed, and where the signature goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsigned {
    payload: String,
}

impl Unsigned {
    /// Encodes claims.
    pub fn new(claims: &Object) -> Self {
        Self { payload: encode::base64url(jcs::canonical_object(claims).as_bytes()) }
    }

    /// Returns what is signed.
    pub fn digest(&self) -> Blake3 {
        Blake3::of(&self.payload)
    }

    /// Returns the token with an Ed25519 signature over the digest.
    pub fn signed(&self, signature: &[u8]) -> String {
        let signature = encode::base64url(signature);
        format!("{NAME}.{}.{SIGNATURE_PREFIX}{signature}", self.payload)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn token() -> String {
        let key = SigningKey::generate(Algorithm::Ed25519, &[6; 32]);
        let claims = json!({"verbs": ["read"], "iss": Did::of_key(&key.verifying_key())});
        encode(claims.as_object().expect("an object"), &key).expect("an Ed25519 key")
    }

    #[test]
    fn ump_071_tokens_are_three_parts() {
        let good = token();
        let [name, payload, signature] =
            <[&str; 3]>::try_from(good.split('.').collect::<Vec<_>>()).expect("three parts");
        assert_eq!(name, "umpcap");
        let bare = signature.strip_prefix("ed25519:").expect("a prefix");
        let cases = [
            String::new(),
            "umpcap".to_owned(),
            format!("{good}."),
            format!("UMPCAP.{payload}.{signature}"),
            format!("umpcap.{payload}.{bare}"),
            format!("umpcap.{payload}=.{signature}"),
            format!("umpcap.{payload}.{signature}=="),
            format!("umpcap.{payload}.ed25519:"),
            format!("umpcap..{signature}"),
            format!("umpcap.{}.{signature}", encode::base64url(b"[]")),
            format!("umpcap.{}.{signature}", encode::base64url(br#"{"a":1,"a":2}"#)),
            format!("umpcap.{}.{signature}", "a".repeat(MAX_LENGTH)),
        ];
        for text in cases {
            assert!(Token::decode(&text).is_err(), "{text:.80}");
        }
        assert!(Token::decode(&good).expect("well formed").verify_by_issuer().is_ok());
    }

    #[test]
    fn ump_073_the_issuer_must_be_the_signer() {
        let key = SigningKey::generate(Algorithm::Ed25519, &[6; 32]);
        let other = SigningKey::generate(Algorithm::Ed25519, &[7; 32]);
        let issued = |iss: Value| {
            let claims = json!({"iss": iss});
            let text = encode(claims.as_object().expect("an object"), &key).expect("Ed25519");
            Token::decode(&text).expect("well formed")
        };
        let foreign = issued(json!(Did::of_key(&other.verifying_key())));
        assert_eq!(foreign.verify_by_issuer(), Err(Error::Signature(key::Error::Invalid)));
        assert!(foreign.verify(&key.verifying_key()).is_ok());
        for iss in [json!(null), json!("alice"), json!("did:web:a.example")] {
            assert!(matches!(issued(iss).verify_by_issuer(), Err(Error::Issuer(_))));
        }
    }

    #[test]
    fn only_ed25519_issues() {
        let p256 = SigningKey::generate(Algorithm::P256, &[6; 32]);
        assert_eq!(encode(&Object::new(), &p256), Err(Error::Algorithm));
        let token = Token::decode(&token()).expect("well formed");
        assert_eq!(
            token.verify(&p256.verifying_key()),
            Err(Error::Signature(key::Error::Mismatch))
        );
    }
}
