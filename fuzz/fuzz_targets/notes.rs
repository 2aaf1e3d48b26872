//! The target `notes`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| yore_fuzz::run("notes", data));
