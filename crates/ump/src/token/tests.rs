use serde_json::{Map, json};
use yore_canon::captoken;
use yore_canon::key::{Algorithm, SigningKey};

use super::*;

fn key() -> SigningKey {
    SigningKey::generate(Algorithm::Ed25519, &[6; 32])
}

fn token(change: impl FnOnce(&mut Map<String, Value>)) -> String {
    let claims = json!({
        "v": "ump-cap/1.0", "iss": Did::of_key(&key().verifying_key()),
        "verbs": ["read", "derive"], "scope": {"project": "p1"},
        "nbf": "2026-01-01T00:00:00Z", "exp": "2026-06-01T00:00:00Z", "jti": "vec-p1",
    });
    let mut claims = claims.as_object().unwrap().clone();
    change(&mut claims);
    captoken::encode(&claims, &key()).unwrap()
}

fn read(text: &str) -> Result<Claims, &'static str> {
    match credential(text).expect("of this protocol") {
        Presented::Claims(claims) => Ok(*claims),
        Presented::Unreadable(reason) => Err(reason),
    }
}

#[test]
fn ump_070_a_token_is_a_grant_of_verbs_scope_and_time() {
    let claims = read(&token(|_| {})).unwrap();
    let grant = &claims.grant;
    assert_eq!(grant.verbs, Verbs::of(&[Verb::Read, Verb::Derive]));
    assert_eq!(grant.scope.project.as_deref(), Some("p1"));
    assert!(grant.scope.user.is_none() && grant.scope.agent.is_none());
    assert_eq!(grant.issuer, Did::of_key(&key().verifying_key()).as_str());
    assert_eq!(grant.id, grant_id("vec-p1"));
    let at = |text: &str| text.parse::<Timestamp>().unwrap();
    assert!(!grant.holds_at(at("2025-12-31T23:59:59Z")));
    assert!(grant.holds_at(at("2026-06-01T00:00:00Z")), "it holds at the instant it states");
    assert!(!grant.holds_at(at("2026-06-01T00:00:00.000001Z")));
    assert!(claims.audience.is_empty());
}

#[test]
fn ump_072_both_versions_of_claims_are_read_and_no_other() {
    let vectors: Value = serde_json::from_slice(
        &std::fs::read(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../tests/vectors/ump/vectors.json"
        ))
        .unwrap(),
    )
    .unwrap();
    for case in vectors["capabilities"].as_array().unwrap() {
        let read = read(case["token"].as_str().unwrap());
        let reason = match case["name"].as_str().unwrap() {
            "unknown-version" => Some("the capability token has an unknown version"),
            _ => None,
        };
        assert_eq!(read.as_ref().err().copied(), reason, "{}", case["name"]);
        if let (Ok(claims), "wrong-issuer") = (&read, case["name"].as_str().unwrap()) {
            // Whether the issuer may speak for that owner is judged where the vault is known.
            assert!(claims.subject.as_ref().is_some_and(|owner| *owner != claims.grant.issuer));
        }
    }
}

#[test]
fn ump_072_what_cannot_be_read_refuses_the_call() {
    type Spoil = fn(&mut Map<String, Value>);
    let cases: [(&str, Spoil); 11] = [
        ("v", |c| c["v"] = json!("ump-cap/2.0")),
        ("iss", |c| c["iss"] = json!("alice")),
        ("iss", |c| c["iss"] = json!("did:web:a.example")),
        ("verb", |c| c["verbs"] = json!(["read", "erase"])),
        ("verb", |c| c["verbs"] = json!("read")),
        ("scope", |c| c["scope"] = json!({"session": "s1"})),
        ("visibility", |c| c["scope"] = json!({"visibility": "all"})),
        ("aud", |c| _ = c.insert("aud".into(), json!([]))),
        ("exp", |c| _ = c.shift_remove("exp")),
        ("exp", |c| c["exp"] = json!("never")),
        ("jti", |c| _ = c.shift_remove("jti")),
    ];
    for (member, spoil) in cases {
        assert!(read(&token(spoil)).is_err(), "{member}");
    }
    assert!(read("umpcap.x.y").is_err());
    assert!(credential("yore_v_00_11").is_none());
    let meant = read(&token(|c| _ = c.insert("aud".into(), json!("did:key:me")))).unwrap();
    assert_eq!(meant.audience, ["did:key:me"]);
}
