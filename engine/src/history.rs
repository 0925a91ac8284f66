//! Version history: noncurrent versions in the log, and restoring them.
//!
//! A version is a put record; it exists until its segment is reclaimed. Nothing is stored in addition: what
//! compaction has not reclaimed yet can be restored.
//!
//! Guarantees: reads only published records; a version is reported as recoverable only if its body was just read and
//! verified; memory is bounded by [`limits::VERSIONS_MAX`] versions. Concurrent writes are never overwritten.
//! Non-goals: current objects (the index), and retention.

mod deleted_filter;
mod list_in_log_order;
mod log_scan;
mod noncurrent;
mod undelete;

use std::collections::BTreeMap;
use std::fmt;

pub use self::deleted_filter::{DeletedFilter, LsnRange};
pub(crate) use self::list_in_log_order::list_in_log_order;
pub use self::list_in_log_order::{LogScanCursor, NoncurrentLogPage};
pub(crate) use self::log_scan::LogReader;
use self::log_scan::{LogRecord, LogScan, verify};
pub use self::noncurrent::{NoncurrentFilter, NoncurrentPage};
pub(crate) use self::noncurrent::{
    is_current_again, list_noncurrent, may_be_recoverable, newest_deleted_versions,
    noncurrent_version,
};
pub(crate) use self::undelete::{RestoreContext, stage, undelete};
pub use self::undelete::{RestoredObject, UndeleteReport, UndeleteRequest};
use crate::commit::Etag;
pub use crate::commit::{NoncurrentReason, NoncurrentVersion};
use crate::error::Result;
use crate::format::{Record, RecordOp};
use crate::limits;
use crate::name::{BucketName, FolderKey, ObjectKey, ObjectName};
use crate::progress::ProgressCallback;

/// Filter of a version history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionFilter {
    /// Bucket of the objects.
    pub bucket: BucketName,
    /// Objects in the bucket.
    pub scope: VersionScope,
    /// Time of the earliest event to include, in milliseconds since 1970.
    pub since_ms: u64,
}

/// Objects of a bucket whose history is requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionScope {
    /// One object.
    Key(ObjectKey),
    /// All objects in a folder and its subfolders; the root is the whole bucket.
    Folder(FolderKey),
}

/// Version history of some objects.
#[derive(Clone, Debug, Default)]
pub struct VersionHistory {
    /// Versions and deletions, ordered by name, the oldest of each name first.
    pub versions: Vec<Version>,
    /// Whether there are more versions than the limit.
    pub truncated: bool,
    /// Number of corrupt locations in the log, whose versions are missing.
    pub damage_count: usize,
}

/// Event in the history of an object: a put, which creates a version, or a deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Name of the object.
    pub name: ObjectName,
    /// LSN of the record. Later events have greater LSNs.
    pub lsn: u64,
    /// Time of the event, in milliseconds since 1970.
    pub happened_ms: u64,
    /// Kind of the event.
    pub event: VersionEvent,
}

/// Kind of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionEvent {
    /// Put of a version.
    Put(PutVersion),
    /// Deletion of the object.
    Deleted,
}

/// Version of an object: metadata of its put, and whether its body can be restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutVersion {
    /// State of the version.
    pub state: VersionState,
    /// Length of the body in bytes.
    pub bytes: u64,
    /// Content type.
    pub content_type: String,
    /// ETag of the body.
    pub etag: Etag,
    /// Creation time of the object, as stored with this version, in milliseconds since 1970.
    pub created_ms: u64,
    /// Whether the version was derived from another object.
    pub derived: bool,
    /// Ok if the body is readable and intact; otherwise the reason why the version cannot be restored.
    pub recoverable: Result<(), RestoreError>,
}

/// State of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionState {
    /// Current version of its name.
    Current,
    /// Overwritten by a later version.
    Replaced,
    /// Removed by a deletion.
    Deleted,
}

/// Reason why a version cannot be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreError {
    /// The body was reclaimed: the file of a large object was removed, or the space was reused.
    SpaceReclaimed,
    /// The log has the deletion, but compaction removed the record of the version.
    Compacted,
    /// The stored bytes are corrupt.
    Damaged,
    /// The log contains no such version.
    NotFound,
    /// The object exists: there is nothing to restore.
    NotDeleted,
    /// The name was overwritten during the restore.
    Overwritten,
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SpaceReclaimed => "its space was reclaimed",
            Self::Compacted => "its record was removed by compaction",
            Self::Damaged => "its content is corrupt",
            Self::NotFound => "no such version",
            Self::NotDeleted => "it is there",
            Self::Overwritten => "another object has its name now",
        })
    }
}

impl Version {
    /// Returns whether this is a put whose body is readable and intact.
    pub fn is_recoverable(&self) -> bool {
        matches!(&self.event, VersionEvent::Put(put) if put.recoverable.is_ok())
    }
}

impl VersionFilter {
    fn matches(&self, name: &ObjectName) -> bool {
        name.bucket == self.bucket
            && match &self.scope {
                VersionScope::Key(key) => name.key == *key,
                VersionScope::Folder(folder) => name.key.as_str().starts_with(folder.as_str()),
            }
    }
}

/// Returns the history of the objects that match the filter: the first `limit` versions by name.
pub(crate) fn version_history(
    log: &LogReader<'_>,
    filter: &VersionFilter,
    limit: usize,
    watch: &mut ProgressCallback<'_>,
) -> Result<VersionHistory> {
    let limit = limit.min(limits::VERSIONS_MAX);
    // One more than the limit is collected, because the next version determines the state of the last one.
    let mut kept: BTreeMap<(ObjectName, u64), Version> = BTreeMap::new();
    let damage_count = LogScan::new(log).run(watch, &mut |found| {
        let Some((name, happened_ms)) = subject(found.record()) else { return Ok(()) };
        if !filter.matches(name) || happened_ms < filter.since_ms {
            return Ok(());
        }
        let at = (name.clone(), found.record().lsn);
        if kept.len() > limit && kept.last_key_value().is_some_and(|(last, _)| *last < at) {
            return Ok(());
        }
        // A record and its copy in a compacted segment may both exist.
        if !kept.get(&at).is_some_and(Version::is_recoverable) {
            kept.insert(at, version(log, found, name.clone(), happened_ms)?);
        }
        if kept.len() > limit + 1 {
            kept.pop_last();
        }
        Ok(())
    })?;
    let mut versions: Vec<Version> = kept.into_values().collect();
    settle_states(log, &mut versions)?;
    let truncated = versions.len() > limit;
    versions.truncate(limit);
    Ok(VersionHistory { versions, truncated, damage_count })
}

/// Returns the object that a record refers to, and the time of the event.
fn subject(record: &Record) -> Option<(&ObjectName, u64)> {
    match &record.op {
        RecordOp::Put { name, meta, .. } => Some((name, meta.modified_ms)),
        RecordOp::Delete { name, deleted_ms } => Some((name, *deleted_ms)),
        _ => None,
    }
}

/// Returns a version whose state is not determined yet.
fn version(
    log: &LogReader<'_>,
    found: &LogRecord<'_>,
    name: ObjectName,
    happened_ms: u64,
) -> Result<Version> {
    let record = found.record();
    let event = match &record.op {
        RecordOp::Put { meta, content, .. } => VersionEvent::Put(PutVersion {
            state: VersionState::Replaced,
            bytes: content.bytes(),
            content_type: meta.content_type.clone(),
            etag: Etag::of_hash(&meta.hash),
            created_ms: meta.created_ms,
            derived: meta.flags.derived,
            recoverable: verify(log, found)?,
        }),
        _ => VersionEvent::Deleted,
    };
    Ok(Version { name, lsn: record.lsn, happened_ms, event })
}

fn settle_states(log: &LogReader<'_>, versions: &mut [Version]) -> Result<()> {
    let mut later: Option<Version> = None;
    for version in versions.iter_mut().rev() {
        let next = later.take().filter(|next| next.name == version.name);
        if let VersionEvent::Put(put) = &mut version.event {
            put.state = match next.map(|next| next.event) {
                Some(VersionEvent::Deleted) => VersionState::Deleted,
                Some(VersionEvent::Put(_)) => VersionState::Replaced,
                None => match (log.entry)(&version.name)? {
                    Some(entry) if entry.lsn == version.lsn => VersionState::Current,
                    Some(_) => VersionState::Replaced,
                    None => VersionState::Deleted,
                },
            };
        }
        later = Some(version.clone());
    }
    Ok(())
}
