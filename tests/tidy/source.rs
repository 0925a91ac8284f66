//! Rust text, tokenized just far enough to check it: comments, strings and tests removed.
//!
//! Guarantees: blanking keeps every line number. Non-goals: what is allowed.

/// A word or a sign of code, and its line, from 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    pub(crate) line: usize,
}

/// A path such as `crate::format::Scan`, without its first segment, and the position of that segment in the tokens.
#[derive(Debug)]
pub(crate) struct NamedPath<'a> {
    pub(crate) components: Vec<&'a str>,
    pub(crate) line: usize,
}

/// Returns the text with comments and the contents of strings blanked.
pub(crate) fn code(text: &str) -> String {
    blank(text, Strings::Blanked)
}

/// Returns the text with comments blanked.
pub(crate) fn code_with_strings(text: &str) -> String {
    blank(text, Strings::Kept)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Strings {
    Kept,
    Blanked,
}

fn blank(text: &str, strings: Strings) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let (length, kept) = if rest.starts_with("//") {
            (rest.find('\n').unwrap_or(rest.len()), false)
        } else if rest.starts_with("/*") {
            (block_comment_length(rest), false)
        } else if let Some(length) = string_length(rest, before) {
            (length, strings == Strings::Kept)
        } else {
            (char_literal_length(rest).unwrap_or(first.len_utf8()), true)
        };
        let (piece, after) = rest.split_at(length);
        if kept {
            out.push_str(piece);
        } else {
            out.extend(piece.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        }
        before = piece.chars().next_back().unwrap_or(' ');
        rest = after;
    }
    out
}

fn block_comment_length(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// Returns the length of the string literal at the start of the text, plain, raw, of bytes or of C.
fn string_length(text: &str, before: char) -> Option<usize> {
    if before.is_alphanumeric() || before == '_' {
        return None;
    }
    let prefix = text.len() - text.trim_start_matches(['b', 'c', 'r']).len();
    let prefix = if prefix <= 2 { prefix } else { return None };
    let raw = text[..prefix].contains('r');
    let hashes = text[prefix..].len() - text[prefix..].trim_start_matches('#').len();
    if hashes > 0 && !raw {
        return None;
    }
    let start = prefix + hashes + 1;
    if !text[prefix + hashes..].starts_with('"') {
        return None;
    }
    if raw {
        let end = format!("\"{}", "#".repeat(hashes));
        return Some(
            text[start..].find(&end).map_or(text.len(), |found| start + found + end.len()),
        );
    }
    let mut escaped = false;
    for (at, c) in text[start..].char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(start + at + 1),
            _ => {}
        }
    }
    Some(text.len())
}

/// Returns the length of the character literal at the start of the text; none for a lifetime.
fn char_literal_length(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('\'')?;
    if inner.starts_with('\\') {
        let close = inner.get(2..)?.find('\'')?;
        return Some(1 + 2 + close + 1);
    }
    let first = inner.chars().next()?.len_utf8();
    inner[first..].starts_with('\'').then_some(1 + first + 1)
}

/// Returns code with every item under `#[cfg(test)]` blanked. The input is the output of [`code`] or
/// [`code_with_strings`].
pub(crate) fn without_tests(code: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut out = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(start) = rest.find(MARK) {
        out.push_str(&rest[..start]);
        let item = &rest[start..];
        let end = item_length(item);
        out.extend(item[..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        rest = &item[end..];
    }
    out.push_str(rest);
    out
}

/// Returns the length up to the first `;` outside braces, or the end of the first pair of braces.
fn item_length(item: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in item.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && (c == ';' || c == '}') {
            return at + 1;
        }
    }
    item.len()
}

/// Returns the words and signs of code; `::` is one sign.
pub(crate) fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    for (index, text) in code.lines().enumerate() {
        let line = index + 1;
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let word = |c: char| c.is_alphanumeric() || c == '_';
            let length = if word(first) {
                rest.find(|c| !word(c)).unwrap_or(rest.len())
            } else if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            tokens.push(Token { text: &rest[..length], line });
            rest = rest[length..].trim_start();
        }
    }
    tokens
}

/// Returns every path that starts with `root::`, with groups in braces expanded.
pub(crate) fn paths_from<'a>(tokens: &[Token<'a>], root: &str) -> Vec<NamedPath<'a>> {
    let mut found = Vec::new();
    for (at, pair) in tokens.windows(2).enumerate() {
        let starts = pair[0].text == root && pair[1].text == "::";
        let continues = at > 0 && tokens[at - 1].text == "::";
        if starts && !continues {
            spread(tokens, at + 2, &[], &mut found);
        }
    }
    found
}

/// Parses the rest of a path at `at`; returns the position after it.
fn spread<'a>(
    tokens: &[Token<'a>],
    at: usize,
    above: &[&'a str],
    found: &mut Vec<NamedPath<'a>>,
) -> usize {
    let Some(token) = tokens.get(at) else { return at };
    if token.text == "{" {
        let mut next = at + 1;
        while let Some(inner) = tokens.get(next).filter(|inner| inner.text != "}") {
            next = match inner.text {
                "," => next + 1,
                "as" => next + 2,
                _ => spread(tokens, next, above, found).max(next + 1),
            };
        }
        return next + 1;
    }
    let mut components = above.to_vec();
    if token.text != "self" {
        components.push(token.text);
    }
    let next = tokens.get(at + 2).map_or("", |next| next.text);
    let goes_on = next.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '{' | '*'));
    if tokens.get(at + 1).is_some_and(|sign| sign.text == "::") && goes_on {
        return spread(tokens, at + 2, &components, found);
    }
    found.push(NamedPath { components, line: token.line });
    at + 1
}

#[test]
fn source_blanking_keeps_line_numbers() {
    let text = "a /* b /* c */ d */ e\nlet s = \"x // y\\\"\"; // z\nlet r = r#\"\"q\"#; 'q' '\\'' 'life\n\
                #[cfg(test)]\nmod tests { fn t() {} }\nend";
    let code = without_tests(&code(text));
    let words: Vec<(&str, usize)> =
        tokens(&code).iter().map(|token| (token.text, token.line)).collect();
    assert_eq!(code.lines().count(), text.lines().count());
    assert!(
        words.contains(&("e", 1)) && words.contains(&("life", 3)) && words.contains(&("end", 6))
    );
    for gone in ["b", "d", "x", "z", "tests"] {
        assert!(words.iter().all(|(word, _)| *word != gone), "{gone}");
    }
}

#[test]
fn nested_use_groups_are_expanded() {
    let code =
        "use crate::{a::{self, B as C}, d::*};\nlet x = crate::e::F::<G>::new(); x::crate::no";
    let tokens = tokens(code);
    let paths: Vec<String> =
        paths_from(&tokens, "crate").iter().map(|path| path.components.join("::")).collect();
    assert_eq!(paths, ["a", "a::B", "d::*", "e::F"]);
}
