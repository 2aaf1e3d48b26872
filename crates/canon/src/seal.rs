//! Sealed records: a JSON object that carries its own hash, signature and signer.
//!
//! The seal lives in the top-level member `integrity` and covers the canonical form of
//! everything else. Whether the signer may speak for the record is judged elsewhere.

use std::fmt;

use serde_json::{Value, json};

use crate::did::{self, Did};
use crate::hash::{self, Blake3};
use crate::jcs;
use crate::json::Object;
use crate::key::{self, Algorithm, Signature, SigningKey, VerifyingKey};

/// The member that holds the seal.
pub const MEMBER: &str = "integrity";

/// Why a seal was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The record carries no seal.
    #[error("record is not sealed")]
    Missing,
    /// A member of the seal is missing, foreign or of the wrong type.
    #[error("invalid {MEMBER} member {0}")]
    Member(&'static str),
    /// The hash is not written as it must be.
    #[error("invalid content_hash: {0}")]
    Hash(#[from] hash::Error),
    /// The signer is not a `did:key`.
    #[error("invalid signer: {0}")]
    Signer(#[from] did::Error),
    /// The record is not the one that was hashed.
    #[error("content does not match content_hash")]
    Changed,
    /// Only Ed25519 keys seal.
    #[error("seals need an Ed25519 key")]
    Algorithm,
    /// The signature is malformed or wrong.
    #[error(transparent)]
    Signature(#[from] key::Error),
}

/// A hash, the signature over it, and who signed.
#[derive(Clone, PartialEq, Eq)]
pub struct Seal {
    /// The hash of the record without its seal.
    pub content_hash: Blake3,
    /// The Ed25519 signature over [`signed_digest`] of the hash.
    pub signature: Signature,
    /// The `did:key` of the signer.
    pub signer: Did,
}

impl Seal {
    /// Seals a hash.
    pub fn new(content_hash: Blake3, key: &SigningKey) -> Result<Self, Error> {
        if key.algorithm() != Algorithm::Ed25519 {
            return Err(Error::Algorithm);
        }
        Ok(Self {
            content_hash,
            signature: key.sign(signed_digest(&content_hash).as_bytes()),
            signer: Did::of_key(&key.verifying_key()),
        })
    }

    /// Reads the seal a record carries.
    pub fn of(record: &Object) -> Result<Self, Error> {
        let seal = match record.get(MEMBER) {
            None => return Err(Error::Missing),
            Some(Value::Object(seal)) => seal,
            Some(_) => return Err(Error::Member(MEMBER)),
        };
        Ok(Self {
            content_hash: text(seal, "content_hash")?.parse()?,
            signature: text(seal, "signature")?.parse()?,
            signer: text(seal, "signer")?.parse()?,
        })
    }

    /// Checks the signature over the hash and returns the key that made it.
    pub fn verify(&self) -> Result<VerifyingKey, Error> {
        let key = self.signer.key()?;
        if key.algorithm() != Algorithm::Ed25519 {
            return Err(Error::Algorithm);
        }
        key.verify(signed_digest(&self.content_hash).as_bytes(), &self.signature)?;
        Ok(key)
    }

    /// Returns the JSON of the seal.
    pub fn to_json(&self) -> Value {
        json!({
            "content_hash": self.content_hash,
            "signature": self.signature,
            "signer": self.signer,
        })
    }
}

impl fmt::Debug for Seal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Seal({} by {})", self.content_hash, self.signer)
    }
}

/// Returns the hash of a record: BLAKE3 of its canonical form without the seal.
pub fn content_hash(record: &Object) -> Blake3 {
    Blake3::of(jcs::canonical_without(record, &[MEMBER]))
}

/// Returns what is signed for a hash: BLAKE3 of the *text* of the hash, prefix included.
pub fn signed_digest(hash: &Blake3) -> Blake3 {
    Blake3::of(hash.to_string())
}

/// Returns the canonical text a content-addressed id is the hash of: the record with an empty
/// `id` and no seal.
pub fn id_preimage(record: &Object) -> String {
    let mut record = record.clone();
    record.insert("id".to_owned(), json!(""));
    jcs::canonical_without(&record, &[MEMBER])
}

/// Returns the hash that a content-addressed id spells in base32.
pub fn content_id(record: &Object) -> Blake3 {
    Blake3::of(id_preimage(record))
}

/// Seals a record as it stands, replacing any seal it had.
pub fn seal(record: &mut Object, key: &SigningKey) -> Result<Seal, Error> {
    let seal = Seal::new(content_hash(record), key)?;
    record.insert(MEMBER.to_owned(), seal.to_json());
    Ok(seal)
}

/// Checks that a record is unchanged since it was sealed and that its signature is right.
pub fn verify(record: &Object) -> Result<Seal, Error> {
    verify_unless(record, |_| false)
}

/// The same, unless the signature is known to be right: that is asked once the record turned out
/// to be the one that was hashed.
pub fn verify_unless(record: &Object, known: impl FnOnce(&Seal) -> bool) -> Result<Seal, Error> {
    let seal = Seal::of(record)?;
    if content_hash(record) != seal.content_hash {
        return Err(Error::Changed);
    }
    if !known(&seal) {
        seal.verify()?;
    }
    Ok(seal)
}

fn text<'a>(seal: &'a Object, name: &'static str) -> Result<&'a str, Error> {
    seal.get(name).and_then(Value::as_str).ok_or(Error::Member(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Object {
        let value = json!({"id": "urn:x:a", "body": {"text": "t", "integrity": 1}, "n": null});
        value.as_object().expect("an object").clone()
    }

    fn key() -> SigningKey {
        SigningKey::generate(Algorithm::Ed25519, &[4; 32])
    }

    #[test]
    fn ump_030_only_the_top_level_seal_is_left_out() {
        let mut sealed = record();
        seal(&mut sealed, &key()).expect("an Ed25519 key");
        assert_eq!(content_hash(&sealed), content_hash(&record()));
        let mut inner = record();
        inner["body"]["integrity"] = json!(2);
        assert_ne!(content_hash(&inner), content_hash(&record()));
        let mut absent = record();
        absent.shift_remove("n");
        assert_ne!(content_hash(&absent), content_hash(&record()), "null is not absence");
    }

    #[test]
    fn ump_036_sealed_records_verify_until_touched() {
        let mut sealed = record();
        let seal = seal(&mut sealed, &key()).expect("an Ed25519 key");
        assert_eq!(verify(&sealed), Ok(seal));
        sealed["body"]["text"] = json!("u");
        assert_eq!(verify(&sealed), Err(Error::Changed));
        super::seal(&mut sealed, &key()).expect("an Ed25519 key");
        assert!(verify(&sealed).is_ok());
    }

    #[test]
    fn ump_036_a_known_signature_excuses_no_change() {
        let mut sealed = record();
        let seal = seal(&mut sealed, &key()).expect("an Ed25519 key");
        assert_eq!(verify_unless(&sealed, |known| *known == seal), Ok(seal));
        sealed["body"]["text"] = json!("u");
        assert_eq!(verify_unless(&sealed, |_| true), Err(Error::Changed));
    }

    #[test]
    fn ump_036_a_seal_by_another_key_does_not_verify() {
        let mut sealed = record();
        seal(&mut sealed, &key()).expect("an Ed25519 key");
        let other = SigningKey::generate(Algorithm::Ed25519, &[5; 32]);
        sealed[MEMBER]["signer"] = json!(Did::of_key(&other.verifying_key()));
        assert_eq!(verify(&sealed), Err(Error::Signature(key::Error::Invalid)));
    }

    #[test]
    fn ump_035_only_ed25519_seals() {
        let p256 = SigningKey::generate(Algorithm::P256, &[4; 32]);
        assert_eq!(seal(&mut record(), &p256), Err(Error::Algorithm));
        let mut sealed = record();
        seal(&mut sealed, &key()).expect("an Ed25519 key");
        sealed[MEMBER]["signer"] = json!(Did::of_key(&p256.verifying_key()));
        assert_eq!(verify(&sealed), Err(Error::Algorithm));
        sealed[MEMBER]["signer"] = json!("did:web:a.example");
        assert_eq!(verify(&sealed), Err(Error::Signer(did::Error::Method("key"))));
    }

    #[test]
    fn ump_022_every_member_of_the_seal_is_needed() {
        assert_eq!(verify(&record()), Err(Error::Missing));
        let mut wrong = record();
        wrong.insert(MEMBER.to_owned(), json!("x"));
        assert_eq!(verify(&wrong), Err(Error::Member(MEMBER)));
        for name in ["content_hash", "signature", "signer"] {
            let mut sealed = record();
            seal(&mut sealed, &key()).expect("an Ed25519 key");
            sealed[MEMBER][name] = json!(null);
            assert_eq!(verify(&sealed), Err(Error::Member(name)));
        }
    }
}
