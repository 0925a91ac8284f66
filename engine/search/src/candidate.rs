//! Candidate name and the folders that it implies.
//!
//! Non-goals: the source of names, matching.

use std::ops::ControlFlow;

use memchr::memrchr;

use super::case_fold::{fold_onto, letters};

/// Name to be matched.
pub(super) struct Candidate<'a> {
    /// Whole key; that of a folder ends in `/`.
    pub(super) key: &'a str,
    /// Folded form of the key.
    pub(super) folded: &'a str,
    /// Letter set of the folded form.
    pub(super) letters: u64,
}

impl<'a> Candidate<'a> {
    /// Creates a candidate; `folded` is the buffer of its folded form.
    pub(super) fn new(key: &'a str, folded: &'a mut String) -> Self {
        folded.clear();
        fold_onto(folded, key);
        Self { key, folded, letters: letters(folded) }
    }
}

/// Folders seen so far, for names in index order.
pub(super) struct Folders {
    /// Length of the search folder in the keys.
    below: usize,
    last: String,
}

impl Folders {
    /// Creates the state below a folder, after the name `last`.
    pub(super) fn new(below: &str, last: &str) -> Self {
        Self { below: below.len(), last: last.to_owned() }
    }

    /// Visits the folders that first occur with this name, and then the name itself, unless it is a folder marker.
    pub(super) fn show<E>(
        &mut self,
        name: &Candidate<'_>,
        visit: &mut impl FnMut(&Candidate<'_>) -> Result<ControlFlow<()>, E>,
    ) -> Result<ControlFlow<()>, E> {
        for folder in self.enter(name.key) {
            // A slash folds to a slash, and no other character does.
            let depth = folder.matches('/').count();
            let end =
                name.folded.match_indices('/').nth(depth - 1).map_or(0, |(slash, _)| slash + 1);
            let folded = name.folded.get(..end).unwrap_or_default();
            if visit(&Candidate { key: folder, folded, letters: letters(folded) })?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        if name.key.ends_with('/') { Ok(ControlFlow::Continue(())) } else { visit(name) }
    }

    /// Returns the folders that first occur with a key. The content of a folder is contiguous, so a folder that does
    /// not contain the previous key is new.
    fn enter<'a>(&mut self, key: &'a str) -> impl Iterator<Item = &'a str> + use<'a> {
        let inside = folder_of(key);
        let mut known = inside.len();
        if inside != self.last {
            let same =
                inside.bytes().zip(self.last.bytes()).take_while(|(one, other)| one == other);
            let same = inside.as_bytes().get(..same.count()).unwrap_or_default();
            let shared = same.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
            known = shared.max(self.below);
            self.last.clear();
            self.last.push_str(inside);
        }
        let new = inside.get(known..).unwrap_or_default().match_indices('/');
        new.map(move |(slash, _)| inside.get(..=known + slash).unwrap_or_default())
    }
}

/// Returns the folder of a key; for a marker, the folder that it marks.
pub(super) fn folder_of(key: &str) -> &str {
    let end = memrchr(b'/', key.as_bytes()).map_or(0, |slash| slash + 1);
    key.get(..end).unwrap_or_default()
}
