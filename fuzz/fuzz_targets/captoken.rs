//! Capability tokens: no text panics, and none that was not signed is believed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use yore_canon::captoken::Token;
use yore_canon::key::{Algorithm, SigningKey};
use yore_canon::{captoken, json};

fuzz_target!(|bytes: &[u8]| {
    let key = SigningKey::from_seed(Algorithm::Ed25519, &[7; 32]).expect("a fixed seed");
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(token) = Token::decode(text)
    {
        assert!(token.verify(&key.verifying_key()).is_err(), "nobody signed this");
        let _ = token.verify_by_issuer();
    }
    // Whatever claims there are, signing and reading them gives them back.
    if let Ok(claims) = json::parse_object(bytes, json::Limits::default())
        && let Ok(text) = captoken::encode(&claims, &key)
    {
        let token = Token::decode(&text).expect("our own token is one");
        assert_eq!(token.verify(&key.verifying_key()).expect("our own signature"), &claims);
    }
});
