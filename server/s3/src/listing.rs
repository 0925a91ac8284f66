//! Object listings: ListObjectsV2, ListObjects and ListObjectVersions.
//!
//! Guarantees: a key that exists throughout is on exactly one page; so is a version. Non-goals:
//! folder order.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use catalog::object_attributes::{StoredAttributes, last_modified_ms};
use catalog::versions::{self, Version, VersionId, VersionPage, VersionsQuery};
use catalog::{Bucket, Scope};
use engine::Object;
use engine::listing::{KeyGroupPage, KeyGrouping};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use protocol::error::ApiError;
use protocol::object_path::{normalize, parse_bucket_name};
use s3s::dto::{
    CommonPrefix, DeleteMarkerEntry, EncodingType, ListObjectVersionsInput,
    ListObjectVersionsOutput, ListObjectsInput, ListObjectsOutput, ListObjectsV2Input,
    ListObjectsV2Output, Object as Listed, ObjectStorageClass, ObjectVersion,
    ObjectVersionStorageClass, Owner,
};
use s3s::{S3ErrorCode, S3Request, S3Result};
use service::auth::Caller;
use service::limits::LIST_KEYS_MAX;
use service::state::AppState;
use usage::task::blocking;

use super::access::caller_of;
use super::errors::{s3_error, to_s3_error};
use super::objects::{etag_in, key_in, strong_etag, time_of};
use super::versioning::version_id;

/// Characters that are literal in a key with percent escapes.
const READABLE: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Parameters that the listing operations share.
struct ListRequest {
    bucket: String,
    prefix: String,
    delimiter: String,
    after: Option<String>,
    keys_max: usize,
    is_encoded: bool,
}

/// Page of a listing.
struct ListPage {
    objects: Vec<Object>,
    owner: Owner,
    prefixes: Vec<CommonPrefix>,
    /// Number of keys and prefixes.
    count: i32,
    /// Last item, if more follows.
    next: Option<String>,
}

impl ListRequest {
    /// Parses the parameters of the older listings, which start after a key.
    fn after_key(
        bucket: &str,
        [prefix, delimiter, marker]: [&Option<String>; 3],
        max_keys: Option<i32>,
        encoding: Option<&EncodingType>,
    ) -> S3Result<Self> {
        Ok(Self {
            bucket: bucket.to_owned(),
            prefix: prefix.clone().unwrap_or_default(),
            delimiter: delimiter.clone().unwrap_or_default(),
            after: marker.clone().filter(|marker| !marker.is_empty()),
            keys_max: keys_max(max_keys)?,
            is_encoded: is_encoded(encoding),
        })
    }

    /// Returns the delimiter in the response; `None` for an empty one.
    fn delimiter(&self) -> Option<String> {
        (!self.delimiter.is_empty()).then(|| self.text(&self.delimiter))
    }

    fn text(&self, text: &str) -> String {
        match self.is_encoded {
            true => utf8_percent_encode(text, READABLE).to_string(),
            false => text.to_owned(),
        }
    }

    async fn page(&self, app: &AppState, caller: &Caller) -> Result<ListPage, ApiError> {
        let bucket = caller.bucket(&app.catalog, &parse_bucket_name(&self.bucket)?, Scope::List)?;
        let prefix = normalize(&self.prefix).into_owned();
        caller.require_prefix_access(&prefix)?;
        let mut page = match self.keys_max {
            0 => KeyGroupPage::default(),
            limit => {
                let (store, name) = (app.store.clone(), bucket.name.clone());
                let delimiter = normalize(&self.delimiter).into_owned();
                let after = self.after.as_deref().map(|after| normalize(after).into_owned());
                blocking(move || {
                    let grouping = KeyGrouping { prefix: &prefix, delimiter: &delimiter };
                    store.list_key_groups(&name, grouping, after.as_deref(), limit)
                })
                .await?
            }
        };
        page.objects.retain(|object| !bucket.is_expired(object, || app.clock.unix_ms()));
        let prefixes = page.groups.iter();
        let prefixes: Vec<_> =
            prefixes.map(|group| CommonPrefix { prefix: Some(self.text(group)) }).collect();
        let count = i32::try_from(page.objects.len() + prefixes.len()).unwrap_or(i32::MAX);
        let (objects, owner) = (page.objects, owner_of(app, &bucket));
        Ok(ListPage { objects, owner, prefixes, count, next: page.next })
    }

    fn listed(&self, object: &Object, owner: Option<&Owner>) -> Listed {
        let attributes = StoredAttributes::of(object);
        Listed {
            key: Some(self.text(&key_in(&attributes, object))),
            e_tag: strong_etag(etag_in(&attributes, object)),
            last_modified: time_of(last_modified_ms(object)),
            size: i64::try_from(object.bytes()).ok(),
            storage_class: Some(ObjectStorageClass::from_static(ObjectStorageClass::STANDARD)),
            owner: owner.cloned(),
            ..Listed::default()
        }
    }

    async fn versions(
        &self,
        app: &AppState,
        caller: &Caller,
        after_version: Option<VersionId>,
    ) -> Result<(VersionPage, Owner), ApiError> {
        let bucket = caller.bucket(&app.catalog, &parse_bucket_name(&self.bucket)?, Scope::List)?;
        let prefix = normalize(&self.prefix).into_owned();
        caller.require_prefix_access(&prefix)?;
        let after = self.after.as_deref().map(|after| normalize(after).into_owned());
        let query = VersionsQuery {
            prefix,
            delimiter: normalize(&self.delimiter).into_owned(),
            after: after.map(|after| (after, after_version)),
            limit: self.keys_max,
        };
        let (store, of) = (app.store.clone(), bucket.clone());
        let list = move || versions::list(&store, &of.name, of.versioning, &query);
        Ok((blocking(list).await?, owner_of(app, &bucket)))
    }

    fn listed_version(&self, version: &Version, owner: &Owner) -> ObjectVersion {
        let class = ObjectVersionStorageClass::from_static(ObjectVersionStorageClass::STANDARD);
        let Listed { key, e_tag, size, owner, .. } = self.listed(&version.object, Some(owner));
        ObjectVersion {
            key,
            version_id: Some(version.id.to_string()),
            is_latest: Some(version.is_latest),
            e_tag,
            last_modified: time_of(version.modified_ms),
            size,
            storage_class: Some(class),
            owner,
            ..ObjectVersion::default()
        }
    }

    fn listed_marker(&self, marker: &Version, owner: &Owner) -> DeleteMarkerEntry {
        let Listed { key, owner, .. } = self.listed(&marker.object, Some(owner));
        DeleteMarkerEntry {
            key,
            version_id: Some(marker.id.to_string()),
            is_latest: Some(marker.is_latest),
            last_modified: time_of(marker.modified_ms),
            owner,
        }
    }

    fn keys_max(&self) -> Option<i32> {
        i32::try_from(self.keys_max).ok()
    }
}

/// Returns the owner of a bucket, and so of its objects.
pub(super) fn owner_of(app: &AppState, bucket: &Bucket) -> Owner {
    let account = app.catalog.accounts().get(&bucket.owner);
    Owner {
        id: Some(bucket.owner.to_string()),
        display_name: account.map(|account| account.name.as_str().to_owned()),
    }
}

/// Returns the page size: at most 1,000, which is also the default.
fn keys_max(requested: Option<i32>) -> S3Result<usize> {
    let Some(requested) = requested else { return Ok(LIST_KEYS_MAX) };
    let wanted = usize::try_from(requested).map_err(|_| {
        s3_error(S3ErrorCode::InvalidArgument, "max-keys must be a number from 0 to 2147483647")
    })?;
    Ok(wanted.min(LIST_KEYS_MAX))
}

fn is_encoded(encoding: Option<&EncodingType>) -> bool {
    encoding.is_some_and(|encoding| encoding.as_str() == EncodingType::URL)
}

/// Implements ListObjectsV2.
pub(super) async fn list_objects_v2(
    app: &AppState,
    request: S3Request<ListObjectsV2Input>,
) -> S3Result<ListObjectsV2Output> {
    let caller = caller_of(&request.extensions)?;
    let input = request.input;
    let after = match &input.continuation_token {
        Some(token) => {
            let bytes = URL_SAFE_NO_PAD.decode(token).ok();
            let last = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
            let message = "The cursor was not issued by this server";
            Some(last.ok_or_else(|| s3_error(S3ErrorCode::InvalidArgument, message))?)
        }
        None => input.start_after.clone(),
    };
    let list = ListRequest {
        bucket: input.bucket.clone(),
        prefix: input.prefix.clone().unwrap_or_default(),
        delimiter: input.delimiter.clone().unwrap_or_default(),
        after,
        keys_max: keys_max(input.max_keys)?,
        is_encoded: is_encoded(input.encoding_type.as_ref()),
    };
    let page = list.page(app, &caller).await.map_err(|error| to_s3_error(&error))?;
    let owner = input.fetch_owner.unwrap_or_default().then_some(&page.owner);
    Ok(ListObjectsV2Output {
        contents: Some(page.objects.iter().map(|it| list.listed(it, owner)).collect()),
        name: Some(input.bucket),
        prefix: Some(list.text(&list.prefix)),
        delimiter: list.delimiter(),
        start_after: input.start_after.map(|it| list.text(&it)),
        max_keys: list.keys_max(),
        key_count: Some(page.count),
        is_truncated: Some(page.next.is_some()),
        continuation_token: input.continuation_token,
        next_continuation_token: page.next.map(|last| URL_SAFE_NO_PAD.encode(last)),
        common_prefixes: Some(page.prefixes),
        encoding_type: input.encoding_type,
        ..ListObjectsV2Output::default()
    })
}

/// Implements ListObjects, the older version.
pub(super) async fn list_objects_v1(
    app: &AppState,
    request: S3Request<ListObjectsInput>,
) -> S3Result<ListObjectsOutput> {
    let caller = caller_of(&request.extensions)?;
    let input = request.input;
    let texts = [&input.prefix, &input.delimiter, &input.marker];
    let encoding = input.encoding_type.as_ref();
    let list = ListRequest::after_key(&input.bucket, texts, input.max_keys, encoding)?;
    let page = list.page(app, &caller).await.map_err(|error| to_s3_error(&error))?;
    let owner = Some(&page.owner);
    Ok(ListObjectsOutput {
        contents: Some(page.objects.iter().map(|it| list.listed(it, owner)).collect()),
        name: Some(input.bucket),
        prefix: Some(list.text(&list.prefix)),
        delimiter: list.delimiter(),
        marker: Some(input.marker.map(|it| list.text(&it)).unwrap_or_default()),
        max_keys: list.keys_max(),
        is_truncated: Some(page.next.is_some()),
        next_marker: page.next.map(|last| list.text(&last)),
        common_prefixes: Some(page.prefixes),
        encoding_type: input.encoding_type,
        ..ListObjectsOutput::default()
    })
}

/// Implements ListObjectVersions: by key, with the latest version of each key first.
pub(super) async fn list_versions(
    app: &AppState,
    request: S3Request<ListObjectVersionsInput>,
) -> S3Result<ListObjectVersionsOutput> {
    let caller = caller_of(&request.extensions)?;
    let input = request.input;
    let texts = [&input.prefix, &input.delimiter, &input.key_marker];
    let encoding = input.encoding_type.as_ref();
    let list = ListRequest::after_key(&input.bucket, texts, input.max_keys, encoding)?;
    let after_version = version_id(input.version_id_marker.as_deref())?;
    if after_version.is_some() && list.after.is_none() {
        let message = "version-id-marker requires key-marker";
        return Err(s3_error(S3ErrorCode::InvalidArgument, message));
    }
    let (page, owner) =
        list.versions(app, &caller, after_version).await.map_err(|it| to_s3_error(&it))?;
    let (markers, versions): (Vec<_>, Vec<_>) =
        page.versions.iter().partition(|version| version.is_delete_marker);
    let (next_key, next_version) = page.next.unzip();
    let prefixes = page.groups.iter().map(|it| CommonPrefix { prefix: Some(list.text(it)) });
    Ok(ListObjectVersionsOutput {
        versions: Some(versions.iter().map(|it| list.listed_version(it, &owner)).collect()),
        delete_markers: Some(markers.iter().map(|it| list.listed_marker(it, &owner)).collect()),
        name: Some(input.bucket),
        prefix: Some(list.text(&list.prefix)),
        delimiter: list.delimiter(),
        key_marker: Some(input.key_marker.map(|it| list.text(&it)).unwrap_or_default()),
        version_id_marker: input.version_id_marker,
        max_keys: list.keys_max(),
        is_truncated: Some(next_key.is_some()),
        next_version_id_marker: next_version.flatten().map(|id| id.to_string()),
        next_key_marker: next_key.map(|last| list.text(&last)),
        common_prefixes: Some(prefixes.collect()),
        encoding_type: input.encoding_type,
        ..ListObjectVersionsOutput::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn max_keys_is_between_0_and_1000() {
        for (asked, keys) in [(None, 1_000), (Some(0), 0), (Some(7), 7), (Some(5_000), 1_000)] {
            assert_eq!(keys_max(asked).unwrap(), keys);
        }
        assert_eq!(keys_max(Some(-1)).unwrap_err().code().as_str(), "InvalidArgument");
    }
}
