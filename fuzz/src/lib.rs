//! Properties that hold for any input, as plain functions.
//!
//! `tests/fuzz_smoke` runs each of [`TARGETS`] over its folder in `fuzz/corpus` and over seeded inputs, with the stable
//! compiler. The wrappers in `fuzz/targets` hand the same functions to libFuzzer:
//!
//! ```text
//! cargo +nightly fuzz run record --fuzz-dir fuzz --features libfuzzer
//! ```
//!
//! A finding becomes a file in the corpus, named for what it was. Never here: clocks, randomness, files.

pub mod entry_key;
pub mod record;
pub mod segment;

/// A property of any input: it panics when it does not hold.
type Property = fn(&[u8]);

/// Every target: its name, which is also the name of its folder in the corpus, and its property.
pub const TARGETS: &[(&str, Property)] =
    &[("entry_key", entry_key::run), ("record", record::run), ("segment", segment::run)];
