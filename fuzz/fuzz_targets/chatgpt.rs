//! What the connector `chatgpt` reads: any bytes in a file of its names, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

const NAMES: [&str; 3] = ["conversations.json", "conversations-000.json", "export.zip"];

fuzz_target!(|data: &[u8]| yore_fuzz::read_as(&NAMES, data));
