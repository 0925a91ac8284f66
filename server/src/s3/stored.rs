//! Properties of an object that an S3 client sends: headers, user metadata and the form of the key.
//!
//! Guarantees: properties that do not fit are rejected before the body is read. Non-goals: the content.

use std::collections::BTreeMap;

use catalog::object_attributes::{S3Attributes, StoredAttributes, StoredChecksum, Tags};
use catalog::object_lock::ObjectLock;
use http::header::{self, HeaderMap};
use protocol::stored_headers::{StoredHeaders, sent};
use s3s::dto::Metadata;
use s3s::{S3ErrorCode, S3Result};

use super::checksums::{self, Algorithm};
use super::errors::s3_error;
use super::tagging::sent_tags;

/// Properties of the object in the request that starts an upload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Described {
    pub(super) content_type: Option<String>,
    pub(super) headers: StoredHeaders,
    pub(super) metadata: BTreeMap<String, String>,
    /// Original key, if it differs from the stored one.
    pub(super) key: Option<String>,
    pub(super) tags: Tags,
    pub(super) lock: ObjectLock,
}

/// Parts of a multipart upload, as they are stored with the object.
#[derive(Clone, Debug, Default)]
pub(super) struct StoredParts {
    /// Run-length encoded part sizes: number of consecutive parts, and their bytes.
    pub(super) sizes: Vec<(u32, u64)>,
    /// Checksum of each part; empty if one has none.
    pub(super) checksums: Vec<String>,
}

impl Described {
    /// Parses the headers of a request for an object with this key.
    pub(super) fn of(
        headers: &HeaderMap,
        metadata: Option<Metadata>,
        sent_key: &str,
        key: &engine::ObjectKey,
    ) -> S3Result<Self> {
        let described = Self {
            content_type: sent(headers, &header::CONTENT_TYPE),
            headers: StoredHeaders::of(headers),
            metadata: metadata.unwrap_or_default().into_iter().collect(),
            key: (sent_key != key.as_str()).then(|| sent_key.to_owned()),
            tags: sent_tags(headers)?,
            lock: ObjectLock::default(),
        };
        described.check_fit(checksums::announced(headers))?;
        Ok(described)
    }

    /// Sets retention and legal hold.
    pub(super) fn locked(self, lock: ObjectLock) -> Self {
        Self { lock, ..self }
    }

    /// Returns the stored attributes once the content is known.
    pub(super) fn attributes(
        &self,
        etag: String,
        checksum: Option<StoredChecksum>,
        parts: StoredParts,
    ) -> S3Attributes {
        let (metadata, key) = (self.metadata.clone(), self.key.clone());
        let StoredParts { sizes: parts, checksums: part_checksums } = parts;
        let mut whole =
            S3Attributes { etag: Some(etag), metadata, key, checksum, parts, part_checksums };
        if !self.fit(&whole) {
            whole.part_checksums = Vec::new();
        }
        // Too many distinct part sizes do not fit: then the object has no part numbers.
        if !self.fit(&whole) {
            whole.parts = Vec::new();
        }
        whole
    }

    fn fit(&self, s3: &S3Attributes) -> bool {
        let (declared_type, headers) = (self.content_type.clone(), self.headers.clone());
        let (s3, tags) = (Some(s3.clone()), self.tags.clone());
        let lock = self.lock;
        StoredAttributes { declared_type, headers, s3, tags, lock, ..StoredAttributes::default() }
            .encoded()
            .is_some()
    }

    /// Rejects properties that do not fit together with an entity tag and a checksum of this algorithm.
    fn check_fit(&self, algorithm: Option<Algorithm>) -> S3Result<()> {
        let checksum = algorithm.map(|algorithm| StoredChecksum {
            algorithm: algorithm.name().to_owned(),
            value: "0".repeat(algorithm.base64_bytes()),
        });
        let s3 = S3Attributes {
            etag: Some("0".repeat(32)),
            metadata: self.metadata.clone(),
            key: self.key.clone(),
            checksum,
            ..S3Attributes::default()
        };
        if self.fit(&s3) {
            return Ok(());
        }
        let message = "The metadata and headers to store exceed 2 KB";
        Err(s3_error(S3ErrorCode::MetadataTooLarge, message))
    }
}

#[cfg(test)]
mod tests {
    use engine::ObjectKey;
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn described(pairs: &[(&'static str, &'static str)], metadata: usize) -> S3Result<Described> {
        let pairs = pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        let metadata = Metadata::from([("a".to_owned(), "x".repeat(metadata))]);
        let key = ObjectKey::parse("a").unwrap();
        Described::of(&HeaderMap::from_iter(pairs), Some(metadata), "a", &key)
    }

    #[test]
    fn oversized_metadata_is_rejected_before_the_body() {
        assert!(described(&[("content-type", "image/png")], 1_800).is_ok());
        let refusal = described(&[("content-type", "image/png")], 2_048).unwrap_err();
        assert_eq!(refusal.code().as_str(), "MetadataTooLarge");
    }

    #[test]
    fn oversized_part_sizes_are_omitted() {
        let described = described(&[], 1_000).unwrap();
        let parts = |count: u64| {
            let sizes = (1..=count).map(|bytes| (1, bytes)).collect();
            let checksums = (0..count).map(|_| "AAAAAA==".to_owned()).collect();
            StoredParts { sizes, checksums }
        };
        for (count, sizes, checksums) in [(20, 20, 20), (60, 60, 0), (1_000, 0, 0)] {
            let stored = described.attributes("0f".into(), None, parts(count));
            assert_eq!((stored.parts.len(), stored.part_checksums.len()), (sizes, checksums));
        }
    }
}
