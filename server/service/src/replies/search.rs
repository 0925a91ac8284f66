//! Reply to a search.

use std::ops::Range;

use serde::Serialize;
use utoipa::ToSchema;

/// Page of search hits.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct SearchPage {
    /// Maximum number of hits.
    pub limit: usize,
    /// Number of skipped hits.
    pub offset: usize,
}

/// Properties of files, which folders do not have.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SearchFile {
    /// Size in bytes.
    pub size: u64,
    /// Time when this version was stored.
    pub last_modified: String,
    /// Entity tag with its quotes.
    pub etag: String,
    /// Stored media type.
    pub content_type: String,
    /// Public URL.
    pub url: String,
    /// Public URL of the thumbnail, if there is one.
    pub thumbnail_url: Option<String>,
}

/// Search hit.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchHit {
    #[serde(rename = "type")]
    kind: &'static str,
    name: String,
    key: String,
    path: String,
    parent: String,
    score: u16,
    matches: Vec<[usize; 2]>,
    #[schema(required)]
    size: Option<u64>,
    #[schema(required)]
    last_modified: Option<String>,
    #[schema(required)]
    etag: Option<String>,
    #[schema(required)]
    content_type: Option<String>,
    #[schema(required)]
    url: Option<String>,
    #[schema(required)]
    thumbnail_url: Option<String>,
}

/// Search result.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchReply {
    query: String,
    bucket_name: String,
    parent: String,
    #[serde(flatten)]
    page: SearchPage,
    estimated_total_hits: usize,
    total: usize,
    total_is_exact: bool,
    processing_time_ms: u64,
    hits: Vec<SearchHit>,
}

impl SearchHit {
    /// Creates a hit, with the matching byte ranges of its key. Without a file it is a folder.
    pub fn new(
        key: String,
        score: u16,
        matches: &[Range<usize>],
        file: Option<SearchFile>,
    ) -> Self {
        let trimmed = key.strip_suffix('/').unwrap_or(&key);
        let begin = trimmed.rfind('/').map_or(0, |slash| slash + 1);
        let (parent, name) = trimmed.split_at_checked(begin).unwrap_or_default();
        // Most clients highlight matches in JavaScript, where offsets count UTF-16 units.
        let units = |at: usize| key.get(..at).map_or(0, |before| before.encode_utf16().count());
        let is_file = file.is_some();
        let (size, file) = (file.as_ref().map(|file| file.size), file.unwrap_or_default());
        let some = |text: String| is_file.then_some(text);
        Self {
            kind: if is_file { "file" } else { "folder" },
            name: name.to_owned(),
            parent: parent.to_owned(),
            path: key.clone(),
            score,
            matches: matches.iter().map(|it| [units(it.start), units(it.end)]).collect(),
            size,
            last_modified: some(file.last_modified),
            etag: some(file.etag),
            content_type: some(file.content_type),
            url: some(file.url),
            thumbnail_url: file.thumbnail_url,
            key,
        }
    }
}

impl SearchReply {
    /// Creates a reply without hits.
    pub fn new(query: String, bucket_name: &str, parent: &str, page: SearchPage) -> Self {
        Self {
            query,
            bucket_name: bucket_name.to_owned(),
            parent: parent.to_owned(),
            page,
            estimated_total_hits: 0,
            total: 0,
            total_is_exact: true,
            processing_time_ms: 0,
            hits: Vec::new(),
        }
    }

    /// Adds the hits of the page, and the total number.
    pub fn with_hits(self, hits: Vec<SearchHit>, total: usize, total_is_exact: bool) -> Self {
        Self { hits, total, estimated_total_hits: total, total_is_exact, ..self }
    }

    /// Adds the processing time.
    pub fn with_duration(self, processing_time_ms: u64) -> Self {
        Self { processing_time_ms, ..self }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json, to_value};

    use super::*;

    #[test]
    fn search_reply_is_meilisearch_compatible() {
        let page = SearchPage { limit: 20, offset: 40 };
        let file = SearchFile {
            size: 3,
            url: "https://cdn.example.org/phone/img/a.webp".into(),
            ..SearchFile::default()
        };
        let hits = vec![
            SearchHit::new("img/".into(), 900, &[0..1, 2..3], None),
            SearchHit::new("img/\u{1f600}é/a.webp".into(), 800, &[4..8, 11..12], Some(file)),
        ];
        let reply = SearchReply::new("a".into(), "phone", "", page)
            .with_hits(hits, 42, true)
            .with_duration(7);
        let reply = to_value(reply).unwrap();
        for (pointer, want) in [
            ("/query", json!("a")),
            ("/bucketName", json!("phone")),
            ("/parent", json!("")),
            ("/limit", json!(20)),
            ("/offset", json!(40)),
            ("/total", json!(42)),
            ("/estimatedTotalHits", json!(42)),
            ("/totalIsExact", json!(true)),
            ("/processingTimeMs", json!(7)),
            ("/hits/0/type", json!("folder")),
            ("/hits/0/name", json!("img")),
            ("/hits/0/key", json!("img/")),
            ("/hits/0/path", json!("img/")),
            ("/hits/0/parent", json!("")),
            ("/hits/0/size", Value::Null),
            ("/hits/0/url", Value::Null),
            ("/hits/0/matches", json!([[0, 1], [2, 3]])),
            ("/hits/1/type", json!("file")),
            ("/hits/1/name", json!("a.webp")),
            ("/hits/1/parent", json!("img/\u{1f600}é/")),
            ("/hits/1/size", json!(3)),
            ("/hits/1/score", json!(800)),
            ("/hits/1/url", json!("https://cdn.example.org/phone/img/a.webp")),
            ("/hits/1/thumbnailUrl", Value::Null),
            ("/hits/1/matches", json!([[4, 6], [8, 9]])),
        ] {
            assert_eq!(reply.pointer(pointer), Some(&want), "{pointer}");
        }
    }
}
