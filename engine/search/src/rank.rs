//! Scores how well a name matches a query. Pure.
//!
//! | score     | every word of the query is ...                                         |
//! | --------- | ---------------------------------------------------------------------- |
//! | 1,000     | together with the others the whole name, without or with its extension |
//! | 900       | together with the others, or alone, a prefix of the name               |
//! | 800       | in the name, at the start of a word                                    |
//! | 700       | in the name                                                            |
//! | 600       | in the path, from the folder of the search on                          |
//! | 499, 498  | the start of a word of the name, with one or two typos                 |
//! | up to 400 | a subsequence of the path; scored by nucleo                            |
//!
//! The lowest score of a word decides. For a folder its own name counts: at least one word must be in it, and
//! subsequences only match in it.
//!
//! Guarantees:
//!
//! - a file that has every folded word as a subsequence is found, and so is a folder whose own name has; other names
//!   match only by typos and by words that are in the path verbatim;
//! - typing one more letter moves no name to the top that was not near it: a score of 600 or more was at least as
//!   high without the letter, except for a new score of 1,000; equal scores are ordered independently of the query
//!   (`top_hits.rs`).
//!
//! Non-goals: the source and the order of names.

use std::cmp::Reverse;
use std::ops::Range;

use memchr::memmem::Finder;
use memchr::{memchr, memrchr};
use nucleo::{Config, Matcher, Utf32Str};

use super::candidate::Candidate;
use super::case_fold::{folded, letters};
use super::fuzzy::{FUZZY_CHARS_MAX, FuzzyByteMatcher, FuzzyMatcher};
use super::prefilter::{Prefilter, PrefilterWord, WantedFiles};
use super::top_hits::WorstHit;

const EXACT: u16 = 1_000;
const PREFIX: u16 = 900;
const WORD_START: u16 = 800;
const SUBSTRING: u16 = 700;
const PATH: u16 = 600;
const FUZZY: u16 = 500;
const SUBSEQUENCE_MAX: u16 = 400;

/// Query with scratch memory for matching.
#[derive(Clone)]
pub(super) struct Ranker {
    /// Query words, separated by one space.
    whole: String,
    words: Vec<Word>,
    /// Length of the search folder in the keys and in their folded forms.
    below: usize,
    folded_below: usize,
    matcher: Matcher,
}

#[derive(Clone)]
struct Word {
    finder: Finder<'static>,
    text: String,
    chars: Vec<char>,
    letters: u64,
    /// Number of typos tolerated.
    errors_max: u8,
    /// Fuzzy matcher over characters; `fuzzy_bytes` replaces it for ASCII words.
    fuzzy_chars: Option<FuzzyMatcher<char>>,
    fuzzy_bytes: Option<FuzzyByteMatcher>,
}

/// Candidate, split into its parts.
struct Text<'a> {
    /// Path below the search folder, and its folded form.
    path: &'a str,
    folded: &'a str,
    /// Range of the name in the folded path, without its slash.
    name: Range<usize>,
    is_folder: bool,
    letters: u64,
}

/// Position of a word in the folded path.
enum MatchPosition {
    /// Byte range.
    Bytes(Range<usize>),
    /// Individual characters, counted from `first` on.
    Characters { first: usize, places: Vec<u32> },
}

impl MatchPosition {
    /// Returns whether part of it is in the name.
    fn is_in(&self, text: &Text<'_>) -> bool {
        match self {
            Self::Bytes(bytes) => bytes.end > text.name.start,
            Self::Characters { .. } => true,
        }
    }
}

impl Ranker {
    /// Creates a ranker for a query below a folder; `None` if the query has no word.
    pub(super) fn new(query: &str, folder: &str) -> Option<Self> {
        let words: Vec<Word> = query.split_whitespace().map(Word::new).collect();
        if words.is_empty() {
            return None;
        }
        let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        Some(Self {
            whole: texts.join(" "),
            below: folder.len(),
            folded_below: folded(folder).len(),
            matcher: matcher(),
            words,
        })
    }

    /// Returns the prefilter of the query.
    pub(super) fn prefilter(&self) -> Prefilter {
        Prefilter::new(self.whole.clone(), self.words.iter().map(Word::prefilter).collect())
    }

    /// Returns the files that may be better than a hit, or equal.
    pub(super) fn files_above(worst: &WorstHit) -> WantedFiles {
        let Reverse(chars_max) = worst.name_chars;
        match worst.points {
            _ if worst.is_folder => WantedFiles::None,
            PREFIX.. => WantedFiles::AtStart { chars_max },
            SUBSTRING.. => WantedFiles::InName,
            PATH.. => WantedFiles::InPath { chars_max },
            _ => WantedFiles::All,
        }
    }

    /// Returns the score of a candidate; `None` if it does not match. A score below `points_min` may be too low.
    pub(super) fn score(&mut self, candidate: &Candidate<'_>, points_min: u16) -> Option<u16> {
        let text = self.text(candidate)?;
        self.judge(&text, MatchOutput::Score { min: points_min }, |_| ())
    }

    /// Returns the matching parts of a candidate's key as byte ranges, in order and disjoint.
    pub(super) fn matches(&mut self, candidate: &Candidate<'_>) -> Vec<Range<usize>> {
        let Some(text) = self.text(candidate) else { return Vec::new() };
        // Computed in characters: the folded form has the same number.
        let mut matched = vec![false; text.folded.chars().count()];
        self.judge(&text, MatchOutput::Position, |place| match place {
            MatchPosition::Bytes(bytes) => {
                let from = text.characters_before(bytes.start);
                let to = text.characters_before(bytes.end);
                matched.iter_mut().take(to).skip(from).for_each(mark);
            }
            MatchPosition::Characters { first, places } => {
                for place in places {
                    matched.get_mut(first + place as usize).into_iter().for_each(mark);
                }
            }
        });
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for ((at, letter), _) in
            text.path.char_indices().zip(matched).filter(|(_, matched)| *matched)
        {
            let (start, end) = (self.below + at, self.below + at + letter.len_utf8());
            match ranges.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => ranges.push(start..end),
            }
        }
        ranges
    }

    /// Returns the score of a text, and passes on the position of each word; `None` if it does not match.
    fn judge(
        &mut self,
        text: &Text<'_>,
        wanted: MatchOutput,
        mut found: impl FnMut(MatchPosition),
    ) -> Option<u16> {
        let name = text.folded.get(text.name.clone())?;
        if name.starts_with(&self.whole) {
            let start = text.name.start;
            found(MatchPosition::Bytes(start..start + self.whole.len()));
            return Some(if is_exact(name, &self.whole) { EXACT } else { PREFIX });
        }
        let (mut least, mut is_named) = (PREFIX, !text.is_folder);
        for word in &self.words {
            let (points, place) = word.find(text, &mut self.matcher, wanted)?;
            least = least.min(points);
            is_named |= place.is_in(text);
            found(place);
        }
        if is_named {
            return Some(least);
        }
        let words = self.words.iter();
        let in_name = words.filter_map(|word| word.find_loosely(text, &mut self.matcher, wanted));
        let (points, place) = in_name.max_by_key(|(points, _)| *points)?;
        found(place);
        Some(least.min(points))
    }

    fn text<'a>(&self, candidate: &Candidate<'a>) -> Option<Text<'a>> {
        let path = candidate.key.get(self.below..)?;
        let folded = candidate.folded.get(self.folded_below..)?;
        let end = folded.strip_suffix('/').unwrap_or(folded).len();
        let before = folded.as_bytes().get(..end)?;
        let start = memrchr(b'/', before).map_or(0, |slash| slash + 1);
        let (is_folder, letters) = (end < folded.len(), candidate.letters);
        Some(Text { path, folded, name: start..end, is_folder, letters })
    }
}

/// Whether only the score is needed, above a minimum, or also the position.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MatchOutput {
    Score { min: u16 },
    Position,
}

impl Word {
    fn new(word: &str) -> Self {
        let text = folded(word);
        let chars: Vec<char> = text.chars().collect();
        // Numbers are exact: neither of 2024 and 2025 is a typo of the other.
        let errors_max = match chars.len() {
            _ if !chars.iter().all(|c| c.is_alphabetic()) => 0,
            4..8 => 1,
            8..=FUZZY_CHARS_MAX => 2,
            _ => 0,
        };
        let has_errors = errors_max > 0;
        let bytes = || FuzzyByteMatcher::new(&text, errors_max);
        Self {
            finder: Finder::new(&text).into_owned(),
            letters: letters(&text),
            fuzzy_chars: has_errors.then(|| FuzzyMatcher::new(chars.clone(), errors_max)),
            fuzzy_bytes: (has_errors && text.is_ascii()).then(bytes),
            errors_max,
            chars,
            text,
        }
    }

    fn prefilter(&self) -> PrefilterWord {
        let finder = |piece: &[char]| {
            let piece: String = piece.iter().collect();
            Finder::new(piece.as_bytes()).into_owned()
        };
        let pieces = self.fuzzy_chars.iter().flat_map(|near| near.pieces().map(finder)).collect();
        let (letters, finder) = (self.letters, self.finder.clone());
        // A word with a slash matches partly in the parents of a folder.
        let folder_letters = if self.text.contains('/') { 0 } else { letters };
        PrefilterWord { letters, folder_letters, errors_max: self.errors_max, finder, pieces }
    }

    fn find(
        &self,
        text: &Text<'_>,
        matcher: &mut Matcher,
        wanted: MatchOutput,
    ) -> Option<(u16, MatchPosition)> {
        let lacking = (self.letters & !text.letters).count_ones();
        if lacking > u32::from(self.errors_max) {
            return None;
        }
        if lacking == 0
            && let Some((points, range)) = self.find_whole(text, wanted)
        {
            return Some((points, MatchPosition::Bytes(range)));
        }
        self.find_loosely(text, matcher, wanted)
    }

    /// Finds the word with typos, or else as a subsequence.
    fn find_loosely(
        &self,
        text: &Text<'_>,
        matcher: &mut Matcher,
        wanted: MatchOutput,
    ) -> Option<(u16, MatchPosition)> {
        let is_scattered = self.letters & !text.letters == 0 && self.is_scattered_in(text);
        if is_scattered && matches!(wanted, MatchOutput::Score { min } if min >= FUZZY) {
            return Some((0, MatchPosition::Characters { first: 0, places: Vec::new() }));
        }
        if let Some((errors, range)) = self.find_fuzzy(text) {
            return Some((FUZZY - u16::from(errors), MatchPosition::Bytes(range)));
        }
        is_scattered.then(|| self.find_subsequence(text, matcher, wanted))
    }

    /// Returns whether the word is a subsequence.
    fn is_scattered_in(&self, text: &Text<'_>) -> bool {
        let searched = text.searched();
        if !self.text.is_ascii() {
            let mut letters = searched.chars();
            return self.chars.iter().all(|wanted| letters.any(|letter| letter == *wanted));
        }
        let mut rest = searched.as_bytes();
        self.text.bytes().all(|wanted| {
            let found = memchr(wanted, rest);
            rest = found.and_then(|at| rest.get(at + 1..)).unwrap_or_default();
            found.is_some()
        })
    }

    /// Finds the word verbatim at the position with the highest score: the first such position in the name, or the
    /// last in the path before it.
    fn find_whole(&self, text: &Text<'_>, wanted: MatchOutput) -> Option<(u16, Range<usize>)> {
        let (path, name) = (text.folded.as_bytes(), &text.name);
        // If only a prefix of the name would score enough, any position is sufficient.
        let is_hard = matches!(wanted, MatchOutput::Score { min } if min > WORD_START);
        if is_hard && !text.is_folder {
            let at = self.finder.find(path)?;
            let start = if path.get(name.start..)?.starts_with(self.text.as_bytes()) {
                name.start
            } else {
                at
            };
            let points = if start == name.start { PREFIX } else { PATH };
            return Some((points, start..start + self.text.len()));
        }
        let mut best: Option<(u16, Range<usize>)> = None;
        let mut from = 0;
        // Positions may overlap.
        while let Some(at) = path.get(from..).and_then(|path| self.finder.find(path)) {
            let place = from + at..from + at + self.text.len();
            from = place.start + 1;
            let points = match () {
                _ if place.start < name.start || place.end > name.end => PATH,
                _ if place.start == name.start => PREFIX,
                _ if text.starts_word(place.start) => WORD_START,
                _ => SUBSTRING,
            };
            if points == PREFIX || points == WORD_START {
                return Some((points, place));
            }
            let is_better = |best: &(u16, _)| points > best.0 || (points == PATH && best.0 == PATH);
            if best.as_ref().is_none_or(is_better) {
                best = Some((points, place));
            }
        }
        best
    }

    /// Finds the word with typos at the start of a word of the name.
    fn find_fuzzy(&self, text: &Text<'_>) -> Option<(u8, Range<usize>)> {
        let name = text.folded.get(text.name.clone())?;
        let begin = text.name.start;
        let starts_word = |at: usize| at == 0 || text.starts_word(begin + at);
        if name.is_ascii()
            && let Some(near) = &self.fuzzy_bytes
        {
            let bytes = name.as_bytes();
            let is_start = |at: usize| bytes[at].is_ascii_alphanumeric() && starts_word(at);
            let (errors, place) = near.find(bytes, is_start)?;
            return Some((errors, begin + place.start..begin + place.end));
        }
        let near = self.fuzzy_chars.as_ref()?;
        let (places, chars): (Vec<usize>, Vec<char>) = name.char_indices().unzip();
        let is_start = |at: usize| chars[at].is_alphanumeric() && starts_word(places[at]);
        let (errors, place) = near.find(&chars, is_start)?;
        let byte = |at: usize| begin + places.get(at).copied().unwrap_or(name.len());
        Some((errors, byte(place.start)..byte(place.end)))
    }

    /// Finds the subsequence with the best nucleo score.
    fn find_subsequence(
        &self,
        text: &Text<'_>,
        matcher: &mut Matcher,
        wanted: MatchOutput,
    ) -> (u16, MatchPosition) {
        let (mut room, mut places) = (Vec::new(), Vec::new());
        let searched = text.searched();
        let haystack = characters(searched, &mut room);
        let needle = match haystack {
            Utf32Str::Ascii(_) => Utf32Str::Ascii(self.text.as_bytes()),
            Utf32Str::Unicode(_) if self.text.is_ascii() => Utf32Str::Ascii(self.text.as_bytes()),
            Utf32Str::Unicode(_) => Utf32Str::Unicode(&self.chars),
        };
        let score = match wanted {
            MatchOutput::Score { .. } => matcher.fuzzy_match(haystack, needle),
            MatchOutput::Position => matcher.fuzzy_indices(haystack, needle, &mut places),
        };
        let first = text.characters_before(text.folded.len() - searched.len());
        (score.unwrap_or(0).min(SUBSEQUENCE_MAX), MatchPosition::Characters { first, places })
    }
}

impl Text<'_> {
    /// Returns the text in which subsequences may match: for a folder only its name, because its parents are matched
    /// as folders of their own.
    fn searched(&self) -> &str {
        let start = if self.is_folder { self.name.start } else { 0 };
        self.folded.get(start..).unwrap_or_default()
    }

    /// Returns whether a word starts at this byte of the folded path: a letter or digit after another character, a
    /// capital after a lower-case letter, or a change between letters and digits.
    fn starts_word(&self, at: usize) -> bool {
        let (before, rest) = self.folded.split_at_checked(at).unwrap_or_default();
        let (Some(last), Some(next)) = (before.chars().next_back(), rest.chars().next()) else {
            return true;
        };
        next.is_alphanumeric()
            && (!last.is_alphanumeric()
                || last.is_alphabetic() != next.is_alphabetic()
                || self.is_capital_after_small(at))
    }

    /// Returns whether this byte is a capital after a lower-case letter; only this test needs the original case.
    fn is_capital_after_small(&self, at: usize) -> bool {
        if self.path.is_ascii() {
            let is = |at: Option<usize>, is: fn(&u8) -> bool| {
                at.and_then(|at| self.path.as_bytes().get(at)).is_some_and(is)
            };
            return is(at.checked_sub(1), u8::is_ascii_lowercase)
                && is(Some(at), u8::is_ascii_uppercase);
        }
        let Some(last) = self.characters_before(at).checked_sub(1) else { return false };
        let mut chars = self.path.chars().skip(last);
        chars.next().is_some_and(char::is_lowercase) && chars.next().is_some_and(char::is_uppercase)
    }

    fn characters_before(&self, at: usize) -> usize {
        self.folded.get(..at).map_or(0, |before| before.chars().count())
    }
}

fn is_exact(name: &str, whole: &str) -> bool {
    let stem = name.rfind('.').filter(|dot| *dot > 0).and_then(|dot| name.get(..dot));
    name == whole || stem == Some(whole)
}

fn matcher() -> Matcher {
    let mut config = Config::DEFAULT.match_paths();
    // Both sides are already folded.
    config.normalize = false;
    config.ignore_case = false;
    Matcher::new(config)
}

fn characters<'a>(text: &'a str, room: &'a mut Vec<char>) -> Utf32Str<'a> {
    if text.is_ascii() {
        return Utf32Str::Ascii(text.as_bytes());
    }
    room.extend(text.chars());
    Utf32Str::Unicode(room)
}

fn mark(matched: &mut bool) {
    *matched = true;
}

#[cfg(test)]
mod tests;
