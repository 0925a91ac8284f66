//! Runs `fuzz::footer` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::footer::run(input));
