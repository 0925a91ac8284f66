//! Reply to a listing: S3's ListObjectsV2, in the JSON form of its libraries.

use serde::Serialize;
use utoipa::ToSchema;

/// Key of a listing.
#[derive(Clone, Debug)]
pub struct ListedObject {
    /// Full key.
    pub key: String,
    /// Time when this version was stored.
    pub last_modified: String,
    /// Entity tag with its quotes.
    pub etag: String,
    /// Size in bytes.
    pub size: u64,
}

/// Page of objects. `Contents` and `CommonPrefixes` are always present, even if empty.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "PascalCase")]
pub struct ListReply {
    name: String,
    prefix: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    delimiter: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_after: Option<String>,
    max_keys: usize,
    key_count: usize,
    is_truncated: bool,
    #[serde(rename = "ContinuationToken", skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
    #[serde(rename = "NextContinuationToken", skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    contents: Vec<Content>,
    common_prefixes: Vec<CommonPrefix>,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "PascalCase")]
struct Content {
    key: String,
    last_modified: String,
    #[serde(rename = "ETag")]
    etag: String,
    size: u64,
    storage_class: &'static str,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "PascalCase")]
struct CommonPrefix {
    prefix: String,
}

impl ListReply {
    /// Creates a page of objects, common prefixes, and the continuation token, if any.
    pub fn new(
        objects: Vec<ListedObject>,
        common_prefixes: Vec<String>,
        next_cursor: Option<String>,
    ) -> Self {
        let contents = objects.into_iter().map(|object| Content {
            key: object.key,
            last_modified: object.last_modified,
            etag: object.etag,
            size: object.size,
            storage_class: "STANDARD",
        });
        let contents: Vec<Content> = contents.collect();
        Self {
            key_count: contents.len() + common_prefixes.len(),
            is_truncated: next_cursor.is_some(),
            next_cursor,
            contents,
            common_prefixes: common_prefixes
                .into_iter()
                .map(|prefix| CommonPrefix { prefix })
                .collect(),
            ..Self::default()
        }
    }

    /// Adds the listed bucket, prefix and delimiter.
    pub fn with_listing(self, bucket_name: &str, prefix: String, delimiter: String) -> Self {
        Self { name: bucket_name.to_owned(), prefix, delimiter, ..self }
    }

    /// Adds further parameters of the request.
    pub fn with_request(
        self,
        max_keys: usize,
        cursor: Option<String>,
        start_after: Option<String>,
    ) -> Self {
        Self { max_keys, cursor, start_after, ..self }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{json, to_value};

    use super::*;

    #[test]
    fn list_reply_has_s3_compatible_fields() {
        let object = ListedObject {
            key: "img/a.webp".into(),
            last_modified: "2026-01-31T12:00:00.000Z".into(),
            etag: "\"9b2c\"".into(),
            size: 51_234,
        };
        let page = ListReply::new(vec![object], vec!["img/b/".into()], Some("n".into()))
            .with_listing("phone", "img/".into(), "/".into())
            .with_request(2, Some("c".into()), Some("img/".into()));
        let expected = json!({
            "Name": "phone", "Prefix": "img/", "Delimiter": "/", "StartAfter": "img/", "MaxKeys": 2,
            "KeyCount": 2, "IsTruncated": true, "ContinuationToken": "c", "NextContinuationToken": "n",
            "Contents": [{"Key": "img/a.webp", "LastModified": "2026-01-31T12:00:00.000Z", "ETag": "\"9b2c\"",
                "Size": 51_234, "StorageClass": "STANDARD"}],
            "CommonPrefixes": [{"Prefix": "img/b/"}],
        });
        assert_eq!(to_value(page).unwrap(), expected);
        let empty = ListReply::new(Vec::new(), Vec::new(), None)
            .with_listing("phone", String::new(), String::new())
            .with_request(1_000, None, None);
        let expected = json!({
            "Name": "phone", "Prefix": "", "MaxKeys": 1_000, "KeyCount": 0, "IsTruncated": false,
            "Contents": [], "CommonPrefixes": [],
        });
        assert_eq!(to_value(empty).unwrap(), expected);
    }
}
