use super::*;

fn key(algorithm: Algorithm) -> SigningKey {
    SigningKey::generate(algorithm, &[9; 32])
}

fn with_header(header: &str, payload: &str, key: &SigningKey) -> String {
    let input = signing_input(&encode::base64url(header.as_bytes()), payload.as_bytes());
    let signature = key.sign(input.as_bytes());
    format!("{input}.{}", encode::base64url(signature.as_bytes()))
}

#[test]
fn rfc_7515_a3_es256_verifies() {
    let key = VerifyingKey::from_jwk(&json!({
        "kty": "EC", "crv": "P-256",
        "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
    }))
    .expect("the published key");
    let token = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
    let jws = Compact::parse(token).expect("well formed");
    let payload = jws.verify(&key).expect("the published signature");
    assert_eq!(claims(payload).expect("claims")["iss"], "joe");
}

#[test]
fn rfc_8037_a4_ed25519_signs_and_verifies() {
    let seed =
        encode::from_base64url("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A").expect("base64url");
    let key = SigningKey::from_seed(Algorithm::Ed25519, &seed.try_into().expect("32 bytes"))
        .expect("a seed");
    let token = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
    assert_eq!(with_header(r#"{"alg":"EdDSA"}"#, "Example of Ed25519 signing", &key), token);
    let jws = Compact::parse(token).expect("well formed");
    assert_eq!(jws.verify(&key.verifying_key()), Ok(b"Example of Ed25519 signing".as_slice()));
}

#[test]
fn rfc_7515_a1_hs256_is_checked_only_by_its_own_function() {
    let secret = encode::from_base64url(
        "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow",
    )
    .expect("base64url");
    let token = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    let payload = verify_hs256(token, &secret).expect("the published token");
    assert_eq!(claims(&payload).expect("claims")["exp"], 1_300_819_380);
    assert_eq!(verify_hs256(token, b"other"), Err(Error::Signature(key::Error::Invalid)));
    assert_eq!(Compact::parse(token), Err(Error::Algorithm));
    let signed = sign(&key(Algorithm::Ed25519), "k", None, b"{}");
    assert_eq!(verify_hs256(&signed, &secret), Err(Error::Algorithm));
}

#[test]
fn uamp_023_algorithms_are_refused_before_a_key_is_needed() {
    let names = [
        "none", "None", "HS256", "HS512", "RS256", "PS256", "ES384", "ES256K", "Ed448", "eddsa", "",
    ];
    for name in names {
        let header = format!(r#"{{"alg":"{name}","kid":"k"}}"#);
        let text = with_header(&header, "{}", &key(Algorithm::Ed25519));
        assert_eq!(Compact::parse(&text), Err(Error::Algorithm), "{name}");
    }
    for header in [r#"{"kid":"k"}"#, r#"{"alg":null}"#, r#"{"alg":["EdDSA"]}"#] {
        let text = with_header(header, "{}", &key(Algorithm::Ed25519));
        assert_eq!(Compact::parse(&text), Err(Error::Algorithm), "{header}");
    }
}

#[test]
fn uamp_023_the_alias_is_read_for_its_own_curve_only() {
    let ed = key(Algorithm::Ed25519);
    let text = with_header(r#"{"alg":"Ed25519"}"#, "{}", &ed);
    let jws = Compact::parse(&text).expect("the alias");
    assert!(jws.verify(&ed.verifying_key()).is_ok());
    assert_eq!(
        jws.verify(&key(Algorithm::P256).verifying_key()),
        Err(Error::Signature(key::Error::Mismatch))
    );
}

#[test]
fn uamp_024_header_out_is_exactly_alg_and_kid() {
    for (algorithm, name) in [(Algorithm::Ed25519, "EdDSA"), (Algorithm::P256, "ES256")] {
        let text = sign_detached(&key(algorithm), "did:web:a#k", b"{}");
        let header =
            encode::from_base64url(text.split('.').next().expect("a header")).expect("base64url");
        let expected = format!(r#"{{"alg":"{name}","kid":"did:web:a#k"}}"#);
        assert_eq!(String::from_utf8(header).as_deref(), Ok(expected.as_str()));
    }
}

#[test]
fn uamp_024_any_crit_is_refused_and_other_members_are_not() {
    let ed = key(Algorithm::Ed25519);
    for crit in ["[]", r#"["exp"]"#, r#"["b64"]"#, "null", "1"] {
        let header = format!(r#"{{"alg":"EdDSA","crit":{crit}}}"#);
        assert_eq!(
            Compact::parse(&with_header(&header, "{}", &ed)),
            Err(Error::Critical),
            "{crit}"
        );
    }
    let header = "{ \"x5t\": [1],\n \"typ\":\"JOSE\", \"kid\":\"k\", \"alg\":\"EdDSA\" }";
    let jws = Compact::parse(&with_header(header, "{}", &ed)).expect("extra members");
    assert_eq!(jws.header().kid.as_deref(), Some("k"));
    assert_eq!(jws.header().typ.as_deref(), Some("JOSE"));
    assert!(jws.verify(&ed.verifying_key()).is_ok());
    let twice = with_header(r#"{"alg":"EdDSA","alg":"EdDSA"}"#, "{}", &ed);
    assert!(matches!(
        Compact::parse(&twice),
        Err(Error::Json("header", json::Error::Duplicate { .. }))
    ));
    let kid = with_header(r#"{"alg":"EdDSA","kid":7}"#, "{}", &ed);
    assert_eq!(Compact::parse(&kid), Err(Error::Member("kid")));
}

#[test]
fn uamp_021_the_digest_payload_is_77_bytes() {
    let payload = digest_payload(&Sha256::of(""));
    assert_eq!(payload.len(), 77);
    assert_eq!(
        payload,
        r#"{"sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}"#
    );
}

#[test]
fn uamp_022_uamp_033_detached_and_attached_agree() {
    for algorithm in [Algorithm::Ed25519, Algorithm::P256] {
        let key = key(algorithm);
        let public = key.verifying_key();
        let detached = Compact::parse(&sign_detached(&key, "k", b"payload")).expect("well formed");
        let attached = Compact::parse(&sign(&key, "k", None, b"payload")).expect("well formed");
        assert_eq!(detached.verify_detached(b"payload", &public), Ok(()));
        assert_eq!(attached.verify_detached(b"payload", &public), Ok(()));
        assert_eq!(attached.verify(&public), Ok(b"payload".as_slice()));
        assert_eq!(detached.verify(&public), Err(Error::Detached));
        assert_eq!(attached.verify_detached(b"other", &public), Err(Error::Payload));
        assert_eq!(
            detached.verify_detached(b"other", &public),
            Err(Error::Signature(key::Error::Invalid))
        );
        assert_eq!(detached.unverified_payload(), None);
        assert_eq!(attached.unverified_payload(), Some(b"payload".as_slice()));
    }
}

#[test]
fn texts_of_another_form_are_refused() {
    let good = sign(&key(Algorithm::Ed25519), "k", None, b"{}");
    let padded = format!("{good}=");
    let more = format!("{good}.");
    let spaced = format!(" {good}");
    for text in ["", ".", "..", "a.b", "...", &padded, &more, &spaced] {
        assert!(Compact::parse(text).is_err(), "{text}");
    }
    assert!(matches!(Compact::parse(&"a".repeat(MAX_LENGTH + 1)), Err(Error::TooLong(_))));
}
