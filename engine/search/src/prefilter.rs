//! Prefilter: discards names that cannot match, many at a time.
//!
//! The first test compares letter sets of names, and of the folders that they open; for words that may have typos, the
//! second searches for pieces of the word, one of which must match exactly. Once only files of a minimum score are
//! wanted, others search for the first word itself. The remaining names are matched one by one.
//!
//! Guarantees: no matching name of that score is discarded, and no name with a matching folder.
//! Non-goals: the source of names, matching.

use std::ops::Range;

use memchr::memmem::Finder;
use memchr::{memchr, memrchr};

use super::candidate::Candidate;

/// Name that passed.
#[derive(Clone, Debug)]
pub(super) struct Survivor {
    /// Run of names in the same folder that it belongs to.
    pub(super) run: usize,
    /// Range of the name, without its folder, in the text of its block.
    pub(super) key: Range<usize>,
    /// Range of its folded form in the folded text.
    pub(super) folded: Range<usize>,
    /// Letter set of the folded form of its whole key.
    pub(super) letters: u64,
    /// Whether it opens a folder that may match.
    pub(super) opens_folder: bool,
    /// Whether it is wanted itself, not only its folders.
    pub(super) is_wanted: bool,
}

/// Prefilter of a query.
pub(super) struct Prefilter {
    /// Query words, separated by one space.
    whole: String,
    words: Vec<PrefilterWord>,
    files: WantedFiles,
    /// Scratch memory: the names that pass a test, and the folders.
    marks: Vec<bool>,
    folder_marks: Vec<bool>,
    /// Number of bytes of each word that are a subsequence of the entered folder.
    matched: Vec<usize>,
}

/// Result of the letter test of a block.
pub(super) struct LetterTest<'a> {
    /// Whether each name passes.
    pub(super) names: &'a [bool],
    /// Whether one word of the query may match in the folders that each run opens.
    pub(super) folders: &'a [bool],
    words: &'a [PrefilterWord],
    /// First word, if only names that start with it are wanted.
    start: Option<&'a [u8]>,
}

impl LetterTest<'_> {
    /// Returns whether all words may match in the path of a folder below which a name has this letter set.
    pub(super) fn passes_path(&self, letters: u64) -> bool {
        self.words
            .iter()
            .all(|word| word.lacking(letters).count_ones() <= u32::from(word.errors_max))
    }

    /// Returns whether a name that is not folded may have the start that is wanted.
    pub(super) fn passes_start(&self, name: &[u8]) -> bool {
        let Some(word) = self.start else { return true };
        let start = name.get(..word.len());
        // Other letters may fold to ASCII.
        start.is_some_and(|start| start.eq_ignore_ascii_case(word) || !start.is_ascii())
    }
}

/// Files that are wanted, besides all matching folders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WantedFiles {
    /// All matching files.
    All,
    /// Files with the first word in their name, and files with it in their path whose name is not longer.
    InPath { chars_max: usize },
    /// Files with the first word in their name.
    InName,
    /// Files whose name starts with the first word, if it is not longer, or the query with or without an extension.
    AtStart { chars_max: usize },
    /// None.
    None,
}

/// Requirements of a query word.
pub(super) struct PrefilterWord {
    /// Letter set of the word.
    pub(super) letters: u64,
    /// Letters that a folder must have in its own name, without its parents, if the word matches there.
    pub(super) folder_letters: u64,
    /// Number of letters that may be missing, at most 2.
    pub(super) errors_max: u8,
    /// The word.
    pub(super) finder: Finder<'static>,
    /// Pieces of the word, one of which must be in the name if letters are missing.
    pub(super) pieces: Vec<Finder<'static>>,
}

impl PrefilterWord {
    /// Returns the letters that a name lacks.
    fn lacking(&self, letters: u64) -> u64 {
        self.letters & !letters
    }

    /// Returns how many bytes of the word are a subsequence of a folded text, with `matched` of them before it.
    fn matched_after(&self, mut matched: usize, mut text: &[u8]) -> usize {
        while let Some(wanted) = self.finder.needle().get(matched)
            && let Some(at) = memchr(*wanted, text)
        {
            text = text.get(at + 1..).unwrap_or_default();
            matched += 1;
        }
        matched
    }
}

impl Prefilter {
    /// Creates a prefilter of names that may match all words of a query.
    pub(super) fn new(whole: String, words: Vec<PrefilterWord>) -> Self {
        let (marks, folder_marks, matched) = (Vec::new(), Vec::new(), Vec::new());
        Self { whole, words, files: WantedFiles::All, marks, folder_marks, matched }
    }

    /// Discards other files from now on.
    pub(super) fn want(&mut self, files: WantedFiles) {
        self.files = files;
    }

    /// Tests the letter sets of names, and of the folders that each run of them opens. Without words, all pass.
    pub(super) fn test_letters(&mut self, names: &[u64], folders: &[u64]) -> LetterTest<'_> {
        self.marks.clear();
        self.marks.resize(names.len(), self.files != WantedFiles::None);
        self.folder_marks.clear();
        self.folder_marks.resize(folders.len(), self.words.is_empty());
        for word in &self.words {
            // Other files are only wanted if they have the letters of the first word.
            let errors = if self.files == WantedFiles::All { word.errors_max } else { 0 };
            test_letter_sets(word.letters, errors, names, &mut self.marks, |mark, passes| {
                mark & passes
            });
            let errors = word.errors_max;
            test_letter_sets(
                word.folder_letters,
                errors,
                folders,
                &mut self.folder_marks,
                |mark, passes| mark | passes,
            );
        }
        let start = match (self.files, self.words.first()) {
            (WantedFiles::AtStart { .. }, Some(word)) => {
                Some(word.finder.needle()).filter(|word| word.is_ascii())
            }
            _ => None,
        };
        LetterTest { names: &self.marks, folders: &self.folder_marks, words: &self.words, start }
    }

    /// Discards names that passed the letter test but cannot match, and files that are not wanted. The folded names are
    /// in the text in order.
    pub(super) fn retain_candidates(&mut self, folded: &str, picks: &mut Vec<Survivor>) {
        self.retain_wanted(folded, picks);
        for word in self.words.iter().filter(|word| word.errors_max > 0) {
            // Typos only match in the name of a file or folder.
            let is_certain = |pick: &Survivor| pick.opens_folder || word.lacking(pick.letters) == 0;
            if picks.iter().all(is_certain) {
                continue;
            }
            self.marks.clear();
            self.marks.extend(picks.iter().map(is_certain));
            for piece in &word.pieces {
                mark_holders(piece, folded.as_bytes(), picks, &mut self.marks);
            }
            let mut marks = self.marks.iter();
            picks.retain(|_| marks.next().is_some_and(|mark| *mark));
        }
    }

    /// Discards files whose names show that they are not wanted.
    fn retain_wanted(&mut self, folded: &str, picks: &mut Vec<Survivor>) {
        let Some(word) = self.words.first() else { return };
        self.marks.clear();
        match self.files {
            WantedFiles::All | WantedFiles::InPath { .. } | WantedFiles::None => return,
            WantedFiles::InName => {
                self.marks.resize(picks.len(), false);
                mark_holders(&word.finder, folded.as_bytes(), picks, &mut self.marks);
            }
            WantedFiles::AtStart { chars_max } => self.marks.extend(picks.iter().map(|pick| {
                let name = folded.get(pick.folded.clone()).unwrap_or_default();
                let rest = name.strip_prefix(&self.whole);
                let is_whole = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
                is_whole
                    || name.as_bytes().starts_with(word.finder.needle())
                        && has_chars_at_most(name, chars_max)
            })),
        }
        for (pick, mark) in picks.iter_mut().zip(&self.marks) {
            pick.is_wanted &= mark;
        }
        picks.retain(|pick| pick.is_wanted || pick.opens_folder);
    }

    /// Counts how many bytes of each word are a subsequence of a folder, for [`Prefilter::may_match`].
    pub(super) fn enter(&mut self, folder: &str) {
        self.matched.clear();
        if matches!(self.files, WantedFiles::All | WantedFiles::InPath { .. }) {
            let words = self.words.iter();
            self.matched.extend(words.map(|word| match word.errors_max {
                0 => word.matched_after(0, folder.as_bytes()),
                _ => word.finder.needle().len(),
            }));
        }
    }

    /// Returns whether a file in the entered folder may match: words that may not have typos are subsequences of the
    /// path.
    pub(super) fn may_match(&self, folded_name: &str) -> bool {
        let name = folded_name.as_bytes();
        self.words
            .iter()
            .zip(&self.matched)
            .all(|(word, matched)| word.matched_after(*matched, name) == word.finder.needle().len())
    }

    /// Returns whether a file is wanted, as far as this depends on its path.
    pub(super) fn wants_path(&self, file: &Candidate<'_>) -> bool {
        let (WantedFiles::InPath { chars_max }, Some(word)) = (self.files, self.words.first())
        else {
            return true;
        };
        let path = file.folded.as_bytes();
        let start = memrchr(b'/', path).map_or(0, |slash| slash + 1);
        let name = file.folded.get(start..).unwrap_or_default();
        match word.finder.find(path) {
            None => false,
            Some(_) if has_chars_at_most(name, chars_max) => true,
            Some(at) => at >= start || word.finder.find(name.as_bytes()).is_some(),
        }
    }
}

/// Combines the marks with whether the letter sets lack at most `errors` of these letters.
fn test_letter_sets(
    letters: u64,
    errors: u8,
    sets: &[u64],
    marks: &mut [bool],
    combine: impl Fn(bool, bool) -> bool,
) {
    match errors {
        0 => lacks_at_most::<0>(letters, sets, marks, combine),
        1 => lacks_at_most::<1>(letters, sets, marks, combine),
        _ => lacks_at_most::<2>(letters, sets, marks, combine),
    }
}

/// Compiled to vector instructions.
fn lacks_at_most<const ERRORS: usize>(
    letters: u64,
    sets: &[u64],
    marks: &mut [bool],
    combine: impl Fn(bool, bool) -> bool,
) {
    for (mark, set) in marks.iter_mut().zip(sets) {
        let mut lacking = letters & !set;
        for _ in 0..ERRORS {
            // Removes the lowest bit, if there is one.
            lacking &= lacking.wrapping_sub(1);
        }
        *mark = combine(*mark, lacking == 0);
    }
}

fn has_chars_at_most(text: &str, chars_max: usize) -> bool {
    text.len() <= chars_max || !text.is_ascii() && text.chars().count() <= chars_max
}

/// Marks the names that contain a piece entirely.
fn mark_holders(piece: &Finder<'_>, text: &[u8], picks: &[Survivor], marks: &mut [bool]) {
    let mut from = 0;
    let mut rest = picks.iter().zip(marks).peekable();
    while let Some(at) = text.get(from..).and_then(|text| piece.find(text)) {
        let start = from + at;
        while rest.next_if(|(pick, _)| pick.folded.end <= start).is_some() {}
        let Some((pick, mark)) = rest.peek_mut() else { return };
        let is_inside = start + piece.needle().len() <= pick.folded.end;
        if pick.folded.start > start {
            from = pick.folded.start;
        } else if is_inside {
            **mark = true;
            from = pick.folded.end;
        } else {
            from = start + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::case_fold::{folded, letters};
    use super::*;

    proptest! {
        #[test]
        fn prefilter_drops_no_matching_name(
            names in proptest::collection::vec(("[abc]{1,6}", any::<bool>()), 0..9),
            word in "[abc]{2,4}",
            errors_max in 0..3_u8,
        ) {
            let pieces: Vec<&str> = vec![&word[..1], &word[1..]];
            let word = query_word(letters(&word), errors_max, &word, &pieces);
            let mut prefilter = Prefilter::new(String::new(), vec![word]);
            let mut folded = String::new();
            let mut picks = Vec::new();
            let mut expected = Vec::new();
            for (name, is_asked) in &names {
                let place = folded.len()..folded.len() + name.len();
                folded.push_str(name);
                let letters = letters(name);
                // There are other names between the requested ones.
                if !is_asked || !prefilter.test_letters(&[letters], &[]).names[0] {
                    continue;
                }
                picks.push(survivor(place.clone(), letters, false));
                let is_whole = prefilter.words[0].lacking(letters) == 0;
                if is_whole || pieces.iter().any(|piece| name.contains(piece)) {
                    expected.push(place);
                }
            }
            prefilter.retain_candidates(&folded, &mut picks);
            prop_assert_eq!(picks.into_iter().map(|pick| pick.folded).collect::<Vec<_>>(), expected);
        }

        #[test]
        fn prefilter_drops_no_wanted_file(
            names in proptest::collection::vec(("[abA./]{1,8}", any::<bool>()), 0..9),
            word in "[ab]{1,3}",
        ) {
            for (files, is_wanted) in [
                (WantedFiles::All, (|_, _, _| true) as fn(&str, &str, &str) -> bool),
                (WantedFiles::InPath { chars_max: 3 }, |path, name, word| {
                    name.contains(word) || path.contains(word) && name.len() <= 3
                }),
                (WantedFiles::InName, |_, name, word| name.contains(word)),
                (WantedFiles::AtStart { chars_max: 3 }, |_, name, word| {
                    name.starts_with(word) && (name.len() <= 3 || name == word || name.starts_with(&format!("{word}.")))
                }),
            ] {
                let letters = letters(&word);
                let mut prefilter = Prefilter::new(word.clone(), vec![query_word(letters, 0, &word, &[])]);
                prefilter.want(files);
                let (mut text, mut picks, mut expected) = (String::new(), Vec::new(), Vec::new());
                for (at, (path, opens_folder)) in names.iter().enumerate() {
                    let name = path.rsplit('/').next().unwrap_or_default();
                    let place = text.len()..text.len() + name.len();
                    picks.push(Survivor { run: at, ..survivor(place, letters, *opens_folder) });
                    text.push_str(name);
                    if *opens_folder || is_wanted(&folded(path), &folded(name), &word) {
                        expected.push(at);
                    }
                }
                let test = prefilter.test_letters(&[], &[]);
                picks.retain(|pick| pick.opens_folder || test.passes_start(&text.as_bytes()[pick.key.clone()]));
                prefilter.retain_candidates(&folded(&text), &mut picks);
                picks.retain(|pick| {
                    let path = folded(&names[pick.run].0);
                    pick.opens_folder || prefilter.wants_path(&Candidate { key: &path, folded: &path, letters })
                });
                prop_assert_eq!(picks.iter().map(|pick| pick.run).collect::<Vec<_>>(), expected);
            }
        }

        #[test]
        fn prefilter_allows_one_missing_letter_per_typo(wanted: u64, there: u64, errors_max in 0..3_u8) {
            let word = query_word(wanted, errors_max, "", &[]);
            let is_enough = (wanted & !there).count_ones() <= u32::from(errors_max);
            let mut prefilter = Prefilter::new(String::new(), vec![word]);
            let passed = prefilter.test_letters(&[there], &[there]);
            prop_assert_eq!(passed.names, [is_enough]);
            prop_assert_eq!(passed.folders, [is_enough]);
        }
    }

    fn query_word(letters: u64, errors_max: u8, word: &str, pieces: &[&str]) -> PrefilterWord {
        let finder = |piece: &str| Finder::new(piece).into_owned();
        let pieces = pieces.iter().map(|piece| finder(piece)).collect();
        let finder = finder(word);
        PrefilterWord { letters, folder_letters: letters, errors_max, finder, pieces }
    }

    fn survivor(place: Range<usize>, letters: u64, opens_folder: bool) -> Survivor {
        Survivor {
            run: 0,
            key: place.clone(),
            folded: place,
            letters,
            opens_folder,
            is_wanted: true,
        }
    }
}
