//! Strict JSON and its canonical form: what is read is written the same way twice.
#![no_main]

use libfuzzer_sys::fuzz_target;
use yore_canon::{jcs, json};

fuzz_target!(|bytes: &[u8]| {
    let Ok(value) = json::parse(bytes) else { return };
    let canonical = jcs::canonical(&value);
    let again = json::parse(canonical.as_bytes()).expect("canonical JSON is strict JSON");
    assert_eq!(jcs::canonical(&again), canonical);
});
