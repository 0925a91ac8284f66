//! Reply to an upload.
//!
//! Fields of the API are in one struct, compatibility aliases of other services in another.

use jobs::thumbnail_object::ThumbnailSkip;
use serde::Serialize;
use utoipa::ToSchema;

/// Stored file.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UploadedFile {
    /// Final file name.
    pub name: String,
    /// File name sent by the client, if any.
    #[schema(required)]
    pub original_name: Option<String>,
    /// Key, without the bucket.
    pub key: String,
    /// Public URL.
    pub url: String,
    /// Public URL of the thumbnail; `null` if there is none.
    #[schema(required)]
    pub thumbnail_url: Option<String>,
    /// Reason why a requested thumbnail was not created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thumbnail_skipped: Option<ThumbnailSkip>,
    /// File size in bytes.
    pub size: u64,
    /// Stored media type.
    pub content_type: String,
    /// Entity tag, including its quotes.
    pub etag: String,
    /// Time when the file was stored, in RFC 3339 format.
    pub last_modified: String,
    /// Whether ` (n)` was added to the name because it was in use.
    pub renamed: bool,
}

/// Result of an upload.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UploadReply {
    message: String,
    url: String,
    urls: Vec<String>,
    #[schema(required)]
    thumbnail_url: Option<String>,
    thumbnail_urls: Vec<Option<String>>,
    key: String,
    path: String,
    bucket_name: String,
    renamed: bool,
    files: Vec<UploadedFile>,
    #[serde(flatten)]
    aliases: UploadAliases,
}

/// Compatibility aliases for Fivemanage, Qbox and lb-upload templates. Not part of the API contract.
#[derive(Clone, Debug, Serialize, ToSchema)]
struct UploadAliases {
    status: &'static str,
    link: String,
    data: UploadAliasData,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct UploadAliasData {
    id: String,
    url: String,
    path: String,
    key: String,
    #[schema(required)]
    thumbnail_url: Option<String>,
}

impl UploadReply {
    /// Creates the reply for the files of a request, in its order. At least one; the first one fills the fields of a
    /// single file.
    pub fn new(bucket_name: &str, files: Vec<UploadedFile>) -> Self {
        let first = files.first();
        let url = first.map(|file| file.url.clone()).unwrap_or_default();
        let key = first.map(|file| file.key.clone()).unwrap_or_default();
        let thumbnail_url = first.and_then(|file| file.thumbnail_url.clone());
        let data = UploadAliasData {
            id: key.clone(),
            url: url.clone(),
            path: key.clone(),
            key: key.clone(),
            thumbnail_url: thumbnail_url.clone(),
        };
        Self {
            message: format!("Successfully uploaded {} file(s)", files.len()),
            urls: files.iter().map(|file| file.url.clone()).collect(),
            thumbnail_urls: files.iter().map(|file| file.thumbnail_url.clone()).collect(),
            path: key.clone(),
            bucket_name: bucket_name.to_owned(),
            renamed: files.iter().any(|file| file.renamed),
            aliases: UploadAliases { status: "ok", link: url.clone(), data },
            thumbnail_url,
            files,
            url,
            key,
        }
    }

    /// Returns the number of files.
    pub fn file_count(&self) -> usize {
        self.files.len()
    }

    /// Returns the entity tag of the first file.
    pub fn etag(&self) -> &str {
        self.files.first().map_or("", |file| &file.etag)
    }
}

#[cfg(test)]
mod tests {
    use protocol::time_format::iso_time;

    use super::*;
    use serde_json::{Value, json, to_value};

    fn file(key: &str) -> UploadedFile {
        UploadedFile {
            name: key.rsplit('/').next().unwrap().to_owned(),
            original_name: Some("blob".into()),
            key: key.to_owned(),
            url: format!("https://cdn.example.org/phone/{key}"),
            thumbnail_url: None,
            thumbnail_skipped: None,
            size: 3,
            content_type: "image/webp".into(),
            etag: "\"abc\"".into(),
            last_modified: iso_time(1_769_860_800_000),
            renamed: false,
        }
    }

    #[test]
    fn upload_reply_has_compatibility_fields() {
        let thumbnail = Some("https://cdn.example.org/phone/a_thumb.webp".to_owned());
        let first = UploadedFile {
            thumbnail_url: thumbnail.clone(),
            renamed: true,
            ..file("img/a (1).webp")
        };
        let second = UploadedFile {
            thumbnail_skipped: Some(ThumbnailSkip::NameTaken),
            ..file("img/b.webp")
        };
        let reply = to_value(UploadReply::new("phone", vec![first, second])).unwrap();
        let url = "https://cdn.example.org/phone/img/a (1).webp";
        for (pointer, want) in [
            ("/message", json!("Successfully uploaded 2 file(s)")),
            ("/url", json!(url)),
            ("/urls/1", json!("https://cdn.example.org/phone/img/b.webp")),
            ("/thumbnailUrl", json!(thumbnail)),
            ("/thumbnailUrls/1", Value::Null),
            ("/key", json!("img/a (1).webp")),
            ("/path", json!("img/a (1).webp")),
            ("/bucketName", json!("phone")),
            ("/renamed", json!(true)),
            ("/files/1/thumbnailSkipped", json!("name_taken")),
            ("/files/0/originalName", json!("blob")),
            ("/files/0/contentType", json!("image/webp")),
            ("/files/1/lastModified", json!("2026-01-31T12:00:00.000Z")),
            ("/data/id", json!("img/a (1).webp")),
            ("/data/url", json!(url)),
            ("/data/path", json!("img/a (1).webp")),
            ("/data/thumbnailUrl", json!(thumbnail)),
            ("/status", json!("ok")),
            ("/link", json!(url)),
        ] {
            assert_eq!(reply.pointer(pointer), Some(&want), "{pointer}");
        }
    }
}
