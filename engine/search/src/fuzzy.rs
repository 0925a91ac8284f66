//! Fuzzy matching of words with bounded edit distance.
//!
//! Guarantees: the cost of a match is bounded by the word length and the number of errors allowed, for any length of
//! text.
//! Non-goals: the choice of the words that may have errors.
//!
//! Own code: `strsim` compares whole words, allocates for each pair, and does not stop above a number of errors.

use std::ops::Range;

use memchr::memmem::Finder;

/// Maximum length of a word that may have errors.
pub(super) const FUZZY_CHARS_MAX: usize = 32;

/// Word that is matched with errors.
#[derive(Clone)]
pub(super) struct FuzzyMatcher<T> {
    word: Vec<T>,
    errors_max: u8,
    pieces: Vec<Seed>,
}

/// Piece of a word. An error affects one piece, or the last letter of one and the first of the next. With one piece
/// more than errors, and all except the last without their last letter, at least one piece matches exactly, shifted
/// by at most as many letters as there are errors.
#[derive(Clone)]
struct Seed {
    of_word: Range<usize>,
    moved_max: usize,
}

impl<T: Copy + PartialEq> FuzzyMatcher<T> {
    /// Creates a matcher. The word has at least two letters per piece, and at most [`FUZZY_CHARS_MAX`].
    pub(super) fn new(word: Vec<T>, errors_max: u8) -> Self {
        let count = usize::from(errors_max) + 1;
        let start = |piece: usize| (piece * word.len()).div_ceil(count);
        let piece = |at: usize| Seed {
            of_word: start(at)..start(at + 1) - usize::from(at + 1 < count),
            moved_max: if at == 0 { 0 } else { errors_max.into() },
        };
        Self { pieces: (0..count).map(piece).collect(), word, errors_max }
    }

    /// Returns the pieces: a text that contains none of them cannot match.
    pub(super) fn pieces(&self) -> impl Iterator<Item = &[T]> {
        self.pieces.iter().map(|piece| self.word.get(piece.of_word.clone()).unwrap_or_default())
    }

    /// Returns the position with the fewest errors, and their number: the first such position at the start of a
    /// word.
    pub(super) fn find(
        &self,
        text: &[T],
        starts_word: impl Fn(usize) -> bool,
    ) -> Option<(u8, Range<usize>)> {
        let places = (0..text.len()).filter(|at| self.may_stand(text, *at) && starts_word(*at));
        let found = places.filter_map(|at| {
            let (errors, length) =
                edit_distance_match(&self.word, text.get(at..)?, self.errors_max)?;
            Some((errors, at..at + length))
        });
        found.min_by_key(|(errors, _)| *errors)
    }

    fn may_stand(&self, text: &[T], at: usize) -> bool {
        self.pieces.iter().any(|Seed { of_word, moved_max }| {
            let Some(piece) = self.word.get(of_word.clone()) else { return true };
            let first = (at + of_word.start).saturating_sub(*moved_max);
            let last = at + of_word.start + moved_max;
            (first..=last).any(|from| text.get(from..from + piece.len()) == Some(piece))
        })
    }
}

/// Byte-based matcher for ASCII words, whose pieces are searched with vector instructions.
#[derive(Clone)]
pub(super) struct FuzzyByteMatcher {
    near: FuzzyMatcher<u8>,
    pieces: Vec<Finder<'static>>,
}

impl FuzzyByteMatcher {
    /// Creates a matcher like [`FuzzyMatcher::new`].
    pub(super) fn new(word: &str, errors_max: u8) -> Self {
        let near = FuzzyMatcher::new(word.as_bytes().to_vec(), errors_max);
        let pieces = near.pieces().map(|piece| Finder::new(piece).into_owned()).collect();
        Self { near, pieces }
    }

    /// Searches like [`FuzzyMatcher::find`].
    pub(super) fn find(
        &self,
        text: &[u8],
        starts_word: impl Fn(usize) -> bool,
    ) -> Option<(u8, Range<usize>)> {
        let FuzzyMatcher { word, errors_max, pieces } = &self.near;
        let mut best: Option<(u8, Range<usize>)> = None;
        for (Seed { of_word, moved_max }, finder) in pieces.iter().zip(&self.pieces) {
            let mut from = 0;
            while let Some(at) = text.get(from..).and_then(|text| finder.find(text)) {
                let found = from + at;
                from = found + 1;
                let first = found.saturating_sub(of_word.start + moved_max);
                let end = (found + moved_max + 1).saturating_sub(of_word.start).min(text.len());
                for place in (first..end).filter(|place| starts_word(*place)) {
                    let Some(text) = text.get(place..) else { break };
                    let Some((errors, length)) = edit_distance_match(word, text, *errors_max)
                    else {
                        continue;
                    };
                    if best.as_ref().is_none_or(|it| (errors, place) < (it.0, it.1.start)) {
                        best = Some((errors, place..place + length));
                    }
                }
            }
        }
        best
    }
}

/// Returns the smallest edit distance between `word` and a prefix of `text`, and the length of that prefix; `None`
/// above `errors_max`. An error is an inserted, missing or wrong letter, or two swapped neighbours.
fn edit_distance_match<T: Copy + PartialEq>(
    word: &[T],
    text: &[T],
    errors_max: u8,
) -> Option<(u8, usize)> {
    type Row = [u8; FUZZY_CHARS_MAX + 1];
    let width = word.len();
    if width > FUZZY_CHARS_MAX {
        return None;
    }
    // Each row contains the distances between the text so far and every prefix of the word.
    let mut before: Row = [u8::MAX / 2; FUZZY_CHARS_MAX + 1];
    let mut above: Row = std::array::from_fn(|at| at as u8);
    let mut best = (above[width] <= errors_max).then_some((above[width], 0));
    for (row, letter) in text.iter().enumerate().take(width + usize::from(errors_max)) {
        let mut current: Row = [u8::MAX / 2; FUZZY_CHARS_MAX + 1];
        current[0] = (row + 1) as u8;
        let mut least = current[0];
        for (at, wanted) in word.iter().enumerate() {
            let wrong = above[at] + u8::from(wanted != letter);
            let mut errors = wrong.min(above[at + 1] + 1).min(current[at] + 1);
            if at > 0 && row > 0 && word[at - 1] == *letter && text[row - 1] == *wanted {
                errors = errors.min(before[at - 1] + 1);
            }
            current[at + 1] = errors;
            least = least.min(errors);
        }
        let errors = current[width];
        if errors <= errors_max && best.is_none_or(|(fewest, _)| errors < fewest) {
            best = Some((errors, row + 1));
        }
        if least > errors_max {
            break;
        }
        before = std::mem::replace(&mut above, current);
    }
    best
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn fuzzy_seeds_miss_no_match(
            word in "[abc]{4,14}", errors in 1..3_u8, edits in proptest::collection::vec((0..4_u8, 0..16_usize, 0..3_usize), 0..3)
        ) {
            let mut text: Vec<u8> = word.bytes().collect();
            for (kind, at, letter) in edits {
                let (at, letter) = (at % text.len(), b"abc"[letter]);
                match kind {
                    0 => text.insert(at, letter),
                    1 if text.len() > 1 => _ = text.remove(at),
                    2 => text[at] = letter,
                    _ if at > 0 => text.swap(at - 1, at),
                    _ => {}
                }
            }
            text.extend_from_slice(b"cab");
            let errors = if word.len() < 8 { 1 } else { errors };
            let all = FuzzyMatcher::new(word.bytes().collect(), errors);
            let best = edit_distance_match(word.as_bytes(), &text, errors).map(|(errors, length)| (errors, 0..length));
            prop_assert_eq!(all.find(&text, |at| at == 0), best);
        }

        #[test]
        fn fuzzy_byte_matcher_agrees_with_char_matcher(
            word in "[ab]{4,12}", text in "[ab]{0,30}", errors in 1..3_u8, starts in any::<u64>()
        ) {
            let starts_word = |at: usize| starts >> at & 1 == 1;
            let near = FuzzyMatcher::new(word.bytes().collect(), errors);
            let bytes = FuzzyByteMatcher::new(&word, errors);
            let text = text.as_bytes();
            let wanted = near.find(text, starts_word);
            prop_assert_eq!(bytes.find(text, starts_word), wanted);
        }
    }

    fn errors(word: &str, text: &str, max: u8) -> Option<(u8, usize)> {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        edit_distance_match(&chars(word), &chars(text), max)
    }

    #[test]
    fn edit_distance_counts_transposition_as_one() {
        for (word, text) in [
            ("house", "hause.png"),
            ("house", "hose.png"),
            ("house", "housee"),
            ("house", "huose.png"),
            ("hous", "house"),
            ("xhouse", "house"),
        ] {
            let found = errors(word, text, 1);
            let wanted = if text.starts_with(word) { 0 } else { 1 };
            assert_eq!(found.map(|(errors, _)| errors), Some(wanted), "{word} {text}");
        }
        assert_eq!(errors("house", "house_1", 1), Some((0, 5)));
        assert_eq!(errors("huose", "house_1", 1), Some((1, 5)));
    }

    #[test]
    fn fuzzy_match_rejects_too_many_errors() {
        assert_eq!(errors("house", "horse car", 0), None);
        assert_eq!(errors("house", "mouth", 1), None);
        assert_eq!(errors("vacation", "vcaatoin", 1), None);
        assert_eq!(errors("vacation", "vcaation2", 2), Some((1, 8)));
        assert_eq!(errors("vacation", "vcaatoin", 2), Some((2, 8)));
        assert_eq!(errors("house", "", 2), None);
        assert_eq!(errors(&"x".repeat(FUZZY_CHARS_MAX + 1), &"x".repeat(99), 2), None);
        assert_eq!(errors(&"x".repeat(FUZZY_CHARS_MAX), &"x".repeat(99), 2), Some((0, 32)));
    }
}
