//! Attributes of an object: metadata stored in its record besides content, type and times, as JSON that is opaque to
//! the engine.
//!
//! Guarantees: attributes of earlier versions can be read; those that an S3 client sent are returned to S3 clients
//! unchanged. Non-goals: which clients get them.

use std::collections::BTreeMap;

use engine::Object;
use protocol::stored_headers::StoredHeaders;
use serde::{Deserialize, Serialize};

use crate::object_lock::ObjectLock;

/// Maximum bytes of encoded attributes, without the tags.
const UNTAGGED_BYTES_MAX: usize = 2_048;
/// Maximum bytes of an encoded version mark.
pub const MARK_BYTES_MAX: usize = 112;
/// Maximum bytes of an encoded lock.
const LOCK_BYTES_MAX: usize = 64;
/// Maximum bytes of an encoded time with the name of its field.
const TIME_BYTES_MAX: usize = 40;
/// Start of encoded attributes with an expiry time, which is their first field.
const EXPIRY_START: &[u8] = br#"{"expiresMs":"#;
/// Start of encoded attributes with a last-modified time and without an expiry time.
const MODIFIED_START: &[u8] = br#"{"modifiedMs":"#;

/// Tags of an object or a bucket, by key.
pub type Tags = BTreeMap<String, String>;

/// Attributes of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredAttributes {
    /// Expiry time, in milliseconds since 1970. Stored first, so that [`expires_ms`] finds it without parsing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
    /// Last-modified time of the content, in milliseconds since 1970, if the attributes were changed later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified_ms: Option<u64>,
    /// Media type that the client sent, if the stored type is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared_type: Option<String>,
    /// Response headers that the client sent.
    #[serde(default, skip_serializing_if = "StoredHeaders::is_empty")]
    pub headers: StoredHeaders,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s3: Option<S3Attributes>,
    #[serde(default, skip_serializing_if = "Tags::is_empty")]
    pub tags: Tags,
    /// Version mark, in a versioned bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<VersionMark>,
    /// Retention and legal hold, in a bucket with object lock.
    #[serde(default, skip_serializing_if = "ObjectLock::is_none")]
    pub lock: ObjectLock,
    /// Whether everyone may read the object although its bucket is private.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_public: bool,
}

/// Version data of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionMark {
    /// Version number, if it differs from the number of the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// Whether its id is `null`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_null: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_delete_marker: bool,
    /// Time of the original upload, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified_ms: Option<u64>,
}

/// Attributes returned only to S3 clients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct S3Attributes {
    /// Entity tag, without quotes: the MD5 of the content, or of the MD5s of its parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// `x-amz-meta-*`, without the prefix.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// Original key, if it is not in Unicode normalization form C.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Verified checksum that the client sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<StoredChecksum>,
    /// Part layout of a multipart upload, run-length encoded: number of consecutive parts, and their bytes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<(u32, u64)>,
    /// Part checksums of a multipart upload, by the algorithm of the object, in base64. Empty if they do not fit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub part_checksums: Vec<String>,
}

/// Checksum of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredChecksum {
    /// Algorithm name as in `x-amz-checksum-crc32`: the last word.
    pub algorithm: String,
    /// Value in base64; a composite one ends in `-` and the number of parts.
    pub value: String,
}

impl StoredAttributes {
    /// Encodes the attributes; `None` for no attributes, and for more than a record can hold.
    pub fn encoded(&self) -> Option<Vec<u8>> {
        if *self == Self::default() {
            return None;
        }
        let encoded = serde_json::to_vec(self).ok()?;
        let tags_bytes = match self.tags.is_empty() {
            true => 0,
            false => r#","tags":"#.len() + serde_json::to_vec(&self.tags).ok()?.len(),
        };
        let mark_bytes = match self.version {
            Some(_) => r#","version":"#.len() + MARK_BYTES_MAX,
            None => 0,
        };
        let lock_bytes = match self.lock.is_none() {
            true => 0,
            false => r#","lock":"#.len() + LOCK_BYTES_MAX,
        };
        let times = [self.expires_ms, self.modified_ms];
        let time_bytes = times.into_iter().flatten().count() * TIME_BYTES_MAX;
        let public_bytes = if self.is_public { r#","isPublic":true"#.len() } else { 0 };
        let bytes_max =
            UNTAGGED_BYTES_MAX + time_bytes + tags_bytes + mark_bytes + lock_bytes + public_bytes;
        let bytes_max = engine::limits::ATTRIBUTES_BYTES_MAX.min(bytes_max);
        (encoded.len() <= bytes_max).then_some(encoded)
    }

    /// Returns the same attributes with other tags.
    pub fn with_tags(self, tags: Tags) -> Self {
        Self { tags, ..self }
    }

    /// Returns the attributes of a file; the default for a derived object, whose attributes have another form.
    pub fn of(object: &Object) -> Self {
        match object.is_derived() {
            true => Self::default(),
            false => Self::parse(object.attributes()),
        }
    }

    /// Parses stored attributes; returns the default for none, and for those of another form.
    pub fn parse(bytes: &[u8]) -> Self {
        match bytes {
            [] => Self::default(),
            _ => serde_json::from_slice(bytes).unwrap_or_default(),
        }
    }
}

/// Returns the expiry time in encoded attributes of a file, in milliseconds since 1970.
pub fn expires_ms(attributes: &[u8]) -> Option<u64> {
    match attributes.starts_with(EXPIRY_START) {
        true => StoredAttributes::parse(attributes).expires_ms,
        false => None,
    }
}

/// Returns encoded attributes of a file without an expiry time that has passed, for a file that is restored.
pub fn without_past_expiry(attributes: &[u8], now_ms: u64) -> Vec<u8> {
    match expires_ms(attributes) {
        Some(at_ms) if at_ms <= now_ms => {
            let stored = StoredAttributes::parse(attributes);
            StoredAttributes { expires_ms: None, ..stored }.encoded().unwrap_or_default()
        }
        _ => attributes.to_vec(),
    }
}

/// Returns the last-modified time of the content of an object, in milliseconds since 1970.
pub fn last_modified_ms(object: &Object) -> u64 {
    let attributes = object.attributes();
    let may_differ = attributes.starts_with(EXPIRY_START) || attributes.starts_with(MODIFIED_START);
    match may_differ && !object.is_derived() {
        true => StoredAttributes::parse(attributes).modified_ms.unwrap_or(object.modified_ms()),
        false => object.modified_ms(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expiry_is_found_at_the_start_of_attributes() {
        let stored = StoredAttributes {
            expires_ms: Some(u64::MAX),
            modified_ms: Some(u64::MAX),
            declared_type: Some("a/b".into()),
            ..StoredAttributes::default()
        };
        let encoded = stored.encoded().unwrap();
        assert!(encoded.starts_with(EXPIRY_START));
        assert_eq!(expires_ms(&encoded), Some(u64::MAX));
        let modified = StoredAttributes { expires_ms: None, ..stored };
        let encoded = modified.encoded().unwrap();
        assert!(encoded.starts_with(MODIFIED_START));
        assert_eq!(expires_ms(&encoded), None);
        let text = br#","modifiedMs":18446744073709551615"#;
        assert!(text.len() <= TIME_BYTES_MAX);
    }

    #[test]
    fn no_attributes_take_no_bytes_and_too_many_are_left_out() {
        assert_eq!(StoredAttributes::default().encoded(), None);
        let declared = |length: usize| StoredAttributes {
            declared_type: Some("x".repeat(length)),
            ..StoredAttributes::default()
        };
        let encoded = declared(3).encoded().unwrap();
        assert_eq!(encoded, br#"{"declaredType":"xxx"}"#);
        assert_eq!(serde_json::from_slice::<StoredAttributes>(&encoded).unwrap(), declared(3));
        assert_eq!(declared(UNTAGGED_BYTES_MAX).encoded(), None);
    }

    #[test]
    fn attributes_of_earlier_versions_can_be_read() {
        let earlier = br#"{"declaredType":"a/b","s3":{"etag":"0f","metadata":{"mtime":"1.5"}}}"#;
        let read: StoredAttributes = serde_json::from_slice(earlier).unwrap();
        let s3 = read.s3.unwrap();
        assert_eq!((s3.etag.as_deref(), &*s3.metadata["mtime"]), (Some("0f"), "1.5"));
        assert_eq!(
            (s3.checksum, s3.parts.len(), read.headers),
            (None, 0, StoredHeaders::default())
        );
    }
}
