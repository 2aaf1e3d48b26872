//! The target `claude_code`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| yore_fuzz::run("claude_code", data));
