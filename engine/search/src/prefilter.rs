//! Prefilter: discards names that cannot match, many at a time.
//!
//! The first test compares letter sets; for words that may have typos, the second searches for pieces of the word,
//! one of which must match exactly. The remaining names are matched one by one.
//!
//! Guarantees: no matching name is discarded, and no name with a matching folder.
//! Non-goals: the source of names, matching.

use std::ops::Range;

use memchr::memmem::Finder;

/// Name that passed.
#[derive(Clone, Debug)]
pub(super) struct Survivor {
    /// Range of its key in the text of its block.
    pub(super) key: Range<usize>,
    /// Range of its folded form in the folded text.
    pub(super) folded: Range<usize>,
    /// Letter set of the folded form.
    pub(super) letters: u64,
}

/// Prefilter of a query.
pub(super) struct Prefilter {
    words: Vec<PrefilterWord>,
    /// Scratch memory: the names that contain a piece.
    marks: Vec<bool>,
}

/// Requirements of a query word.
pub(super) struct PrefilterWord {
    /// Letter set of the word.
    pub(super) letters: u64,
    /// Number of letters that may be missing.
    pub(super) errors_max: u8,
    /// Pieces of the word, one of which must be in the name if letters are missing.
    pub(super) pieces: Vec<Finder<'static>>,
}

impl PrefilterWord {
    /// Returns the letters that a name lacks.
    fn lacking(&self, letters: u64) -> u64 {
        self.letters & !letters
    }
}

impl Prefilter {
    /// Creates a prefilter of names that may match all of these words.
    pub(super) fn new(words: Vec<PrefilterWord>) -> Self {
        Self { words, marks: Vec::new() }
    }

    /// Returns whether a name with this letter set may match.
    pub(super) fn may_match(&self, letters: u64) -> bool {
        self.words.iter().all(|word| {
            let mut lacking = word.lacking(letters);
            for _ in 0..word.errors_max {
                lacking &= lacking.saturating_sub(1);
            }
            lacking == 0
        })
    }

    /// Discards names that passed the letter test but cannot match. They are in the text in order.
    pub(super) fn retain_candidates(&mut self, folded: &str, picks: &mut Vec<Survivor>) {
        for word in self.words.iter().filter(|word| word.errors_max > 0) {
            if picks.iter().all(|pick| word.lacking(pick.letters) == 0) {
                continue;
            }
            self.marks.clear();
            self.marks.extend(picks.iter().map(|pick| word.lacking(pick.letters) == 0));
            for piece in &word.pieces {
                mark_holders(piece, folded.as_bytes(), picks, &mut self.marks);
            }
            let mut marks = self.marks.iter();
            picks.retain(|_| marks.next().is_some_and(|mark| *mark));
        }
    }
}

/// Marks the names that contain a piece entirely.
fn mark_holders(piece: &Finder<'_>, text: &[u8], picks: &[Survivor], marks: &mut [bool]) {
    let mut from = 0;
    let mut rest = picks.iter().zip(marks).peekable();
    while let Some(at) = text.get(from..).and_then(|text| piece.find(text)) {
        let start = from + at;
        while rest.next_if(|(pick, _)| pick.folded.end <= start).is_some() {}
        let Some((pick, mark)) = rest.peek_mut() else { return };
        if pick.folded.start > start {
            from = pick.folded.start;
        } else if start + piece.needle().len() <= pick.folded.end {
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

    use super::super::case_fold::letters;
    use super::*;

    proptest! {
        #[test]
        fn prefilter_drops_no_matching_name(
            names in proptest::collection::vec(("[abc]{1,6}", any::<bool>()), 0..9),
            word in "[abc]{2,4}",
            errors_max in 0..3_u8,
        ) {
            let pieces: Vec<&str> = vec![&word[..1], &word[1..]];
            let finders = pieces.iter().map(|piece| Finder::new(piece.as_bytes()).into_owned());
            let word = PrefilterWord { letters: letters(&word), errors_max, pieces: finders.collect() };
            let mut prefilter = Prefilter::new(vec![word]);
            let mut folded = String::new();
            let mut picks = Vec::new();
            let mut expected = Vec::new();
            for (name, is_asked) in &names {
                let place = folded.len()..folded.len() + name.len();
                folded.push_str(name);
                let letters = letters(name);
                // There are other names between the requested ones.
                if !is_asked || !prefilter.may_match(letters) {
                    continue;
                }
                picks.push(Survivor { key: place.clone(), folded: place.clone(), letters });
                let is_whole = prefilter.words[0].lacking(letters) == 0;
                if is_whole || pieces.iter().any(|piece| name.contains(piece)) {
                    expected.push(place);
                }
            }
            prefilter.retain_candidates(&folded, &mut picks);
            prop_assert_eq!(picks.into_iter().map(|pick| pick.folded).collect::<Vec<_>>(), expected);
        }

        #[test]
        fn prefilter_allows_one_missing_letter_per_typo(wanted: u64, there: u64, errors_max in 0..3_u8) {
            let word = PrefilterWord { letters: wanted, errors_max, pieces: Vec::new() };
            let is_enough = (wanted & !there).count_ones() <= u32::from(errors_max);
            prop_assert_eq!(Prefilter::new(vec![word]).may_match(there), is_enough);
        }
    }
}
