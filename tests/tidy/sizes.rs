//! Length limits of Rust files, their lines, and names of tests.
//!
//! `cargo fmt` keeps code to its own width; this bound is for comments. Tables in comments, lines that hold a string
//! and links may be longer: breaking them would make them worse.

use crate::repository::{self, File};
use crate::{expect_each, expect_none};

const FILE_LINES_MAX: usize = 600;
const LINE_CHARS_MAX: usize = 120;
const TEST_NAME_CHARS_MAX: usize = 60;

#[test]
fn files_and_lines_respect_size_limits() {
    expect_none(&check(&repository::files()));
}

#[test]
fn test_names_respect_the_length_limit() {
    expect_none(&check_test_names(&repository::files()));
}

fn check_test_names(files: &[File]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let mut is_test = false;
        for (index, line) in file.text.lines().enumerate() {
            let line = line.trim_start();
            is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
            let Some(start) = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ")
            else {
                continue;
            };
            let name = start.split(['(', '<']).next().unwrap_or(start);
            if is_test && name.chars().count() > TEST_NAME_CHARS_MAX {
                complaints.push(format!(
                    "{}:{}: {name}: at most {TEST_NAME_CHARS_MAX} characters",
                    file.path,
                    index + 1
                ));
            }
            is_test = false;
        }
    }
    complaints
}

fn check(files: &[File]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let lines = file.text.lines().count();
        if lines > FILE_LINES_MAX {
            complaints.push(format!(
                "{}: {lines} lines, at most {FILE_LINES_MAX}: two subjects, two files",
                file.path
            ));
        }
        for (index, line) in file.text.lines().enumerate() {
            let chars = line.chars().count();
            if chars > LINE_CHARS_MAX && !may_be_long(line) {
                complaints.push(format!(
                    "{}:{}: {chars} characters, at most {LINE_CHARS_MAX}",
                    file.path,
                    index + 1
                ));
            }
        }
    }
    complaints
}

fn may_be_long(line: &str) -> bool {
    let comment = line.trim_start().trim_start_matches(['/', '!']).trim_start();
    comment.starts_with('|') || line.contains('"') || line.contains("://")
}

#[test]
fn size_check_detects_long_files_and_lines() {
    let long = "x".repeat(LINE_CHARS_MAX + 1);
    let files = [
        File::new("a.rs", &"x\n".repeat(FILE_LINES_MAX + 1)),
        File::new(
            "b.rs",
            &format!("ok\n// {long}\n//! | {long} |\nf(\"{long}\");\n// https://{long}"),
        ),
        File::new("c.md", &long),
    ];
    expect_each(&check(&files), &["a.rs: 601 lines", "b.rs:2"]);
}

#[test]
fn test_name_check_detects_long_names() {
    let long = "x".repeat(TEST_NAME_CHARS_MAX + 1);
    let text = format!("#[test]\n#[ignore = \"slow\"]\nasync fn {long}() {{}}\nfn {long}() {{}}\n");
    expect_each(&check_test_names(&[File::new("a.rs", &text)]), &["a.rs:3"]);
}
