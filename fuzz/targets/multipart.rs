//! Runs `fuzz::multipart` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::multipart::run(input));
