//! Runs `fuzz::conditional` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::conditional::run(input));
