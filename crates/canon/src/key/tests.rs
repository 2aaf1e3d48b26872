use super::*;

fn key(algorithm: Algorithm) -> SigningKey {
    SigningKey::from_seed(algorithm, &[7; 32]).expect("a valid seed")
}

const BOTH: [Algorithm; 2] = [Algorithm::Ed25519, Algorithm::P256];

#[test]
fn rfc_8037_key_and_thumbprint() {
    let private = json!({
        "kty": "OKP", "crv": "Ed25519",
        "d": "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A",
        "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
    });
    let key = SigningKey::from_jwk(&private).expect("the published key");
    assert_eq!(
        encode::base64url(key.verifying_key().thumbprint().as_bytes()),
        "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
    );
}

#[test]
fn keys_survive_every_spelling() {
    for algorithm in BOTH {
        let public = key(algorithm).verifying_key();
        assert_eq!(public.algorithm(), algorithm);
        assert_eq!(VerifyingKey::from_bytes(algorithm, &public.to_bytes()), Ok(public));
        assert_eq!(VerifyingKey::from_multicodec(&public.to_multicodec()), Ok(public));
        assert_eq!(VerifyingKey::from_multibase(&public.to_multibase()), Ok(public));
        assert_eq!(VerifyingKey::from_jwk(&public.to_jwk()), Ok(public));
        let seed = key(algorithm).to_seed();
        let again = SigningKey::from_seed(algorithm, &seed).expect("its own seed");
        assert_eq!(again.verifying_key(), public);
    }
}

#[test]
fn private_bytes_never_print() {
    for algorithm in BOTH {
        let key = key(algorithm);
        let printed = format!("{key:?}");
        assert!(printed.contains(&key.verifying_key().to_multibase()));
        assert!(!printed.contains("7, 7") && !printed.contains(&encode::hex(&[7; 32])));
    }
}

#[test]
fn generation_takes_any_bytes() {
    for random in [[0; 32], [0xff; 32], [1; 32]] {
        for algorithm in BOTH {
            let key = SigningKey::generate(algorithm, &random);
            let signature = key.sign(b"m");
            assert_eq!(key.verifying_key().verify(b"m", &signature), Ok(()));
        }
    }
    assert!(SigningKey::from_seed(Algorithm::P256, &[0; 32]).is_err());
    assert!(SigningKey::from_seed(Algorithm::P256, &[0xff; 32]).is_err());
}

#[test]
fn uamp_025_weak_and_second_encodings_of_ed25519_keys_are_refused() {
    // The eight small-order encodings' representatives and two non-canonical ones.
    let identity = {
        let mut bytes = [0; 32];
        bytes[0] = 1;
        bytes
    };
    let order_8 = "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a";
    let y_is_p = "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f";
    let y_is_p_plus_3 = "f0ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f";
    let y_is_p_plus_4 = "f1ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f";
    let refused = Err(Error::PublicKey(Algorithm::Ed25519));
    assert_eq!(VerifyingKey::from_bytes(Algorithm::Ed25519, &identity), refused);
    assert_eq!(VerifyingKey::from_bytes(Algorithm::Ed25519, &[0; 32]), refused);
    for hex in [order_8, y_is_p, y_is_p_plus_3, y_is_p_plus_4] {
        let bytes = encode::from_hex(hex).expect("hex");
        assert_eq!(VerifyingKey::from_bytes(Algorithm::Ed25519, &bytes), refused, "{hex}");
    }
    // The same y of the fourth, encoded canonically, is a point of full order or none at all:
    // the refusal above must come from the encoding, so at least one such point has to load.
    let loads = (3..19_u8).any(|y| {
        let mut canonical = [0; 32];
        canonical[0] = y;
        let mut second = [0xff; 32];
        second[0] = 0xed + y;
        second[31] = 0x7f;
        VerifyingKey::from_bytes(Algorithm::Ed25519, &canonical).is_ok()
            && VerifyingKey::from_bytes(Algorithm::Ed25519, &second) == refused
    });
    assert!(loads);
}

#[test]
fn uamp_025_ed25519_s_must_be_canonical() {
    const ORDER: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde,
        0x14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];
    let key = key(Algorithm::Ed25519);
    let mut bytes = *key.sign(b"m").as_bytes();
    let mut carry = 0_u16;
    for (byte, order) in bytes[32..].iter_mut().zip(ORDER) {
        let sum = u16::from(*byte) + u16::from(order) + carry;
        *byte = sum.to_le_bytes()[0];
        carry = sum >> 8;
    }
    let moved = Signature::from_slice(Algorithm::Ed25519, &bytes).expect("64 bytes");
    assert_eq!(key.verifying_key().verify(b"m", &moved), Err(Error::Invalid));
}

#[test]
fn uamp_025_ed25519_r_must_not_be_of_small_order() {
    // R is the identity and S is k·a, made with the private key: the plain equation holds.
    let forged = "0100000000000000000000000000000000000000000000000000000000000000\
                  a0000a78db7a82c4c93e9993fa593de3ae8f9c2be437041e83562bebd74d4907";
    let bytes: [u8; 64] = encode::from_hex(forged).expect("hex").try_into().expect("64 bytes");
    let public = key(Algorithm::Ed25519).verifying_key();
    let Public::Ed25519(plain) = public.0 else { panic!("an Ed25519 key") };
    let signature = ed25519_dalek::Signature::from_bytes(&bytes);
    assert!(ed25519_dalek::Verifier::verify(&plain, b"m", &signature).is_ok());
    let signature = Signature::from_slice(Algorithm::Ed25519, &bytes).expect("64 bytes");
    assert_eq!(public.verify(b"m", &signature), Err(Error::Invalid));
}

#[test]
fn uamp_025_high_s_is_a_valid_es256_signature() {
    let key = key(Algorithm::P256);
    let signature = key.sign(b"m");
    let parsed = p256::ecdsa::Signature::from_slice(signature.as_bytes()).expect("its own");
    let (r, s) = parsed.split_scalars();
    let other = p256::ecdsa::Signature::from_scalars(r, -s).expect("negated s");
    let other = Signature::from_slice(Algorithm::P256, &other.to_bytes()).expect("64 bytes");
    assert_ne!(signature, other);
    assert_eq!(key.verifying_key().verify(b"m", &signature), Ok(()));
    assert_eq!(key.verifying_key().verify(b"m", &other), Ok(()));
}

#[test]
fn signatures_of_another_form_or_algorithm_are_refused() {
    let [ed, p256] = BOTH.map(key);
    assert_eq!(ed.verifying_key().verify(b"m", &p256.sign(b"m")), Err(Error::Mismatch));
    let zero = Signature::from_slice(Algorithm::P256, &[0; 64]).expect("64 bytes");
    assert_eq!(p256.verifying_key().verify(b"m", &zero), Err(Error::Malformed(Algorithm::P256)));
    for length in [0, 63, 65, 70, 72] {
        assert!(Signature::from_slice(Algorithm::P256, &vec![1; length]).is_err());
    }
    for text in ["", "ed25519:", "rsa:AAAA", "ed25519:AAAA"] {
        assert!(text.parse::<Signature>().is_err(), "{text}");
    }
}

#[test]
fn jwk_members_are_checked() {
    let [ed, p256] = BOTH.map(|algorithm| key(algorithm).verifying_key().to_jwk());
    let with = |jwk: &Value, name: &str, value: Value| {
        let mut jwk = jwk.clone();
        jwk[name] = value;
        VerifyingKey::from_jwk(&jwk)
    };
    assert!(with(&ed, "kid", json!("k")).is_ok());
    assert!(with(&ed, "alg", json!("EdDSA")).is_ok());
    assert!(with(&ed, "use", json!("sig")).is_ok());
    let refused = [
        (&ed, "alg", json!("ES256"), Error::Member("alg")),
        (&ed, "alg", json!(7), Error::Member("alg")),
        (&ed, "use", json!("enc"), Error::Member("use")),
        (&ed, "d", json!("AA"), Error::Member("d")),
        (&ed, "x", json!("AA"), Error::Member("x")),
        (&ed, "x", json!(null), Error::Member("x")),
        (&ed, "crv", json!("X25519"), Error::Unsupported),
        (&p256, "crv", json!("P-384"), Error::Unsupported),
        (&p256, "y", p256["x"].clone(), Error::PublicKey(Algorithm::P256)),
    ];
    for (jwk, name, value, error) in refused {
        assert_eq!(with(jwk, name, value.clone()), Err(error), "{name}={value}");
    }
}

#[test]
fn private_jwk_halves_must_belong_together() {
    for algorithm in BOTH {
        let key = key(algorithm);
        let with = |secret: Value| {
            let mut jwk = key.verifying_key().to_jwk();
            jwk["d"] = secret;
            SigningKey::from_jwk(&jwk)
        };
        let own = with(json!(encode::base64url(key.to_seed().as_slice()))).expect("its own half");
        assert_eq!(own.to_seed(), key.to_seed());
        for foreign in [json!(encode::base64url(&[8; 32])), json!("AA"), json!(7), json!(null)] {
            let refused = with(foreign.clone()).map(|_| ());
            assert_eq!(refused, Err(Error::Member("d")), "{foreign}");
        }
        assert!(SigningKey::from_jwk(&key.verifying_key().to_jwk()).is_err());
    }
}
