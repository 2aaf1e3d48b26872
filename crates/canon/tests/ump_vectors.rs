//! The UMP vectors: canonical form, keys, records, capability tokens and the audit chain.

use serde_json::Value;
use yore_canon::captoken::{self, Token};
use yore_canon::chain;
use yore_canon::did::Did;
use yore_canon::encode;
use yore_canon::hash::Blake3;
use yore_canon::jcs;
use yore_canon::json::{self, Limits, Object};
use yore_canon::key::{Algorithm, SigningKey};
use yore_canon::seal;

fn vectors() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/ump/vectors.json");
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

fn object<'a>(case: &'a Value, name: &str) -> &'a Object {
    case[name].as_object().expect("an object")
}

fn key(name: &str) -> SigningKey {
    let cases = cases("keys", 3);
    let case = cases.iter().find(|case| case["name"] == name).expect("a key");
    let seed = encode::from_hex(text(case, "seed_hex")).expect("hex");
    SigningKey::from_seed(Algorithm::Ed25519, &seed.try_into().expect("32 bytes")).expect("a seed")
}

#[test]
fn ump_031_jcs_cases() {
    for case in cases("jcs", 3) {
        let value = json::parse(text(&case, "input_json").as_bytes()).expect("strict JSON");
        assert_eq!(jcs::canonical(&value), text(&case, "jcs"), "{}", case["name"]);
    }
}

#[test]
fn ump_035_keys_and_their_dids() {
    for case in cases("keys", 3) {
        let public = key(text(&case, "name")).verifying_key();
        assert_eq!(encode::hex(&public.to_bytes()), text(&case, "public_key_hex"));
        assert_eq!(Did::of_key(&public).as_str(), text(&case, "did_key"));
        let did: Did = text(&case, "did_key").parse().expect("a DID");
        assert_eq!(did.key(), Ok(public));
    }
}

#[test]
fn ump_030_ump_032_record_bytes_and_hashes() {
    for case in cases("records", 5) {
        let record = object(&case, "record");
        let canonical = jcs::canonical_without(record, &[seal::MEMBER]);
        assert_eq!(canonical, text(&case, "jcs"));
        assert_eq!(Some(canonical.len() as u64), case["jcs_sha_len"].as_u64());
        let hash = seal::content_hash(record);
        assert_eq!(hash.to_string(), text(&case, "content_hash"));
        assert_eq!(hash.to_base32().len(), 52);
        assert_eq!(text(&case, "content_hash").parse(), Ok(hash));
    }
}

#[test]
fn ump_033_ump_034_record_signatures() {
    for case in cases("records", 5) {
        let mut record = object(&case, "record").clone();
        let hash: Blake3 = text(&case, "content_hash").parse().expect("a hash");
        assert_eq!(seal::signed_digest(&hash).to_hex(), text(&case, "signed_digest_hex"));
        let given = record.shift_remove(seal::MEMBER).expect("a seal");
        let made = seal::seal(&mut record, &key(text(&case, "key"))).expect("an Ed25519 key");
        assert_eq!(made.signature.to_string(), text(&case, "signature"));
        assert_eq!(record[seal::MEMBER], given);
    }
}

#[test]
fn ump_036_records_verify_whoever_owns_them() {
    for case in cases("records", 5) {
        let seal = seal::verify(object(&case, "record")).expect("a good seal");
        assert_eq!(seal.signer, Did::of_key(&key(text(&case, "key")).verifying_key()));
    }
}

#[test]
fn ump_037_content_addressed_ids() {
    let mut addressed = 0;
    for case in cases("records", 5) {
        let record = object(&case, "record");
        assert_eq!(record["id"], case["id"]);
        let spelled = format!("urn:ump:{}", seal::content_id(record).to_base32());
        if let Some(preimage) = case["id_preimage_jcs"].as_str() {
            assert_eq!(seal::id_preimage(record), preimage);
            assert_eq!(spelled, text(&case, "id"));
            addressed += 1;
        } else {
            assert_ne!(spelled, text(&case, "id"), "a supplied id is kept");
        }
    }
    assert_eq!(addressed, 2);
}

#[test]
fn ump_005_the_version_is_inside_the_hash() {
    let records = cases("records", 5);
    let [old, new] = ["basic-0.1", "basic-1.0"].map(|name| {
        let case = records.iter().find(|case| case["name"] == name).expect("a record");
        object(case, "record").clone()
    });
    assert_ne!(seal::content_hash(&old), seal::content_hash(&new));
    let mut rewritten = old;
    rewritten["ump"] = "1.0".into();
    assert_eq!(seal::verify(&rewritten), Err(seal::Error::Changed));
}

#[test]
fn ump_071_capability_tokens() {
    for case in cases("capabilities", 6) {
        let claims = object(&case, "claims");
        assert_eq!(jcs::canonical_object(claims), text(&case, "claims_jcs"));
        let key = key(text(&case, "key"));
        let token = text(&case, "token");
        assert_eq!(captoken::encode(claims, &key).as_deref(), Ok(token));
        assert_eq!(token.split('.').nth(1), case["payload_b64url"].as_str());

        // Expired, strange and unknown versions are judged elsewhere: their bytes are right.
        let decoded = Token::decode(token).expect("well formed");
        let (issuer, verified) = decoded.verify_by_issuer().expect("signed by its issuer");
        assert_eq!(issuer, Did::of_key(&key.verifying_key()));
        assert_eq!(verified, claims);
    }
}

#[test]
fn ump_130_audit_chain() {
    let signer = Did::of_key(&key("a").verifying_key());
    let mut tip = None;
    for event in cases("audit", 2) {
        let event = event.as_object().expect("an object");
        let (hash, by) = chain::verify_entry(event, tip.as_ref()).expect("a good link");
        assert_eq!(by.as_ref(), Some(&signer));

        let mut rebuilt = event.clone();
        for derived in ["prev", "hash", "signature", "signer"] {
            rebuilt.shift_remove(derived);
        }
        chain::append(&mut rebuilt, tip.as_ref(), Some(&key("a"))).expect("an Ed25519 key");
        assert_eq!(&rebuilt, event);
        tip = Some(hash);
    }
    let second = cases("audit", 2).remove(1);
    let second = second.as_object().expect("an object");
    assert_eq!(chain::verify_entry(second, None), Err(chain::Error::Order));
}

#[test]
fn ump_036_negative_records_do_not_verify() {
    let mut seen = Vec::new();
    for case in cases("negative", 4) {
        let name = text(&case, "name").to_owned();
        let refused = seal::verify(object(&case, "record")).expect_err(&name);
        match name.as_str() {
            "signature-without-prefix" => assert!(matches!(refused, seal::Error::Signature(_))),
            _ => assert_eq!(refused, seal::Error::Changed, "{name}"),
        }
        seen.push(name);
    }
    assert_eq!(
        seen,
        [
            "tampered-body",
            "version-rewritten-after-signing",
            "signature-without-prefix",
            "redacted-copy"
        ]
    );
}

#[test]
fn ump_101_markdown_front_matter_keeps_the_seal() {
    let markdown = &vectors()["markdown"];
    let reference = text(markdown, "reference_text");
    let (front, body) = reference
        .strip_prefix("---\n")
        .and_then(|rest| rest.split_once("\n---\n\n"))
        .expect("front matter");
    let mut record = json::parse_object(front.as_bytes(), Limits::default()).expect("strict JSON");
    record.insert("body".to_owned(), serde_json::json!({"text": body.trim_end()}));
    assert!(seal::verify(&record).is_ok());
}
