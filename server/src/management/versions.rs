//! Version history of files, for the operator: listing and restoring.
//!
//! Non-goals: log scans, which the engine does.

use catalog::{Catalog, CatalogError};
use engine::history::{
    RestoreError, UndeleteReport, UndeleteRequest, Version, VersionEvent, VersionFilter,
    VersionHistory, VersionScope, VersionState,
};
use engine::progress::ProgressCallback;
use engine::{Batch, BucketName, FolderKey, ObjectName, Store};
use jobs::thumbnail_object::delete_thumbnail;
use protocol::error::ApiError;
use protocol::object_path::PathInBucket;
use protocol::time_format::iso_time;
use serde::{Deserialize, Serialize};

use super::settings::unix_ms;
use super::{bucket_name, existing_bucket};

/// Selection of versions to restore.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum UndeleteSelector {
    /// The newest version of a missing file.
    File { path: String },
    /// One version of a file, replacing the current one.
    Version { path: String, lsn: u64 },
    /// The missing files of a folder, or of the whole bucket if it is empty, that were deleted at that time or later.
    Folder { path: String, since: Option<String> },
}

/// Selection of versions.
pub(super) struct HistoryQuery<'a> {
    pub(super) bucket: &'a str,
    /// Path, which ends with `/` for a folder and is empty for the whole bucket.
    pub(super) path: &'a str,
    pub(super) since: Option<&'a str>,
    pub(super) limit: u64,
}

/// Version history of files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryView {
    pub bucket_name: String,
    /// Versions by path, oldest first.
    pub versions: Vec<VersionView>,
    /// Whether there are more than the limit.
    pub truncated: bool,
    /// Corrupt locations in the log, whose versions are missing here.
    pub damage_count: u64,
}

/// Version of a file, or its deletion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionView {
    pub path: String,
    /// LSN of its record.
    pub lsn: u64,
    pub at: String,
    pub state: StateView,
    /// Content; absent for a deletion.
    pub content: Option<ContentView>,
}

/// State of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StateView {
    /// Current version.
    Current,
    /// Version that was replaced by a later one.
    Replaced,
    /// Version that was deleted.
    Deleted,
    /// Deletion of a file.
    Deletion,
}

/// Content of a version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContentView {
    pub bytes: u64,
    #[serde(rename = "type")]
    pub content_type: String,
    pub etag: String,
    pub created_at: String,
    /// Whether it was derived from another file.
    pub derived: bool,
    /// Whether its content is intact.
    pub recoverable: bool,
    /// Reason why it cannot be restored.
    pub unrecoverable_because: Option<String>,
}

/// Result of restoring.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UndeletedView {
    pub bucket_name: String,
    pub restored: Vec<RestoredView>,
    pub refused: Vec<RefusedVersionView>,
    /// Whether a single file was requested, not a folder.
    pub by_name: bool,
}

/// Restored file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RestoredView {
    pub path: String,
    /// LSN of the restored version.
    pub lsn: u64,
    /// Reason why a newer version was not restored, if there is one.
    pub newer_is_lost_because: Option<String>,
}

/// File that was not restored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefusedVersionView {
    pub path: String,
    pub why: String,
    /// Whether its bytes are corrupt.
    pub damaged: bool,
}

/// Returns the version history. The bucket may be deleted.
pub(super) fn history(
    store: &Store,
    catalog: &Catalog,
    asked: &HistoryQuery<'_>,
    watch: &mut ProgressCallback<'_>,
) -> Result<HistoryView, CatalogError> {
    let bucket = bucket_name(asked.bucket)?;
    let scope = match parse_path(asked.path)? {
        PathInBucket::File(key) => VersionScope::Key(key),
        PathInBucket::Folder(folder) => VersionScope::Folder(folder),
    };
    let filter = VersionFilter { bucket, scope, since_ms: since_ms(asked.since)? };
    let limit = usize::try_from(asked.limit).unwrap_or(usize::MAX);
    let VersionHistory { versions, truncated, damage_count } =
        store.version_history(&filter, limit, watch)?;
    if versions.is_empty() {
        existing_bucket(catalog, asked.bucket)?;
    }
    Ok(HistoryView {
        bucket_name: asked.bucket.to_owned(),
        versions: versions.into_iter().map(version_view).collect(),
        truncated,
        damage_count: damage_count as u64,
    })
}

fn version_view(version: Version) -> VersionView {
    let (state, content) = match version.event {
        VersionEvent::Deleted => (StateView::Deletion, None),
        VersionEvent::Put(put) => {
            let state = match put.state {
                VersionState::Current => StateView::Current,
                VersionState::Replaced => StateView::Replaced,
                VersionState::Deleted => StateView::Deleted,
            };
            let content = ContentView {
                bytes: put.bytes,
                content_type: put.content_type,
                etag: put.etag.to_string(),
                created_at: iso_time(put.created_ms),
                derived: put.derived,
                recoverable: put.recoverable.is_ok(),
                unrecoverable_because: put.recoverable.err().map(|why| why.to_string()),
            };
            (state, Some(content))
        }
    };
    VersionView {
        path: version.name.key.as_str().to_owned(),
        lsn: version.lsn,
        at: iso_time(version.happened_ms),
        state,
        content,
    }
}

/// Restores the requested versions, as far as possible.
pub(super) fn undelete(
    store: &Store,
    catalog: &Catalog,
    bucket: &str,
    wanted: UndeleteSelector,
    watch: &mut ProgressCallback<'_>,
) -> Result<UndeletedView, CatalogError> {
    let found = existing_bucket(catalog, bucket)?;
    let name = found.name.clone();
    if found.versioning.is_some() && matches!(wanted, UndeleteSelector::Version { .. }) {
        let why = "the bucket has versions: copy an earlier one with an S3 client (CopyObject with its versionId)";
        return Err(CatalogError::InvalidRequest(why.to_owned()));
    }
    let request = match wanted {
        UndeleteSelector::File { path } => UndeleteRequest::Object(object(name, &path)?),
        UndeleteSelector::Version { path, lsn } => {
            UndeleteRequest::Version { name: object(name, &path)?, lsn }
        }
        UndeleteSelector::Folder { path, since } => UndeleteRequest::Folder {
            bucket: name,
            folder: folder(&path)?,
            since_ms: since_ms(since.as_deref())?,
        },
    };
    // The thumbnail of the replaced object would show other content.
    let along = |file: &ObjectName| delete_thumbnail(Batch::new(), file);
    let UndeleteReport { restored, failed: refused } =
        store.undelete_with(&request, &along, watch)?;
    Ok(UndeletedView {
        bucket_name: bucket.to_owned(),
        restored: restored
            .into_iter()
            .map(|it| RestoredView {
                path: it.name.key.as_str().to_owned(),
                lsn: it.lsn,
                newer_is_lost_because: it.newer_unrecoverable.map(|why| why.to_string()),
            })
            .collect(),
        refused: refused
            .into_iter()
            .map(|(name, why)| RefusedVersionView {
                path: name.key.as_str().to_owned(),
                why: why.to_string(),
                damaged: why == RestoreError::Damaged,
            })
            .collect(),
        by_name: !matches!(request, UndeleteRequest::Folder { .. }),
    })
}

fn parse_path(path: &str) -> Result<PathInBucket, CatalogError> {
    let refused = |why: ApiError| CatalogError::InvalidRequest(why.message().to_owned());
    PathInBucket::parse(path.trim_start_matches('/')).map_err(refused)
}

fn object(bucket: BucketName, path: &str) -> Result<ObjectName, CatalogError> {
    match parse_path(path)? {
        PathInBucket::File(key) => Ok(ObjectName::new(bucket, key)),
        PathInBucket::Folder(_) => {
            Err(CatalogError::InvalidRequest(format!("{path:?} is a folder")))
        }
    }
}

fn folder(path: &str) -> Result<FolderKey, CatalogError> {
    match parse_path(path)? {
        PathInBucket::Folder(folder) => Ok(folder),
        PathInBucket::File(_) => Err(CatalogError::InvalidRequest(format!(
            "{path:?} is a file: a folder ends with \"/\""
        ))),
    }
}

fn since_ms(since: Option<&str>) -> Result<u64, CatalogError> {
    Ok(since.map(|text| unix_ms("time", text)).transpose()?.unwrap_or(0))
}
