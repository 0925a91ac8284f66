//! What the log still knows of objects: their earlier versions, and how one is brought back.
//!
//! A version is a record that put an object; it is there until its segment is given back. Nothing is kept for this:
//! what can be brought back is what compaction has not reached yet.
//! Promises: reads only what was published; a version counts as recoverable when its body was just read and verified;
//! memory is bounded by [`limits::VERSIONS_MAX`] versions. What is written meanwhile is never overwritten.
//! Never here: what is live (the index), keeping space from being given back.

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

/// Whose versions to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionFilter {
    /// Of this bucket.
    pub bucket: BucketName,
    /// Of which of its objects.
    pub scope: VersionScope,
    /// Only what happened then or later. Milliseconds since 1970.
    pub since_ms: u64,
}

/// Which objects of a bucket are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionScope {
    /// One.
    Key(ObjectKey),
    /// Everything below a folder; the root is the whole bucket.
    Folder(FolderKey),
}

/// What the log knows of some objects.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// By name, and of each name the oldest first.
    pub versions: Vec<Version>,
    /// Whether there are more than were asked for.
    pub truncated: bool,
    /// Places in the log that are damaged: what was there is not among the versions.
    pub damage_count: usize,
}

/// Something that happened to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// The object.
    pub name: ObjectName,
    /// The number of the record: greater for what happened later.
    pub lsn: u64,
    /// When it happened. Milliseconds since 1970.
    pub happened_ms: u64,
    /// What happened.
    pub event: VersionEvent,
}

/// What happened to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionEvent {
    /// It was put.
    Put(PutVersion),
    /// It was deleted.
    Deleted,
}

/// An object as it was put once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutVersion {
    /// What became of it.
    pub state: VersionState,
    /// The length of its body.
    pub bytes: u64,
    /// Its content type.
    pub content_type: String,
    /// The strong validator of its body.
    pub etag: Etag,
    /// When an object of its name was first put, as of then.
    pub created_ms: u64,
    /// Whether it could be made again from another object.
    pub derived: bool,
    /// Whether its body is there, whole, or else why not.
    pub recoverable: Result<(), Unrecoverable>,
}

/// What became of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionState {
    /// It is what its name means now.
    Current,
    /// Another version came after it.
    Replaced,
    /// It was deleted.
    Deleted,
}

/// Why a version is not brought back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unrecoverable {
    /// Its body is gone: a large object's file was removed, or the space was reused.
    SpaceGivenBack,
    /// The log remembers that it was deleted, but its record is gone.
    Compacted,
    /// Its bytes are not what was written.
    Damaged,
    /// The log knows no such version.
    Unknown,
    /// It is there: nothing has to be brought back.
    Present,
    /// Something else was put under its name while it was brought back.
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
    /// Whether its body is there, whole.
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

/// What the log knows of the objects that the filter takes: the first `limit` versions by name.
pub(crate) fn history(
    log: &LogReader<'_>,
    filter: &VersionFilter,
    limit: usize,
    watch: &mut Watch<'_>,
) -> Result<History> {
    let limit = limit.min(limits::VERSIONS_MAX);
    // One more than the limit is kept: what becomes of the last one shows in the one after it.
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
        // A record and its copy in a compacted segment may both be there.
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

/// The object that a record is about, and when it happened.
fn subject(record: &Record) -> Option<(&ObjectName, u64)> {
    match &record.what {
        What::Put { name, meta, .. } => Some((name, meta.modified_ms)),
        What::Delete { name, deleted_ms } => Some((name, *deleted_ms)),
        _ => None,
    }
}

/// A version whose state is not known yet.
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
