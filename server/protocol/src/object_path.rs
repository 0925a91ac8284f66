//! Target of a URL: a bucket, and a file or folder in it.
//!
//! Every entry point parses paths and names here. A URL is decoded once; `%2F` equals `/` after the bucket; names are
//! NFC-normalised. Guarantees: the result is a valid name, or an error that states the violated rule. Non-goals:
//! existence of the bucket, and authorization.

use std::borrow::Cow;

use engine::name::NameError;
use engine::{BucketName, FolderKey, ObjectKey, ObjectName};
use percent_encoding::percent_decode_str;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use crate::error::ApiError;
use crate::reserved_paths;

/// Bucket, and a file or folder in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectPath {
    /// Name of the bucket.
    pub bucket: BucketName,
    /// File or folder.
    pub place: PathInBucket,
}

/// File or folder of a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathInBucket {
    /// Path that ends in `/`, or an empty path: the root.
    Folder(FolderKey),
    /// Any other path.
    File(ObjectKey),
}

impl ObjectPath {
    /// Parses a URL path such as `/bucket/folder/file.png`, percent-encoded.
    pub fn from_path(path: &str) -> Result<Self, ApiError> {
        let path = path.strip_prefix('/').ok_or_else(ApiError::bucket_not_found)?;
        let (bucket, rest) = path.split_once('/').unwrap_or((path, ""));
        Self::from_parts(&decode(bucket)?, &decode(rest)?)
    }

    /// Parses a percent-encoded path `/{bucket}/presigned/{path}`; `None` for any other.
    pub fn from_presign_path(path: &str) -> Option<Result<Self, ApiError>> {
        let (bucket, rest) = path.strip_prefix('/')?.split_once('/')?;
        let rest = reserved_paths::after_segments(rest, reserved_paths::PRESIGNED)?;
        Some(decode(bucket).and_then(|bucket| Self::from_parts(&bucket, &decode(rest)?)))
    }

    /// Parses a bucket name and a path in it, both decoded.
    pub fn from_parts(bucket: &str, path: &str) -> Result<Self, ApiError> {
        Ok(Self { bucket: parse_bucket_name(bucket)?, place: PathInBucket::parse(path)? })
    }

    /// Parses only the bucket of such a path, whatever follows it.
    pub fn bucket_of_path(path: &str) -> Option<BucketName> {
        let first = path.strip_prefix('/')?.split('/').next()?;
        parse_bucket_name(&decode(first).ok()?).ok()
    }

    /// Returns the object, if the target is a file.
    pub fn object(&self) -> Option<ObjectName> {
        match &self.place {
            PathInBucket::File(key) => Some(ObjectName::new(self.bucket.clone(), key.clone())),
            PathInBucket::Folder(_) => None,
        }
    }
}

impl PathInBucket {
    /// Parses a decoded path inside a bucket.
    pub fn parse(path: &str) -> Result<Self, ApiError> {
        let path = normalize(path);
        if path.is_empty() || path.ends_with('/') {
            FolderKey::parse(&path).map(Self::Folder).map_err(ApiError::bad_path)
        } else {
            ObjectKey::parse(&path).map(Self::File).map_err(ApiError::bad_path)
        }
    }

    /// Returns the path as text.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Folder(folder) => folder.as_str(),
            Self::File(key) => key.as_str(),
        }
    }
}

/// Parses a bucket name in a request. An invalid name gives the same error as a bucket that does not exist.
pub fn parse_bucket_name(name: &str) -> Result<BucketName, ApiError> {
    match BucketName::parse(name) {
        Ok(name) if !reserved_paths::is_reserved(name.as_str()) => Ok(name),
        _ => Err(ApiError::bucket_not_found()),
    }
}

/// Returns the last segment of an API path, decoded: the name or id of a record.
pub fn last_segment(path: &str) -> Result<String, ApiError> {
    decode(path.rsplit('/').next().unwrap_or("")).map(Cow::into_owned)
}

/// Returns the key of a file in a folder, or an error that states the violated rule.
pub fn key_in_folder(folder: &FolderKey, file_name: &str) -> Result<ObjectKey, ApiError> {
    folder.key(&normalize(file_name)).map_err(|rule| match rule {
        NameError::TooLong(max) => ApiError::bad_path(format!("it is longer than {max} bytes")),
        other => ApiError::bad_path(other),
    })
}

/// Rejects a key that uploads may not create: `presigned/` in every bucket is reserved for the earlier presign form.
pub fn check_writable(key: &ObjectKey) -> Result<(), ApiError> {
    check_path_writable(key.as_str())
}

/// Rejects a file or folder that uploads may not create.
pub fn check_object_path_writable(place: &PathInBucket) -> Result<(), ApiError> {
    check_path_writable(place.as_str())
}

fn check_path_writable(path: &str) -> Result<(), ApiError> {
    match path.split_once('/') {
        Some((reserved_paths::PRESIGNED, _)) => {
            Err(ApiError::bad_path("the folder \"presigned/\" is reserved"))
        }
        _ => Ok(()),
    }
}

/// Normalizes text to Unicode's composed form (NFC).
pub fn normalize(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || is_nfc_quick(text.chars()) == IsNormalized::Yes {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.nfc().collect())
}

/// Decodes percent escapes, once. Rejects a malformed escape and invalid UTF-8.
pub fn decode(raw: &str) -> Result<Cow<'_, str>, ApiError> {
    if !raw.contains('%') {
        return Ok(Cow::Borrowed(raw));
    }
    let mut rest = raw.as_bytes();
    while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
        match rest.get(at + 1..at + 3) {
            Some([high, low]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {}
            _ => return Err(ApiError::bad_path("it contains an invalid percent-encoding")),
        }
        rest = rest.get(at + 3..).unwrap_or(&[]);
    }
    let decoded = percent_decode_str(raw).decode_utf8();
    decoded.map_err(|_| ApiError::bad_path("it is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str) -> Result<String, (u16, &'static str)> {
        let target = ObjectPath::from_path(path).map_err(|it| (it.status().as_u16(), it.code()))?;
        let kind = if matches!(target.place, PathInBucket::Folder(_)) { "folder" } else { "file" };
        Ok(format!("{kind} {} {}", target.bucket, target.place.as_str()))
    }

    #[test]
    fn object_path_is_decoded_once() {
        for (path, want) in [
            ("/abc", "folder abc "),
            ("/abc/", "folder abc "),
            ("/abc/dir/", "folder abc dir/"),
            ("/abc/a.png", "file abc a.png"),
            ("/abc/dir/a%20b.png", "file abc dir/a b.png"),
            ("/abc/dir%2Fa.png", "file abc dir/a.png"),
            ("/abc/dir%2f", "folder abc dir/"),
            ("/abc/a%252Fb", "file abc a%2Fb"),
            ("/abc/a+b", "file abc a+b"),
            ("/%61bc/a", "file abc a"),
            ("/abc/caf%65%cc%81", "file abc caf\u{e9}"),
            ("/abc/%E6%97%A5", "file abc \u{65e5}"),
            ("/abc/...", "file abc ..."),
        ] {
            assert_eq!(read(path).as_deref(), Ok(want), "{path}");
        }
    }

    #[test]
    fn hostile_paths_are_refused() {
        const PATH: (u16, &str) = (400, "bad_path");
        const BUCKET: (u16, &str) = (404, "bucket_not_found");
        for (path, want) in [
            ("/abc/../api/list-objects", PATH),
            ("/abc/%2e%2e/api", PATH),
            ("/abc/%2e%2e%2f%2e%2e%2fetc", PATH),
            ("/abc/./a", PATH),
            ("/abc/a/..", PATH),
            ("/abc/a//c", PATH),
            ("/abc//x", PATH),
            ("/abc//", PATH),
            ("/abc/%2F", PATH),
            ("/abc/a%00b", PATH),
            ("/abc/a%0d%0aX:1", PATH),
            ("/abc/a%C2%85b", PATH),
            ("/abc/a%5c..%5cb", PATH),
            ("/abc/%ff", PATH),
            ("/abc/%c0%ae", PATH),
            ("/abc/%", PATH),
            ("/abc/%2", PATH),
            ("/abc/%zz", PATH),
            ("//abc/x", BUCKET),
            ("/", BUCKET),
            ("", BUCKET),
            ("*", BUCKET),
            ("/abc%2Fx/y", BUCKET),
            ("/%2e%2e/x", BUCKET),
            ("/ab/x", BUCKET),
            ("/API/x", BUCKET),
            ("/api/x", BUCKET),
            ("/%61pi/list-objects", BUCKET),
            ("/-/health", BUCKET),
            ("/favicon.ico", BUCKET),
        ] {
            assert_eq!(read(path), Err(want), "{path}");
        }
        assert_eq!(read(&format!("/abc/{}", "k".repeat(1_025))), Err(PATH));
        assert!(read(&format!("/abc/{}", "k".repeat(1_024))).is_ok());
    }

    #[test]
    fn invalid_path_error_names_the_rule() {
        let refusal = ObjectPath::from_path("/abc/a/../b").unwrap_err();
        assert!(refusal.message().contains("\"..\""), "{}", refusal.message());
    }

    #[test]
    fn only_presigned_folder_rejects_uploads() {
        let check = |key: &str| check_writable(&ObjectKey::parse(key).unwrap()).is_ok();
        assert!(!check("presigned/a") && !check("presigned/"));
        assert!(check("presigned") && check("a/presigned/b") && check("presigned.png"));
    }
}
