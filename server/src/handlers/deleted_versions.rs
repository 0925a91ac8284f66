//! `/api/buckets/{bucketName}/deleted` and `/undelete`: listing and restoring deleted versions.
//!
//! Guarantees: recently deleted versions are listed without a log scan, whatever the size of the log; the log is
//! scanned for a bounded time, and a log that takes longer is listed in sections, one per page, so that all of it can
//! be reached. Versions of an earlier bucket with the same name never appear. Non-goals: the log.

use std::collections::HashSet;
use std::sync::Arc;

use axum::extract::State;
use catalog::{Bucket, OnConflict, Scope};
use engine::history::{
    LogScanCursor, NoncurrentFilter, NoncurrentLogPage, NoncurrentPage, NoncurrentReason,
    NoncurrentVersion,
};
use engine::progress::ProgressCallback;
use engine::{BucketName, ObjectKey, Store};
use jobs::log_scan::scan_log;
use jobs::object_operations::{self, UndeleteTarget, log_span};
use protocol::error::{ApiError, LOG_TOO_LARGE};
use protocol::json_body::JsonBody;
use protocol::object_path::normalize;
use protocol::paging::PageRequest;
use protocol::public_url::public_url;
use protocol::query::Query;
use protocol::time_format::iso_time;
use serde::{Deserialize, Serialize};
use service::auth::Caller;
use service::parameters::{BucketNameParameter, FilePathSchema, PageParameters};
use service::replies::Success;
use service::request_context::Path;
use service::state::AppState;
use usage::task::blocking;
use utoipa::ToSchema;

use super::file_in;
use crate::limits::UNDELETE_SCAN_RECORDS_MAX;

/// Page of restorable versions.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NoncurrentVersionsReply {
    /// Restorable versions, possibly few or none before the last page; a `nextCursor` of `null` ends the list.
    versions: Vec<NoncurrentVersionView>,
    #[schema(required)]
    next_cursor: Option<String>,
}

/// Deleted or replaced version of a file.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct NoncurrentVersionView {
    path: String,
    /// Version id; greater for versions stored later.
    lsn: u64,
    state: VersionEnd,
    /// Time of the deletion or replacement; `null` if no longer known.
    #[schema(required)]
    deleted_at: Option<String>,
    bytes: u64,
    #[serde(rename = "type")]
    content_type: String,
    etag: String,
    created_at: String,
    modified_at: String,
    /// End of the guaranteed retention, unless disk space runs low; `null` without a guarantee.
    #[schema(required)]
    recoverable_until: Option<String>,
}

/// Reason why a version is not current.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum VersionEnd {
    Deleted,
    Replaced,
}

/// Request to restore a file.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UndeleteRequest {
    #[schema(value_type = FilePathSchema)]
    path: String,
    /// Id of the version to restore; default: the newest intact version.
    #[serde(default)]
    lsn: Option<u64>,
    #[serde(default)]
    on_conflict: Option<OnConflict>,
}

/// Location of a restored file.
#[derive(Serialize, ToSchema)]
pub struct UndeletedReply {
    path: String,
    url: String,
    /// Id of the restored version; the restored file has a new one.
    lsn: u64,
    /// Whether the file got a different name because its own was in use.
    renamed: bool,
}

/// Start of a page.
enum Cursor {
    /// Among recently deleted versions: before the record with this number.
    Recent(Option<u64>),
    /// In the log, after this version.
    Log(Option<(ObjectKey, u64)>),
    /// In a section of a large log, after this position.
    LogScan(LogScanCursor),
}

impl Cursor {
    fn parse(text: &str) -> Result<Self, ()> {
        if let Some(lsn) = text.strip_prefix("lately:") {
            return lsn.parse().map(|lsn| Self::Recent(Some(lsn))).map_err(drop);
        }
        if let Some(place) = text.strip_prefix("along:") {
            let (segment, lsn) = place.split_once(':').ok_or(())?;
            let (segment, lsn) = (segment.parse().map_err(drop)?, lsn.parse().map_err(drop)?);
            return Ok(Self::LogScan(LogScanCursor { segment, lsn }));
        }
        match text.strip_prefix("log:").ok_or(())? {
            "" => Ok(Self::Log(None)),
            at => {
                let (lsn, key) = at.split_once(':').ok_or(())?;
                let key = ObjectKey::parse(key).map_err(drop)?;
                Ok(Self::Log(Some((key, lsn.parse().map_err(drop)?))))
            }
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Recent(lsn) => format!("lately:{}", lsn.unwrap_or(u64::MAX)),
            Self::LogScan(LogScanCursor { segment, lsn }) => format!("along:{segment}:{lsn}"),
            Self::Log(None) => "log:".to_owned(),
            Self::Log(Some((key, lsn))) => format!("log:{lsn}:{key}"),
        }
    }
}

/// Lists deleted and replaced versions that can be restored: recent deletions first, then older ones by path.
#[utoipa::path(
    get,
    path = "/api/buckets/{bucketName}/deleted",
    operation_id = "listDeleted",
    tag = "Moves and undelete",
    params(
        BucketNameParameter,
        PageParameters,
        ("prefix" = Option<String>, Query, description = "Only paths with this prefix."),
    ),
    responses(
        (status = OK, body = NoncurrentVersionsReply),
        (status = SERVICE_UNAVAILABLE, description = "`overloaded`."),
    )
)]
pub async fn list(
    State(app): State<AppState>,
    caller: Caller,
    Path(name): Path<BucketName>,
    query: Query,
) -> Result<Success<NoncurrentVersionsReply>, ApiError> {
    caller.bucket(&app.catalog, &name, Scope::List)?;
    let bucket = caller.bucket(&app.catalog, &name, Scope::Delete)?;
    let prefix = query.string(&["prefix"])?.unwrap_or_default();
    let prefix = normalize(&prefix).into_owned();
    caller.require_prefix_access(&prefix)?;
    let page = PageRequest::from_query(&query)?;
    let cursor = page.after(Cursor::parse)?.unwrap_or(Cursor::Recent(None));
    let asked = scan_params(&bucket, prefix);
    let limit = page.limit();
    let (versions, next) = match cursor {
        Cursor::Recent(before) => {
            let (store, asked) = (app.store.clone(), asked);
            let look = move || store.recent_noncurrent(&asked, before, limit);
            let (versions, next) = blocking(look).await?;
            let next = next.map_or(Cursor::Log(None), |next| Cursor::Recent(Some(next)));
            (versions, Some(next))
        }
        Cursor::Log(after) => {
            let look = move |store: &Store, watch: &mut ProgressCallback<'_>| {
                in_the_log(store, &asked, after, limit, watch)
            };
            match scan_log(&app.jobs, look).await {
                // Continues in sections, from the start of the log.
                Err(error) if error.code() == LOG_TOO_LARGE => {
                    (Vec::new(), Some(Cursor::LogScan(LogScanCursor::default())))
                }
                page => page?,
            }
        }
        Cursor::LogScan(from) => {
            let look = move |store: &Store, watch: &mut ProgressCallback<'_>| {
                along_the_log(store, &asked, from, limit, watch)
            };
            scan_log(&app.jobs, look).await?
        }
    };
    let versions = versions.iter().map(|version| version_view(&app, version)).collect();
    let next_cursor = next.map(|next| next.text());
    Ok(Success(NoncurrentVersionsReply { versions, next_cursor }))
}

/// Restores a file: the newest intact version, or the given one.
#[utoipa::path(
    post,
    path = "/api/buckets/{bucketName}/undelete",
    operation_id = "undeleteFile",
    tag = "Moves and undelete",
    params(BucketNameParameter),
    request_body = UndeleteRequest,
    responses(
        (status = OK, body = UndeletedReply),
        (status = NOT_FOUND, description = "`bucket_not_found`; `version_not_found`: the version does not exist, or \
            its space was reclaimed."),
        (status = CONFLICT, description = "`already_exists`: the name is in use, or the version is current."),
        (status = SERVICE_UNAVAILABLE, description = "`log_too_large`: without `lsn`, if the log \
            is too long to search in one request; `overloaded`."),
    )
)]
pub async fn undelete(
    State(app): State<AppState>,
    caller: Caller,
    Path(name): Path<BucketName>,
    body: JsonBody,
) -> Result<Success<UndeletedReply>, ApiError> {
    caller.bucket(&app.catalog, &name, Scope::Upload)?;
    let bucket = caller.bucket(&app.catalog, &name, Scope::Delete)?;
    let wish: UndeleteRequest = body.deserialize()?;
    let key = file_in(&wish.path)?;
    caller.require_key_access(&key)?;
    let on_conflict = wish.on_conflict.unwrap_or_default();
    let wanted = UndeleteTarget { key, lsn: wish.lsn, on_conflict };
    let context = app.jobs.acting_as(caller.actor());
    let (object, lsn, renamed) = object_operations::undelete(&context, &bucket, wanted).await?;
    let url = public_url(app.public_url.as_str(), object.name());
    let path = object.name().key.to_string();
    Ok(Success(UndeletedReply { path, url, lsn, renamed }))
}

fn scan_params(bucket: &Arc<Bucket>, prefix: String) -> NoncurrentFilter {
    let (span, put_since_ms) = log_span(bucket);
    NoncurrentFilter { bucket: bucket.name.clone(), prefix, span, put_since_ms }
}

/// Returns a page from a full log scan, without the versions listed as recently deleted.
fn in_the_log(
    store: &Store,
    asked: &NoncurrentFilter,
    after: Option<(ObjectKey, u64)>,
    limit: usize,
    watch: &mut ProgressCallback<'_>,
) -> engine::Result<(Vec<NoncurrentVersion>, Option<Cursor>)> {
    let NoncurrentPage { versions, next } =
        store.list_noncurrent(asked, after.as_ref(), limit, watch)?;
    let next = next.map(|next| Cursor::Log(Some(next)));
    Ok((without_recent(store, asked, versions)?, next))
}

/// Returns a page from a section of the log, without the versions listed as recently deleted.
fn along_the_log(
    store: &Store,
    asked: &NoncurrentFilter,
    from: LogScanCursor,
    limit: usize,
    watch: &mut ProgressCallback<'_>,
) -> engine::Result<(Vec<NoncurrentVersion>, Option<Cursor>)> {
    let NoncurrentLogPage { versions, next } =
        store.list_noncurrent_in_log_order(asked, from, limit, UNDELETE_SCAN_RECORDS_MAX, watch)?;
    Ok((without_recent(store, asked, versions)?, next.map(Cursor::LogScan)))
}

/// Removes the versions that are listed as recently deleted.
fn without_recent(
    store: &Store,
    asked: &NoncurrentFilter,
    mut versions: Vec<NoncurrentVersion>,
) -> engine::Result<Vec<NoncurrentVersion>> {
    let (lately, _) = store.recent_noncurrent(asked, None, usize::MAX - 1)?;
    let lately: HashSet<_> = lately.iter().map(|it| it.object.lsn()).collect();
    versions.retain(|version| !lately.contains(&version.object.lsn()));
    Ok(versions)
}

fn version_view(app: &AppState, version: &NoncurrentVersion) -> NoncurrentVersionView {
    let object = &version.object;
    NoncurrentVersionView {
        path: object.name().key.to_string(),
        lsn: object.lsn(),
        state: match version.reason {
            NoncurrentReason::Deleted => VersionEnd::Deleted,
            NoncurrentReason::Replaced => VersionEnd::Replaced,
        },
        deleted_at: version.noncurrent_since_ms.map(iso_time),
        bytes: object.bytes(),
        content_type: object.content_type().to_owned(),
        etag: format!("\"{}\"", object.etag()),
        created_at: iso_time(object.created_ms()),
        modified_at: iso_time(object.modified_ms()),
        recoverable_until: app.store.recoverable_until_ms(object).map(iso_time),
    }
}
