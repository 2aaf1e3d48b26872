//! Laws that hold for every input, not only for the chosen ones.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value};
use yore_canon::captoken::{self, Token};
use yore_canon::chain;
use yore_canon::did::{Did, Document};
use yore_canon::encode::{self, Base};
use yore_canon::hash::{Blake3, Sha256};
use yore_canon::jcs;
use yore_canon::json::{self, Limits};
use yore_canon::jws::{self, Compact};
use yore_canon::key::{Algorithm, Signature, SigningKey, VerifyingKey};
use yore_canon::seal;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{0,6}",
        vec(any::<char>(), 0..6).prop_map(String::from_iter),
        vec(
            prop_oneof![
                Just('"'),
                Just('\\'),
                Just('\u{1f}'),
                Just('\u{ffff}'),
                Just('\u{10000}'),
                Just('\u{2028}')
            ],
            0..5
        )
        .prop_map(String::from_iter),
    ]
}

fn finite() -> impl Strategy<Value = f64> {
    any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |double| double.is_finite())
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        finite().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::Array),
            vec((text(), inner), 0..6).prop_map(|members| Value::Object(Map::from_iter(members))),
        ]
    })
}

fn object() -> impl Strategy<Value = json::Object> {
    vec((text(), value()), 0..6).prop_map(Map::from_iter)
}

fn reversed(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(reversed).collect(),
        Value::Object(members) => Value::Object(
            members.iter().rev().map(|(name, value)| (name.clone(), reversed(value))).collect(),
        ),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

fn algorithm() -> impl Strategy<Value = Algorithm> {
    prop_oneof![Just(Algorithm::Ed25519), Just(Algorithm::P256)]
}

fn signing_key() -> impl Strategy<Value = SigningKey> {
    (algorithm(), any::<[u8; 32]>())
        .prop_map(|(algorithm, seed)| SigningKey::generate(algorithm, &seed))
}

fn ed25519() -> impl Strategy<Value = SigningKey> {
    any::<[u8; 32]>().prop_map(|seed| SigningKey::generate(Algorithm::Ed25519, &seed))
}

fn flip(bytes: &mut [u8], at: prop::sample::Index) {
    let bit = at.index(bytes.len() * 8);
    bytes[bit / 8] ^= 1 << (bit % 8);
}

/// Text in the letters of the encodings, often in groups that look padded.
fn spelled() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z0-9+/_=-]{0,30}",
        "([AQgw]{4}|[AQgw]{3}=|[AQgw]{2}==|[aeimq]{2,8}){0,4}",
        "[fbzmu][0-9a-f]{0,12}",
    ]
}

/// JSON text with a few bytes replaced, dropped or doubled: nearly valid, often invalid.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let edit =
        (any::<prop::sample::Index>(), 0..3_u8, any::<u8>(), "[\\[\\]{}\",:0-9eE.+\\-a-z\\\\ud ]");
    (value(), vec(edit, 0..4)).prop_map(|(value, edits)| {
        let mut bytes = value.to_string().into_bytes();
        for (at, how, raw, likely) in edits {
            if bytes.is_empty() {
                break;
            }
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = raw,
                1 => bytes[at] = likely.as_bytes()[0],
                _ => {
                    bytes.remove(at);
                }
            }
        }
        bytes
    })
}

const WIDE: Limits = Limits { bytes: usize::MAX, depth: usize::MAX, nodes: usize::MAX };

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn canonical_form_is_idempotent(value in value()) {
        let once = jcs::canonical(&value);
        let again = json::parse_with(once.as_bytes(), WIDE).expect("canonical text is strict JSON");
        prop_assert_eq!(jcs::canonical(&again), once);
    }

    #[test]
    fn canonical_form_ignores_member_order_and_spacing(value in value()) {
        let canonical = jcs::canonical(&value);
        prop_assert_eq!(&jcs::canonical(&reversed(&value)), &canonical);
        let spaced = serde_json::to_string_pretty(&value).expect("serialises");
        let spaced = json::parse_with(spaced.as_bytes(), WIDE).expect("strict JSON");
        prop_assert_eq!(&jcs::canonical(&spaced), &canonical);
        prop_assert_eq!(jcs::canonical_of(&value), Ok(canonical));
    }

    #[test]
    fn canonical_form_tells_values_apart(a in value(), b in value()) {
        let same = jcs::canonical(&a) == jcs::canonical(&b);
        let doubles = |v: &Value| serde_json::from_str::<Value>(&jcs::canonical(v)).expect("JSON");
        prop_assert_eq!(same, doubles(&a) == doubles(&b));
    }

    #[test]
    fn canonical_numbers_read_back_as_the_same_double(double in finite()) {
        let printed = jcs::canonical(&Value::from(double));
        let std: f64 = printed.parse().expect("a number");
        prop_assert_eq!(std, double);
        let parsed = json::parse(printed.as_bytes()).expect("a number");
        prop_assert_eq!(parsed.as_f64(), Some(double));
    }

    #[test]
    fn decimal_text_reads_as_the_nearest_double(digits in "[1-9][0-9]{14,24}", exponent in -320_i32..280) {
        let text = format!("{digits}e{exponent}");
        let parsed = json::parse(text.as_bytes()).expect("a number in range");
        prop_assert_eq!(parsed.as_f64(), text.parse().ok());
    }

    #[test]
    fn strict_parser_agrees_with_serde_json(bytes in damaged()) {
        let loose = serde_json::from_slice::<Value>(&bytes);
        match json::parse_with(&bytes, WIDE) {
            Ok(value) => prop_assert_eq!(loose.ok(), Some(value)),
            Err(json::Error::Duplicate { .. } | json::Error::TooDeep { .. }) => {}
            Err(_) => prop_assert!(loose.is_err()),
        }
    }

    #[test]
    fn repeated_members_are_always_refused(object in object(), pick in any::<prop::sample::Index>(), extra in value()) {
        prop_assume!(!object.is_empty());
        let name = object.keys().nth(pick.index(object.len())).expect("in range");
        let mut text = Value::Object(object.clone()).to_string();
        text.truncate(text.len() - 1);
        let text = format!("{text},{}:{extra}}}", Value::from(name.as_str()));
        let refused = matches!(json::parse_with(text.as_bytes(), WIDE), Err(json::Error::Duplicate { .. }));
        prop_assert!(refused, "{}", text);
    }

    #[test]
    fn bytes_survive_every_encoding(bytes in vec(any::<u8>(), 0..80), id in any::<u128>()) {
        prop_assert_eq!(encode::from_hex(&encode::hex(&bytes)), Ok(bytes.clone()));
        prop_assert_eq!(encode::from_base32(&encode::base32(&bytes)), Ok(bytes.clone()));
        prop_assert_eq!(encode::from_base58(&encode::base58(&bytes)), Ok(bytes.clone()));
        prop_assert_eq!(encode::from_base64(&encode::base64(&bytes)), Ok(bytes.clone()));
        prop_assert_eq!(encode::from_base64url(&encode::base64url(&bytes)), Ok(bytes.clone()));
        for base in Base::ALL {
            let text = encode::multibase(base, &bytes);
            prop_assert_eq!(encode::from_multibase(&text), Ok((base, bytes.clone())));
        }
        let text = encode::crockford(id);
        prop_assert_eq!(text.len(), 26);
        prop_assert_eq!(encode::from_crockford(&text), Ok(id));
        prop_assert_eq!(encode::from_crockford(&text.to_lowercase()), Ok(id));
    }

    #[test]
    fn decoded_texts_have_one_spelling(text in spelled()) {
        if let Ok(bytes) = encode::from_hex(&text) { prop_assert_eq!(encode::hex(&bytes), text.clone()); }
        if let Ok(bytes) = encode::from_base32(&text) { prop_assert_eq!(encode::base32(&bytes), text.clone()); }
        if let Ok(bytes) = encode::from_base58(&text) { prop_assert_eq!(encode::base58(&bytes), text.clone()); }
        if let Ok(bytes) = encode::from_base64(&text) { prop_assert_eq!(encode::base64(&bytes), text.clone()); }
        if let Ok(bytes) = encode::from_base64url(&text) { prop_assert_eq!(encode::base64url(&bytes), text.clone()); }
        if let Ok((base, bytes)) = encode::from_multibase(&text) {
            prop_assert_eq!(encode::multibase(base, &bytes), text);
        }
    }

    #[test]
    fn digests_survive_their_texts(bytes in any::<[u8; 32]>()) {
        let (blake3, sha256) = (Blake3::from_bytes(bytes), Sha256::from_bytes(bytes));
        prop_assert_eq!(blake3.to_string().parse(), Ok(blake3));
        prop_assert_eq!(sha256.to_string().parse(), Ok(sha256));
        prop_assert_eq!(Blake3::from_hex(&blake3.to_hex()), Ok(blake3));
        prop_assert_eq!(Blake3::from_base32(&blake3.to_base32()), Ok(blake3));
        prop_assert_eq!(Sha256::from_base32(&sha256.to_base32()), Ok(sha256));
    }

    #[test]
    fn parsers_of_untrusted_text_never_panic(bytes in vec(any::<u8>(), 0..200), text in "\\PC{0,80}") {
        let did: Did = "did:web:a.example".parse().expect("a DID");
        prop_assert!(Document::parse(&bytes, &did).is_err());
        prop_assert!(Compact::parse(&text).is_err());
        prop_assert!(Token::decode(&text).is_err());
        prop_assert!(VerifyingKey::from_multicodec(&bytes).is_err() || bytes.len() >= 34);
        if let Ok(did) = text.parse::<Did>() {
            prop_assert_eq!(did.to_string(), text);
        }
    }

    #[test]
    fn did_web_urls_stay_on_their_host(host in "[a-z]{1,8}\\.example", path in vec("[A-Za-z0-9._%:-]{0,8}", 0..4)) {
        let text = format!("did:web:{host}{}", path.iter().map(|part| format!(":{part}")).collect::<String>());
        if let Ok(url) = text.parse::<Did>().and_then(|did| did.web_url()) {
            let start = format!("https://{host}/");
            prop_assert!(url.starts_with(&start), "{}", url);
            let inside_root = url.split('/').skip(3).all(|part| !part.is_empty() && part != "." && part != "..");
            prop_assert!(inside_root, "{}", url);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn keys_survive_their_spellings(key in signing_key()) {
        let public = key.verifying_key();
        prop_assert_eq!(VerifyingKey::from_multibase(&public.to_multibase()), Ok(public));
        prop_assert_eq!(VerifyingKey::from_jwk(&public.to_jwk()), Ok(public));
        prop_assert_eq!(Did::of_key(&public).key(), Ok(public));
        let again = SigningKey::from_seed(key.algorithm(), &key.to_seed()).expect("its own seed");
        prop_assert_eq!(again.verifying_key(), public);
    }

    #[test]
    fn any_flipped_bit_breaks_a_signature(
        key in signing_key(),
        message in vec(any::<u8>(), 1..60),
        at in any::<prop::sample::Index>(),
    ) {
        let public = key.verifying_key();
        let signature = key.sign(&message);
        prop_assert_eq!(public.verify(&message, &signature), Ok(()));
        prop_assert_eq!(signature.to_string().parse(), Ok(signature));

        let mut other = message.clone();
        flip(&mut other, at);
        prop_assert!(public.verify(&other, &signature).is_err());
        let mut bytes = *signature.as_bytes();
        flip(&mut bytes, at);
        let other = Signature::from_slice(key.algorithm(), &bytes).expect("64 bytes");
        prop_assert!(public.verify(&message, &other).is_err());
    }

    #[test]
    fn any_flipped_bit_breaks_a_jws(
        key in signing_key(),
        payload in vec(any::<u8>(), 1..60),
        at in any::<prop::sample::Index>(),
    ) {
        let public = key.verifying_key();
        let signed = jws::sign(&key, "did:web:a#k", None, &payload);
        let parsed = Compact::parse(&signed).expect("well formed");
        prop_assert_eq!(parsed.verify(&public), Ok(payload.as_slice()));
        let detached = Compact::parse(&jws::sign_detached(&key, "did:web:a#k", &payload)).expect("well formed");
        prop_assert_eq!(detached.verify_detached(&payload, &public), Ok(()));

        let mut bytes = signed.into_bytes();
        flip(&mut bytes, at);
        if let Ok(damaged) = String::from_utf8(bytes) {
            let verified = Compact::parse(&damaged).is_ok_and(|jws| jws.verify(&public).is_ok());
            prop_assert!(!verified, "{}", damaged);
        }
    }

    #[test]
    fn any_flipped_bit_breaks_a_capability_token(
        key in ed25519(),
        mut claims in object(),
        at in any::<prop::sample::Index>(),
    ) {
        claims.insert("iss".to_owned(), Value::from(Did::of_key(&key.verifying_key()).as_str()));
        let token = captoken::encode(&claims, &key).expect("Ed25519");
        let decoded = Token::decode(&token).expect("well formed");
        prop_assert!(decoded.verify_by_issuer().is_ok());
        prop_assert_eq!(jcs::canonical_object(decoded.unverified_claims()), jcs::canonical_object(&claims));

        let mut bytes = token.into_bytes();
        flip(&mut bytes, at);
        if let Ok(damaged) = String::from_utf8(bytes) {
            let verified = Token::decode(&damaged).is_ok_and(|token| token.verify(&key.verifying_key()).is_ok());
            prop_assert!(!verified, "{}", damaged);
        }
    }

    #[test]
    fn sealed_records_verify_in_any_order_and_no_other_content(
        key in ed25519(),
        mut record in object(),
        name in text(),
        other in value(),
    ) {
        record.shift_remove(seal::MEMBER);
        let original = jcs::canonical_object(&record);
        seal::seal(&mut record, &key).expect("Ed25519");
        let reversed = reversed(&Value::Object(record.clone()));
        prop_assert!(seal::verify(reversed.as_object().expect("an object")).is_ok());

        record.insert(name, other);
        let changed = jcs::canonical_without(&record, &[seal::MEMBER]) != original;
        prop_assert_eq!(seal::verify(&record).is_err(), changed);
    }

    #[test]
    fn chains_break_where_they_were_touched(
        entries in vec(vec(any::<u8>(), 1..20), 1..12),
        at in any::<prop::sample::Index>(),
        bit in any::<prop::sample::Index>(),
    ) {
        let mut tip = None;
        let mut linked: Vec<(Vec<u8>, Blake3)> = Vec::new();
        for entry in entries {
            let hash = chain::link(tip.as_ref(), &entry);
            tip = Some(hash);
            linked.push((entry, hash));
        }
        prop_assert_eq!(chain::verify_links(None, linked.clone()), Ok(tip));
        let index = at.index(linked.len());
        flip(&mut linked[index].0, bit);
        prop_assert_eq!(chain::verify_links(None, linked), Err(chain::Error::Broken(index)));
    }
}
