//! A name to be judged, and the folders that names imply.
//!
//! Never here: where names come from, what matches.

use std::ops::ControlFlow;

use memchr::memrchr;

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

    /// Shows the folders that are met first with a name, and then the name, unless it marks the folder that it lies in.
    pub(super) fn show<E>(
        &mut self,
        name: &Candidate<'_>,
        visit: &mut impl FnMut(&Candidate<'_>) -> Result<ControlFlow<()>, E>,
    ) -> Result<ControlFlow<()>, E> {
        for folder in self.enter(name.key) {
            // A slash is one in the folded form too, and nothing else is.
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

    /// The folders that are met first with a key. What lies in a folder lies together: where one begins that the last
    /// key was not in, it is met first.
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

/// The folder that a key lies in; a marker lies in the folder that it marks.
pub(super) fn folder_of(key: &str) -> &str {
    let end = memrchr(b'/', key.as_bytes()).map_or(0, |slash| slash + 1);
    key.get(..end).unwrap_or_default()
}
