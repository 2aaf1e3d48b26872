//! What the connector `ollama` reads: any bytes in a file of its names, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

const NAMES: [&str; 2] = ["db.sqlite", "history"];

fuzz_target!(|data: &[u8]| yore_fuzz::read_as(&NAMES, data));
