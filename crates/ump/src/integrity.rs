//! Hash, signature and redaction: what proves a record, and what must leave no false proof.

use serde_json::{Value, json};
use yore_canon::key::{Algorithm, Signature};
use yore_canon::seal::{self, MEMBER, Seal};
use yore_domain::{Error, Result};
use yore_engine::{Engine, Identity};

use crate::seals::Seals;
use crate::wire::Object;

/// Checks the seal of a record as it was received and returns its signer; `None` when it
/// carries none.
pub fn verified(record: &Object) -> Result<Option<String>> {
    signer(seal::verify(record))
}

/// The same for a record that is handed out again and again.
pub(crate) fn verified_before(seals: &Seals, record: &Object) -> Result<Option<String>> {
    let known =
        |seal: &Seal| seals.find(seal.signer.as_str(), &seal.content_hash) == Some(seal.signature);
    let checked = seal::verify_unless(record, known);
    if let Ok(seal) = &checked {
        seals.keep(seal.signer.as_str(), &seal.content_hash, seal.signature);
    }
    signer(checked)
}

fn signer(checked: Result<Seal, seal::Error>) -> Result<Option<String>> {
    match checked {
        Ok(seal) => Ok(Some(seal.signer.as_str().to_owned())),
        Err(seal::Error::Missing) => Ok(None),
        Err(error) => Err(Error::Signature { reason: error.to_string() }),
    }
}

/// Signs a record with the key of the vault it was read from, unless it was before.
pub(crate) async fn sign(
    engine: &Engine,
    seals: &Seals,
    identity: &Identity,
    record: &mut Object,
) -> Result<()> {
    record.shift_remove(MEMBER);
    let hash = seal::content_hash(record);
    let signature = match seals.find(identity.did(), &hash) {
        Some(signature) => signature,
        None => {
            let bytes = engine.seal(identity, &hash).await?;
            let signature = Signature::from_slice(Algorithm::Ed25519, &bytes)
                .expect("invariant: a signature has 64 bytes");
            seals.keep(identity.did(), &hash, signature);
            signature
        }
    };
    let integrity = json!({
        "content_hash": hash,
        "signature": signature,
        "signer": identity.did(),
    });
    record.insert(MEMBER.to_owned(), integrity);
    Ok(())
}

/// Removes the members that consent keeps inside, and with them any integrity, which would no
/// longer fit. A path that leads nowhere is passed over. Returns whether anything was removed.
pub fn redact(record: &mut Object) -> bool {
    let paths: Vec<String> = record
        .get("consent")
        .and_then(|consent| consent.get("redact"))
        .and_then(Value::as_array)
        .map(|paths| paths.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        .unwrap_or_default();
    let mut whole = Value::Object(std::mem::take(record));
    let removed = yore_engine::redact(&mut whole, &paths);
    if let Value::Object(left) = whole {
        *record = left;
    }
    if removed {
        record.shift_remove(MEMBER);
    }
    removed
}

#[cfg(test)]
mod tests {
    use yore_canon::key::SigningKey;

    use super::*;

    fn record(redact: &[&str]) -> Object {
        let record = json!({
            "ump": "1.0",
            "body": {"text": "t", "structured": {"pin": 1, "place": {"city": "x"}}},
            "provenance": {"actor": "a"},
            "consent": {"redact": redact},
            "integrity": {"content_hash": "blake3:stale"},
        });
        record.as_object().unwrap().clone()
    }

    #[test]
    fn ump_036_what_was_checked_before_is_checked_again_when_anything_changed() {
        let key = SigningKey::generate(Algorithm::Ed25519, &[4; 32]);
        let mut sealed = record(&[]);
        seal::seal(&mut sealed, &key).unwrap();
        let seals = Seals::new();
        for _ in 0..2 {
            assert_eq!(verified_before(&seals, &sealed).unwrap(), verified(&sealed).unwrap());
        }
        let other = SigningKey::generate(Algorithm::Ed25519, &[5; 32]);
        let mut foreign = record(&[]);
        seal::seal(&mut foreign, &other).unwrap();
        let signature = sealed[MEMBER]["signature"].as_str().unwrap();
        let renamed = signature.replace("ed25519:", "es256:");
        type Change<'a> = dyn Fn(&mut Object) + 'a;
        let table: [(&str, &Change<'_>); 4] = [
            ("text", &|record| record["body"]["text"] = json!("u")),
            ("signature", &|record| {
                record[MEMBER]["signature"] = foreign[MEMBER]["signature"].clone()
            }),
            ("signer", &|record| record[MEMBER]["signer"] = foreign[MEMBER]["signer"].clone()),
            ("algorithm", &|record| record[MEMBER]["signature"] = json!(renamed)),
        ];
        for (what, change) in table {
            let mut changed = sealed.clone();
            change(&mut changed);
            assert!(verified_before(&seals, &changed).is_err(), "{what}");
        }
        assert!(verified_before(&seals, &sealed).is_ok(), "what was refused is not kept");
    }

    #[test]
    fn ump_058_paths_are_dotted_members_and_nothing_else() {
        let mut changed =
            record(&["body.structured.place.city", "provenance", "a.b", "body.x", ""]);
        assert!(redact(&mut changed));
        assert_eq!(changed["body"]["structured"], json!({"pin": 1, "place": {}}));
        assert!(!changed.contains_key("provenance"));
        let mut same = record(&["$.body", "body[0]", "body.structured.*", "nothing"]);
        assert!(!redact(&mut same));
        assert_eq!(same, record(&["$.body", "body[0]", "body.structured.*", "nothing"]));
    }

    #[test]
    fn ump_057_a_redacted_copy_has_no_integrity() {
        let mut changed = record(&["body.structured.pin"]);
        assert!(redact(&mut changed));
        assert!(!changed.contains_key(MEMBER));
        let mut untouched = record(&["body.structured.absent"]);
        assert!(!redact(&mut untouched) && untouched.contains_key(MEMBER));
    }
}
