//! Cargo manifests, parsed as simple lines: sections, and one key to a line.

use crate::repository::File;

/// A dependency as a manifest names it.
#[derive(Debug)]
pub(crate) struct Dependency<'a> {
    pub(crate) section: &'a str,
    pub(crate) name: &'a str,
    /// Remainder of the line: `.workspace = true`, or ` = { ... }`.
    pub(crate) rest: &'a str,
}

/// Returns the crates below the root: name of the folder that holds the crate, and the text of the manifest.
pub(crate) fn crates(files: &[File]) -> impl Iterator<Item = (&str, &str)> {
    files.iter().filter_map(|file| {
        let folder = file.path.strip_suffix("/Cargo.toml")?;
        Some((folder.rsplit('/').next()?, file.text.as_str()))
    })
}

/// Returns the lines of a section, without comments and empty lines.
pub(crate) fn section<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    sections(text).filter(|(section, _)| *section == name).map(|(_, line)| line).collect()
}

/// Returns all dependencies of the manifest, of every kind. In the root manifest: those that the workspace offers.
pub(crate) fn dependencies(text: &str) -> Vec<Dependency<'_>> {
    sections(text)
        .filter(|(section, _)| section.ends_with("dependencies"))
        .filter_map(|(section, line)| {
            let end = line.find(|c: char| !c.is_alphanumeric() && c != '-' && c != '_')?;
            let (name, rest) = line.split_at(end);
            (!name.is_empty()).then_some(Dependency { section, name, rest })
        })
        .collect()
}

/// Returns every non-empty line, with the section that it belongs to.
fn sections(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut current = "";
    text.lines().filter_map(move |line| {
        let line = line.trim();
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            current = name.trim_matches(['[', ']']);
            return None;
        }
        (!line.is_empty() && !line.starts_with('#')).then_some((current, line))
    })
}

#[test]
fn dependencies_are_read_with_their_section() {
    let text = "[package]\nname = \"x\"\n[dependencies]\n# why\na.workspace = true\n\
                b-c = { path = \"b\" }\n[dev-dependencies]\nd = \"1\"\n";
    let found: Vec<(&str, &str)> =
        dependencies(text).iter().map(|dependency| (dependency.section, dependency.name)).collect();
    assert_eq!(found, [("dependencies", "a"), ("dependencies", "b-c"), ("dev-dependencies", "d")]);
    assert_eq!(section(text, "package"), ["name = \"x\""]);
}
