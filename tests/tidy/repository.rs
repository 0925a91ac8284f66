//! Files of the repository, read once per test.
//!
//! Files that `.gitignore` names and the folder of the version control are left out. Files that are not text, fixtures,
//! fuzz inputs and third-party advisories are listed with an empty text: they exist, and their words are not checked.

use std::fs;
use std::path::{Path, PathBuf};

/// A file: its path from the root of the repository with `/` between segments, and its text.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    /// Returns the part after the last dot of the file name; empty without one.
    pub(crate) fn extension(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or("");
        name.rsplit_once('.').map_or("", |(_, extension)| extension)
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.extension() == "rs"
    }

    pub(crate) fn is_markdown(&self) -> bool {
        self.extension() == "md"
    }

    /// Returns the folder of the file; empty at the root.
    pub(crate) fn folder(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }
}

/// Returns the file with exactly this path.
pub(crate) fn find<'a>(files: &'a [File], path: &str) -> Option<&'a File> {
    files.iter().find(|file| file.path == path)
}

/// Returns every file of the repository, sorted by path.
pub(crate) fn files() -> Vec<File> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let ignored = fs::read_to_string(root.join(".gitignore")).expect(".gitignore is readable");
    let mut ignored: Vec<&str> = ignored
        .lines()
        .map(|line| line.trim_matches('/'))
        .filter(|line| !line.is_empty())
        .collect();
    ignored.push(".git");
    let mut found = Vec::new();
    collect(&root, "", &ignored, &mut found);
    found.sort_by(|one, other| one.path.cmp(&other.path));
    assert!(found.len() > 20, "the repository is not where it was expected");
    found
}

fn collect(root: &Path, folder: &str, ignored: &[&str], found: &mut Vec<File>) {
    let entries = fs::read_dir(root.join(folder)).expect("folders of the repository are readable");
    for entry in entries {
        let entry = entry.expect("folders of the repository are readable");
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
        if ignored.contains(&path.as_str()) {
            continue;
        }
        if entry.path().is_dir() {
            collect(root, &path, ignored, found);
            continue;
        }
        let others = ["tests/fixtures/", "fuzz/corpus/", ".ci/advisories/crates/"];
        let judged = !others.iter().any(|folder| path.starts_with(folder));
        let text = if judged { fs::read_to_string(entry.path()).ok() } else { None };
        found.push(File { path, text: text.unwrap_or_default() });
    }
}
