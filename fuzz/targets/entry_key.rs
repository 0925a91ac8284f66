//! Hands `fuzz::entry_key` to libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::entry_key::run(input));
