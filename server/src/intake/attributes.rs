//! What is stored of a file beside its content, its type and its times: JSON in the attributes of its record, which the
//! engine does not interpret.
//!
//! Promises: what an S3 client said about an object is returned to S3 clients unchanged. Never here: what other clients
//! get.

#[cfg(feature = "s3")]
use std::collections::BTreeMap;

use engine::Object;
use serde::{Deserialize, Serialize};

use crate::stored_headers::StoredHeaders;

/// What is stored of an upload beside its content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Attributes {
    /// The media type that the client sent, where the stored type is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) declared_type: Option<String>,
    /// The response headers that the client sent.
    #[serde(default, skip_serializing_if = "StoredHeaders::is_empty")]
    pub(crate) headers: StoredHeaders,
    #[cfg(feature = "s3")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) s3: Option<S3Attributes>,
}

/// What only S3 clients get.
#[cfg(feature = "s3")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct S3Attributes {
    /// The entity tag, without quotes: the MD5 of the content, or of the MD5s of its parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) etag: Option<String>,
    /// `x-amz-meta-*`, without the prefix.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) metadata: BTreeMap<String, String>,
    /// The key as it was sent, where that is not in Unicode normalization form C.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    /// The checksum that the client sent and that matched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) checksum: Option<StoredChecksum>,
    /// Of a multipart upload: how many parts in a row have how many bytes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) parts: Vec<(u32, u64)>,
}

/// A checksum of an object.
#[cfg(feature = "s3")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredChecksum {
    /// As in `x-amz-checksum-crc32`: the last component.
    pub(crate) algorithm: String,
    /// In base64; a composite one ends in `-` and the number of parts.
    pub(crate) value: String,
}

impl Attributes {
    /// In the form in which they are stored; `None` for no attributes, and for more than a record can hold.
    pub(super) fn encoded(&self) -> Option<Vec<u8>> {
        if *self == Self::default() {
            return None;
        }
        let encoded = serde_json::to_vec(self).ok()?;
        (encoded.len() <= engine::limits::ATTRIBUTES_BYTES_MAX).then_some(encoded)
    }

    /// Whether a record can hold them.
    #[cfg(feature = "s3")]
    pub(crate) fn fit(&self) -> bool {
        *self == Self::default() || self.encoded().is_some()
    }

    /// The attributes of a file; the default for a derived object, whose attributes are of another form.
    pub(crate) fn of(object: &Object) -> Self {
        if object.attributes().is_empty() || object.is_derived() {
            return Self::default();
        }
        serde_json::from_slice(object.attributes()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_attributes_take_no_bytes_and_too_many_are_left_out() {
        assert_eq!(Attributes::default().encoded(), None);
        let declared = |length: usize| Attributes {
            declared_type: Some("x".repeat(length)),
            ..Attributes::default()
        };
        let encoded = declared(3).encoded().unwrap();
        assert_eq!(encoded, br#"{"declaredType":"xxx"}"#);
        assert_eq!(serde_json::from_slice::<Attributes>(&encoded).unwrap(), declared(3));
        assert_eq!(declared(engine::limits::ATTRIBUTES_BYTES_MAX).encoded(), None);
    }

    #[test]
    #[cfg(feature = "s3")]
    fn attributes_of_earlier_versions_can_be_read() {
        let earlier = br#"{"declaredType":"a/b","s3":{"etag":"0f","metadata":{"mtime":"1.5"}}}"#;
        let read: Attributes = serde_json::from_slice(earlier).unwrap();
        let s3 = read.s3.unwrap();
        assert_eq!((s3.etag.as_deref(), &*s3.metadata["mtime"]), (Some("0f"), "1.5"));
        assert_eq!(
            (s3.checksum, s3.parts.len(), read.headers),
            (None, 0, StoredHeaders::default())
        );
    }
}
