//! Block of consecutive names: the unit in which a name list stores, tests and folds names.
//!
//! Each folder is stored once for all consecutive names in it.
//!
//! Guarantees: immutable; the text of a block is only read if one of its names or folders passes the letter test.
//! Non-goals: the order of names, and matching.

use std::ops::Range;

use engine::limits::KEY_BYTES_MAX;

use super::super::candidate::{folder_of, shared_folder_bytes};
use super::super::case_fold::{fold_onto, folded, letters};
use super::super::prefilter::{Prefilter, Survivor};

/// Memory overhead of a block: its fields, its entry in the map, and its first key.
const OVERHEAD_BYTES: usize = 288;

// Lengths are stored in two bytes.
const _: () = assert!(KEY_BYTES_MAX <= u16::MAX as usize);

/// Key with the letter set of its folded form.
pub(super) type Name<'a> = (&'a str, u64);

/// Block of consecutive names.
pub(super) struct Block {
    /// Names without their folders, one after the other.
    text: Box<str>,
    lengths: Box<[u16]>,
    /// Folders of the runs, one after the other.
    folder_text: Box<str>,
    runs: Box<[Run]>,
    /// Letter set of each key, then one of each run: that of the folders that it opens, without their parents.
    letters: Box<[u64]>,
}

/// Consecutive names in one folder.
struct Run {
    /// Number of the first name in the block.
    start: u16,
    /// Bytes of the longest part of the folder that contains the name before the run. 0 for the first run of a block.
    known: u16,
    /// End of the folder in `folder_text`.
    folder_end: u32,
}

/// Folder of consecutive names.
pub(super) struct FolderRun<'a> {
    /// Whole path.
    pub(super) folder: &'a str,
    /// Bytes of the longest part that contains the name before the run; `None` for the first run of a block.
    pub(super) known: Option<usize>,
}

/// Keys of a block, with the letter sets of their folded forms.
pub(super) struct BlockKeys {
    text: String,
    names: Vec<(Range<usize>, u64)>,
}

impl BlockKeys {
    pub(super) fn iter(&self) -> impl Iterator<Item = Name<'_>> {
        let key = |place: &Range<usize>| self.text.get(place.clone()).unwrap_or_default();
        self.names.iter().map(move |(place, letters)| (key(place), *letters))
    }
}

impl Block {
    pub(super) fn of(names: &[Name<'_>]) -> Self {
        let (mut text, mut folder_text) = (String::new(), String::new());
        let mut lengths = Vec::with_capacity(names.len());
        let mut runs: Vec<Run> = Vec::new();
        let mut sets: Vec<u64> = names.iter().map(|(_, letters)| *letters).collect();
        let mut before = None;
        for (key, _) in names {
            let folder = folder_of(key);
            if before != Some(folder) {
                let known = shared_folder_bytes(folder, before.unwrap_or_default());
                sets.push(letters(&folded(folder.get(known..).unwrap_or_default())));
                folder_text.push_str(folder);
                let (start, known) = (lengths.len() as u16, known as u16);
                runs.push(Run { start, known, folder_end: folder_text.len() as u32 });
            }
            let name = key.get(folder.len()..).unwrap_or_default();
            text.push_str(name);
            lengths.push(name.len() as u16);
            before = Some(folder);
        }
        Self {
            text: text.into(),
            lengths: lengths.into(),
            folder_text: folder_text.into(),
            runs: runs.into(),
            letters: sets.into(),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.lengths.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.text.len()
            + size_of_val(&*self.lengths)
            + self.folder_text.len()
            + size_of_val(&*self.runs)
            + size_of_val(&*self.letters)
            + OVERHEAD_BYTES
    }

    /// Returns a name without its folder.
    pub(super) fn name(&self, place: Range<usize>) -> &str {
        self.text.get(place).unwrap_or_default()
    }

    /// Returns the range of each name in the text.
    fn places(&self) -> impl Iterator<Item = Range<usize>> {
        let mut end = 0;
        self.lengths.iter().map(move |length| {
            let start = end;
            end += usize::from(*length);
            start..end
        })
    }

    pub(super) fn run(&self, run: usize) -> FolderRun<'_> {
        let before = run.checked_sub(1).and_then(|before| self.runs.get(before));
        let start = before.map_or(0, |before| before.folder_end as usize);
        let (end, known) = self
            .runs
            .get(run)
            .map_or((start, 0), |run| (run.folder_end as usize, run.known.into()));
        let folder = self.folder_text.get(start..end).unwrap_or_default();
        FolderRun { folder, known: before.map(|_| known) }
    }

    pub(super) fn first_key(&self) -> String {
        [self.run(0).folder, self.name(self.places().next().unwrap_or_default())].concat()
    }

    pub(super) fn last_folder(&self) -> &str {
        self.run(self.runs.len().saturating_sub(1)).folder
    }

    pub(super) fn keys(&self) -> BlockKeys {
        let (mut text, mut names, mut run) = (String::new(), Vec::with_capacity(self.count()), 0);
        for (name, (place, letters)) in self.places().zip(&self.letters).enumerate() {
            run = self.run_of(name, run);
            let start = text.len();
            text.push_str(self.run(run).folder);
            text.push_str(self.name(place));
            names.push((start..text.len(), *letters));
        }
        BlockKeys { text, names }
    }

    /// Returns the run of a name, at or after another run.
    fn run_of(&self, name: usize, mut run: usize) -> usize {
        while self.runs.get(run + 1).is_some_and(|next| usize::from(next.start) <= name) {
            run += 1;
        }
        run
    }

    /// Collects the names that may match, with their folded forms in `folded`.
    pub(super) fn pick(
        &self,
        prefilter: &mut Prefilter,
        picks: &mut Vec<Survivor>,
        folded: &mut String,
    ) {
        self.test_letters(prefilter, picks);
        if !picks.is_empty() {
            self.fold(picks, folded);
            prefilter.retain_candidates(folded, picks);
        }
    }

    /// Collects the names that pass the letter test of a prefilter, not folded yet.
    fn test_letters(&self, prefilter: &mut Prefilter, picks: &mut Vec<Survivor>) {
        let (names, opened) = self.letters.split_at(self.count());
        let passed = prefilter.test_letters(names, opened);
        if !passed.names.contains(&true) && !passed.folders.contains(&true) {
            return;
        }
        let may_open = self.runs.iter().zip(passed.folders).filter(|(_, may_open)| **may_open);
        let mut openers = may_open.map(|(run, _)| usize::from(run.start)).peekable();
        let mut run = 0;
        let names = self.places().zip(names).zip(passed.names).enumerate();
        for (name, ((key, letters), is_wanted)) in names {
            let (letters, is_wanted) = (*letters, *is_wanted);
            let may_open = openers.next_if_eq(&name).is_some();
            let opens_folder = may_open && passed.passes_path(letters);
            let is_wanted = is_wanted
                && passed.passes_start(self.text.as_bytes().get(key.clone()).unwrap_or_default());
            if is_wanted || opens_folder {
                run = self.run_of(name, run);
                picks.push(Survivor { run, key, folded: 0..0, letters, opens_folder, is_wanted });
            }
        }
    }

    /// Folds these names; all of the block at once if that is cheaper.
    fn fold(&self, picks: &mut [Survivor], folded: &mut String) {
        folded.clear();
        if picks.len() > self.count() / 8 && self.text.is_ascii() {
            fold_onto(folded, &self.text);
            picks.iter_mut().for_each(|pick| pick.folded = pick.key.clone());
            return;
        }
        for pick in picks {
            let start = folded.len();
            fold_onto(folded, self.name(pick.key.clone()));
            pick.folded = start..folded.len();
        }
    }
}
