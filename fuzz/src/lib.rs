//! Properties that hold for any input, as plain functions, and the model of a store that they and the tests compare
//! with.
//!
//! `tests/fuzz_smoke` runs each of [`TARGETS`] over its folder in `fuzz/corpus` and over seeded inputs, with the stable
//! compiler. The wrappers in `fuzz/targets` pass the same functions to libFuzzer; see `fuzz/README.md`. A finding
//! becomes a file in the corpus, named after the defect. Non-goals: real clocks, randomness, the machine's files.

pub mod choice_sequence;
pub mod conditional;
pub mod entry_key;
pub mod file_name;
pub mod footer;
pub mod group;
pub mod header;
pub mod index_value;
pub mod model;
pub mod model_batch;
pub mod multipart;
pub mod picture_file;
pub mod query;
pub mod range_header;
pub mod record;
pub mod render;
pub mod request_target;
pub mod scaled_jpeg;
pub mod segment;
pub mod store;
pub mod synthetic_photo;

/// A property of any input.
pub struct Target {
    /// Name of the target, which is also the name of its corpus folder and of its wrapper.
    pub name: &'static str,
    /// The property: it panics when it does not hold.
    pub property: fn(&[u8]),
    /// Number of seeded inputs that the tests run: fewer where one takes long.
    pub seeds: u64,
}

/// Every target.
pub const TARGETS: &[Target] = &[
    Target { name: "conditional", property: conditional::run, seeds: 10_000 },
    Target { name: "entry_key", property: entry_key::run, seeds: 20_000 },
    Target { name: "file_name", property: file_name::run, seeds: 10_000 },
    Target { name: "footer", property: footer::run, seeds: 4_000 },
    Target { name: "group", property: group::run, seeds: 2_000 },
    Target { name: "header", property: header::run, seeds: 4_000 },
    Target { name: "index_value", property: index_value::run, seeds: 10_000 },
    Target { name: "multipart", property: multipart::run, seeds: 4_000 },
    Target { name: "picture_file", property: picture_file::run, seeds: 2_000 },
    Target { name: "query", property: query::run, seeds: 10_000 },
    Target { name: "range_header", property: range_header::run, seeds: 10_000 },
    Target { name: "record", property: record::run, seeds: 20_000 },
    Target { name: "render", property: render::run, seeds: 600 },
    Target { name: "scaled_jpeg", property: scaled_jpeg::run, seeds: 1_500 },
    Target { name: "segment", property: segment::run, seeds: 4_000 },
    Target { name: "store", property: store::run, seeds: 1_000 },
    Target { name: "target", property: request_target::run, seeds: 20_000 },
];
