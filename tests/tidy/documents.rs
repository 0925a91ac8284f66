//! Documents agree with the code.

use std::collections::BTreeSet;

use crate::manifest::{self, Dependency};
use crate::repository::{self, File, find};
use crate::source;
use crate::values;
use crate::{expect_each, expect_none};

/// Files whose string literals are the routes of the server.
const ROUTE_FILES: &[&str] = &["server/src/routes.rs", "server/src/dispatch.rs"];

#[test]
fn document_paths_exist() {
    expect_none(&check_paths(&repository::files()));
}

#[test]
fn format_document_constants_match_the_code() {
    expect_none(&check_constants(&repository::files()));
}

#[test]
fn api_document_covers_every_route() {
    expect_none(&check_routes(&repository::files()));
}

#[test]
fn workspace_dependencies_have_comments() {
    expect_none(&check_dependencies(&repository::files()));
}

#[test]
fn workspace_lints_are_inherited_by_every_crate() {
    expect_none(&check_lints(&repository::files()));
}

#[test]
fn changelog_has_its_headings() {
    expect_none(&check_changelog(&repository::files()));
}

#[test]
fn security_document_names_tests_for_every_attack() {
    expect_none(&check_attacks(&repository::files()));
}

fn check_paths(files: &[File]) -> Vec<String> {
    let mut known = BTreeSet::new();
    for file in files {
        known.insert(file.path.as_str());
        known.extend(file.path.match_indices('/').map(|(end, _)| &file.path[..end]));
    }
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| file.is_markdown()) {
        for (line, path) in paths_named(&file.text, &known) {
            if !exists(path, file.folder(), &known) {
                complaints.push(format!("{}:{line}: there is no {path}", file.path));
            }
        }
    }
    for file in files.iter().filter(|file| file.is_rust()) {
        for (line, document) in documents_in_comments(&file.text) {
            if !exists(document, file.folder(), &known) {
                complaints.push(format!("{}:{line}: there is no {document}", file.path));
            }
        }
    }
    complaints
}

/// Returns the Markdown files that comments name, with their lines.
fn documents_in_comments(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let comments = text.lines().enumerate().filter(|(_, line)| line.trim_start().starts_with("//"));
    comments.flat_map(|(index, line)| {
        let words = line.split(|c: char| !c.is_ascii_alphanumeric() && !"_./-".contains(c));
        let words = words.map(|word| word.trim_end_matches('.'));
        words.filter(|word| word.ends_with(".md")).map(move |word| (index + 1, word))
    })
}

/// Returns code spans that look like a path of the repository, and targets of links, with their lines.
fn paths_named<'a>(text: &'a str, known: &BTreeSet<&str>) -> Vec<(usize, &'a str)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        let spans = line.split('`').skip(1).step_by(2).filter(|span| looks_like_path(span, known));
        let links = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let links = links
            .filter(|link| !link.contains("://") && !link.starts_with("mailto:"))
            // Pages of a running server, in its guides.
            .filter(|link| !link.starts_with("/-/"))
            .map(|link| link.split('#').next().unwrap_or(""))
            .filter(|link| !link.is_empty());
        found.extend(spans.chain(links).map(|path| (index + 1, path.trim_end_matches('/'))));
    }
    found
}

fn looks_like_path(span: &str, known: &BTreeSet<&str>) -> bool {
    let letters = span.chars().all(|c| c.is_ascii_alphanumeric() || "_./-".contains(c));
    let top = span.split_once('/').is_some_and(|(top, _)| known.contains(top));
    let source = [".rs", ".md"].iter().any(|end| span.ends_with(end) && span.len() > end.len());
    letters && !span.starts_with('/') && (top || source)
}

/// Whether a path exists: from the root, from the document's folder, or by its last segments where its start is no
/// top-level folder.
fn exists(path: &str, folder: &str, known: &BTreeSet<&str>) -> bool {
    let in_folder = format!("{folder}/{path}");
    let end = format!("/{path}");
    let from_the_top = path.split_once('/').is_some_and(|(top, _)| known.contains(top));
    known.contains(path)
        || known.contains(in_folder.as_str())
        || (!from_the_top && known.iter().any(|known| known.ends_with(&end)))
}

fn check_constants(files: &[File]) -> Vec<String> {
    const DOCUMENT: &str = "engine/FORMAT.md";
    if !files.iter().any(|file| file.path.starts_with("engine/src/format")) {
        return Vec::new();
    }
    let Some(document) = find(files, DOCUMENT) else {
        return vec![format!("{DOCUMENT} is missing")];
    };
    let engine = files.iter().filter(|file| file.is_rust() && file.path.starts_with("engine/src/"));
    let constants = values::constants(engine);
    let mut complaints = Vec::new();
    let mut rows = 0;
    for (line, name, value) in constant_rows(&document.text) {
        rows += 1;
        let place = format!("{DOCUMENT}:{line}: {name}");
        let Some(written) = values::written(value) else {
            complaints.push(format!("{place}: {value} is neither a number nor a string"));
            continue;
        };
        match values::values_of(&constants, name).as_slice() {
            [] => complaints.push(format!("{place} is not in the code")),
            [Some(real)] if *real == written => {}
            [Some(real)] => complaints.push(format!("{place} is {real:?} in the code")),
            [None] => complaints.push(format!("{place} is no simple expression in the code")),
            _ => complaints.push(format!("{place} has several values: say file::{name}")),
        }
    }
    if rows == 0 {
        complaints.push(format!("{DOCUMENT}: no rows under \"## Constants\""));
    }
    complaints
}

/// Returns line, name and value of each row of the table of constants.
fn constant_rows(text: &str) -> impl Iterator<Item = (usize, &str, &str)> {
    heading_lines(text, "## Constants").filter_map(|(line, row)| {
        let mut cells = row.trim().strip_prefix('|')?.split('|');
        let name = cells.next()?.trim().trim_matches('`');
        let value = cells.next()?.trim();
        let last = name.rsplit("::").next().unwrap_or("");
        let shouts = last.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
        (shouts && !last.is_empty()).then_some((line, name, value))
    })
}

/// Returns the lines under a heading, up to the next of the same rank or above, numbered as in the document.
pub(crate) fn heading_lines<'a>(
    text: &'a str,
    heading: &str,
) -> impl Iterator<Item = (usize, &'a str)> {
    let rank = |line: &str| line.len() - line.trim_start_matches('#').len();
    let own = rank(heading);
    let mut inside = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        if line.trim_end() == heading {
            inside = true;
            return None;
        }
        if (1..=own).contains(&rank(line)) {
            inside = false;
        }
        inside.then_some((index + 1, line))
    })
}

/// Checks that each row of the table of attacks names files, and that each of them has tests. [`check_paths`] checks
/// that they exist.
fn check_attacks(files: &[File]) -> Vec<String> {
    const DOCUMENT: &str = "SECURITY.md";
    let text = find(files, DOCUMENT).map_or("", |file| file.text.as_str());
    let rows = heading_lines(text, "## Tests");
    let rows: Vec<_> = rows.filter(|(_, line)| line.starts_with('|')).skip(2).collect();
    let mut complaints = Vec::new();
    if rows.is_empty() {
        complaints.push(format!("{DOCUMENT}: no rows under \"## Tests\""));
    }
    for (line, row) in rows {
        let named: Vec<&str> = row.split('`').skip(1).step_by(2).collect();
        if named.is_empty() {
            complaints.push(format!("{DOCUMENT}:{line}: no test is named"));
        }
        for path in named {
            let in_rust = find(files, path).filter(|file| file.is_rust());
            let tries = in_rust.is_none_or(|file| {
                let is_shared = file.path.starts_with("fuzz/") || file.path.starts_with("tests/");
                is_shared || file.text.contains("test]")
            });
            if !tries {
                complaints.push(format!("{DOCUMENT}:{line}: there is no test in {path}"));
            }
        }
    }
    complaints
}

fn check_routes(files: &[File]) -> Vec<String> {
    const DOCUMENT: &str = "server/API.md";
    let api = find(files, DOCUMENT).map_or("", |file| file.text.as_str()).replace("{*", "{");
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| ROUTE_FILES.contains(&file.path.as_str())) {
        let code = source::without_tests(&source::code_with_strings(&file.text));
        for literal in code.split('"').skip(1).step_by(2).filter(|literal| literal.starts_with('/'))
        {
            let route = literal.replace("{*", "{");
            let ends = |at: usize| {
                let after = api[at + route.len()..].chars().next().unwrap_or(' ');
                !after.is_alphanumeric() && !matches!(after, '/' | '-' | '_' | '{')
            };
            let named = api.match_indices(&route).any(|(at, _)| ends(at));
            if !named {
                complaints.push(format!("{DOCUMENT}: {literal} of {} is missing", file.path));
            }
        }
    }
    complaints
}

fn check_dependencies(files: &[File]) -> Vec<String> {
    let mut complaints = dependencies_without_purpose(files);
    for (crate_name, manifest_text) in manifest::crates(files) {
        for dependency in manifest::dependencies(manifest_text) {
            let rest = dependency.rest;
            if !rest.contains("workspace = true") && !rest.contains("path =") {
                complaints.push(format!(
                    "{crate_name}/Cargo.toml: {} must come from the workspace",
                    dependency.name
                ));
            }
        }
    }
    complaints
}

/// Returns the dependencies of the workspace whose purpose no comment in the root manifest states.
fn dependencies_without_purpose(files: &[File]) -> Vec<String> {
    const MANIFEST: &str = "Cargo.toml";
    let text = find(files, MANIFEST).map_or("", |file| file.text.as_str());
    manifest::dependencies(text)
        .iter()
        .filter(|dependency| !dependency.rest.contains("path =") && !has_comment(text, dependency))
        .map(|dependency| format!("{MANIFEST}: no comment states what {} is for", dependency.name))
        .collect()
}

/// Whether a dependency has a comment at the end of its line or on the line directly above.
fn has_comment(manifest_text: &str, dependency: &Dependency<'_>) -> bool {
    let lines: Vec<&str> = manifest_text.lines().map(str::trim).collect();
    let is_own = |line: &str| line.strip_prefix(dependency.name) == Some(dependency.rest);
    let is_below_comment =
        lines.windows(2).any(|pair| pair[0].starts_with("# ") && is_own(pair[1]));
    is_below_comment || dependency.rest.contains(" # ")
}

fn check_lints(files: &[File]) -> Vec<String> {
    manifest::crates(files)
        .filter(|(_, text)| manifest::section(text, "lints") != ["workspace = true"])
        .map(|(folder, _)| format!("{folder}/Cargo.toml: [lints] workspace = true is missing"))
        .collect()
}

fn check_changelog(files: &[File]) -> Vec<String> {
    let text = find(files, "CHANGELOG.md").map_or("", |file| file.text.as_str());
    let under = |heading: &str| {
        heading_lines(text, "## [Unreleased]").any(|(_, line)| line.trim_end() == heading)
    };
    ["### Format", "### API"]
        .iter()
        .filter(|heading| !under(heading))
        .map(|heading| format!("CHANGELOG.md: no \"{heading}\" under \"## [Unreleased]\""))
        .collect()
}

#[test]
fn document_check_detects_missing_path() {
    let text = "`engine/src/name.rs`, `engine/src`, `format/group_view.rs`, `engine/gone.rs`, `image/png`\n\
                [here](engine/src/name.rs#x) [there](gone.md) [out](https://example.org/a.md) [page](/-/docs/x)\n\
                ```\n`engine/no.rs`\n```\n`lost.rs`";
    let files = [
        File::new("ARCHITECTURE.md", text),
        File::new("engine/src/name.rs", ""),
        File::new("engine/src/format/group_view.rs", ""),
    ];
    expect_each(
        &check_paths(&files),
        &["no engine/gone.rs", "no gone.md", "6: there is no lost.rs"],
    );
}

#[test]
fn document_check_detects_wrong_constant() {
    let code =
        "pub const A: usize = 4 * K;\nconst K: usize = 1_024;\npub const B: &[u8; 2] = b\"ab\";";
    let table = "# F\n## Constants\n| name | value |\n| --- | --- |\n| `A` | 4 KiB |\n| B | `\"ax\"` |\n\
                 | K | 1,025 |\n| L | 1 |\n| A | four |\n## Next\n| A | 7 |\n";
    let files = [File::new("engine/src/format.rs", code), File::new("engine/FORMAT.md", table)];
    let complaints = check_constants(&files);
    expect_each(&complaints, &["6: B is", "7: K is", "8: L is not in the code", "9: A: four"]);
    expect_each(&check_constants(&files[..1]), &["FORMAT.md is missing"]);
    let empty = [files[0].clone(), File::new("engine/FORMAT.md", "# F")];
    expect_each(&check_constants(&empty), &["no rows"]);
}

#[test]
fn document_check_detects_undocumented_route() {
    let code = "r.route(\"/api/list\", get(a)).route(\"/{bucket}/{*path}\", get(b)) // \"/no\"\n\
                .route(\"/api\", get(c)).route(\"/api/list-objects\", get(d))";
    let api = "`GET /api/list-objects`, `GET /{bucket}/{path}`";
    let files = [File::new("server/src/routes.rs", code), File::new("server/API.md", api)];
    expect_each(&check_routes(&files), &["/api/list of", "/api of"]);
}

#[test]
fn document_check_detects_uncommented_dependency() {
    let manifest = "[workspace.dependencies]\n# Ours.\nours = { path = \"ours\" }\n# A.\na = \"1\"\n\
                    b = \"2\"\nc = \"3\" # C.\n\n# D.\n\nd = \"4\"\n";
    let files = [
        File::new("Cargo.toml", manifest),
        File::new("x/Cargo.toml", "[dependencies]\na.workspace = true\nb = \"2\"\n"),
    ];
    let expected = ["what b is for", "what d is for", "b must come from the workspace"];
    expect_each(&check_dependencies(&files), &expected);
}

#[test]
fn document_check_detects_crate_without_lints() {
    let files = [
        File::new("a/Cargo.toml", "[lints]\nworkspace = true\n"),
        File::new("b/Cargo.toml", "[package]\n"),
    ];
    expect_each(&check_lints(&files), &["b/Cargo.toml"]);
}

#[test]
fn document_check_detects_missing_changelog_heading() {
    let good = "# C\n## [Unreleased]\n### Format\n### API\n## [0.1.0]\n";
    expect_none(&check_changelog(&[File::new("CHANGELOG.md", good)]));
    let bad = "# C\n## [Unreleased]\n### API\n## [0.1.0]\n### Format\n";
    expect_each(&check_changelog(&[File::new("CHANGELOG.md", bad)]), &["### Format"]);
    expect_each(&check_changelog(&[]), &["### Format", "### API"]);
}

#[test]
fn document_check_detects_untested_attack() {
    let head = "## Tests\n\n| class | where |\n|---|---|\n";
    let rows = "| a | `tests/a.rs` |\n| b | nowhere |\n| c | `server/src/c.rs` |\n";
    let files = [
        File::new("SECURITY.md", &format!("{head}{rows}")),
        File::new("tests/a.rs", ""),
        File::new("server/src/c.rs", "fn c() {}"),
    ];
    expect_each(&check_attacks(&files), &["no test is named", "no test in server/src/c.rs"]);
    expect_each(&check_attacks(&[]), &["no rows"]);
}
