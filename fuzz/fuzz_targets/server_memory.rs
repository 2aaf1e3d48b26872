//! The target `server_memory`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| yore_fuzz::run("server_memory", data));
