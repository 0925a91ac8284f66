//! Runs `fuzz::picture_file` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::picture_file::run(input));
