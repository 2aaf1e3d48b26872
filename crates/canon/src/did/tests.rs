use serde_json::{Value, json};

use super::*;
use crate::key::{Algorithm, SigningKey};

fn did(text: &str) -> Did {
    text.parse().expect("a DID")
}

fn key(seed: u8, algorithm: Algorithm) -> VerifyingKey {
    SigningKey::generate(algorithm, &[seed; 32]).verifying_key()
}

#[test]
fn uamp_027_did_web_names_an_https_location() {
    let cases = [
        ("did:web:worker.example", "https://worker.example/.well-known/did.json"),
        ("did:web:Worker.Example", "https://worker.example/.well-known/did.json"),
        ("did:web:worker.example:a:b", "https://worker.example/a/b/did.json"),
        ("did:web:worker.example%3A8443", "https://worker.example:8443/.well-known/did.json"),
        ("did:web:localhost%3a3000:users:alice", "https://localhost:3000/users/alice/did.json"),
        ("did:web:xn--bcher-kva.example:%C3%BC", "https://xn--bcher-kva.example/%C3%BC/did.json"),
    ];
    for (text, url) in cases {
        assert_eq!(did(text).web_url().as_deref(), Ok(url), "{text}");
    }
    assert_eq!(did("did:web:A.example%3A1:x").web_host().as_deref(), Ok("a.example:1"));
}

#[test]
fn uamp_027_did_web_that_could_mean_another_place_is_refused() {
    let cases = [
        "did:web:127.0.0.1",
        "did:web:0x7f000001",
        "did:web:a.0x1",
        "did:web:2130706433",
        "did:web:worker..example",
        "did:web:.example",
        "did:web:worker.example.",
        "did:web:-a.example",
        "did:web:a_b.example",
        "did:web:user%40worker.example",
        "did:web:worker.example%2Fevil",
        "did:web:worker.example%3A",
        "did:web:worker.example%3A0",
        "did:web:worker.example%3A080",
        "did:web:worker.example%3A65536",
        "did:web:worker.example%3A80%3A81",
        "did:web:worker.example::b",
        "did:web:worker.example:..",
        "did:web:worker.example:.",
        "did:web:worker.example:%2e%2E",
        "did:web:worker.example:a%2Fb",
        "did:web:worker.example:a%5Cb",
        "did:web:worker.example:a%00",
        "did:web:worker.example:a%3Fb",
        "did:web:worker.example:a%23b",
    ];
    for text in cases {
        assert!(matches!(did(text).web_url(), Err(Error::Web(_))), "{text}");
    }
    assert_eq!(did("did:key:z6Mk").web_url(), Err(Error::Method("web")));
}

#[test]
fn texts_that_are_not_dids_are_refused() {
    let long = format!("did:web:{}", "a".repeat(600));
    let cases = [
        "",
        "did",
        "did:",
        "did:web",
        "did:web:",
        "did:Web:a",
        "did::a",
        "did:web:a:",
        "did:web:a/b",
        "did:web:a?b",
        "did:web:a#b",
        "did:web:a b",
        "did:web:é",
        "did:web:%4",
        "did:web:%zz",
        "DID:web:a",
        " did:web:a",
        &long,
    ];
    for text in cases {
        assert!(text.parse::<Did>().is_err(), "{text}");
    }
}

#[test]
fn ump_035_uamp_026_did_key_carries_its_key() {
    for (algorithm, start) in
        [(Algorithm::Ed25519, "did:key:z6Mk"), (Algorithm::P256, "did:key:zDn")]
    {
        let key = key(3, algorithm);
        let did = Did::of_key(&key);
        assert!(did.as_str().starts_with(start));
        assert_eq!(did.key(), Ok(key));
        let id = KeyId::of_key(&key);
        assert_eq!(id.to_string(), format!("{did}#{}", did.specific()));
        assert_eq!(id.to_string().parse(), Ok(id));
    }
}

#[test]
fn ump_035_other_spellings_and_codecs_of_did_key_are_refused() {
    let key = key(3, Algorithm::Ed25519);
    let hex = crate::encode::multibase(crate::encode::Base::Hex, &key.to_multicodec());
    assert_eq!(
        did(&format!("did:key:{hex}")).key(),
        Err(Error::Syntax("did:key is not spelled in base58"))
    );
    // X25519 has multicodec ec01.
    let foreign = crate::encode::multibase(
        crate::encode::Base::Base58,
        &[&[0xec, 0x01], key.to_bytes().as_slice()].concat(),
    );
    assert_eq!(did(&format!("did:key:{foreign}")).key(), Err(Error::Key(key::Error::Unsupported)));
    assert_eq!(did("did:web:a").key(), Err(Error::Method("key")));
}

#[test]
fn key_ids_need_a_plain_did_and_a_fragment() {
    for text in ["did:web:a", "did:web:a#", "#k", "did:web:a/p#k", "did:web:a?q#k", "did:web:a#k#k"]
    {
        assert!(text.parse::<KeyId>().is_err(), "{text}");
    }
    let id: KeyId = "did:web:a#key-1".parse().expect("a key id");
    assert_eq!((id.did().as_str(), id.fragment()), ("did:web:a", "key-1"));
}

fn sample() -> Value {
    let ed = key(1, Algorithm::Ed25519);
    let p256 = key(2, Algorithm::P256);
    json!({
        "id": "did:web:a.example",
        "verificationMethod": [
            {"id": "#ed", "type": "JsonWebKey2020", "controller": "did:web:a.example", "publicKeyJwk": ed.to_jwk()},
            {"id": "did:web:a.example#p", "type": "Multikey", "controller": "did:web:a.example",
             "publicKeyMultibase": p256.to_multibase()},
        ],
        "assertionMethod": ["did:web:a.example#ed"],
        "authentication": ["#p"],
    })
}

fn read(document: &Value) -> Result<Document, Error> {
    Document::parse(document.to_string().as_bytes(), &did("did:web:a.example"))
}

fn names(document: &Value) -> Vec<String> {
    let document = read(document).expect("a document");
    document.methods().iter().map(|method| method.id.fragment().to_owned()).collect()
}

#[test]
fn uamp_027_listed_keys_of_both_forms_are_found() {
    let document = read(&sample()).expect("a document");
    let id = "did:web:a.example#ed".parse().expect("a key id");
    assert_eq!(document.key(&id), Some(&key(1, Algorithm::Ed25519)));
    let id = "did:web:a.example#p".parse().expect("a key id");
    assert_eq!(document.key(&id), Some(&key(2, Algorithm::P256)));
    let id = "did:web:a.example#absent".parse().expect("a key id");
    assert_eq!(document.key(&id), None);
    let p256: Vec<_> = document.candidates(Algorithm::P256, 8).collect();
    assert_eq!(p256.len(), 1);
    assert_eq!(document.candidates(Algorithm::P256, 0).count(), 0);
}

#[test]
fn uamp_027_only_own_listed_usable_methods_count() {
    let mut unlisted = sample();
    unlisted["authentication"] = json!([]);
    assert_eq!(names(&unlisted), ["ed"]);

    let mut foreign = sample();
    foreign["verificationMethod"][0]["controller"] = json!("did:web:b.example");
    assert_eq!(names(&foreign), ["p"]);

    let mut elsewhere = sample();
    elsewhere["verificationMethod"][0]["id"] = json!("did:web:b.example#ed");
    elsewhere["assertionMethod"] = json!(["did:web:b.example#ed"]);
    assert_eq!(names(&elsewhere), ["p"]);

    let mut both = sample();
    both["verificationMethod"][1]["publicKeyJwk"] =
        both["verificationMethod"][0]["publicKeyJwk"].clone();
    assert_eq!(names(&both), ["ed"]);

    let mut agreement = sample();
    agreement["verificationMethod"][0]["publicKeyJwk"]["crv"] = json!("X25519");
    assert_eq!(names(&agreement), ["p"]);

    let mut embedded = sample();
    let method = embedded["verificationMethod"].as_array_mut().expect("a list").remove(1);
    embedded["authentication"] = json!([method]);
    assert_eq!(names(&embedded), ["ed", "p"]);
}

#[test]
fn uamp_027_documents_that_lie_or_overflow_are_refused() {
    let mut other = sample();
    other["id"] = json!("did:web:b.example");
    assert!(matches!(read(&other), Err(Error::WrongSubject { .. })));

    let mut twice = sample();
    twice["verificationMethod"][1]["id"] = json!("did:web:a.example#ed");
    assert_eq!(read(&twice), Err(Error::Document("two verification methods share an id")));

    let mut many = sample();
    many["verificationMethod"] =
        (0..=MAX_METHODS).map(|n| json!({"id": format!("#{n}")})).collect();
    assert_eq!(read(&many), Err(Error::Document("too many verification methods")));

    let mut big = sample();
    big["x"] = json!("x".repeat(DOCUMENT_LIMITS.bytes));
    assert!(matches!(read(&big), Err(Error::Json(json::Error::TooLarge { .. }))));

    for (name, value) in [
        ("id", json!(1)),
        ("verificationMethod", json!({})),
        ("verificationMethod", json!(["#ed"])),
        ("verificationMethod", json!([{}])),
        ("assertionMethod", json!("#ed")),
        ("authentication", json!([1])),
    ] {
        let mut document = sample();
        document[name] = value;
        assert!(matches!(read(&document), Err(Error::Document(_))), "{name}");
    }
}

#[test]
fn uamp_084_our_own_document_reads_back() {
    let id = did("did:web:a.example");
    let keys = [("k1", key(1, Algorithm::Ed25519)), ("k2", key(2, Algorithm::P256))];
    let document = Document::new(id.clone(), keys).expect("a document");
    assert_eq!(read(&document.to_json()), Ok(document));
    assert!(Document::new(id.clone(), [keys[0], keys[0]]).is_err());
    assert!(Document::new(id, [("a b", keys[0].1)]).is_err());
}

#[test]
fn a_did_key_is_its_own_document() {
    let key = key(5, Algorithm::P256);
    let did = Did::of_key(&key);
    let document = Document::of_key_did(&did).expect("a document");
    assert_eq!(document.id(), &did);
    assert_eq!(document.key(&KeyId::of_key(&key)), Some(&key));
}
