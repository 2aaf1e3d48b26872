//! What the connector `gemini` reads: any bytes in a file of its names, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

const NAMES: [&str; 4] = ["MyActivity.json", "MyActivity.html", "prompt.json", "session.json"];

fuzz_target!(|data: &[u8]| yore_fuzz::read_as(&NAMES, data));
