//! Keys of a bucket, as S3 lists them.
//!
//! Promises: a key that is there throughout is on exactly one page. Never here: the order of folders.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use engine::{GroupPage, Grouping};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use s3s::dto::{
    CommonPrefix, EncodingType, ListObjectsInput, ListObjectsOutput, ListObjectsV2Input,
    ListObjectsV2Output, Object as Listed,
};
use s3s::{S3ErrorCode, S3Result};

use super::errors::{refusal, refused};
use super::objects::{etag_of, strong, time_of};
use crate::auth::Caller;
use crate::bridge::blocking;
use crate::catalog::Scope;
use crate::error::ApiError;
use crate::limits::LIST_KEYS_MAX;
use crate::state::AppState;
use crate::target::{bucket_of, normalize};

/// What stays readable of a key that is written with escapes.
const KEPT: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What is asked of a bucket, whichever version of the request asks it.
struct Asked {
    bucket: String,
    prefix: String,
    delimiter: String,
    after: Option<String>,
    keys_max: i32,
    is_encoded: bool,
}

/// A page, as both versions of the answer tell it.
struct Page {
    contents: Vec<Listed>,
    prefixes: Vec<CommonPrefix>,
    keys_max: i32,
    count: i32,
    /// The last item, where more follows.
    next: Option<String>,
}

impl Asked {
    fn text(&self, text: &str) -> String {
        match self.is_encoded {
            true => utf8_percent_encode(text, KEPT).to_string(),
            false => text.to_owned(),
        }
    }

    async fn page(&self, app: &AppState, caller: &Caller) -> Result<Page, ApiError> {
        let bucket = caller.bucket(&app.catalog, &bucket_of(&self.bucket)?, Scope::List)?;
        let prefix = normalize(&self.prefix).into_owned();
        caller.check_prefix(&prefix)?;
        let keys_max = self.keys_max.clamp(0, LIST_KEYS_MAX as i32);
        let page = match usize::try_from(keys_max) {
            Ok(limit) if limit > 0 => {
                let (store, name) = (app.store.clone(), bucket.name.clone());
                let delimiter = normalize(&self.delimiter).into_owned();
                let after = self.after.as_deref().map(|after| normalize(after).into_owned());
                blocking(move || {
                    let grouping = Grouping { prefix: &prefix, delimiter: &delimiter };
                    store.list_groups(&name, grouping, after.as_deref(), limit)
                })
                .await?
            }
            _ => GroupPage::default(),
        };
        let listed = page.objects.iter().map(|object| Listed {
            key: Some(self.text(object.name().key.as_str())),
            e_tag: strong(etag_of(object)),
            last_modified: time_of(object.modified_ms()),
            size: i64::try_from(object.bytes()).ok(),
            ..Listed::default()
        });
        let contents: Vec<_> = listed.collect();
        let prefixes: Vec<_> = page
            .groups
            .iter()
            .map(|group| CommonPrefix { prefix: Some(self.text(group)) })
            .collect();
        let count = i32::try_from(contents.len() + prefixes.len()).unwrap_or(i32::MAX);
        Ok(Page { contents, prefixes, keys_max, count, next: page.next })
    }
}

/// Lists keys, in the newer version of the request.
pub(super) async fn list(
    app: &AppState,
    caller: &Caller,
    input: ListObjectsV2Input,
) -> S3Result<ListObjectsV2Output> {
    let after = match &input.continuation_token {
        Some(token) => {
            let bytes = URL_SAFE_NO_PAD.decode(token).ok();
            let last = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
            let message = "The cursor is none of this server";
            Some(last.ok_or_else(|| refusal(S3ErrorCode::InvalidArgument, message))?)
        }
        None => input.start_after.clone(),
    };
    let asked = Asked {
        bucket: input.bucket.clone(),
        prefix: input.prefix.clone().unwrap_or_default(),
        delimiter: input.delimiter.clone().unwrap_or_default(),
        after,
        keys_max: input.max_keys.unwrap_or(LIST_KEYS_MAX as i32),
        is_encoded: is_encoded(input.encoding_type.as_ref()),
    };
    let page = asked.page(app, caller).await.map_err(|error| refused(&error))?;
    Ok(ListObjectsV2Output {
        name: Some(input.bucket),
        prefix: Some(asked.text(&asked.prefix)),
        delimiter: input.delimiter.map(|it| asked.text(&it)),
        start_after: input.start_after.map(|it| asked.text(&it)),
        max_keys: Some(page.keys_max),
        key_count: Some(page.count),
        is_truncated: Some(page.next.is_some()),
        continuation_token: input.continuation_token,
        next_continuation_token: page.next.map(|last| URL_SAFE_NO_PAD.encode(last)),
        contents: Some(page.contents),
        common_prefixes: Some(page.prefixes),
        encoding_type: input.encoding_type,
        ..ListObjectsV2Output::default()
    })
}

/// Lists keys, in the older version of the request.
pub(super) async fn list_older(
    app: &AppState,
    caller: &Caller,
    input: ListObjectsInput,
) -> S3Result<ListObjectsOutput> {
    let asked = Asked {
        bucket: input.bucket.clone(),
        prefix: input.prefix.clone().unwrap_or_default(),
        delimiter: input.delimiter.clone().unwrap_or_default(),
        after: input.marker.clone().filter(|marker| !marker.is_empty()),
        keys_max: input.max_keys.unwrap_or(LIST_KEYS_MAX as i32),
        is_encoded: is_encoded(input.encoding_type.as_ref()),
    };
    let page = asked.page(app, caller).await.map_err(|error| refused(&error))?;
    Ok(ListObjectsOutput {
        name: Some(input.bucket),
        prefix: Some(asked.text(&asked.prefix)),
        delimiter: input.delimiter.map(|it| asked.text(&it)),
        marker: Some(input.marker.map(|it| asked.text(&it)).unwrap_or_default()),
        max_keys: Some(page.keys_max),
        is_truncated: Some(page.next.is_some()),
        next_marker: page.next.map(|last| asked.text(&last)),
        contents: Some(page.contents),
        common_prefixes: Some(page.prefixes),
        encoding_type: input.encoding_type,
        ..ListObjectsOutput::default()
    })
}

fn is_encoded(encoding: Option<&EncodingType>) -> bool {
    encoding.is_some_and(|encoding| encoding.as_str() == EncodingType::URL)
}
