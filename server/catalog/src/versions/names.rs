//! Names of noncurrent versions.
//!
//! `{bucket}/{key} {position}` in the internal bucket. Spaces and exclamation marks of the key are escaped, so that a
//! space ends it and names sort as keys do. The position is the version's number counted down from the maximum, as 16
//! hexadecimal digits: newer versions come first. A trailing `n` marks the version `null`.
//!
//! Guarantees: names are in the order of keys, and within a key from the newest version to the oldest.

use engine::name::NameError;
use engine::{BucketName, Error, ObjectKey, ObjectName};

use protocol::reserved_paths;

/// Returns the internal bucket.
pub(super) fn bucket() -> Result<BucketName, NameError> {
    BucketName::parse(reserved_paths::VERSIONS)
}

/// Returns the name prefix of the versions of a bucket.
pub(super) fn folder(of: &BucketName) -> String {
    format!("{of}/")
}

/// Returns the name prefix of the versions of all keys with a prefix.
pub(super) fn within(of: &BucketName, text: &str) -> String {
    format!("{of}/{}", escaped(text))
}

/// Returns the name prefix of the versions of a key.
pub(super) fn of_key(of: &BucketName, key: &str) -> String {
    format!("{of}/{} ", escaped(key))
}

/// Returns the name of a noncurrent version. Fails for keys that are too long for one.
pub(super) fn name(of: &ObjectName, number: u64, is_null: bool) -> Result<ObjectName, Error> {
    let place = u64::MAX - number;
    let null = if is_null { "n" } else { "" };
    let text = format!("{}{place:016x}{null}", of_key(&of.bucket, of.key.as_str()));
    let named = bucket().and_then(|bucket| Ok(ObjectName::new(bucket, ObjectKey::parse(&text)?)));
    named.map_err(|_| Error::TooLarge(LONG_KEY))
}

const LONG_KEY: &str = "a key of a bucket with versions has at most 940 bytes, \
    of which spaces and exclamation marks count twice";

/// Parses the name of a noncurrent version: its key, its number, and whether it is the version `null`.
pub(super) fn parse(name: &ObjectName) -> Option<(ObjectKey, u64, bool)> {
    let (_, rest) = name.key.as_str().split_once('/')?;
    let (key, place) = rest.rsplit_once(' ')?;
    let (place, is_null) = match place.strip_suffix('n') {
        Some(place) => (place, true),
        None => (place, false),
    };
    let place = u64::from_str_radix(place, 16).ok()?;
    Some((ObjectKey::parse(&unescaped(key)).ok()?, u64::MAX - place, is_null))
}

/// Returns the key of an object, even of a noncurrent version.
pub fn key_of(name: &ObjectName) -> ObjectKey {
    let parsed = (name.bucket.as_str() == reserved_paths::VERSIONS).then(|| parse(name)).flatten();
    parsed.map_or_else(|| name.key.clone(), |(key, ..)| key)
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            ' ' => escaped.push_str("!0"),
            '!' => escaped.push_str("!1"),
            c => escaped.push(c),
        }
    }
    escaped
}

fn unescaped(text: &str) -> String {
    text.replace("!0", " ").replace("!1", "!")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(key: &str) -> ObjectName {
        ObjectName::new(BucketName::parse("pics").unwrap(), ObjectKey::parse(key).unwrap())
    }

    #[test]
    fn version_names_round_trip() {
        for key in ["a", "a b", "!0", "a!b !", "ä/ö !", "a/ b/c", "! !1"] {
            for (number, is_null) in [(1, false), (7, true), (u64::MAX, false)] {
                let named = name(&object(key), number, is_null).unwrap();
                assert_eq!(parse(&named), Some((object(key).key, number, is_null)), "{named}");
            }
        }
    }

    #[test]
    fn version_names_sort_by_key_then_newest_first() {
        let keys = ["a", "a !", "a b", "a!", "a\"", "a-b", "a/b", "ab", "b"];
        let mut sorted = keys;
        sorted.sort_unstable();
        assert_eq!(sorted, keys, "the keys themselves are in order");
        let names = keys.iter().flat_map(|key| {
            [9, 5, 1].map(|number| name(&object(key), number, number == 5).unwrap())
        });
        let names: Vec<_> = names.collect();
        assert!(names.is_sorted());
    }

    #[test]
    fn long_keys_have_no_versions() {
        let bucket = BucketName::parse(&"b".repeat(63)).unwrap();
        let long = |key: String| {
            let key = ObjectKey::parse(&key).unwrap();
            name(&ObjectName::new(bucket.clone(), key), 1, true).is_ok()
        };
        assert!(long("k".repeat(940)));
        assert!(long(" ".repeat(470)));
        assert!(!long("k".repeat(1_000)));
    }
}
