//! How well a name answers what is looked for. Pure.
//!
//! | points     | every word of the query is ...                                              |
//! | ---------- | --------------------------------------------------------------------------- |
//! | 1,000      | together with the others the name, or the name without its extension        |
//! | 900        | together with the others, or alone, the beginning of the name               |
//! | 800        | in the name, where a word of it begins                                      |
//! | 700        | in the name                                                                 |
//! | 600        | in the path, from the folder of the search on                               |
//! | 499, 498   | the beginning of a word of the name, with a typing error or two             |
//! | up to 400  | in the path letter by letter, in order; nucleo knows how well               |
//!
//! The word that does worst decides. Promises: a name that holds the letters of every word in order, folded, is found;
//! nothing else is, but for typing errors. Never here: which names there are, and their order.

use std::ops::Range;

use memchr::memmem::Finder;
use nucleo_matcher::{Config, Matcher, Utf32Str};

use super::candidate::Candidate;
use super::fold::{folded, letters};
use super::near::{NEAR_CHARS_MAX, Near};

const EXACT: u16 = 1_000;
const PREFIX: u16 = 900;
const WORD_START: u16 = 800;
const SUBSTRING: u16 = 700;
const PATH: u16 = 600;
const NEAR: u16 = 500;
const SCATTERED_MAX: u16 = 400;

/// What is looked for, with the scratch memory for looking.
#[derive(Clone)]
pub(super) struct Ranker {
    /// The words, with one space between.
    whole: String,
    words: Vec<Word>,
    /// How many bytes of the keys are the folder of the search, and of their folded forms.
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
    /// Typing errors that are forgiven,
    errors_max: u8,
    /// and how, among characters and among bytes.
    near_chars: Option<Near<char>>,
    near_bytes: Option<Near<u8>>,
}

/// A candidate, cut to pieces.
struct Text<'a> {
    /// From the folder of the search on, and the folded form.
    path: &'a str,
    folded: &'a str,
    /// Where the name lies in the folded path, without its slash.
    name: Range<usize>,
    letters: u64,
    is_ascii: bool,
}

/// Where a word was found, in the folded path.
enum Place {
    /// Bytes.
    Bytes(Range<usize>),
    /// Characters, one by one.
    Characters(Vec<u32>),
}

impl Ranker {
    /// A ranker for a query below a folder; none when the query holds no word.
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

    /// What tells most names that do not match by their letters.
    pub(super) fn sieve(&self) -> Sieve {
        Sieve(self.words.iter().map(|word| (word.letters, word.errors_max.into())).collect())
    }

    /// The points of a candidate; none when it does not match. Fewer than `points_min` may be told as none at all, 0.
    pub(super) fn rate(&mut self, candidate: &Candidate<'_>, points_min: u16) -> Option<u16> {
        let text = self.text(candidate)?;
        let name = text.folded.get(text.name.clone())?;
        if name.starts_with(&self.whole) {
            return Some(if is_exact(name, &self.whole) { EXACT } else { PREFIX });
        }
        let mut least = PREFIX;
        let wanted = Wanted::Points { min: points_min };
        for word in &self.words {
            let (points, _) = word.find(&text, &mut self.matcher, wanted)?;
            least = least.min(points);
        }
        Some(least)
    }

    /// The parts of a candidate's key that match, in bytes, in order and apart from one another.
    pub(super) fn matches(&mut self, candidate: &Candidate<'_>) -> Vec<Range<usize>> {
        let Some(text) = self.text(candidate) else { return Vec::new() };
        // In characters first: the folded form has as many.
        let mut matched = vec![false; text.folded.chars().count()];
        let name_start = text.characters_before(text.name.start);
        let name = text.folded.get(text.name.clone()).unwrap_or_default();
        if name.starts_with(&self.whole) {
            matched.iter_mut().skip(name_start).take(self.whole.chars().count()).for_each(mark);
        } else {
            for word in &self.words {
                match word.find(&text, &mut self.matcher, Wanted::Place) {
                    Some((_, Place::Bytes(bytes))) => {
                        let from = text.characters_before(bytes.start);
                        let to = text.characters_before(bytes.end);
                        matched.iter_mut().take(to).skip(from).for_each(mark);
                    }
                    Some((_, Place::Characters(places))) => {
                        for place in places {
                            matched.get_mut(place as usize).into_iter().for_each(mark);
                        }
                    }
                    None => {}
                }
            }
        }
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

    fn text<'a>(&self, candidate: &Candidate<'a>) -> Option<Text<'a>> {
        let path = candidate.key.get(self.below..)?;
        let folded = candidate.folded.get(self.folded_below..)?;
        let end = folded.strip_suffix('/').unwrap_or(folded).len();
        let start = folded.get(..end)?.rfind('/').map_or(0, |slash| slash + 1);
        let (name, letters) = (start..end, candidate.letters);
        Some(Text { path, folded, name, letters, is_ascii: path.is_ascii() })
    }
}

/// Lets names through whose letters may do.
pub(super) struct Sieve(Vec<(u64, u32)>);

impl Sieve {
    /// Whether a name with these letters may match.
    pub(super) fn lets_through(&self, letters: u64) -> bool {
        self.0.iter().all(|(wanted, errors_max)| (wanted & !letters).count_ones() <= *errors_max)
    }
}

/// Whether only the points are wanted, and only from some number on, or the place too.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Points { min: u16 },
    Place,
}

impl Word {
    fn new(word: &str) -> Self {
        let text = folded(word);
        let chars: Vec<char> = text.chars().collect();
        // Numbers are meant as they stand: of 2024 and 2025 neither is a mistake for the other.
        let errors_max = match chars.len() {
            _ if !chars.iter().all(|c| c.is_alphabetic()) => 0,
            4..8 => 1,
            8..=NEAR_CHARS_MAX => 2,
            _ => 0,
        };
        let has_errors = errors_max > 0;
        let bytes = || Near::new(text.clone().into_bytes(), errors_max);
        Self {
            finder: Finder::new(&text).into_owned(),
            letters: letters(&text),
            near_chars: has_errors.then(|| Near::new(chars.clone(), errors_max)),
            near_bytes: (has_errors && text.is_ascii()).then(bytes),
            errors_max,
            chars,
            text,
        }
    }

    fn find(&self, text: &Text<'_>, matcher: &mut Matcher, wanted: Wanted) -> Option<(u16, Place)> {
        let lacking = (self.letters & !text.letters).count_ones();
        if lacking > u32::from(self.errors_max) {
            return None;
        }
        if lacking == 0
            && let Some((points, range)) = self.find_whole(text)
        {
            return Some((points, Place::Bytes(range)));
        }
        let is_scattered = lacking == 0 && self.is_scattered_in(text);
        if is_scattered && matches!(wanted, Wanted::Points { min } if min >= NEAR) {
            return Some((0, Place::Characters(Vec::new())));
        }
        if let Some((errors, range)) = self.find_near(text) {
            return Some((NEAR - u16::from(errors), Place::Bytes(range)));
        }
        is_scattered.then(|| self.find_scattered(text, matcher, wanted))
    }

    /// Whether the letters of the word are anywhere in the path, in order.
    fn is_scattered_in(&self, text: &Text<'_>) -> bool {
        let mut path = text.folded.chars();
        self.chars.iter().all(|wanted| path.any(|letter| letter == *wanted))
    }

    /// The word as it is, in the name or else in the path.
    fn find_whole(&self, text: &Text<'_>) -> Option<(u16, Range<usize>)> {
        let name = text.folded.as_bytes().get(text.name.clone())?;
        let range = |at: usize| at..at + self.text.len();
        let mut first = None;
        for at in self.finder.find_iter(name) {
            let place = range(text.name.start + at);
            if at == 0 {
                return Some((PREFIX, place));
            }
            if text.starts_word(place.start) {
                return Some((WORD_START, place));
            }
            first = first.or(Some(place));
        }
        if let Some(place) = first {
            return Some((SUBSTRING, place));
        }
        Some((PATH, range(text.folded.rfind(&self.text)?)))
    }

    /// The word with typing errors, where a word of the name begins.
    fn find_near(&self, text: &Text<'_>) -> Option<(u8, Range<usize>)> {
        let name = text.folded.get(text.name.clone())?;
        let begin = text.name.start;
        let starts_word = |at: usize| at == 0 || text.starts_word(begin + at);
        if name.is_ascii() {
            let bytes = name.as_bytes();
            let is_start = |at: usize| bytes[at].is_ascii_alphanumeric() && starts_word(at);
            let (errors, place) = self.near_bytes.as_ref()?.find(bytes, is_start)?;
            return Some((errors, begin + place.start..begin + place.end));
        }
        let near = self.near_chars.as_ref()?;
        let (places, chars): (Vec<usize>, Vec<char>) = name.char_indices().unzip();
        let is_start = |at: usize| chars[at].is_alphanumeric() && starts_word(places[at]);
        let (errors, place) = near.find(&chars, is_start)?;
        let byte = |at: usize| begin + places.get(at).copied().unwrap_or(name.len());
        Some((errors, byte(place.start)..byte(place.end)))
    }

    /// The letters of the word where nucleo likes them best.
    fn find_scattered(
        &self,
        text: &Text<'_>,
        matcher: &mut Matcher,
        wanted: Wanted,
    ) -> (u16, Place) {
        let (mut room, mut places) = (Vec::new(), Vec::new());
        let haystack = characters(text.folded, &mut room);
        let needle = match haystack {
            Utf32Str::Ascii(_) => Utf32Str::Ascii(self.text.as_bytes()),
            Utf32Str::Unicode(_) if self.text.is_ascii() => Utf32Str::Ascii(self.text.as_bytes()),
            Utf32Str::Unicode(_) => Utf32Str::Unicode(&self.chars),
        };
        let score = match wanted {
            Wanted::Points { .. } => matcher.fuzzy_match(haystack, needle),
            Wanted::Place => matcher.fuzzy_indices(haystack, needle, &mut places),
        };
        (score.unwrap_or(0).min(SCATTERED_MAX), Place::Characters(places))
    }
}

impl Text<'_> {
    /// Whether a word begins at this byte of the folded path: a letter or digit after something else, a capital after a
    /// small letter, a digit after a letter or the other way round.
    fn starts_word(&self, at: usize) -> bool {
        let (last, next) = if self.is_ascii {
            let byte = |at: usize| self.path.as_bytes().get(at).map(|byte| char::from(*byte));
            (at.checked_sub(1).and_then(byte), byte(at))
        } else {
            let count = self.characters_before(at);
            let mut chars = self.path.chars().skip(count.saturating_sub(1));
            (chars.next().filter(|_| count > 0), chars.next())
        };
        let (Some(last), Some(next)) = (last, next) else { return true };
        next.is_alphanumeric()
            && (!last.is_alphanumeric()
                || (last.is_lowercase() && next.is_uppercase())
                || last.is_alphabetic() != next.is_alphabetic())
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
    // Both sides come folded.
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
