//! Repository rules, as tests.
//!
//! Every check is a pure function from files (path and text) to complaints. One test runs it over the repository and
//! expects none; others pass it bad text and expect a complaint, so that a check cannot silently stop working. The
//! modules read text only: nothing here depends on the crates that it checks.
//!
//! - `advisories`: the advisory snapshot covers all dependencies.
//! - `layers`: which file may name which; the direction between crates.
//! - `sizes`: how long a file and a line may be.
//! - `words`: phrases, file names, leftovers, `unsafe`, paths of one machine.
//! - `documents`: the documents agree with the code.
//! - `walks`: the walks of ARCHITECTURE.md are short and connected.

mod advisories;
mod documents;
mod layers;
mod manifest;
mod repository;
mod sizes;
mod source;
mod values;
mod walks;
mod words;

/// Fails with all complaints, one per line.
#[track_caller]
fn expect_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// Fails unless there is exactly one complaint for each of the pieces of text, in order.
#[track_caller]
fn expect_each(complaints: &[String], pieces: &[&str]) {
    let named = complaints.len() == pieces.len()
        && complaints.iter().zip(pieces).all(|(complaint, piece)| complaint.contains(piece));
    assert!(named, "expected {pieces:?}, got\n{}\n", complaints.join("\n"));
}
