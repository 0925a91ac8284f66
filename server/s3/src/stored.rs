//! Properties of an object that an S3 client sends: headers, user metadata and the form of the key.
//!
//! Guarantees: properties that do not fit are rejected before the body is read. Non-goals: the content.

use catalog::object_attributes::{S3Attributes, StoredAttributes, StoredChecksum};
use http::header::{self, HeaderMap};
use protocol::stored_headers::{StoredHeaders, sent};
use s3s::dto::Metadata;
use s3s::{S3ErrorCode, S3Result};

use super::checksums::{self, Algorithm};
use super::errors::s3_error;
use super::tagging::sent_tags;

/// Parts of a multipart upload, as they are stored with the object.
#[derive(Clone, Debug, Default)]
pub(super) struct StoredParts {
    /// Run-length encoded part sizes: number of consecutive parts, and their bytes.
    pub(super) sizes: Vec<(u32, u64)>,
    /// Checksum of each part; empty if one has none.
    pub(super) checksums: Vec<String>,
}

/// Returns the attributes of the object that a request with these headers describes, without those of its content.
pub(super) fn described(
    headers: &HeaderMap,
    metadata: Option<Metadata>,
    sent_key: &str,
    key: &engine::ObjectKey,
) -> S3Result<StoredAttributes> {
    let s3 = S3Attributes {
        metadata: metadata.unwrap_or_default().into_iter().collect(),
        key: (sent_key != key.as_str()).then(|| sent_key.to_owned()),
        ..S3Attributes::default()
    };
    let described = StoredAttributes {
        declared_type: sent(headers, &header::CONTENT_TYPE),
        headers: StoredHeaders::of(headers),
        s3: Some(s3),
        tags: sent_tags(headers)?,
        ..StoredAttributes::default()
    };
    check_fit(&described, checksums::announced(headers))?;
    Ok(described)
}

/// Adds the attributes of the content, as far as they fit.
pub(super) fn with_content(
    described: &StoredAttributes,
    etag: String,
    checksum: Option<StoredChecksum>,
    parts: StoredParts,
) -> StoredAttributes {
    let StoredParts { sizes: parts, checksums: part_checksums } = parts;
    let s3 = described.s3.clone().unwrap_or_default();
    let s3 = S3Attributes { etag: Some(etag), checksum, parts, part_checksums, ..s3 };
    let whole = StoredAttributes { s3: Some(s3), ..described.clone() };
    if whole.encoded().is_some() {
        return whole;
    }
    let s3 = whole.s3.map(|s3| S3Attributes { part_checksums: Vec::new(), ..s3 });
    let whole = StoredAttributes { s3, ..whole };
    if whole.encoded().is_some() {
        return whole;
    }
    // Too many distinct part sizes do not fit: then the object has no part numbers.
    let s3 = whole.s3.map(|s3| S3Attributes { parts: Vec::new(), ..s3 });
    StoredAttributes { s3, ..whole }
}

/// Rejects attributes that do not fit together with an entity tag and a checksum of this algorithm.
fn check_fit(described: &StoredAttributes, algorithm: Option<Algorithm>) -> S3Result<()> {
    let checksum = algorithm.map(|algorithm| StoredChecksum {
        algorithm: algorithm.name().to_owned(),
        value: "0".repeat(algorithm.base64_bytes()),
    });
    let whole = with_content(described, "0".repeat(32), checksum, StoredParts::default());
    let message = "The metadata and headers to store exceed 2 KB";
    match whole.encoded() {
        Some(_) => Ok(()),
        None => Err(s3_error(S3ErrorCode::MetadataTooLarge, message)),
    }
}

#[cfg(test)]
mod tests {
    use engine::ObjectKey;
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn described_by(
        pairs: &[(&'static str, &'static str)],
        metadata: usize,
    ) -> S3Result<StoredAttributes> {
        let pairs = pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        let metadata = Metadata::from([("a".to_owned(), "x".repeat(metadata))]);
        let key = ObjectKey::parse("a").unwrap();
        described(&HeaderMap::from_iter(pairs), Some(metadata), "a", &key)
    }

    #[test]
    fn oversized_metadata_is_rejected_before_the_body() {
        assert!(described_by(&[("content-type", "image/png")], 1_800).is_ok());
        let refusal = described_by(&[("content-type", "image/png")], 2_048).unwrap_err();
        assert_eq!(refusal.code().as_str(), "MetadataTooLarge");
    }

    #[test]
    fn oversized_part_sizes_are_omitted() {
        let described = described_by(&[], 1_000).unwrap();
        let parts = |count: u64| {
            let sizes = (1..=count).map(|bytes| (1, bytes)).collect();
            let checksums = (0..count).map(|_| "AAAAAA==".to_owned()).collect();
            StoredParts { sizes, checksums }
        };
        for (count, sizes, checksums) in [(20, 20, 20), (60, 60, 0), (1_000, 0, 0)] {
            let stored = with_content(&described, "0f".into(), None, parts(count)).s3.unwrap();
            assert_eq!((stored.parts.len(), stored.part_checksums.len()), (sizes, checksums));
        }
    }
}
