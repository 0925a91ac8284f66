//! Words: private idiom, names that say nothing, leftovers, and paths of one machine.
//!
//! Leftovers and paths are put together from pieces, so that this file does not contain them.

use crate::repository::{self, File};
use crate::source;
use crate::{expect_each, expect_none};

/// Words of the private idiom that this project is leaving, with the number of lines that still have them. A number may
/// only fall; what to write instead is in CONTRIBUTING.md.
const IDIOM: &[(&str, usize)] = &[
    ("whoever", 22),
    ("anew", 29),
    ("stranger", 239),
    ("strangers", 5),
    ("told", 838),
    ("meanwhile", 24),
    ("any more", 13),
    ("passed over", 14),
    ("passes over", 0),
    ("takes a build", 0),
    ("lies in", 9),
    ("never here", 0),
];

/// Lines that a number of [`IDIOM`] may be above the truth before it has to be lowered.
const IDIOM_SLACK: usize = 20;

/// Names for files and folders that say nothing about what is inside.
const DRAWERS: &[&str] =
    &["util", "utils", "common", "helper", "helpers", "manager", "base", "inner", "misc"];

/// Where `unsafe` may stand: the memory maps, the call that begins to write back, libaom, the option of the allocator,
/// sockets that are inherited, the wrappers that the fuzzer's macro needs, and the test that shuts a file system down.
const UNSAFE_FILES: &[&str] = &[
    "engine/src/disk/mmap.rs",
    "engine/src/disk/write_back.rs",
    "server/images/src/encode/avif/aom.rs",
    "server/images/src/encode/libwebp.rs",
    "tools/src/allocator.rs",
    "tools/src/inherited.rs",
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
fn private_idiom_only_decreases() {
    expect_none(&check_idiom(&repository::files(), IDIOM));
}

#[test]
fn file_names_are_descriptive() {
    expect_none(&check_file_names(&repository::files()));
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

fn check_idiom(files: &[File], idiom: &[(&str, usize)]) -> Vec<String> {
    let files = files.iter().filter(|file| !IDIOM_FILES.contains(&&*file.path));
    let lines: Vec<String> = files
        .flat_map(|file| file.text.lines())
        .map(|line| format!(" {} ", words_of(line)))
        .collect();
    let mut complaints = Vec::new();
    for (word, bound) in idiom {
        let count = lines.iter().filter(|line| line.contains(&format!(" {word} "))).count();
        if count > *bound {
            complaints.push(format!(
                "{count} lines have \"{word}\", {bound} before: use a standard term"
            ));
        } else if count + IDIOM_SLACK < *bound {
            complaints.push(format!("{count} lines have \"{word}\": lower {bound} in words.rs"));
        }
    }
    complaints
}

/// Files that name the idiom.
const IDIOM_FILES: &[&str] = &["tests/tidy/words.rs", "CONTRIBUTING.md"];

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
fn idiom_check_detects_increase_and_loose_bounds() {
    let files = [
        File::new("a.md", "It is told.\nTold_again, retold.\nfolders"),
        File::new("b.rs", "// any-more"),
    ];
    expect_each(&check_idiom(&files, &[("told", 1)]), &["2 lines have \"told\", 1 before"]);
    expect_each(&check_idiom(&files, &[("told", 2), ("any more", 1)]), &[]);
    expect_each(&check_idiom(&files, &[("told", 23)]), &["lower 23"]);
}

#[test]
fn file_name_check_detects_vague_names() {
    let files = [
        File::new("engine/src/utils.rs", ""),
        File::new("server/src/common/mod.rs", ""),
        File::new("engine/src/utility_meter.rs", ""),
    ];
    expect_each(&check_file_names(&files), &["utils.rs", "common"]);
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
