//! Words: private idiom, names that say nothing, leftovers, and paths of one machine.
//!
//! Leftovers and paths are put together from pieces, so that this file does not contain them.

use std::collections::BTreeMap;

use crate::repository::{self, File};
use crate::source;
use crate::{expect_each, expect_none};

/// Words of the idiom that this project left; what to write instead is in CONTRIBUTING.md.
const IDIOM: &[&str] = &[
    "whoever",
    "anew",
    "stranger",
    "strangers",
    "told",
    "meanwhile",
    "any more",
    "passed over",
    "passes over",
    "takes a build",
    "lies in",
    "never here",
];

/// Files that may contain words of [`IDIOM`]: the list itself, and the table of replacements.
const IDIOM_FILES: &[&str] = &["tests/tidy/words.rs", "CONTRIBUTING.md"];

/// First words of a doc comment that refer to the item before it.
const DANGLING_WORDS: &[&str] = &[
    "And", "But", "Or", "So", "Then", "Also", "Which", "That", "Who", "Whose", "It", "Its", "They",
    "Their", "Those", "Such", "Because",
];

/// Names of software, and a function, that are written in lower case at the beginning of a sentence.
const LOWER_CASE_NAMES: &[&str] = &[
    "aws",
    "axios",
    "curl",
    "fjall",
    "fsck",
    "gksphone",
    "lb",
    "libaom",
    "libwebp",
    "node",
    "python",
    "qbx_properties",
    "rclone",
    "redb",
    "restic",
    "screencapture",
    "screenshot",
    "sharp",
    "sqrt",
    "systemd",
    "trug",
    "tus",
    "wasabi_mdt",
];

/// Names for files and folders that say nothing about what is inside. A module with files of its own is `name.rs`
/// beside the folder `name`, not `mod.rs`.
const DRAWERS: &[&str] =
    &["util", "utils", "common", "helper", "helpers", "manager", "base", "inner", "misc", "mod"];

/// Base names that several files of a crate may have: conventions, and formats that are both decoded and encoded.
const SHARED_BASE_NAMES: &[&str] =
    &["lib", "main", "tests", "limits", "avif", "gif", "jpeg", "png", "webp"];

/// Where `unsafe` may stand: the memory maps, the call that begins to write back, libaom, the option of the allocator,
/// sockets that are inherited, the wrappers that the fuzzer's macro needs, and the test that shuts a file system down.
const UNSAFE_FILES: &[&str] = &[
    "engine/src/disk/mmap.rs",
    "engine/src/disk/write_back.rs",
    "server/images/src/encode/avif/aom.rs",
    "server/images/src/encode/libwebp.rs",
    "tools/src/allocator.rs",
    "tools/src/socket_activation.rs",
    "fuzz/targets/",
    "tests/process/ext4.rs",
];

/// Words that a finished change does not leave behind, in two pieces.
const LEFTOVER_WORDS: &[(&str, &str)] = &[("FIX", "ME"), ("X", "XX"), ("TO", "DO"), ("HA", "CK")];

/// Macros that a finished change does not leave behind.
const LEFTOVER_MACROS: &[&str] = &["todo", "unimplemented", "dbg"];

/// Files that editors and merges leave behind.
const LEFTOVER_EXTENSIONS: &[&str] = &["orig", "rej", "swp", "bak", "tmp"];

/// Folders of one machine, without their slashes. A service's own folders, such as those under `/var`, are fine.
const MACHINE_FOLDERS: &[&str] = &["work", "tmp", "root", "Users"];

/// Where a lock file's packages come from.
const PACKAGE_SOURCE: &str = "registry+https://github.com/rust-lang/crates.io-index";

#[test]
fn private_idiom_is_absent() {
    expect_none(&check_idiom(&repository::files(), IDIOM));
}

#[test]
fn doc_comments_begin_with_their_subject() {
    expect_none(&check_doc_comments(&repository::files()));
}

#[test]
fn file_names_are_descriptive() {
    expect_none(&check_file_names(&repository::files()));
}

#[test]
fn base_names_are_unique_in_a_crate() {
    expect_none(&check_base_names(&repository::files()));
}

#[test]
fn no_leftover_markers_remain() {
    expect_none(&check_leftovers(&repository::files()));
}

#[test]
fn unsafe_is_confined_to_listed_files() {
    expect_none(&check_unsafe(&repository::files()));
}

#[test]
fn no_machine_specific_paths_remain() {
    expect_none(&check_machine(&repository::files()));
}

fn check_idiom(files: &[File], idiom: &[&str]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| !IDIOM_FILES.contains(&&*file.path)) {
        for (index, line) in file.text.lines().enumerate() {
            let words = format!(" {} ", words_of(line));
            let found = idiom.iter().filter(|word| words.contains(&format!(" {word} ")));
            complaints.extend(found.map(|word| {
                format!("{}:{}: \"{word}\": use a standard term", file.path, index + 1)
            }));
        }
    }
    complaints
}

/// Checks the first word of each doc comment.
fn check_doc_comments(files: &[File]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let mut is_inside = false;
        for (index, line) in file.text.lines().enumerate() {
            let line = line.trim_start();
            let text = ["///", "//!"].iter().find_map(|start| line.strip_prefix(start));
            if let Some(text) = text.filter(|_| !is_inside)
                && let Some(word) = first_word(text)
                && (DANGLING_WORDS.contains(&word)
                    || word.starts_with(|c: char| c.is_ascii_lowercase())
                        && !LOWER_CASE_NAMES.contains(&word))
            {
                complaints.push(format!(
                    "{}:{}: begins with \"{word}\", not with the subject",
                    file.path,
                    index + 1
                ));
            }
            is_inside = text.is_some();
        }
    }
    complaints
}

/// Returns the letters and underscores at the start of a comment; `None` if it starts with another character.
fn first_word(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_ascii_alphabetic() && c != '_').unwrap_or(text.len());
    (end > 0).then(|| &text[..end])
}

/// The words of a line in lower case, separated by single spaces.
fn words_of(line: &str) -> String {
    let words = line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ").to_lowercase()
}

fn check_file_names(files: &[File]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        for component in file.path.split('/') {
            if DRAWERS.contains(&component.trim_end_matches(".rs")) {
                complaints
                    .push(format!("{}: {component} says nothing: name the subject", file.path));
            }
        }
    }
    complaints
}

fn check_base_names(files: &[File]) -> Vec<String> {
    let mut known = BTreeMap::new();
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let Some((of_crate, path)) = file.path.split_once("/src/") else { continue };
        let base_name = path.rsplit('/').next().unwrap_or(path);
        if SHARED_BASE_NAMES.contains(&base_name.trim_end_matches(".rs")) {
            continue;
        }
        if let Some(other) = known.insert((of_crate, base_name), &file.path) {
            complaints.push(format!("{}: has the base name of {other}", file.path));
        }
    }
    complaints
}

fn check_leftovers(files: &[File]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files {
        let extension = file.extension();
        if LEFTOVER_EXTENSIONS.contains(&extension) || file.path.ends_with('~') {
            complaints.push(format!("{}: left over from an editor or a merge", file.path));
        }
        for (index, line) in file.text.lines().enumerate() {
            for (first, second) in LEFTOVER_WORDS {
                if has_word(line, &format!("{first}{second}")) {
                    complaints.push(format!("{}:{}: {first}{second}", file.path, index + 1));
                }
            }
        }
        if file.is_rust() {
            complaints.extend(leftover_code(file));
        }
    }
    complaints
}

fn leftover_code(file: &File) -> Vec<String> {
    let mut complaints = Vec::new();
    let code = source::code(&file.text);
    let tokens = source::tokens(&code);
    for pair in tokens.windows(2) {
        if LEFTOVER_MACROS.contains(&pair[0].text) && pair[1].text == "!" {
            complaints.push(format!("{}:{}: {}!", file.path, pair[0].line, pair[0].text));
        }
    }
    for four in tokens.windows(4) {
        let texts: Vec<&str> = four.iter().map(|token| token.text).collect();
        if texts == ["#", "[", "ignore", "]"] {
            complaints.push(format!("{}:{}: #[ignore] without a reason", file.path, four[0].line));
        }
    }
    for (index, line) in file.text.lines().enumerate() {
        if is_commented_out(line) {
            complaints.push(format!("{}:{}: commented-out code", file.path, index + 1));
        }
    }
    complaints
}

fn has_word(line: &str, word: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|found| found == word)
}

/// Whether a plain comment line reads like code. Sentences do not end in `;` after a call or an assignment.
fn is_commented_out(line: &str) -> bool {
    let Some(comment) = line.trim_start().strip_prefix("//") else { return false };
    if comment.starts_with(['/', '!']) {
        return false;
    }
    let comment = comment.trim();
    let starts = ["let ", "use ", "pub ", "fn ", "mod ", "return ", "self.", "#["];
    let statement = comment.ends_with(';')
        && (comment.ends_with(");")
            || comment.ends_with("?;")
            || comment.contains(" = ")
            || starts.iter().any(|start| comment.starts_with(start)));
    let block = comment.ends_with('{')
        && ["if ", "for ", "while ", "match ", "fn ", "pub ", "impl ", "} else"]
            .iter()
            .any(|start| comment.starts_with(start));
    statement || block || matches!(comment, "}" | "};" | "});" | "})")
}

fn check_unsafe(files: &[File]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        if UNSAFE_FILES.iter().any(|place| file.path.starts_with(place)) {
            continue;
        }
        let code = source::code(&file.text);
        let lines = source::tokens(&code).into_iter().filter(|token| token.text == "unsafe");
        complaints.extend(lines.map(|token| {
            format!("{}:{}: unsafe stands in {UNSAFE_FILES:?} only", file.path, token.line)
        }));
    }
    complaints
}

fn check_machine(files: &[File]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files {
        for (index, line) in file.text.lines().enumerate() {
            let place = format!("{}:{}", file.path, index + 1);
            for folder in MACHINE_FOLDERS {
                if has_path(line, &format!("/{folder}/")) {
                    complaints.push(format!("{place}: /{folder}/ is a path of one machine"));
                }
            }
            let source = line.trim().strip_prefix("source = \"").unwrap_or(PACKAGE_SOURCE);
            if file.extension() == "lock" && source.trim_end_matches('"') != PACKAGE_SOURCE {
                complaints.push(format!("{place}: a package from elsewhere"));
            }
            let settles = ["[source", "[registries", "[registry", "replace-with", "registry ="];
            let line = line.trim_start();
            if file.path.ends_with("config.toml")
                && settles.iter().any(|start| line.starts_with(start))
            {
                complaints
                    .push(format!("{place}: where packages come from is a machine's business"));
            }
        }
    }
    complaints
}

/// Whether an absolute path starts with `start`: not in the middle of a longer path.
fn has_path(line: &str, start: &str) -> bool {
    line.match_indices(start).any(|(at, _)| {
        let before = line[..at].chars().next_back().unwrap_or(' ');
        !before.is_alphanumeric() && !matches!(before, '.' | '_' | '-' | '}' | '>' | '/' | '*')
    })
}

#[test]
fn idiom_check_detects_words_but_not_parts_of_words() {
    let files = [
        File::new("a.md", "It is told.\nTold_again.\nretold folders"),
        File::new("b.rs", "// any-more"),
        File::new("CONTRIBUTING.md", "told"),
    ];
    expect_each(&check_idiom(&files, &["told", "any more"]), &["a.md:1", "a.md:2", "b.rs:1"]);
}

#[test]
fn doc_comment_check_detects_dangling_first_words() {
    let text = "//! redb tables.\n//! and more.\n\n/// Which file.\nfn f();\n/// lower case.\n";
    let files = [File::new("a.rs", text), File::new("a.md", "/// It.")];
    expect_each(&check_doc_comments(&files), &["a.rs:4", "a.rs:6"]);
}

#[test]
fn file_name_check_detects_vague_names() {
    let files = [
        File::new("engine/src/utils.rs", ""),
        File::new("server/src/common/words.rs", ""),
        File::new("server/src/page/mod.rs", ""),
        File::new("engine/src/utility_meter.rs", ""),
    ];
    expect_each(&check_file_names(&files), &["utils.rs", "common", "mod.rs"]);
}

#[test]
fn base_name_check_detects_two_files_of_a_name() {
    let paths = ["a/src/x/limits.rs", "a/src/limits.rs", "b/src/audit.rs", "a/src/audit.rs"];
    let files = paths.map(|path| File::new(path, ""));
    expect_none(&check_base_names(&files));
    let files = ["a/src/x/audit.rs", "a/src/audit.rs"].map(|path| File::new(path, ""));
    expect_each(&check_base_names(&files), &["a/src/audit.rs"]);
}

#[test]
fn leftover_check_detects_markers() {
    let text = format!("// {}{}: later\ndbg!(x);\n#[ignore]\nfn f() {{}}\n", "FIX", "ME");
    let text = text + "#[ignore = \"slow\"]\n// let x = f(y);\n// Order matters here;\n// if a {\n";
    let files = [File::new("a.rs", &text), File::new("a.rs.orig", "")];
    let expected = ["a.rs:1", "a.rs:2: dbg!", "a.rs:3: #[ignore]", "a.rs:6", "a.rs:8", "a.rs.orig"];
    expect_each(&check_leftovers(&files), &expected);
}

#[test]
fn unsafe_check_detects_unlisted_files() {
    let text = "// unsafe\nfn f() { unsafe { g() } }";
    let files = [
        File::new("engine/src/disk/mmap.rs", text),
        File::new("engine/src/disk/real.rs", text),
        File::new("fuzz/targets/record.rs", text),
    ];
    expect_each(&check_unsafe(&files), &["real.rs:2"]);
}

#[test]
fn machine_path_check_detects_local_paths() {
    let path = format!("see /{}/x and photos/work/y", "tmp");
    let files = [
        File::new("a.md", &path),
        File::new("Cargo.lock", "source = \"registry+https://example.org/index\""),
        File::new(".cargo/config.toml", "[source.crates-io]"),
    ];
    expect_each(&check_machine(&files), &["a.md:1", "Cargo.lock:1", "config.toml:1"]);
}
