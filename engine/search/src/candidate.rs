//! Candidate name and the folders that it implies.
//!
//! Non-goals: the source of names, matching.

use memchr::{memchr_iter, memrchr};

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

    /// Returns whether it is a folder.
    pub(super) fn is_folder(&self) -> bool {
        self.key.ends_with('/')
    }

    /// Returns the folders of the key that are longer than `known` bytes.
    pub(super) fn folders(&self, known: usize) -> impl Iterator<Item = Candidate<'a>> + use<'a> {
        let &Candidate { key, folded, .. } = self;
        // A slash folds to a slash, and no other character does.
        let slashes = memchr_iter(b'/', key.as_bytes()).zip(memchr_iter(b'/', folded.as_bytes()));
        slashes.filter(move |(slash, _)| *slash >= known).map(move |(slash, folded_slash)| {
            let folded = folded.get(..=folded_slash).unwrap_or_default();
            Candidate {
                key: key.get(..=slash).unwrap_or_default(),
                folded,
                letters: letters(folded),
            }
        })
    }
}

/// Folder whose names become candidates one after the other.
#[derive(Default)]
pub(super) struct CandidateFolder {
    key: String,
    folded: String,
    length: usize,
    folded_length: usize,
}

impl CandidateFolder {
    /// Continues with the names of another folder. Returns its folded form.
    pub(super) fn enter(&mut self, folder: &str) -> &str {
        self.key.clear();
        self.key.push_str(folder);
        self.length = self.key.len();
        self.folded.clear();
        fold_onto(&mut self.folded, folder);
        self.folded_length = self.folded.len();
        &self.folded
    }

    /// Returns a candidate in the folder, from its name, and from the letter set of the whole key.
    pub(super) fn candidate(&mut self, name: &str, folded: &str, letters: u64) -> Candidate<'_> {
        self.key.truncate(self.length);
        self.key.push_str(name);
        self.folded.truncate(self.folded_length);
        self.folded.push_str(folded);
        Candidate { key: &self.key, folded: &self.folded, letters }
    }
}

/// Folders seen so far, for names in index order.
pub(super) struct Folders {
    /// Length of the search folder in the keys.
    below: usize,
    last: String,
}

impl Folders {
    /// Creates the state below a folder, after a name in the folder `last`.
    pub(super) fn new(below: &str, last: &str) -> Self {
        Self { below: below.len(), last: last.to_owned() }
    }

    /// Returns the folders that first occur with this name.
    pub(super) fn enter<'a>(
        &mut self,
        name: &Candidate<'a>,
    ) -> impl Iterator<Item = Candidate<'a>> + use<'a> {
        name.folders(self.known(name.key))
    }

    /// Returns the length of the longest folder of a key that is not new. The content of a folder is contiguous, so a
    /// folder that does not contain the previous key is new.
    fn known(&mut self, key: &str) -> usize {
        let inside = folder_of(key);
        if inside == self.last {
            return inside.len();
        }
        let shared = shared_folder_bytes(inside, &self.last);
        self.last.clear();
        self.last.push_str(inside);
        shared.max(self.below)
    }
}

/// Returns the length of the longest folder that contains both keys.
pub(super) fn shared_folder_bytes(key: &str, other: &str) -> usize {
    let same = key.bytes().zip(other.bytes()).take_while(|(one, other)| one == other);
    let same = key.as_bytes().get(..same.count()).unwrap_or_default();
    memrchr(b'/', same).map_or(0, |slash| slash + 1)
}

/// Returns the folder of a key; for a marker, the folder that it marks.
pub(super) fn folder_of(key: &str) -> &str {
    let end = memrchr(b'/', key.as_bytes()).map_or(0, |slash| slash + 1);
    key.get(..end).unwrap_or_default()
}
