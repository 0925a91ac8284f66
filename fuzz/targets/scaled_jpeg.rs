//! Runs `fuzz::scaled_jpeg` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::scaled_jpeg::run(input));
