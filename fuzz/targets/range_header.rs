//! Hands `fuzz::range_header` to libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::range_header::run(input));
