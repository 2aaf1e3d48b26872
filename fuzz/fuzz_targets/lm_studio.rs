//! The target `lm_studio`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| yore_fuzz::run("lm_studio", data));
