//! Object naming: sanitized client names, ` (1)` suffixes, UUIDs.
//!
//! Pure: the UUID is a parameter, and existence of a key is a callback. Guarantees: a sanitized name is never empty,
//! `.` or `..`, and contains no slash, backslash or control character; an extension survives every change of the name.
//! Non-goals: the store, and the rule that an upload uses.

use engine::ObjectKey;
use unicode_normalization::UnicodeNormalization;
use uuid::Uuid;

use crate::limits::{
    EXTENSION_BYTES_MAX, FILE_NAME_BYTES_MAX, NAME_LINEAR_PROBES_MAX, NAME_NUMBER_MAX,
};

/// Handling of a name that is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConflictRule {
    /// Replaces the existing object.
    Overwrite,
    /// Adds the first free ` (n)` before the extension.
    Rename,
}

/// Source of a file's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// Client's name, sanitized.
    ClientName,
    /// Random UUID, with the original extension.
    Random,
}

/// Candidate key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameProposal {
    /// Candidate key.
    pub key: ObjectKey,
    /// Rule that the batch has to enforce for the key.
    pub rule: ConflictRule,
    /// Whether a suffix was added.
    pub renamed: bool,
}

/// Returns the name of a file in its folder.
///
/// `content_extension` returns the extension of the media type, without a dot; it is called only if the client's name
/// has none, because it examines the content. `uuid` is called if the name is to be random, or the client's name is
/// unusable.
pub fn file_name<'a>(
    naming: Naming,
    client_name: Option<&str>,
    content_extension: impl FnOnce() -> Option<&'a str>,
    uuid: impl FnOnce() -> Uuid,
) -> String {
    let cleaned = client_name.and_then(sanitize);
    let extension = cleaned.as_deref().and_then(|name| split_extension(name).1);
    match (naming, cleaned.as_deref()) {
        (Naming::ClientName, Some(name)) if extension.is_some() => name.to_owned(),
        (Naming::ClientName, Some(name)) => match content_extension() {
            // A text file without an extension (README, LICENSE) has none on purpose.
            Some(added) if added != "txt" => format!("{name}.{added}"),
            _ => name.to_owned(),
        },
        _ => {
            let known = extension.map(str::to_ascii_lowercase);
            let stem = uuid().hyphenated();
            match known.or_else(|| content_extension().map(str::to_owned)) {
                Some(extension) => format!("{stem}.{extension}"),
                None => stem.to_string(),
            }
        }
    }
}

/// Sanitizes a client's file name: its last path segment, in NFC, without control and text direction characters, spaces
/// at the ends and dots at the end, and truncated. `None` if nothing is left.
pub fn sanitize(client_name: &str) -> Option<String> {
    let last = client_name.rsplit(['/', '\\']).next().unwrap_or("");
    let clean: String =
        last.chars().filter(|c| !c.is_control() && !is_bidi_control(*c)).nfc().collect();
    let clean = without_end(clean.trim_start());
    if clean.is_empty() {
        return None;
    }
    // Truncation may expose spaces or dots at the end.
    Some(without_end(&shorten(clean, "", FILE_NAME_BYTES_MAX)).to_owned())
}

/// Suffix of thumbnail names.
pub const THUMBNAIL_SUFFIX: &str = "_thumb.webp";

/// Returns the name of the thumbnail of a file; `None` for a thumbnail.
pub fn thumbnail_name(file_name: &str) -> Option<String> {
    let stem = split_extension(file_name).0;
    (!file_name.ends_with(THUMBNAIL_SUFFIX)).then(|| format!("{stem}{THUMBNAIL_SUFFIX}"))
}

/// Removes trailing spaces and dots.
fn without_end(name: &str) -> &str {
    name.trim_end_matches(|c: char| c == '.' || c.is_whitespace())
}

/// Splits a file name into stem and extension, without the dot. An extension is short and alphanumeric; a leading dot
/// starts none.
pub fn split_extension(name: &str) -> (&str, Option<&str>) {
    match name.rsplit_once('.') {
        Some((stem, extension))
            if !stem.is_empty()
                && (1..=EXTENSION_BYTES_MAX).contains(&extension.len())
                && extension.bytes().all(|byte| byte.is_ascii_alphanumeric()) =>
        {
            (stem, Some(extension))
        }
        _ => (name, None),
    }
}

impl ConflictRule {
    /// Returns the next key to try for an upload to `key`. `is_taken` is called with keys, and counts those chosen by
    /// other files of the same request as taken. `None` if no number is free.
    pub fn proposal<E>(
        self,
        key: &ObjectKey,
        mut is_taken: impl FnMut(&ObjectKey) -> Result<bool, E>,
    ) -> Result<Option<NameProposal>, E> {
        if self == Self::Overwrite || !is_taken(key)? {
            return Ok(Some(NameProposal { key: key.clone(), rule: self, renamed: false }));
        }
        let mut is_number_taken = |number: u32| match with_number(key, number) {
            Some(key) => is_taken(&key),
            None => Ok(false),
        };
        let Some(number) = first_free(&mut is_number_taken)? else { return Ok(None) };
        Ok(with_number(key, number).map(|key| NameProposal { key, rule: self, renamed: true }))
    }
}

/// Returns the key with ` (n)` before the last extension: `a (1).png`, `a.tar (1).gz`, `README (1)`, `.env (1)`.
/// Shortens the stem if the key would become too long.
pub fn with_number(key: &ObjectKey, number: u32) -> Option<ObjectKey> {
    with_suffix(key, &format!(" ({number})"))
}

/// Returns whether a file name is a random UUID, with or without an extension: such a name is never reused.
pub fn is_random(file_name: &str) -> bool {
    let stem = split_extension(file_name).0;
    let has_form = stem.len() == 36 && !stem.bytes().any(|byte| byte.is_ascii_uppercase());
    has_form && Uuid::try_parse(stem).is_ok_and(|uuid| uuid.get_version_num() == 4)
}

/// Finds a free number. A folder may hold many thousand `screenshot.webp`: after some single steps the number is
/// doubled until one is free, then bisected; gaps in the sequence may stay unused.
fn first_free<E>(is_taken: &mut impl FnMut(u32) -> Result<bool, E>) -> Result<Option<u32>, E> {
    for number in 1..=NAME_LINEAR_PROBES_MAX {
        if !is_taken(number)? {
            return Ok(Some(number));
        }
    }
    let mut taken = NAME_LINEAR_PROBES_MAX;
    let mut free = taken;
    while free == taken {
        let next = taken.saturating_mul(2).min(NAME_NUMBER_MAX);
        match is_taken(next)? {
            true if next == NAME_NUMBER_MAX => return Ok(None),
            true => (taken, free) = (next, next),
            false => free = next,
        }
    }
    while free - taken > 1 {
        let middle = taken + (free - taken) / 2;
        if is_taken(middle)? { taken = middle } else { free = middle }
    }
    Ok(Some(free))
}

fn with_suffix(key: &ObjectKey, suffix: &str) -> Option<ObjectKey> {
    let folder = key.folder();
    let room = engine::limits::KEY_BYTES_MAX.checked_sub(folder.as_str().len())?;
    let name = shorten(key.file_name(), suffix, room);
    if name.len() > room { None } else { folder.key(&name).ok() }
}

/// Adds a suffix before the extension, and truncates the stem to fit.
fn shorten(name: &str, suffix: &str, bytes_max: usize) -> String {
    let (stem, extension) = split_extension(name);
    let tail = extension.map_or(suffix.to_owned(), |extension| format!("{suffix}.{extension}"));
    format!("{}{tail}", cut(stem, bytes_max.saturating_sub(tail.len())))
}

fn cut(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max)).unwrap_or(text)
}

/// Returns whether a character changes the direction of text: such characters can make `gpj.exe` look like `exe.jpg`.
pub fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    const UUID: Uuid = Uuid::from_u128(0x0123_4567_89ab_4def_8123_4567_89ab_cdef);
    const UUID_TEXT: &str = "01234567-89ab-4def-8123-456789abcdef";

    fn key(text: &str) -> ObjectKey {
        ObjectKey::parse(text).unwrap()
    }

    #[test]
    fn client_names_are_cleaned() {
        for (raw, clean) in [
            ("a.png", Some("a.png")),
            ("C:\\Users\\me\\a.png", Some("a.png")),
            ("../../etc/passwd", Some("passwd")),
            ("a/", None),
            ("..", None),
            (".", None),
            ("", None),
            ("   ", None),
            ("\r\n", None),
            ("a\0b\r\n.png", Some("ab.png")),
            (" a.png ", Some("a.png")),
            ("a.png. .", Some("a.png")),
            (".env", Some(".env")),
            ("...", None),
            ("cafe\u{301}.png", Some("caf\u{e9}.png")),
            ("Screenshot 9.41.00\u{202f}AM.png", Some("Screenshot 9.41.00\u{202f}AM.png")),
            ("日本 語.webp", Some("日本 語.webp")),
            ("a\u{202e}gpj.exe", Some("agpj.exe")),
            ("a \"b\" <c>.png", Some("a \"b\" <c>.png")),
            ("a%2Fb.png", Some("a%2Fb.png")),
            ("a\u{3000}. .", Some("a")),
        ] {
            assert_eq!(sanitize(raw).as_deref(), clean, "{raw:?}");
        }
    }

    #[test]
    fn long_name_truncates_its_stem() {
        let name = sanitize(&format!("{}.webp", "ä".repeat(300))).unwrap();
        assert!(name.len() <= FILE_NAME_BYTES_MAX && name.ends_with("ä.webp"), "{name}");
        let name = sanitize(&"x".repeat(2_000)).unwrap();
        assert_eq!(name.len(), FILE_NAME_BYTES_MAX);
        let cut = sanitize(&format!("{}. {}", "x".repeat(253), "y".repeat(20))).unwrap();
        assert_eq!(cut, "x".repeat(253), "a cut leaves no dot or space at the end");
    }

    #[test]
    fn name_gets_the_matching_extension() {
        let cases: &[(Naming, Option<&str>, Option<&str>, &str)] = &[
            (Naming::ClientName, Some("a.png"), Some("webp"), "a.png"),
            (Naming::ClientName, Some("blob"), Some("webp"), "blob.webp"),
            (Naming::ClientName, Some("blob"), None, "blob"),
            (Naming::ClientName, Some("README"), Some("txt"), "README"),
            (Naming::ClientName, Some("Dr. No, a film"), Some("mp4"), "Dr. No, a film.mp4"),
            (Naming::ClientName, None, Some("webp"), "{uuid}.webp"),
            (Naming::ClientName, Some("///"), None, "{uuid}"),
            (Naming::Random, Some("A.PNG"), Some("webp"), "{uuid}.png"),
            (Naming::Random, Some("blob"), Some("webm"), "{uuid}.webm"),
            (Naming::Random, Some("notes"), Some("txt"), "{uuid}.txt"),
            (Naming::Random, None, None, "{uuid}"),
        ];
        for (naming, client, content, want) in cases {
            let want = want.replace("{uuid}", UUID_TEXT);
            assert_eq!(file_name(*naming, *client, || *content, || UUID), want, "{client:?}");
        }
    }

    #[test]
    fn number_is_inserted_before_the_last_extension() {
        for (plain, first) in [
            ("a.png", "a (1).png"),
            ("a.tar.gz", "a.tar (1).gz"),
            ("README", "README (1)"),
            (".env", ".env (1)"),
            ("dir.d/a", "dir.d/a (1)"),
            ("dir/ä.webp", "dir/ä (1).webp"),
            ("a (1).png", "a (1) (1).png"),
            ("Dr. No film", "Dr. No film (1)"),
        ] {
            assert_eq!(with_number(&key(plain), 1), Some(key(first)), "{plain}");
        }
        let long = key(&format!("d/{}.png", "ä".repeat(509)));
        let renamed = with_number(&long, 12).unwrap();
        assert!(renamed.as_str().len() <= 1_024 && renamed.as_str().ends_with("ä (12).png"));
    }

    #[test]
    fn taken_name_gets_the_first_free_number() {
        let propose = |rule: ConflictRule, taken: &[&str]| {
            let is_taken = |key: &ObjectKey| Ok::<_, Infallible>(taken.contains(&key.as_str()));
            rule.proposal(&key("a.png"), is_taken).unwrap().unwrap()
        };
        let free = propose(ConflictRule::Rename, &[]);
        assert_eq!((free.key.as_str(), free.renamed), ("a.png", false));
        let next = propose(ConflictRule::Rename, &["a.png", "a (1).png", "a (3).png"]);
        assert_eq!((next.key.as_str(), next.renamed), ("a (2).png", true));
        let over = propose(ConflictRule::Overwrite, &["a.png"]);
        assert_eq!((over.key.as_str(), over.renamed), ("a.png", false));
    }

    #[test]
    fn many_taken_names_cost_few_questions() {
        for count in [0, 1, 255, 256, 257, 1_000, 99_999, NAME_NUMBER_MAX - 1] {
            let mut questions = 0;
            let mut is_taken = |number: u32| {
                questions += 1;
                Ok::<_, Infallible>(number <= count)
            };
            assert_eq!(first_free(&mut is_taken), Ok(Some(count + 1)));
            assert!(questions < 300, "{questions} for {count}");
        }
        assert_eq!(first_free(&mut |_| Ok::<_, Infallible>(true)), Ok(None));
    }

    #[test]
    fn random_names_are_recognized() {
        for random in [UUID_TEXT, &format!("{UUID_TEXT}.png")] {
            assert!(is_random(random), "{random}");
        }
        for not in [
            "a.png",
            "01234567-89AB-4def-8123-456789abcdef.png",
            "01234567-89ab-1def-8123-456789abcdef.png",
            "0123456789ab4def8123456789abcdef.png",
            "x01234567-89ab-4def-8123-456789abcdef",
        ] {
            assert!(!is_random(not), "{not}");
        }
    }
}
