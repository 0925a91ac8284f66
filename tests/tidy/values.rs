//! Constants as code and documents write them, in comparable form.

use crate::repository::File;
use crate::source::{self, Token};

/// Value of a constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Number(i128),
    /// A byte string, with its escapes as written.
    Bytes(String),
}

/// A constant of the code.
#[derive(Debug)]
pub(crate) struct Constant {
    /// File name without its extension.
    pub(crate) stem: String,
    pub(crate) name: String,
    expression: String,
}

/// Returns every named constant outside tests in these files.
pub(crate) fn constants<'a>(files: impl Iterator<Item = &'a File>) -> Vec<Constant> {
    let mut constants = Vec::new();
    for file in files {
        let path = file.path.trim_end_matches(".rs");
        let stem = path.rsplit('/').next().unwrap_or("");
        let code = source::without_tests(&source::code_with_strings(&file.text));
        for (at, _) in code.match_indices("const ") {
            let starts_a_word = code[..at].chars().next_back().is_none_or(char::is_whitespace);
            let rest = &code[at + "const ".len()..];
            let Some((name, typed)) = rest.split_once(':') else { continue };
            let Some((_, expression)) = typed.split_once(" = ") else { continue };
            let expression = expression.split(';').next().unwrap_or("").trim();
            let named =
                name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
            if starts_a_word && named && name != "_" {
                let (stem, expression) = (stem.to_owned(), expression.to_owned());
                constants.push(Constant { stem, name: name.to_owned(), expression });
            }
        }
    }
    constants
}

/// Returns the values of all constants of a name; `stem::NAME` selects those of one file.
pub(crate) fn values_of(constants: &[Constant], name: &str) -> Vec<Option<Value>> {
    let (stem, name) =
        name.rsplit_once("::").map_or((None, name), |(stem, name)| (Some(stem), name));
    let mut values: Vec<Option<Value>> = constants
        .iter()
        .filter(|constant| constant.name == name && stem.is_none_or(|stem| constant.stem == stem))
        .map(|constant| evaluate(constants, &constant.stem, &constant.expression, 0))
        .collect();
    values.dedup();
    values
}

/// Parses a value as documents write it: a number, a number with a unit such as `64 KiB`, an expression, or a string in
/// quotes.
pub(crate) fn written(text: &str) -> Option<Value> {
    let text = text.trim().trim_matches('`').trim();
    if let Some(bytes) = quoted(text) {
        return Some(Value::Bytes(bytes.to_owned()));
    }
    let plain = text.replace(',', "");
    let mut words = plain.split_whitespace();
    let first = words.next()?;
    let unit = match words.next() {
        Some("KiB") => Some(1_i128 << 10),
        Some("MiB") => Some(1 << 20),
        Some("GiB") => Some(1 << 30),
        Some(word) if word.chars().all(char::is_alphabetic) && word != "as" => Some(1),
        _ => None,
    };
    match unit {
        Some(unit) => Some(Value::Number(number(first)? * unit)),
        None => evaluate(&[], "", &plain, 0),
    }
}

fn quoted(text: &str) -> Option<&str> {
    let start = text.find('"')? + 1;
    let end = text.rfind('"')?;
    text.get(start..end)
}

const DEPTH_MAX: usize = 16;

fn evaluate(constants: &[Constant], stem: &str, expression: &str, depth: usize) -> Option<Value> {
    if depth > DEPTH_MAX {
        return None;
    }
    if let Some(bytes) = quoted(expression) {
        return Some(Value::Bytes(bytes.to_owned()));
    }
    let tokens = source::tokens(expression);
    let mut reader = Reader { tokens: &tokens, at: 0, constants, stem, depth };
    let value = reader.shifted()?;
    (reader.at == tokens.len()).then_some(Value::Number(value))
}

/// Parser of `+ - * / << ( ) as`, numbers and names, with the precedence of Rust.
struct Reader<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
    constants: &'a [Constant],
    stem: &'a str,
    depth: usize,
}

impl Reader<'_> {
    fn next_is(&self, signs: &[&str]) -> bool {
        let ahead = self.tokens.get(self.at..self.at + signs.len());
        ahead.is_some_and(|ahead| ahead.iter().map(|token| token.text).eq(signs.iter().copied()))
    }

    fn take(&mut self, signs: &[&str]) -> bool {
        let found = self.next_is(signs);
        if found {
            self.at += signs.len();
        }
        found
    }

    fn shifted(&mut self) -> Option<i128> {
        let mut value = self.sum()?;
        while self.take(&["<", "<"]) {
            value = value.checked_shl(u32::try_from(self.sum()?).ok()?)?;
        }
        Some(value)
    }

    fn sum(&mut self) -> Option<i128> {
        let mut value = self.product()?;
        loop {
            if self.take(&["+"]) {
                value = value.checked_add(self.product()?)?;
            } else if self.take(&["-"]) {
                value = value.checked_sub(self.product()?)?;
            } else {
                return Some(value);
            }
        }
    }

    fn product(&mut self) -> Option<i128> {
        let mut value = self.cast()?;
        loop {
            if self.take(&["*"]) {
                value = value.checked_mul(self.cast()?)?;
            } else if self.take(&["/"]) {
                value = value.checked_div(self.cast()?)?;
            } else {
                return Some(value);
            }
        }
    }

    fn cast(&mut self) -> Option<i128> {
        let value = self.atom()?;
        while self.take(&["as"]) {
            self.at += 1;
        }
        Some(value)
    }

    fn atom(&mut self) -> Option<i128> {
        if self.take(&["("]) {
            let value = self.shifted()?;
            return self.take(&[")"]).then_some(value);
        }
        let mut name = self.tokens.get(self.at)?.text;
        self.at += 1;
        if name.starts_with(|c: char| c.is_ascii_digit()) {
            return number(name);
        }
        let mut stem = self.stem;
        while self.take(&["::"]) {
            stem = if matches!(name, "Self" | "self") { self.stem } else { name };
            name = self.tokens.get(self.at)?.text;
            self.at += 1;
        }
        self.constant(stem, name)
    }

    /// Returns the constant of the file that is named, else the only one of that name.
    fn constant(&self, stem: &str, name: &str) -> Option<i128> {
        let named = || self.constants.iter().filter(|constant| constant.name == name);
        let constant = named().find(|constant| constant.stem == stem).or_else(|| {
            let mut all = named();
            all.next().filter(|_| all.next().is_none())
        })?;
        match evaluate(self.constants, &constant.stem, &constant.expression, self.depth + 1)? {
            Value::Number(number) => Some(number),
            Value::Bytes(_) => None,
        }
    }
}

fn number(text: &str) -> Option<i128> {
    let text = text.replace('_', "");
    let digits = text.find(['u', 'i']).map_or(text.as_str(), |end| &text[..end]);
    match digits.strip_prefix("0x") {
        Some(hexadecimal) => i128::from_str_radix(hexadecimal, 16).ok(),
        None => digits.parse().ok(),
    }
}

#[test]
fn constant_expressions_are_evaluated_like_rust() {
    let limits = "const KIB: usize = 1_024;\npub const A: u64 = 4 * KIB as u64 + 1;\n\
                  pub const B: [u8; 4] = *b\"AB\\r\\n\";\npub const C: u32 = 1 << 16;\n\
                  pub const D: usize = (A - 1) as usize / 2;\nconst _: () = assert!(A > 0);\n\
                  pub const E: usize = size_of::<u8>();\npub const F: u16 = 0x1Fu16;";
    let other = "pub(crate) const A: u64 = crate::limits::C as u64;";
    let files = [File::new("engine/src/limits.rs", limits), File::new("engine/src/page.rs", other)];
    let all = constants(files.iter());
    let value = |name: &str| values_of(&all, name);
    assert_eq!(value("limits::A"), [Some(Value::Number(4_097))]);
    assert_eq!(value("page::A"), [Some(Value::Number(65_536))]);
    assert_eq!(value("A").len(), 2);
    assert_eq!(value("B"), [Some(Value::Bytes("AB\\r\\n".to_owned()))]);
    assert_eq!(value("D"), [Some(Value::Number(2_048))]);
    assert_eq!(value("E"), [None]);
    assert_eq!(value("F"), [Some(Value::Number(31))]);
    assert!(value("G").is_empty());
}

#[test]
fn document_numbers_are_formatted_for_readers() {
    for (text, number) in [
        ("4096", 4_096),
        ("`4,096`", 4_096),
        ("64 KiB", 65_536),
        ("1 << 16", 65_536),
        ("24 bytes", 24),
    ] {
        assert_eq!(written(text), Some(Value::Number(number)), "{text}");
    }
    assert_eq!(written("`b\"TR\\0\"`"), Some(Value::Bytes("TR\\0".to_owned())));
    assert_eq!(written("some"), None);
}
