//! The UAMP vectors whose verdict is decided by strict JSON, canonical form or signature.
//!
//! Shape and freshness belong to the protocol: those cases are listed below, and here they
//! must come out as correctly signed.

use serde_json::Value;
use yore_canon::did::{Did, Document, KeyId};
use yore_canon::encode;
use yore_canon::hash::Sha256;
use yore_canon::jcs;
use yore_canon::json::{self, Limits, Object};
use yore_canon::jws::{self, Compact};
use yore_canon::key::{Algorithm, SigningKey, VerifyingKey};

/// Refused for their shape although their signature is right: (case, why).
const SHAPE: [(&str, &str); 4] = [
    ("unknown-intent", "the list of intents is the protocol's"),
    ("empty-to", "how many recipients there must be is the protocol's"),
    ("unknown-top-level-member", "the closed set of members is the protocol's"),
    ("bad-context-hash", "the form of a context hash is the protocol's"),
];

/// Tokens refused for their claims although their signature is right: (case, why).
const CLAIMS: [(&str, &str); 5] = [
    ("expired", "exp is judged against a clock"),
    ("wrong-audience", "aud is judged against the server"),
    ("stolen", "sub is judged against the presenter"),
    ("issuer-not-owner", "iss is judged against the vault"),
    ("no-exp", "that exp is required is policy"),
];

fn vectors() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/uamp/vectors.json");
    json::parse(&std::fs::read(path).expect("the vector file")).expect("strict JSON")
}

fn cases(name: &str, count: usize) -> Vec<Value> {
    let cases = vectors()[name].as_array().expect("a list").clone();
    assert_eq!(cases.len(), count, "{name}");
    cases
}

fn text<'a>(case: &'a Value, name: &str) -> &'a str {
    case[name].as_str().unwrap_or_else(|| panic!("{name} of {}", case["name"]))
}

fn signing_key(kid: &str) -> SigningKey {
    let keys = vectors()["keys"].clone();
    let keys = keys.as_object().expect("keys");
    let entry = keys.values().find(|entry| entry["kid"] == kid).expect("a key");
    SigningKey::from_jwk(&entry["private_jwk"]).expect("a private key")
}

/// Resolves as a server would, with the one published document instead of the network.
fn resolve(did: &Did) -> Document {
    if did.method() == "key" {
        return Document::of_key_did(did).expect("a did:key");
    }
    let published = vectors()["documents"]["did_web"].clone();
    assert_eq!(did.web_url().as_deref(), Ok(text(&published, "url")));
    Document::parse(published["document"].to_string().as_bytes(), did).expect("a document")
}

fn payload(envelope: &Object) -> String {
    jws::digest_payload(&Sha256::of(jcs::canonical_without(envelope, &["sig"])))
}

/// Verifies an envelope in the way UAMP-018 to UAMP-033 say; `Err` tells which step refused.
fn verify(bytes: &[u8]) -> Result<(), String> {
    let envelope =
        json::parse_object(bytes, Limits::default()).map_err(|e| format!("json: {e}"))?;
    let sig = envelope.get("sig").and_then(Value::as_str).ok_or("sig: missing")?;
    let jws = Compact::parse(sig).map_err(|e| format!("jws: {e}"))?;
    let from = envelope["from"].as_str().ok_or("from: missing")?;
    let document = resolve(&from.parse().map_err(|e| format!("from: {e}"))?);
    let payload = payload(&envelope);
    let check = |key: &VerifyingKey| {
        jws.verify_detached(payload.as_bytes(), key).map_err(|e| format!("signature: {e}"))
    };
    match &jws.header().kid {
        Some(kid) => {
            let kid: KeyId = kid.parse().map_err(|e| format!("kid: {e}"))?;
            check(document.key(&kid).ok_or("kid: not a key of from")?)
        }
        None => document
            .candidates(jws.header().algorithm, 8)
            .map(|method| check(&method.key))
            .reduce(Result::or)
            .unwrap_or_else(|| Err("kid: no key fits".to_owned())),
    }
}

fn request_body(case: &Value) -> Vec<u8> {
    match case.get("raw_request_body") {
        Some(raw) => raw.as_str().expect("text").as_bytes().to_vec(),
        None => case["envelope"].to_string().into_bytes(),
    }
}

#[test]
fn uamp_018_uamp_020_canonical_bytes_and_digests() {
    for case in cases("accept", 14) {
        let envelope = json::parse_object(&request_body(&case), Limits::default()).expect("JSON");
        let canonical = jcs::canonical_without(&envelope, &["sig"]);
        assert_eq!(canonical, text(&case, "canonical"), "{}", case["name"]);
        assert_eq!(encode::hex(canonical.as_bytes()), text(&case, "canonical_hex"));
        assert_eq!(Sha256::of(&canonical).to_hex(), text(&case, "sha256"));
        assert_eq!(payload(&envelope), text(&case, "jws_payload"));
    }
}

#[test]
fn uamp_021_uamp_022_uamp_024_signatures_are_reproduced_exactly() {
    for case in cases("accept", 14) {
        let signer = text(&case, "signer");
        let key = signing_key(signer);
        assert_eq!(key.algorithm().jose(), text(&case, "alg"));
        let sig = jws::sign_detached(&key, signer, text(&case, "jws_payload").as_bytes());
        assert_eq!(sig, text(&case, "sig"), "{}", case["name"]);
        assert_eq!(sig, text(&case["envelope"], "sig"));

        let (protected, _) = sig.split_once("..").expect("a detached payload");
        let header = encode::from_base64url(protected).expect("base64url");
        assert_eq!(header, text(&case, "jws_header").as_bytes());
        let input =
            format!("{protected}.{}", encode::base64url(text(&case, "jws_payload").as_bytes()));
        assert_eq!(input, text(&case, "jws_signing_input"));
    }
}

#[test]
fn uamp_022_accepted_envelopes_verify() {
    for case in cases("accept", 14) {
        assert_eq!(verify(&request_body(&case)), Ok(()), "{}", case["name"]);
        assert_eq!(case["expect"], "accept");
    }
}

#[test]
fn uamp_019_explicit_defaults_hash_differently() {
    let cases = cases("accept", 14);
    let digest = |name: &str| {
        let case = cases.iter().find(|case| case["name"] == name).expect("a case");
        payload(case["envelope"].as_object().expect("an envelope"))
    };
    assert_ne!(digest("minimal-ask-eddsa"), digest("explicit-defaults"));
}

#[test]
fn uamp_023_uamp_026_uamp_033_lenient_forms_verify() {
    for case in cases("accept_lenient", 4) {
        assert_eq!(verify(&request_body(&case)), Ok(()), "{}", case["name"]);
    }
}

#[test]
fn uamp_014_uamp_032_rejected_envelopes_fail_at_the_right_step() {
    let expected = [
        ("tampered-body", "signature: signature does not verify"),
        ("tampered-ts", "signature: signature does not verify"),
        ("alg-none", "jws: algorithm is not accepted"),
        ("alg-hs256-with-public-key-as-secret", "jws: algorithm is not accepted"),
        ("es256-der-signature", "jws: malformed P-256 signature"),
        ("kid-not-controlled-by-from", "kid: not a key of from"),
        ("unknown-crit", "jws: critical header extensions are not supported"),
        ("uppercase-hex-payload", "signature: signature does not verify"),
        ("spaced-payload", "signature: signature does not verify"),
        ("attached-payload-for-other-hash", "signature: payload is not the expected one"),
        ("uamp-js-shallow-canonicalisation", "signature: payload is not the expected one"),
        ("missing-sig", "sig: missing"),
        ("duplicate-member", "json: duplicate member at /intent"),
    ];
    let mut shape = Vec::new();
    let mut refused = Vec::new();
    for case in cases("reject", 17) {
        let name = text(&case, "name").to_owned();
        match verify(&request_body(&case)) {
            Ok(()) => shape.push(name),
            Err(reason) => refused.push((name, reason)),
        }
    }
    assert_eq!(shape, SHAPE.map(|(name, _)| name));
    let expected = expected.map(|(name, reason)| (name.to_owned(), reason.to_owned()));
    assert_eq!(refused, expected);
}

#[test]
fn uamp_026_keys_dids_and_multibase() {
    let vectors = vectors();
    let keys = vectors["keys"].as_object().expect("keys");
    assert_eq!(keys.len(), 6);
    for (name, entry) in keys {
        let public = signing_key(text(entry, "kid")).verifying_key();
        assert_eq!(public.to_multibase(), text(entry, "multibase"), "{name}");
        assert_eq!(public.algorithm(), Algorithm::from_jose(text(entry, "alg")).expect("an alg"));
        let kid: KeyId = text(entry, "kid").parse().expect("a key id");
        assert_eq!(kid.did().as_str(), text(entry, "did"));
        if kid.did().method() == "key" {
            assert_eq!(KeyId::of_key(&public), kid);
            assert_eq!(kid.did().key(), Ok(public));
        }
    }
}

#[test]
fn uamp_027_the_published_document_has_both_keys() {
    let document = resolve(&"did:web:worker.example".parse().expect("a DID"));
    assert_eq!(document.methods().len(), 2);
    for method in document.methods() {
        let private = signing_key(&method.id.to_string());
        assert_eq!(private.verifying_key(), method.key);
    }
}

#[test]
fn uamp_071_capability_tokens_are_signed_by_their_issuer() {
    let mut judged_elsewhere = Vec::new();
    for case in cases("cap_tokens", 6) {
        let jws = Compact::parse(text(&case, "token")).expect("well formed");
        let claimed = jws::claims(jws.unverified_payload().expect("attached")).expect("claims");
        let issuer: Did = claimed["iss"].as_str().expect("an issuer").parse().expect("a DID");
        let kid = jws.header().kid.as_deref().expect("a kid").parse().expect("a key id");
        let document = resolve(&issuer);
        let payload = jws.verify(document.key(&kid).expect("its key")).expect("signed");
        let claims = jws::claims(payload).expect("claims");
        if case["expect"] == "accept" {
            assert_eq!(Some(&claims), case["claims"].as_object());
        } else {
            judged_elsewhere.push(text(&case, "name").to_owned());
        }
    }
    assert_eq!(judged_elsewhere, CLAIMS.map(|(name, _)| name));
}

#[test]
fn uamp_080_manifests_are_reproduced_and_verify() {
    let manifest = &vectors()["manifest"];
    let canonical = jcs::canonical(&manifest["object"]);
    assert_eq!(canonical, text(manifest, "canonical"));
    let bob = text(&vectors()["keys"]["bob"], "kid").to_owned();
    for (form, kid) in [("eddsa", "did:web:memory.example#key-1"), ("es256_by_did_key", &bob)] {
        let compact = text(&manifest[form], "compact");
        let key = signing_key(kid);
        let made = jws::sign(&key, kid, Some("manifest+jws"), canonical.as_bytes());
        assert_eq!(made, compact, "{form}");
        if let Some(flattened) = manifest[form].get("flattened") {
            assert_eq!(jws::flattened(compact).as_ref(), Ok(flattened));
        }
        let jws = Compact::parse(compact).expect("well formed");
        assert_eq!(jws.verify(&key.verifying_key()), Ok(canonical.as_bytes()));
    }
    let tampered = Compact::parse(text(manifest, "tampered_compact")).expect("well formed");
    let server = signing_key("did:web:memory.example#key-1").verifying_key();
    assert!(matches!(tampered.verify(&server), Err(jws::Error::Signature(_))));
}

#[test]
fn uamp_083_the_hub_is_reproduced_and_verifies() {
    let hub = &vectors()["hub"];
    let kid = "did:web:memory.example#key-1";
    let key = signing_key(kid);
    let canonical = jcs::canonical(&hub["object"]);
    let compact = text(&hub["eddsa"], "compact");
    assert_eq!(jws::sign(&key, kid, Some("hub+jws"), canonical.as_bytes()), compact);
    let jws = Compact::parse(compact).expect("well formed");
    assert_eq!(jws.header().typ.as_deref(), Some("hub+jws"));
    assert_eq!(jws.verify(&key.verifying_key()), Ok(canonical.as_bytes()));
    let anchor = &hub["object"]["trust_anchors"]["jwks"]["keys"][0];
    assert_eq!(VerifyingKey::from_jwk(anchor), Ok(key.verifying_key()));
}
