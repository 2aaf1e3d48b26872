//! What the connector `claude` reads: any bytes in a file of its names, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

const NAMES: [&str; 4] = ["conversations.json", "memories.json", "projects.json", "batch.zip"];

fuzz_target!(|data: &[u8]| yore_fuzz::read_as(&NAMES, data));
