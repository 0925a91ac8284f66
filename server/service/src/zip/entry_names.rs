//! Names of the entries of a zip archive, valid on every system that extracts it.
//!
//! Guarantees: no name is absolute or leads out of the folder of extraction; no segment is a device of Windows or has
//! characters that Windows rejects; names differ in more than case, and no file has the name of a folder, so that
//! extraction overwrites nothing. Non-goals: the order of entries.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use protocol::file_name::split_extension;

/// Names that are in use, as hashes of their lower case.
#[derive(Default)]
pub(super) struct EntryNames {
    hasher: RandomState,
    folders: HashSet<u64>,
    /// Next number for a file of the same name.
    files: HashMap<u64, u32>,
}

/// Devices of Windows, which are no valid file names with any extension.
const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];
/// Devices of Windows that are followed by a digit.
const NUMBERED_DEVICES: [&str; 2] = ["com", "lpt"];

impl EntryNames {
    /// Reserves the folders of a path. To be called for all paths before names are assigned.
    pub(super) fn reserve_folders(&mut self, path: &str) {
        for (end, _) in path.match_indices('/') {
            let folder = self.hash(&portable(&path[..end]));
            self.folders.insert(folder);
        }
    }

    /// Returns the name of the entry for a path: with ` (1)` and so on before the extension if it is in use. `None` if
    /// it is the path itself.
    pub(super) fn assign(&mut self, path: &str) -> Option<Box<str>> {
        if path.ends_with('/') {
            // The marker of an empty folder.
            let name = portable(path);
            return (name != path).then(|| name.into());
        }
        let wanted = portable(path);
        let hash = self.hash(&wanted);
        if !self.folders.contains(&hash) && !self.files.contains_key(&hash) {
            self.files.insert(hash, 1);
            return (wanted != path).then(|| wanted.into());
        }
        let (folder, file_name) = wanted.rsplit_once('/').unwrap_or(("", &wanted));
        let (stem, extension) = split_extension(file_name);
        let folder = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let extension = extension.map_or(String::new(), |it| format!(".{it}"));
        let mut number = self.files.get(&hash).copied().unwrap_or(1);
        loop {
            let name = format!("{folder}{stem} ({number}){extension}");
            number += 1;
            let numbered = self.hash(&name);
            if !self.folders.contains(&numbered) && !self.files.contains_key(&numbered) {
                self.files.insert(hash, number);
                self.files.insert(numbered, 1);
                return Some(name.into());
            }
        }
    }

    fn hash(&self, name: &str) -> u64 {
        self.hasher.hash_one(name.to_lowercase())
    }
}

/// Returns a path with valid segments. Keys have no empty segments, and none of dots.
fn portable(path: &str) -> String {
    let segments: Vec<_> = path.split('/').map(portable_segment).collect();
    segments.join("/")
}

fn portable_segment(segment: &str) -> String {
    let is_valid = |c: char| !c.is_control() && !r#"<>:"|?*\"#.contains(c);
    let mut name: String = segment.chars().map(|c| if is_valid(c) { c } else { '_' }).collect();
    // Windows removes these.
    if name.ends_with(['.', ' ']) {
        name.pop();
        name.push('_');
    }
    let stem_bytes = name.find('.').unwrap_or(name.len());
    if is_device(name[..stem_bytes].trim_end()) {
        name.insert(stem_bytes, '_');
    }
    name
}

fn is_device(stem: &str) -> bool {
    let stem = stem.to_lowercase();
    let has_digit = |rest: &str| {
        let mut rest = rest.chars();
        let digit = rest.next().is_some_and(|c| c.is_ascii_digit() || "¹²³".contains(c));
        digit && rest.next().is_none()
    };
    let is_numbered = |name: &str| stem.strip_prefix(name).is_some_and(has_digit);
    DEVICES.contains(&&*stem) || NUMBERED_DEVICES.into_iter().any(is_numbered)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(paths: &[&str]) -> Vec<String> {
        let mut names = EntryNames::default();
        paths.iter().for_each(|path| names.reserve_folders(path));
        let name = |path: &&str| names.assign(path).map_or((*path).to_owned(), String::from);
        paths.iter().map(name).collect()
    }

    #[test]
    fn zip_names_are_valid_on_windows() {
        for (path, name) in [
            ("a/b.txt", "a/b.txt"),
            ("c:/boot.ini", "c_/boot.ini"),
            ("what?/a|b<c>.txt", "what_/a_b_c_.txt"),
            ("con", "con_"),
            ("Aux.tar.gz", "Aux_.tar.gz"),
            ("com1.txt/lpt².x", "com1_.txt/lpt²_.x"),
            ("console/com/com10", "console/com/com10"),
            ("nul .txt", "nul _.txt"),
            ("dots.../space ", "dots.._/space_"),
            ("\u{85}", "_"),
            ("日本/é.png", "日本/é.png"),
            ("empty/", "empty/"),
        ] {
            assert_eq!(named(&[path]), [name], "{path}");
        }
    }

    #[test]
    fn zip_names_that_differ_only_in_case_are_numbered() {
        let names = named(&["A.png", "a.png", "a.PNG", "a (1).png", "É", "é"]);
        assert_eq!(names, ["A.png", "a (1).png", "a (2).PNG", "a (1) (1).png", "É", "é (1)"]);
    }

    #[test]
    fn zip_file_with_the_name_of_a_folder_is_numbered() {
        assert_eq!(named(&["a", "a (1)/x", "a/b"]), ["a (2)", "a (1)/x", "a/b"]);
        assert_eq!(named(&["A:", "a_/b"]), ["A_ (1)", "a_/b"]);
    }

    #[test]
    fn many_equal_zip_names_are_numbered_in_linear_time() {
        let paths: Vec<String> = (0..1 << 14)
            .map(|it: u32| (0..14).map(|bit| if it >> bit & 1 == 0 { 'a' } else { 'A' }).collect())
            .collect();
        let names = named(&paths.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(names.last().unwrap().ends_with(" (16383)"), "{:?}", names.last());
    }
}
