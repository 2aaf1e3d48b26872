//! Signed tokens of the web: no text panics, and none that was not signed is believed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use yore_canon::jws::{self, Compact};
use yore_canon::key::{Algorithm, SigningKey};

fuzz_target!(|bytes: &[u8]| {
    for algorithm in [Algorithm::Ed25519, Algorithm::P256] {
        let key = SigningKey::from_seed(algorithm, &[7; 32]).expect("a fixed seed");
        if let Ok(text) = std::str::from_utf8(bytes) {
            if let Ok(token) = Compact::parse(text) {
                assert!(token.verify(&key.verifying_key()).is_err(), "nobody signed this");
            }
            assert!(jws::verify_hs256(text, b"a secret nobody knows").is_err());
            let _ = jws::flattened(text);
        }
        let signed = jws::sign(&key, "k", None, bytes);
        let token = Compact::parse(&signed).expect("our own token is one");
        assert_eq!(token.verify(&key.verifying_key()).expect("our own signature"), bytes);
    }
    let _ = jws::claims(bytes);
});
