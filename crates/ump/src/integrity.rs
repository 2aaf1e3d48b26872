//! Hash, signature and redaction: what proves a record, and what must leave no false proof.

use serde_json::{Value, json};
use yore_canon::encode::base64;
use yore_canon::seal::{self, MEMBER};
use yore_domain::{Error, Result};
use yore_engine::{Engine, Identity};

use crate::wire::Object;

/// Checks the seal of a record as it was received and returns its signer; `None` when it
/// carries none.
pub fn verified(record: &Object) -> Result<Option<String>> {
    match seal::verify(record) {
        Ok(seal) => Ok(Some(seal.signer.as_str().to_owned())),
        Err(seal::Error::Missing) => Ok(None),
        Err(error) => Err(Error::Signature { reason: error.to_string() }),
    }
}

/// Signs a record with the key of the vault it was read from.
pub(crate) async fn sign(engine: &Engine, identity: &Identity, record: &mut Object) -> Result<()> {
    record.shift_remove(MEMBER);
    let hash = seal::content_hash(record);
    let signature = engine.seal(identity, &hash).await?;
    let integrity = json!({
        "content_hash": hash,
        "signature": format!("ed25519:{}", base64(&signature)),
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
