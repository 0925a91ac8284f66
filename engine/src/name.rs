//! Names: validated bucket names, object keys, folder keys and fact names.
//!
//! A value of one of these types is always valid; it can only be created by parsing. The engine stores names byte
//! for byte: Unicode normalization is up to the caller.
//!
//! Non-goals: percent-decoding, reserved names, URLs.

use std::fmt;
use std::sync::Arc;

use memchr::memrchr;

use crate::limits;

/// Bucket name: 3 to 63 characters of `a-z 0-9 - . _`, starting with a letter or digit.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BucketName(Arc<str>);

/// Key of an object in its bucket: 1 to 1,024 bytes of UTF-8, with path segments separated by `/`.
///
/// No path segment is empty, `.` or `..`; none contains a control character or a backslash. A key that ends in `/`
/// is a folder marker: an object that represents an empty folder.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey(Arc<str>);

/// Folder of a bucket: empty for the root, else path segments that each end in `/`.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FolderKey(Arc<str>);

/// Bucket and key of an object.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// Bucket of the object.
    pub bucket: BucketName,
    /// Key in the bucket.
    pub key: ObjectKey,
}

/// Fact name: 1 to 512 bytes of UTF-8 without control characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FactName(Arc<str>);

/// Rule that a name violates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameError {
    /// Empty name.
    Empty,
    /// Longer than this number of bytes.
    TooLong(usize),
    /// Shorter than this number of bytes.
    TooShort(usize),
    /// Bucket name with a character outside `a-z 0-9 - . _`, or starting with `-`, `.` or `_`.
    BucketCharacter,
    /// Control character.
    Control,
    /// Backslash.
    Backslash,
    /// Empty path segment: two slashes in a row, or a slash at the start.
    EmptySegment,
    /// Path segment `.` or `..`.
    DotSegment,
    /// Folder that does not end in `/`.
    NotAFolder,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "it is empty"),
            Self::TooLong(max) => write!(f, "it is longer than {max} bytes"),
            Self::TooShort(min) => write!(f, "it is shorter than {min} bytes"),
            Self::BucketCharacter => write!(
                f,
                "only the characters a-z 0-9 - . _ are allowed, and the first must be a letter or a digit"
            ),
            Self::Control => write!(f, "it contains a control character"),
            Self::Backslash => write!(f, "it contains a backslash"),
            Self::EmptySegment => write!(f, "it has an empty path segment"),
            Self::DotSegment => write!(f, "it has a path segment \".\" or \"..\""),
            Self::NotAFolder => write!(f, "a folder must end in \"/\""),
        }
    }
}

impl std::error::Error for NameError {}

impl BucketName {
    /// Parses a bucket name.
    pub fn parse(name: &str) -> Result<Self, NameError> {
        if name.is_empty() {
            return Err(NameError::Empty);
        }
        if name.len() < limits::BUCKET_NAME_BYTES_MIN {
            return Err(NameError::TooShort(limits::BUCKET_NAME_BYTES_MIN));
        }
        if name.len() > limits::BUCKET_NAME_BYTES_MAX {
            return Err(NameError::TooLong(limits::BUCKET_NAME_BYTES_MAX));
        }
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let first_is_plain = name.bytes().next().is_some_and(plain);
        if !first_is_plain || !name.bytes().all(|b| plain(b) || matches!(b, b'-' | b'.' | b'_')) {
            return Err(NameError::BucketCharacter);
        }
        Ok(Self(name.into()))
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ObjectKey {
    /// Parses an object key.
    pub fn parse(key: &str) -> Result<Self, NameError> {
        check_path(key)?;
        Ok(Self(key.into()))
    }

    /// Returns the key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether the key is a folder marker.
    pub fn is_folder_marker(&self) -> bool {
        self.0.ends_with('/')
    }

    /// Returns the folder that contains the object; for a folder marker, the folder that it marks.
    pub fn folder(&self) -> FolderKey {
        FolderKey(self.split_folder().0.into())
    }

    /// Returns the last path segment; empty for a folder marker.
    pub fn file_name(&self) -> &str {
        self.split_folder().1
    }

    /// Splits the key after its last `/`.
    fn split_folder(&self) -> (&str, &str) {
        let end = memrchr(b'/', self.0.as_bytes()).map_or(0, |slash| slash + 1);
        self.0.split_at(end)
    }
}

impl FolderKey {
    /// Returns the root of a bucket.
    pub fn root() -> Self {
        Self::default()
    }

    /// Parses a folder: empty for the root, otherwise a valid key that ends in `/`.
    pub fn parse(folder: &str) -> Result<Self, NameError> {
        if folder.is_empty() {
            return Ok(Self::root());
        }
        check_path(folder)?;
        if !folder.ends_with('/') {
            return Err(NameError::NotAFolder);
        }
        Ok(Self(folder.into()))
    }

    /// Returns the folder as text: empty for the root, otherwise ending in `/`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether this is the root of the bucket.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the last path segment without its slash; empty for the root.
    pub fn last_segment(&self) -> &str {
        let trimmed = self.0.strip_suffix('/').unwrap_or(&self.0);
        trimmed.rsplit('/').next().unwrap_or("")
    }

    /// Returns the key of the file `file_name` in this folder.
    pub fn key(&self, file_name: &str) -> Result<ObjectKey, NameError> {
        ObjectKey::parse(&format!("{}{file_name}", self.0))
    }
}

impl ObjectName {
    /// Creates an object name from bucket and key.
    pub fn new(bucket: BucketName, key: ObjectKey) -> Self {
        Self { bucket, key }
    }
}

impl FactName {
    /// Parses a fact name.
    pub fn parse(name: &str) -> Result<Self, NameError> {
        if name.is_empty() {
            return Err(NameError::Empty);
        }
        if name.len() > limits::FACT_NAME_BYTES_MAX {
            return Err(NameError::TooLong(limits::FACT_NAME_BYTES_MAX));
        }
        if has_control(name) {
            return Err(NameError::Control);
        }
        Ok(Self(name.into()))
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn check_path(path: &str) -> Result<(), NameError> {
    if path.is_empty() {
        return Err(NameError::Empty);
    }
    if path.len() > limits::KEY_BYTES_MAX {
        return Err(NameError::TooLong(limits::KEY_BYTES_MAX));
    }
    if has_control(path) {
        return Err(NameError::Control);
    }
    let path = path.as_bytes();
    if path.contains(&b'\\') {
        return Err(NameError::Backslash);
    }
    // Most paths have neither an empty segment nor one that starts with a dot.
    let is_plain = !matches!(path, [b'/' | b'.', ..]) && !has_slash_before_slash_or_dot(path);
    if is_plain {
        return Ok(());
    }
    for component in path.strip_suffix(b"/").unwrap_or(path).split(|byte| *byte == b'/') {
        match component {
            b"" => return Err(NameError::EmptySegment),
            b"." | b".." => return Err(NameError::DotSegment),
            _ => {}
        }
    }
    Ok(())
}

/// Returns whether a text contains a control character. Most texts have none of the bytes that encode one.
fn has_control(text: &str) -> bool {
    // Without an early exit the compiler tests many bytes at once.
    let may_be =
        text.bytes().fold(false, |found, byte| found | matches!(byte, ..0x20 | 0x7f | 0xc2));
    may_be && text.chars().any(char::is_control)
}

fn has_slash_before_slash_or_dot(path: &[u8]) -> bool {
    let next = path.get(1..).unwrap_or_default();
    let pairs = path.iter().zip(next);
    pairs.fold(false, |found, (byte, next)| found | (*byte == b'/' && matches!(next, b'/' | b'.')))
}

macro_rules! text {
    ($type:ty) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}

impl std::borrow::Borrow<str> for FactName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

text!(BucketName);
text!(ObjectKey);
text!(FolderKey);
text!(FactName);

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.bucket, self.key)
    }
}

impl fmt::Debug for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_name_rules_are_enforced() {
        for good in ["abc", "a-b", "0.9_x", &"a".repeat(63)] {
            assert!(BucketName::parse(good).is_ok(), "{good}");
        }
        for (bad, why) in [
            ("", NameError::Empty),
            ("ab", NameError::TooShort(3)),
            (&*"a".repeat(64), NameError::TooLong(63)),
            ("-ab", NameError::BucketCharacter),
            ("Abc", NameError::BucketCharacter),
            ("a/b", NameError::BucketCharacter),
            ("äbc", NameError::BucketCharacter),
        ] {
            assert_eq!(BucketName::parse(bad), Err(why), "{bad}");
        }
    }

    #[test]
    fn object_key_rules_are_enforced() {
        for good in [
            "a",
            "a/b.png",
            "ä/日本 語.webp",
            "«µ»",
            "dir/",
            "a/.b/",
            ".a/..b",
            "...",
            &"k".repeat(1024),
        ] {
            assert!(ObjectKey::parse(good).is_ok(), "{good}");
        }
        for (bad, why) in [
            ("", NameError::Empty),
            ("/", NameError::EmptySegment),
            ("/a", NameError::EmptySegment),
            ("a//b", NameError::EmptySegment),
            ("a//", NameError::EmptySegment),
            ("a/../b", NameError::DotSegment),
            ("./a", NameError::DotSegment),
            ("a/.", NameError::DotSegment),
            ("../", NameError::DotSegment),
            ("a\\b", NameError::Backslash),
            ("a\0b", NameError::Control),
            ("a\u{85}b", NameError::Control),
            ("a\u{7f}", NameError::Control),
            (&*"k".repeat(1025), NameError::TooLong(1024)),
        ] {
            assert_eq!(ObjectKey::parse(bad), Err(why), "{bad:?}");
        }
    }

    #[test]
    fn object_key_splits_into_folder_and_file_name() {
        let key = ObjectKey::parse("a/b/c.png").unwrap();
        assert_eq!(key.folder().as_str(), "a/b/");
        assert_eq!(key.file_name(), "c.png");
        assert_eq!(key.folder().last_segment(), "b");
        assert_eq!(key.folder().key("d").unwrap().as_str(), "a/b/d");
        assert!(ObjectKey::parse("top").unwrap().folder().is_root());
        assert!(ObjectKey::parse("a/").unwrap().is_folder_marker());
        assert_eq!(FolderKey::parse("a"), Err(NameError::NotAFolder));
    }
}
