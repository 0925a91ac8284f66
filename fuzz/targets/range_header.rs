//! Runs `fuzz::range_header` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::range_header::run(input));
