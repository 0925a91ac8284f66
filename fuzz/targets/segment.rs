//! Runs `fuzz::segment` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::segment::run(input));
