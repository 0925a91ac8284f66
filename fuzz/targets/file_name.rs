//! Runs `fuzz::file_name` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::file_name::run(input));
