//! Identifiers and their documents: what is read prints as it was.
#![no_main]

use libfuzzer_sys::fuzz_target;
use yore_canon::did::{Did, Document};
use yore_canon::encode;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        if let Ok(did) = text.parse::<Did>() {
            assert_eq!(did.as_str(), text);
            let _ = (did.web_url(), did.web_host());
            if let Ok(key) = did.key() {
                assert_eq!(Did::of_key(&key).as_str(), text, "a key has one name");
            }
        }
        if let Ok((base, decoded)) = encode::from_multibase(text) {
            let again = encode::multibase(base, &decoded);
            let (_, twice) = encode::from_multibase(&again).expect("our own spelling");
            assert_eq!(twice, decoded);
        }
    }
    let did: Did = "did:web:example.org".parse().expect("a fixed name");
    let _ = Document::parse(bytes, &did);
});
