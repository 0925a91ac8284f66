//! Version history: noncurrent versions in the log, and restoring them.
//!
//! A version is a put record; it exists until its segment is reclaimed. Nothing is stored in addition: what
//! compaction has not reclaimed yet can be restored.
//!
//! Guarantees: reads only published records; a version is reported as recoverable only if its body was just read and
//! verified; memory is bounded by [`limits::VERSIONS_MAX`] versions. Concurrent writes are never overwritten.
//! Non-goals: current objects (the index), and retention.

mod along;
mod gone;
mod scan;
mod undelete;

use std::collections::BTreeMap;
use std::fmt;

pub(crate) use self::along::gone_along;
pub use self::along::{GoneStretch, LogPlace};
pub use self::gone::{DeletedAsked, GoneAsked, GonePage, LogSpan};
pub(crate) use self::gone::{deleted, gone, gone_version, is_there_again, may_come_back};
pub(crate) use self::scan::LogReader;
use self::scan::{Found, LogScan, verify};
pub(crate) use self::undelete::{PutBack, stage, undelete};
pub use self::undelete::{Restored, UndeleteRequest, Undeleted};
use crate::commit::Etag;
use crate::error::Result;
use crate::format::{Record, What};
use crate::limits;
use crate::name::{BucketName, FolderKey, ObjectKey, ObjectName};
use crate::progress::Watch;

/// Filter of a version listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionFilter {
    /// Bucket of the objects.
    pub bucket: BucketName,
    /// Objects of the bucket.
    pub scope: VersionScope,
    /// Earliest time of the event, in milliseconds since 1970.
    pub since_ms: u64,
}

/// Scope of a version listing in a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionScope {
    /// One object.
    Key(ObjectKey),
    /// Everything below a folder; the root is the whole bucket.
    Folder(FolderKey),
}

/// Version history of some objects.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Versions by name, the oldest of each name first.
    pub versions: Vec<Version>,
    /// Whether there are more versions than the limit.
    pub truncated: bool,
    /// Number of corrupt locations in the log, whose versions are missing.
    pub damage_count: usize,
}

/// Event of an object: a put or a deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Name of the object.
    pub name: ObjectName,
    /// LSN of the record: greater for later events.
    pub lsn: u64,
    /// Time of the event, in milliseconds since 1970.
    pub happened_ms: u64,
    /// Kind of the event.
    pub event: VersionEvent,
}

/// Kind of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionEvent {
    /// Put.
    Put(PutVersion),
    /// Deletion.
    Deleted,
}

/// Version of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutVersion {
    /// State of the version.
    pub state: VersionState,
    /// Length of the body.
    pub bytes: u64,
    /// Content type.
    pub content_type: String,
    /// Strong validator of the body.
    pub etag: Etag,
    /// Creation time of the object, as of this version, in milliseconds since 1970.
    pub created_ms: u64,
    /// Whether it could be regenerated from another object.
    pub derived: bool,
    /// Whether the body is readable and intact, or the reason why not.
    pub recoverable: Result<(), Unrecoverable>,
}

/// State of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionState {
    /// Current version of its name.
    Current,
    /// Overwritten by another version.
    Replaced,
    /// Deleted.
    Deleted,
}

/// Reason why a version cannot be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unrecoverable {
    /// The body was reclaimed: the file of a large object was removed, or the space was reused.
    SpaceGivenBack,
    /// The deletion is still in the log, but the version was reclaimed by compaction.
    Compacted,
    /// The bytes are corrupt.
    Damaged,
    /// The log contains no such version.
    Unknown,
    /// The object exists: there is nothing to restore.
    Present,
    /// The name was overwritten during the restore.
    Changed,
}

impl fmt::Display for Unrecoverable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SpaceGivenBack => "its space was reclaimed",
            Self::Compacted => "its record was removed by compaction",
            Self::Damaged => "its content is corrupt",
            Self::Unknown => "no such version",
            Self::Present => "it is there",
            Self::Changed => "another object has its name now",
        })
    }
}

impl Version {
    /// Returns whether the body is readable and intact.
    pub fn is_recoverable(&self) -> bool {
        matches!(&self.event, VersionEvent::Put(put) if put.recoverable.is_ok())
    }
}

impl VersionFilter {
    fn takes(&self, name: &ObjectName) -> bool {
        name.bucket == self.bucket
            && match &self.scope {
                VersionScope::Key(key) => name.key == *key,
                VersionScope::Folder(folder) => name.key.as_str().starts_with(folder.as_str()),
            }
    }
}

/// Returns the history of the objects that match the filter: the first `limit` versions by name.
pub(crate) fn history(
    log: &LogReader<'_>,
    filter: &VersionFilter,
    limit: usize,
    watch: &mut Watch<'_>,
) -> Result<History> {
    let limit = limit.min(limits::VERSIONS_MAX);
    // One more than the limit is collected, because the next version determines the state of the last one.
    let mut kept: BTreeMap<(ObjectName, u64), Version> = BTreeMap::new();
    let damage_count = LogScan::new(log).run(watch, &mut |found| {
        let Some((name, happened_ms)) = subject(found.record()) else { return Ok(()) };
        if !filter.takes(name) || happened_ms < filter.since_ms {
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
    Ok(History { versions, truncated, damage_count })
}

/// Returns the object that a record refers to, and the time of the event.
fn subject(record: &Record) -> Option<(&ObjectName, u64)> {
    match &record.what {
        What::Put { name, meta, .. } => Some((name, meta.modified_ms)),
        What::Delete { name, deleted_ms } => Some((name, *deleted_ms)),
        _ => None,
    }
}

/// Returns a version whose state is not determined yet.
fn version(
    log: &LogReader<'_>,
    found: &Found<'_>,
    name: ObjectName,
    happened_ms: u64,
) -> Result<Version> {
    let record = found.record();
    let event = match &record.what {
        What::Put { meta, content, .. } => VersionEvent::Put(PutVersion {
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
