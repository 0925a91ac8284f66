//! Advisory snapshot: it covers every crate of `Cargo.lock`.
//!
//! `.ci/advisories/check` compares `Cargo.lock` with the snapshot where nothing newer can be fetched. A crate added
//! after the snapshot would pass there without having been checked.

use crate::repository::{self, File, find};
use crate::{expect_each, expect_none};

const FOLDER: &str = ".ci/advisories";

#[test]
fn advisory_snapshot_covers_every_crate() {
    expect_none(&check(&repository::files()));
}

fn check(files: &[File]) -> Vec<String> {
    let path = format!("{FOLDER}/SNAPSHOT");
    let Some(snapshot) = find(files, &path) else { return vec![format!("{path} is missing")] };
    let lock = find(files, "Cargo.lock").map_or("", |file| &file.text);
    let values = |key: &'static str| snapshot.text.lines().filter_map(move |l| l.strip_prefix(key));
    let mut complaints = Vec::new();
    for name in packages(lock) {
        if !values("crate ").any(|known| known == name) {
            complaints.push(format!("{path}: not made for {name}: run {FOLDER}/renew"));
        }
    }
    let crates = format!("{FOLDER}/crates/");
    let held = files.iter().filter(|file| file.path.starts_with(&crates)).count();
    if values("advisories ").all(|count| count.parse() != Ok(held)) {
        complaints.push(format!("{crates}: {held} advisories, and {path} says another number"));
    }
    complaints
}

/// Returns the third-party packages of a lock file; those of the workspace have no source.
fn packages(lock: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for package in lock.split("[[package]]") {
        let value = |key| package.lines().find_map(|line| line.strip_prefix(key));
        if let (Some(name), Some(_)) = (value("name = "), value("source = ")) {
            names.push(name.trim_matches('"'));
        }
    }
    names
}

#[test]
fn advisory_check_detects_unknown_crate_and_lost_advisory() {
    let lock = "version = 4\n\n[[package]]\nname = \"server\"\n\n[[package]]\nname = \"old\"\nsource = \"registry\"\n\n\
                [[package]]\nname = \"new\"\nsource = \"registry\"\n";
    let mut files = vec![
        File::new("Cargo.lock", lock),
        File::new(".ci/advisories/SNAPSHOT", "date 2026-01-01\nadvisories 1\ncrate old\n"),
        File::new(".ci/advisories/crates/old/RUSTSEC-2026-0001.md", ""),
    ];
    expect_each(&check(&files), &["not made for new"]);
    files.pop();
    expect_each(&check(&files), &["not made for new", "0 advisories"]);
    files.pop();
    expect_each(&check(&files), &["SNAPSHOT is missing"]);
}
