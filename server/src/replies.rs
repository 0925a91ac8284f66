//! The JSON bodies of uploads and deletions.
//!
//! Fields of the contract stand in one struct, the names that other services use for them in another, so that these can
//! be dropped in one place. Pure: every value is handed in. Never here: errors, which are made in `error.rs`.

use axum::body::Body;
use axum::response::IntoResponse;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Response};
use serde::Serialize;

use crate::delivery_headers::allow_every_origin;

/// One stored file, as the answer to an upload describes it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UploadedFile {
    /// The final file name.
    pub name: String,
    /// The file name that the client sent.
    pub original_name: Option<String>,
    /// The key, without the bucket.
    pub key: String,
    /// The public address.
    pub url: String,
    /// The public address of the thumbnail.
    pub thumbnail_url: Option<String>,
    /// Bytes.
    pub size: u64,
    /// The type that is stored.
    pub content_type: String,
    /// The entity tag with its quotes.
    pub etag: String,
    /// When it was stored, as [`iso_time`] writes it.
    pub last_modified: String,
    /// Whether a ` (n)` was put in because the name was taken.
    pub renamed: bool,
}

/// The answer to an upload.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UploadReply {
    success: bool,
    message: String,
    url: String,
    urls: Vec<String>,
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

/// What Fivemanage, Qbox and lb-upload templates read. Not part of the contract.
#[derive(Clone, Debug, Serialize)]
struct UploadAliases {
    status: &'static str,
    link: String,
    data: UploadAliasData,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct UploadAliasData {
    id: String,
    url: String,
    path: String,
    key: String,
    thumbnail_url: Option<String>,
}

impl UploadReply {
    /// The answer for the files of one request, in its order. There is at least one; the first stands for all.
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
            success: true,
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
}

/// The answer to a deletion.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeleteReply {
    success: bool,
    message: String,
    key: String,
    deleted_count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_truncated: Option<bool>,
    #[serde(flatten)]
    aliases: DeleteAliases,
}

/// Other names for the number of files. Not part of the contract.
#[derive(Clone, Debug, Serialize)]
struct DeleteAliases {
    deleted: usize,
    count: usize,
}

/// Whether files of a folder are left after a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remainder {
    /// The folder is gone.
    Nothing,
    /// The caller asks again for the rest.
    More,
}

impl DeleteReply {
    /// One file is gone.
    pub fn file(bucket_name: &str, key: &str) -> Self {
        Self::new(bucket_name, key, 1, None)
    }

    /// So many files of a folder are gone.
    pub fn folder(bucket_name: &str, folder: &str, count: usize, rest: Remainder) -> Self {
        Self::new(bucket_name, folder, count, Some(rest == Remainder::More))
    }

    fn new(bucket_name: &str, key: &str, count: usize, is_truncated: Option<bool>) -> Self {
        Self {
            success: true,
            message: format!("Deleted {bucket_name}/{key}"),
            key: key.to_owned(),
            deleted_count: count,
            is_truncated,
            aliases: DeleteAliases { deleted: count, count },
        }
    }
}

/// A JSON answer with status 200, readable across origins and never cached.
#[derive(Clone, Copy, Debug)]
pub struct Json<T>(pub T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response<Body> {
        // Our own types have string keys and no failing parts: there is nothing that could not be written.
        let body = serde_json::to_vec(&self.0).unwrap_or_default();
        let mut response = Response::new(Body::from(body));
        let headers = response.headers_mut();
        allow_every_origin(headers);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        response
    }
}

impl IntoResponse for UploadReply {
    fn into_response(self) -> Response<Body> {
        Json(self).into_response()
    }
}

impl IntoResponse for DeleteReply {
    fn into_response(self) -> Response<Body> {
        Json(self).into_response()
    }
}

/// A time as answers write it: `2026-01-31T12:00:00.000Z`.
pub fn iso_time(unix_ms: u64) -> String {
    let ms = i64::try_from(unix_ms).unwrap_or(i64::MAX);
    let time = jiff::Timestamp::from_millisecond(ms).unwrap_or(jiff::Timestamp::MAX);
    time.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json, to_value};

    fn file(key: &str) -> UploadedFile {
        UploadedFile {
            name: key.rsplit('/').next().unwrap().to_owned(),
            original_name: Some("blob".into()),
            key: key.to_owned(),
            url: format!("https://cdn.example.org/phone/{key}"),
            thumbnail_url: None,
            size: 3,
            content_type: "image/webp".into(),
            etag: "\"abc\"".into(),
            last_modified: iso_time(1_769_860_800_000),
            renamed: false,
        }
    }

    #[test]
    fn an_upload_is_described_for_every_kind_of_client() {
        let thumbnail = Some("https://cdn.example.org/phone/a_thumb.webp".to_owned());
        let first = UploadedFile {
            thumbnail_url: thumbnail.clone(),
            renamed: true,
            ..file("img/a (1).webp")
        };
        let reply = to_value(UploadReply::new("phone", vec![first, file("img/b.webp")])).unwrap();
        let url = "https://cdn.example.org/phone/img/a (1).webp";
        for (pointer, want) in [
            ("/success", json!(true)),
            ("/message", json!("Successfully uploaded 2 file(s)")),
            ("/url", json!(url)),
            ("/urls/1", json!("https://cdn.example.org/phone/img/b.webp")),
            ("/thumbnailUrl", json!(thumbnail)),
            ("/thumbnailUrls/1", Value::Null),
            ("/key", json!("img/a (1).webp")),
            ("/path", json!("img/a (1).webp")),
            ("/bucketName", json!("phone")),
            ("/renamed", json!(true)),
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

    #[test]
    fn a_deletion_says_how_many() {
        let one = to_value(DeleteReply::file("phone", "a.png")).unwrap();
        assert_eq!(
            one,
            json!({"success": true, "message": "Deleted phone/a.png", "key": "a.png", "deletedCount": 1, "deleted": 1,
                "count": 1})
        );
        let some = to_value(DeleteReply::folder("phone", "img/", 100, Remainder::More)).unwrap();
        assert_eq!(some["isTruncated"], json!(true));
        assert_eq!(some["deletedCount"], json!(100));
    }

    #[test]
    fn times_have_milliseconds_and_a_z() {
        assert_eq!(iso_time(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso_time(1_769_860_800_007), "2026-01-31T12:00:00.007Z");
        assert!(iso_time(u64::MAX).starts_with("9999-"));
    }
}
