//! Runs `fuzz::entry_key` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::entry_key::run(input));
