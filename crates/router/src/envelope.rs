//! A store's signature under each of its answers.
//!
//! A store that signs binds what it says to who asked, what was asked, and where it placed the
//! answer, so that nobody between it and the router can change, reorder or replay it. The key is
//! agreed on beforehand: it is part of the store's configuration, never of its answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use yore_canon::encode::{base64url, from_base64url};
use yore_canon::hash::Sha256;
use yore_canon::jcs;
use yore_canon::key::{Algorithm, Signature, SigningKey, VerifyingKey};

use crate::record::{Question, Record};

/// How old a signature may be, and how far ahead of the router's clock, in milliseconds.
pub const TOLERANCE: i64 = 300_000;

/// The signature under one answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Envelope {
    /// When it was signed, in milliseconds since 1970.
    pub at: i64,
    /// An Ed25519 signature in base64url.
    pub signature: String,
}

impl Envelope {
    /// The envelope of a signature that was made elsewhere, over a claim's message.
    #[must_use]
    pub fn of(at: i64, signature: &[u8]) -> Self {
        Self { at, signature: base64url(signature) }
    }
}

/// Why a signature does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is none.
    #[error("the hit is not signed")]
    Missing,
    /// It is too old, or from a future too far.
    #[error("the signature is not of this time")]
    Stale,
    /// It is not this store's, or not under these words.
    #[error("the signature does not verify")]
    Wrong,
}

/// What is signed: an answer in its place.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// The store's name.
    pub store: &'a str,
    /// The question.
    pub question: &'a Question,
    /// The answer's place in the list, from 0.
    pub place: usize,
    /// The answer.
    pub record: &'a Record,
    /// Its score.
    pub score: f64,
}

impl Claim<'_> {
    /// The text that is signed.
    #[must_use]
    pub fn message(&self, at: i64) -> String {
        let Question { whose, query, k, types, filter, created_from: _, now: _ } = self.question;
        // By days, for the two sides have two clocks.
        let days = self.question.days();
        let asked = json!([whose.agent, whose.user, query, k, types, filter, days]);
        jcs::canonical(&json!({
            "what": "yore-hit-1",
            "store": self.store,
            "asked": Sha256::of(jcs::canonical(&asked)).to_hex(),
            "place": self.place,
            // A number that JSON cannot hold is signed as what it is.
            "score": self.score.to_bits().to_string(),
            "record": self.record.digest(),
            "at": at.to_string(),
        }))
    }

    /// Signs it with the store's key.
    #[must_use]
    pub fn sign(&self, key: &SigningKey, at: i64) -> Envelope {
        Envelope::of(at, key.sign(self.message(at).as_bytes()).as_bytes())
    }

    /// Checks an envelope against the store's key.
    pub fn verify(
        &self,
        envelope: Option<&Envelope>,
        key: &VerifyingKey,
        now: i64,
    ) -> Result<(), Refused> {
        let envelope = envelope.ok_or(Refused::Missing)?;
        if now.abs_diff(envelope.at) > TOLERANCE.unsigned_abs() {
            return Err(Refused::Stale);
        }
        let bytes = from_base64url(&envelope.signature).map_err(|_| Refused::Wrong)?;
        let signature =
            Signature::from_slice(Algorithm::Ed25519, &bytes).map_err(|_| Refused::Wrong)?;
        key.verify(self.message(envelope.at).as_bytes(), &signature).map_err(|_| Refused::Wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Type, Whose};

    #[test]
    fn mw_202_a_signature_covers_store_question_place_score_and_words() {
        let key = SigningKey::from_seed(Algorithm::Ed25519, &[7; 32]).unwrap();
        let public = key.verifying_key();
        let whose = Whose { agent: "a".into(), user: None };
        let question = Question::new(whose.clone(), "what colour", 5, 1_000);
        let record = Record::new("1", &whose, Type::Semantic, "the sky is blue", 0);
        let claim =
            Claim { store: "s", question: &question, place: 0, record: &record, score: 0.5 };
        let envelope = claim.sign(&key, 1_000);
        let check = |claim: Claim<'_>, now| claim.verify(Some(&envelope), &public, now);
        assert_eq!(check(claim, 2_000), Ok(()));
        assert_eq!(check(claim, 1_001 + TOLERANCE), Err(Refused::Stale));
        assert_eq!(claim.verify(None, &public, 1_000), Err(Refused::Missing));

        let other = Question { query: "another".into(), ..question.clone() };
        let forged = Record { content: "the sky is green".into(), ..record.clone() };
        for wrong in [
            Claim { store: "t", ..claim },
            Claim { question: &other, ..claim },
            Claim { place: 1, ..claim },
            Claim { score: 0.6, ..claim },
            Claim { record: &forged, ..claim },
        ] {
            assert_eq!(check(wrong, 1_000), Err(Refused::Wrong), "{wrong:?}");
        }
        let stranger = SigningKey::from_seed(Algorithm::Ed25519, &[8; 32]).unwrap();
        let strange = claim.sign(&stranger, 1_000);
        assert_eq!(claim.verify(Some(&strange), &public, 1_000), Err(Refused::Wrong));
    }
}
