//! The target `grok`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| yore_fuzz::run("grok", data));
