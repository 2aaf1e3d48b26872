use yore_canon::key::{Algorithm, SigningKey};
use yore_engine::dialect::Presented;

use super::*;

fn key() -> SigningKey {
    SigningKey::generate(Algorithm::Ed25519, &[3; 32])
}

fn claimed() -> Value {
    json!({
        "sub": "user-123",
        "oamp_agent_id": "coding-assistant-v9",
        "oamp_grant_id": "grant-2026-05-07-001",
        "oamp_read_labels": ["work", "preferences"],
        "oamp_write_labels": ["work"],
        "oamp_sensitivity_max": "internal",
        "exp": 1_746_662_400,
    })
}

#[test]
fn the_claims_become_the_one_grant() {
    let did = Did::of_key(&key().verifying_key());
    let token = jws::sign(&key(), did.as_str(), None, claimed().to_string().as_bytes());
    let Some(Presented::Claims(claims)) = credential(&token) else { panic!() };
    let Claims { grant, subject, audience, proof } = *claims;
    assert_eq!(grant.issuer, did.as_str());
    assert_eq!(grant.id, grant_named("grant-2026-05-07-001"));
    assert_eq!(subject.as_deref(), Some("user-123"));
    assert!(audience.is_empty() && grant.scope.is_open());
    assert_eq!(grant.expires.unwrap().to_string(), "2025-05-08T00:00:00Z");
    let label = |text: &str| Label::new(text).unwrap();
    assert!(grant.read.reach(&label("preferences.style")) && !grant.read.reach(&label("health")));
    assert!(!grant.write.reach(&label("preferences")));
    assert!(!grant.verbs.has(Verb::Grant) && !grant.verbs.has(Verb::Admin));
    assert!(!grant.verbs.has(Verb::Audit) && !grant.verbs.has(Verb::Review));
    let Proof::Signature { key, message, signature } = proof else { panic!() };
    let signature = yore_canon::key::Signature::from_slice(key.algorithm(), &signature).unwrap();
    assert!(key.verify(&message, &signature).is_ok());
}

#[test]
fn other_tokens_are_left_alone_and_broken_ones_refused() {
    for other in ["", "yore_v_00_11", "umpcap.x.y", "ey", "eyJhIjoxfQ.eyJhIjoxfQ", "a.b.c"] {
        assert!(credential(other).is_none(), "{other}");
    }
    let long = format!("eyJhIjoxfQ.{}.x", "A".repeat(LONGEST));
    for broken in ["eyJhIjoxfQ.eyJhIjoxfQ.x", "ey..", "eyJhbGciOiJub25lIn0.e30.", &long] {
        assert!(matches!(credential(broken), Some(Presented::Unreadable(_))), "{broken}");
    }
}
