//! A name to be judged, and the folders that names imply.
//!
//! Never here: where names come from, what matches.

use super::fold::{fold_onto, letters};

/// A name to be judged.
pub(super) struct Candidate<'a> {
    /// The whole key; that of a folder ends in `/`.
    pub(super) key: &'a str,
    /// Its folded form.
    pub(super) folded: &'a str,
    /// The letters of that.
    pub(super) letters: u64,
}

impl<'a> Candidate<'a> {
    /// A key as a candidate; `folded` is room for its folded form.
    pub(super) fn new(key: &'a str, folded: &'a mut String) -> Self {
        folded.clear();
        fold_onto(folded, key);
        Self { key, folded, letters: letters(folded) }
    }

    /// The same, where the letters are known.
    pub(super) fn with_letters(key: &'a str, letters: u64, folded: &'a mut String) -> Self {
        folded.clear();
        fold_onto(folded, key);
        Self { key, folded, letters }
    }
}

/// The folders that were met so far, of names that come in the order of the index.
pub(super) struct Folders {
    /// How many bytes of the keys are the folder of the search.
    below: usize,
    last: String,
}

impl Folders {
    /// Below this folder, after a name that lies in `last`.
    pub(super) fn new(below: &str, last: &str) -> Self {
        Self { below: below.len(), last: last.to_owned() }
    }

    /// The folders that are met first with a key. What lies in a folder lies together: where one begins that the last
    /// key was not in, it is met first.
    pub(super) fn enter<'a>(&mut self, key: &'a str) -> impl Iterator<Item = &'a str> + use<'a> {
        let inside = folder_of(key);
        let ends = inside.match_indices('/').map(|(slash, _)| slash + 1);
        let was_in = |end: usize| inside.get(..end).is_some_and(|path| self.last.starts_with(path));
        let known = match inside == self.last {
            true => inside.len(),
            false => {
                ends.clone().take_while(|end| was_in(*end)).last().unwrap_or(0).max(self.below)
            }
        };
        if known < inside.len() || self.last.len() != inside.len() {
            self.last.clear();
            self.last.push_str(inside);
        }
        ends.filter(move |end| *end > known).map(move |end| inside.get(..end).unwrap_or_default())
    }
}

/// The folder that a key lies in; a marker lies in the folder that it marks.
pub(super) fn folder_of(key: &str) -> &str {
    let end = key.rfind('/').map_or(0, |slash| slash + 1);
    key.get(..end).unwrap_or_default()
}
