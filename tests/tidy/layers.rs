//! Direction of dependencies: between crates, and between the modules of the engine, which are layers of one crate.
//!
//! A file of the engine may name its own module (its folder) and any layer below; never a neighbour on the same layer,
//! never upward. `lib.rs` is above all layers. Code under `#[cfg(test)]` is exempt.
//!
//! To add a module, put its name into the layer where it belongs. The table is in the order of ARCHITECTURE.md.

use crate::manifest;
use crate::repository::{self, File};
use crate::source::{self, NamedPath, Token};
use crate::{expect_each, expect_none};

/// Layers from the lowest to the highest, each with the modules on it.
type Layers = [&'static [&'static str]];

const ENGINE: &Layers = &[
    &["limits", "clock", "rng", "progress", "mapped_buffer"],
    &["name", "metrics"],
    &["format", "disk", "remote"],
    &["error"],
    &["free_space", "upload_memory", "tier"],
    &["segment", "index"],
    &["upload"],
    &["commit", "replay", "snapshot"],
    &["recovery", "compaction", "scrub", "history", "backup", "stats", "replication"],
    &["store"],
    &["fsck"],
];

/// Public modules of the engine that `server` and `tools` may not name: they are for tests, fuzzing and benches.
const ENGINE_INTERNALS: &[&str] = &["disk", "format"];

/// Crates that only the engine may name.
const ENGINE_ONLY_CRATES: &[&str] = &["redb", "memmap2"];

/// For each crate, the crates of this workspace that it may depend on.
const DIRECTION: &[(&str, &[&str])] = &[
    ("engine", &[]),
    ("search", &["engine"]),
    ("kernels", &[]),
    ("compression", &[]),
    ("scaled-jpeg", &[]),
    ("images", &["kernels", "scaled-jpeg"]),
    ("protocol", &["engine"]),
    ("outbound", &["protocol"]),
    ("remote", &["engine", "outbound", "protocol"]),
    ("usage", &["engine", "protocol"]),
    ("otlp", &["outbound", "protocol", "usage"]),
    ("listener", &["engine", "outbound", "protocol", "usage"]),
    ("catalog", &["engine", "protocol", "usage"]),
    ("jobs", &["catalog", "engine", "outbound", "protocol", "usage"]),
    (
        "service",
        &[
            "catalog",
            "compression",
            "engine",
            "images",
            "jobs",
            "listener",
            "outbound",
            "protocol",
            "search",
            "usage",
        ],
    ),
    ("s3", &["catalog", "engine", "jobs", "listener", "protocol", "service", "usage"]),
    (
        "server",
        &["catalog", "engine", "jobs", "listener", "protocol", "s3", "search", "service", "usage"],
    ),
    (
        "tools",
        &[
            "catalog", "engine", "images", "jobs", "listener", "otlp", "outbound", "protocol",
            "remote", "server", "service", "usage",
        ],
    ),
    ("fuzz", &["engine", "images", "protocol", "scaled-jpeg"]),
    (
        "tests",
        &[
            "catalog",
            "engine",
            "images",
            "jobs",
            "listener",
            "outbound",
            "protocol",
            "remote",
            "scaled-jpeg",
            "search",
            "server",
            "service",
            "fuzz",
            "usage",
        ],
    ),
    (
        "benches",
        &[
            "engine",
            "images",
            "listener",
            "outbound",
            "remote",
            "scaled-jpeg",
            "search",
            "server",
            "service",
            "tests",
            "fuzz",
        ],
    ),
];

#[test]
fn engine_files_import_only_lower_layers() {
    expect_none(&check_layers("engine", ENGINE, &repository::files()));
}

#[test]
fn engine_is_used_only_through_its_public_api() {
    expect_none(&check_engine_door(&repository::files()));
}

#[test]
fn crate_dependencies_have_one_direction() {
    expect_none(&check_direction(&repository::files()));
}

fn layer_of(layers: &Layers, module: &str) -> Option<usize> {
    layers.iter().position(|layer| layer.contains(&module))
}

fn check_layers(crate_name: &str, layers: &Layers, files: &[File]) -> Vec<String> {
    let folder = format!("{crate_name}/src/");
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let Some(inside) = file.path.strip_prefix(&folder) else { continue };
        if matches!(inside, "lib.rs" | "main.rs") {
            continue;
        }
        let module = inside.split('/').next().unwrap_or("").trim_end_matches(".rs");
        let Some(own) = layer_of(layers, module) else {
            complaints.push(format!(
                "{}: add {module} to the layer table of {crate_name} in tests/tidy/layers.rs",
                file.path
            ));
            continue;
        };
        let code = source::without_tests(&source::code(&file.text));
        let tokens = source::tokens(&code);
        for path in source::paths_from(&tokens, "crate") {
            if let Some(why) = refusal(crate_name, layers, module, own, &path) {
                complaints.push(format!("{}:{}: {why}", file.path, path.line));
            }
        }
        for line in lines_that_climb_out(&tokens, depth(inside)) {
            complaints.push(format!(
                "{}:{line}: this `super::` leaves the folder; say `crate::`",
                file.path
            ));
        }
    }
    // A group in braces names its module once for each of its items.
    complaints.dedup();
    complaints
}

/// Returns why a file of `module` on layer `own` may not name this path.
fn refusal(
    crate_name: &str,
    layers: &Layers,
    module: &str,
    own: usize,
    path: &NamedPath<'_>,
) -> Option<String> {
    let named = *path.components.first()?;
    if named == module {
        return None;
    }
    let Some(layer) = layer_of(layers, named) else {
        let advice = if named.starts_with(char::is_lowercase) {
            format!("add {named} to the layer table of {crate_name} in tests/tidy/layers.rs")
        } else {
            "name the module that owns it".to_owned()
        };
        return Some(format!("crate::{named} is in no layer: {advice}"));
    };
    let place = match layer.cmp(&own) {
        std::cmp::Ordering::Less => return None,
        std::cmp::Ordering::Equal => "is in the same layer as",
        std::cmp::Ordering::Greater => "stands above",
    };
    Some(format!("{module} names crate::{named}, which {place} it"))
}

/// Returns the module depth of the file: 1 for `name.rs`, 2 for `disk/real.rs`.
fn depth(inside: &str) -> usize {
    inside.split('/').count()
}

/// Returns the lines where a chain of `super::` reaches the root of the crate.
fn lines_that_climb_out(tokens: &[Token<'_>], depth: usize) -> Vec<usize> {
    let mut lines = Vec::new();
    let mut braces: Vec<bool> = Vec::new();
    let mut chain = 0;
    for (at, token) in tokens.iter().enumerate() {
        let text = |index: usize| tokens.get(index).map_or("", |token| token.text);
        match token.text {
            "{" => braces.push(at >= 2 && text(at - 2) == "mod"),
            "}" => drop(braces.pop()),
            _ => {}
        }
        if token.text == "super" && text(at + 1) == "::" {
            chain += 1;
            let inline = braces.iter().filter(|of_module| **of_module).count();
            if chain == depth + inline {
                lines.push(token.line);
            }
        } else if token.text != "::" {
            chain = 0;
        }
    }
    lines
}

fn check_engine_door(files: &[File]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let is_outside = file.path.starts_with("server/") || file.path.starts_with("tools/src/");
        if !is_outside || file.path.ends_with("/tests.rs") {
            continue;
        }
        let code = source::without_tests(&source::code(&file.text));
        let tokens = source::tokens(&code);
        for path in source::paths_from(&tokens, "engine") {
            let module = path.components.first().copied().unwrap_or("");
            if ENGINE_INTERNALS.contains(&module) {
                complaints.push(format!(
                    "{}:{}: engine::{module} is internal: use what engine/src/lib.rs re-exports",
                    file.path, path.line
                ));
            }
        }
        for name in ENGINE_ONLY_CRATES {
            for path in source::paths_from(&tokens, name) {
                complaints
                    .push(format!("{}:{}: only the engine names {name}", file.path, path.line));
            }
        }
    }
    complaints
}

fn check_direction(files: &[File]) -> Vec<String> {
    let mut complaints = Vec::new();
    for (crate_name, text) in manifest::crates(files) {
        let Some((_, below)) = DIRECTION.iter().find(|(name, _)| *name == crate_name) else {
            complaints.push(format!(
                "{crate_name}/Cargo.toml: add {crate_name} to DIRECTION in tests/tidy/layers.rs"
            ));
            continue;
        };
        for dependency in manifest::dependencies(text) {
            let ours = DIRECTION.iter().any(|(name, _)| *name == dependency.name);
            // The engine's own tests enable its simulated disk by depending on the engine; the suites that run the
            // binary are targets of its package.
            let for_tests = dependency.section == "dev-dependencies"
                && [crate_name, "tests"].contains(&dependency.name);
            if ours && !for_tests && !below.contains(&dependency.name) {
                complaints.push(format!(
                    "{crate_name}/Cargo.toml: {crate_name} must not depend on {}",
                    dependency.name
                ));
            }
            let outside = !matches!(crate_name, "engine" | "tests");
            if outside && ENGINE_ONLY_CRATES.contains(&dependency.name) {
                complaints.push(format!(
                    "{crate_name}/Cargo.toml: only the engine depends on {}",
                    dependency.name
                ));
            }
        }
    }
    complaints
}

#[test]
fn layer_check_detects_imports_of_peers_or_upper_layers() {
    let files = [
        File::new("engine/src/format/group_view.rs", "use crate::name;\nuse crate::disk::Disk;"),
        File::new("engine/src/error.rs", "use crate::{format::Malformed, store::Store};"),
        File::new("engine/src/replay.rs", "fn f() -> crate::Result<()> {}"),
        File::new("engine/src/cache.rs", ""),
        File::new("engine/src/lib.rs", "pub use crate::store::Store;"),
    ];
    let complaints = check_layers("engine", ENGINE, &files);
    expect_each(
        &complaints,
        &[
            "group_view.rs:2: format names crate::disk, which is in the same layer as it",
            "error.rs:1: error names crate::store, which stands above it",
            "crate::Result is in no layer: name the module that owns it",
            "cache.rs: add cache to the layer table",
        ],
    );
}

#[test]
fn layer_check_ignores_comments_strings_and_tests() {
    let text = "//! [crate::store::Store]\nconst A: &str = \"crate::store\";\n\
                #[cfg(test)]\nmod tests { use crate::store::Store; }";
    expect_none(&check_layers("engine", ENGINE, &[File::new("engine/src/limits.rs", text)]));
}

#[test]
fn layer_check_resolves_super_within_the_folder() {
    let good = "use super::record; mod inner_words { use super::Thing; }";
    let files = [
        File::new("engine/src/format/group_view.rs", good),
        File::new("engine/src/format/entry.rs", "use super::super::disk;"),
        File::new("engine/src/format.rs", "use super::disk;"),
        File::new("engine/src/name.rs", "use super::limits;\npub(super) fn f() {}"),
    ];
    let complaints = check_layers("engine", ENGINE, &files);
    expect_each(&complaints, &["entry.rs:1", "format.rs:1", "name.rs:1"]);
}

#[test]
fn layer_check_detects_private_engine_imports() {
    let text =
        "use engine::{Store, limits, disk::SimDisk};\nuse redb::Database;\nuse engine::format;";
    let files = [File::new("server/src/state.rs", text), File::new("tests/crash/main.rs", text)];
    let complaints = check_engine_door(&files);
    expect_each(&complaints, &["engine::disk", "engine::format", "redb"]);
}

#[test]
fn layer_check_detects_reversed_crate_dependency() {
    let files = [
        File::new("engine/Cargo.toml", "[dependencies]\nserver.workspace = true\n"),
        File::new("server/Cargo.toml", "[dependencies]\nengine.workspace = true\nredb = \"4\"\n"),
        File::new("tools/Cargo.toml", "[dependencies]\ntests.workspace = true\n"),
        File::new("extra/Cargo.toml", "[dependencies]\n"),
    ];
    let complaints = check_direction(&files);
    let expected = [
        "must not depend on server",
        "only the engine depends on redb",
        "must not depend on tests",
        "add extra",
    ];
    expect_each(&complaints, &expected);
}
