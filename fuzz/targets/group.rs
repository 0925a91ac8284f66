//! Hands `fuzz::group` to libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::group::run(input));
