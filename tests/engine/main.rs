//! Does the engine do what `lib.rs` says? Every test drives a real [`engine::Store`].

mod objects;
