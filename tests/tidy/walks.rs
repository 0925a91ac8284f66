//! Walks of ARCHITECTURE.md: the files that a request passes through, from the socket to the disk.
//!
//! A walk is the list of Rust files that its section names in code spans. It is bounded, so that a newcomer can read
//! it, and each file after the first defines a function that a file before it names.

use std::collections::BTreeSet;

use crate::documents::heading_lines;
use crate::repository::{self, File, find};
use crate::source;
use crate::{expect_each, expect_none};

const DOCUMENT: &str = "ARCHITECTURE.md";

/// Sections of the walks, and the maximum number of files of each.
const WALKS: &[(&str, usize)] =
    &[("### Upload", 22), ("### Range GET", 16), ("### Image variant", 24)];

/// Walk whose files, except for [`RANGE`], begin the walk of a variant.
const GET: &str = "### Range GET";
const VARIANT: &str = "### Image variant";
const RANGE: &str = "server/protocol/src/range.rs";

#[test]
fn architecture_walks_are_short_and_connected() {
    expect_none(&check_walks(&repository::files(), WALKS));
}

fn check_walks(files: &[File], walks: &[(&str, usize)]) -> Vec<String> {
    let Some(document) = find(files, DOCUMENT) else {
        return vec![format!("{DOCUMENT} is missing")];
    };
    let mut complaints = Vec::new();
    for (heading, files_max) in walks {
        let mut walk = files_of(&document.text, heading);
        if *heading == VARIANT {
            let get = files_of(&document.text, GET).into_iter().filter(|file| *file != RANGE);
            walk = get.chain(walk).collect();
        }
        if walk.len() > *files_max || walk.is_empty() {
            let count = walk.len();
            complaints.push(format!("{DOCUMENT}, {heading}: {count} files, allowed {files_max}"));
        }
        complaints.extend(unconnected(files, heading, &walk));
    }
    complaints
}

/// Returns the Rust files that a section names, each once, in order.
fn files_of<'a>(document: &'a str, heading: &str) -> Vec<&'a str> {
    let mut walk = Vec::new();
    for (_, line) in heading_lines(document, heading) {
        let spans = line.split('`').skip(1).step_by(2);
        for path in spans.filter(|span| span.contains('/') && span.ends_with(".rs")) {
            if !walk.contains(&path) {
                walk.push(path);
            }
        }
    }
    walk
}

/// Complains about files none of whose functions is named by a file before them.
fn unconnected(files: &[File], heading: &str, walk: &[&str]) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut named = BTreeSet::new();
    for (index, path) in walk.iter().enumerate() {
        let Some(file) = find(files, path) else {
            complaints.push(format!("{DOCUMENT}, {heading}: there is no {path}"));
            continue;
        };
        let code = source::without_tests(&source::code(&file.text));
        let (defined, others) = identifiers(&code);
        if index > 0 && defined.is_disjoint(&named) {
            complaints.push(format!("{DOCUMENT}, {heading}: no file before {path} names it"));
        }
        named.extend(others);
    }
    complaints
}

/// Returns the functions that code defines, and its other identifiers. Names that many files have are omitted.
fn identifiers(code: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    const COMMON: &[&str] =
        &["bytes", "clone", "default", "drop", "fmt", "from", "get", "new", "next"];
    let tokens = source::tokens(code).into_iter().map(|token| token.text);
    let is_word = |text: &&str| text.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let words: Vec<&str> = tokens.filter(is_word).collect();
    let (mut defined, mut others) = (BTreeSet::new(), BTreeSet::new());
    for pair in words.windows(2).filter(|pair| !COMMON.contains(&pair[1])) {
        let names = if pair[0] == "fn" { &mut defined } else { &mut others };
        names.insert(pair[1].to_owned());
    }
    (defined, others)
}

#[test]
fn walk_check_reports_long_missing_and_unconnected_walks() {
    let file = File::new;
    let files = [
        file(
            DOCUMENT,
            "### Upload\n`a/one.rs`, `a/two.rs`, `a/three.rs`, `a/none.rs`\n### Other\n",
        ),
        file("a/one.rs", "fn one() { two(); } #[cfg(test)] mod tests { fn t() { three() } }"),
        file("a/two.rs", "fn two() {}"),
        file("a/three.rs", "fn three() {} // two"),
    ];
    expect_each(
        &check_walks(&files, &[("### Upload", 3)]),
        &["4 files, allowed 3", "no file before a/three.rs", "there is no a/none.rs"],
    );
    expect_each(&check_walks(&files, &[("### GET", 3)]), &["### GET: 0 files"]);
    expect_each(&check_walks(&[], WALKS), &["ARCHITECTURE.md is missing"]);
}
