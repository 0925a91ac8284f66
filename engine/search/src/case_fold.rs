//! Case folding: one folded character per character.
//!
//! Case and accents are removed: `É`, `é` and `e` are equal, as are `Й` and `и`, `Ø` and `o`. Marks that distinguish
//! letters are retained, such as those of kana.
//!
//! Guarantees: a text and its folded form have the same number of characters, so positions correspond.
//! Non-goals: matching.

use std::sync::LazyLock;

use nucleo::chars;
use unicode_normalization::char::decompose_canonical;

/// Appends the folded form of a text.
pub(super) fn fold_onto(folded: &mut String, text: &str) {
    if text.is_ascii() {
        let from = folded.len();
        folded.push_str(text);
        if let Some(added) = folded.get_mut(from..) {
            added.make_ascii_lowercase();
        }
        return;
    }
    folded.extend(text.chars().map(fold));
}

/// Returns the folded form of a text.
pub(super) fn folded(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    fold_onto(&mut folded, text);
    folded
}

/// Folded forms of the characters of up to two bytes: Latin, Greek, Cyrillic, Hebrew, Arabic.
static FOLDED: LazyLock<Vec<char>> =
    LazyLock::new(|| ('\0'..='\u{7ff}').map(fold_by_tables).collect());

fn fold(c: char) -> char {
    match c {
        '\0'..='\u{7ff}' => FOLDED.get(c as usize).copied().unwrap_or(c),
        // Chinese characters and Korean syllables are unchanged.
        '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' => c,
        _ => fold_by_tables(c),
    }
}

fn fold_by_tables(c: char) -> char {
    let (mut letter, mut only_accents) = (None, true);
    decompose_canonical(c, |part| match letter {
        None => letter = Some(part),
        Some(_) => only_accents &= is_accent(part),
    });
    let plain = letter.filter(|_| only_accents).unwrap_or(c);
    // The normalization table lacks some capitals.
    chars::normalize(chars::to_lower_case(plain))
}

fn is_accent(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}')
}

/// Returns the set of characters of a folded text: one bit for each of `a-z` and `0-9`, the other bits shared by all
/// other characters.
///
/// Guarantees: a text that contains all characters of another has all its bits.
pub(super) fn letters(folded: &str) -> u64 {
    if folded.is_ascii() {
        return folded
            .bytes()
            .fold(0, |letters, byte| letters | ASCII_LETTERS[usize::from(byte & 127)]);
    }
    folded.chars().fold(0, |letters, c| letters | letter(c as u32))
}

/// Letter set of each ASCII character.
static ASCII_LETTERS: [u64; 128] = {
    let mut letters = [0; 128];
    let mut code = 0;
    while code < 128 {
        letters[code] = letter(code as u32);
        code += 1;
    }
    letters
};

const fn letter(code: u32) -> u64 {
    let bit = match code {
        0x61..=0x7a => code - 0x61,
        0x30..=0x39 => 26 + code - 0x30,
        other => 36 + other % 28,
    };
    1 << bit
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn case_folding_strips_case_and_accents() {
        for (text, want) in [
            ("Plain_42.PNG", "plain_42.png"),
            ("ÉCOLE d\u{2019}été", "ecole d\u{2019}ete"),
            ("Ångström Øre Łódź", "angstrom ore lodz"),
            ("Ấm Đà Nẵng", "am da nang"),
            ("ЙОЛКА Ёж", "иолка еж"),
            ("Άλφα ΣΟΦΟΣ σοφος", "αλφα σοφοσ σοφοσ"),
            ("İstanbul ı", "istanbul i"),
            ("がギ", "がギ"),
            ("日本 한국", "日本 한국"),
            ("straße", "strase"),
            ("\u{1f600}", "\u{1f600}"),
        ] {
            assert_eq!(folded(text), want, "{text}");
        }
    }

    #[test]
    fn case_folding_matches_unicode_tables() {
        for c in '\0'..=char::MAX {
            assert_eq!(fold(c), fold_by_tables(c), "{c:?}");
            assert_eq!(fold(c) == '/', c == '/', "{c:?}");
            assert!(!c.is_ascii() || fold(c) == c.to_ascii_lowercase(), "{c:?}");
        }
    }

    proptest! {
        #[test]
        fn case_folding_keeps_length_and_is_idempotent(text in "\\PC{0,40}") {
            let once = folded(&text);
            prop_assert_eq!(once.chars().count(), text.chars().count());
            let mut appended = "x".to_owned();
            fold_onto(&mut appended, &text);
            prop_assert_eq!(appended.strip_prefix('x'), Some(once.as_str()));
        }

        #[test]
        fn letter_set_of_a_part_is_a_subset_of_the_whole(left in "\\PC{0,9}", right in "\\PC{0,9}") {
            let whole = format!("{left}{right}");
            prop_assert_eq!(letters(&left) & !letters(&whole), 0);
            prop_assert_eq!(letters(&right) & !letters(&whole), 0);
        }
    }
}
