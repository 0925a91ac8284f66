//! Runs `fuzz::index_value` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::index_value::run(input));
