//! Words with typing errors in them.
//!
//! Promises: the work for one pair is bounded by the word's length and the errors allowed, however long the text.
//! Never here: which words may have errors.

/// Longest word that may have errors.
pub(super) const NEAR_CHARS_MAX: usize = 32;

/// The fewest errors that make a beginning of `text` out of `word`, and the length of that beginning; none when it
/// takes more than `errors_max`. An error is a letter too many, too few, or wrong, or two neighbours changed about.
pub(super) fn near(word: &[char], text: &[char], errors_max: u8) -> Option<(u8, usize)> {
    type Row = [u8; NEAR_CHARS_MAX + 1];
    let width = word.len();
    if width > NEAR_CHARS_MAX {
        return None;
    }
    // Each row holds the errors between the text so far and every beginning of the word.
    let mut before: Row = [u8::MAX / 2; NEAR_CHARS_MAX + 1];
    let mut above: Row = std::array::from_fn(|at| at as u8);
    let mut best = (above[width] <= errors_max).then_some((above[width], 0));
    for (row, letter) in text.iter().enumerate().take(width + usize::from(errors_max)) {
        let mut current: Row = [u8::MAX / 2; NEAR_CHARS_MAX + 1];
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
    use super::*;

    fn errors(word: &str, text: &str, max: u8) -> Option<(u8, usize)> {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        near(&chars(word), &chars(text), max)
    }

    #[test]
    fn one_error_is_a_letter_or_two_neighbours() {
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
    fn more_errors_than_allowed_are_no_match() {
        assert_eq!(errors("house", "horse car", 0), None);
        assert_eq!(errors("house", "mouth", 1), None);
        assert_eq!(errors("vacation", "vcaatoin", 1), None);
        assert_eq!(errors("vacation", "vcaation2", 2), Some((1, 8)));
        assert_eq!(errors("vacation", "vcaatoin", 2), Some((2, 8)));
        assert_eq!(errors("house", "", 2), None);
        assert_eq!(errors(&"x".repeat(NEAR_CHARS_MAX + 1), &"x".repeat(99), 2), None);
        assert_eq!(errors(&"x".repeat(NEAR_CHARS_MAX), &"x".repeat(99), 2), Some((0, 32)));
    }
}
