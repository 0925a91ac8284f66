//! Lists noncurrent versions by name.
//!
//! Guarantees: returns only noncurrent versions whose bytes should still exist; none that is equal to the current
//! object, because it was restored or put again, and none that was moved; one pass over the log per page, with
//! memory bounded by [`limits::VERSIONS_MAX`] records. The watch callback can end a pass that takes too long.
//! Non-goals: recent changes, which are known without the log (`commit/recent_noncurrent.rs`); restoring.

use std::collections::BTreeMap;

use super::deleted_filter::{DeletedFilter, LsnRange};
use super::log_scan::{LogReader, LogRecord, LogScan, verify};
use super::undelete::{RestoreCandidate, candidates_in_folder, choose};
use super::{RestoreError, subject};
use crate::commit::{NoncurrentReason, NoncurrentVersion, is_move, is_same_file};
use crate::error::Result;
use crate::format::{Entry, EntryContent, ObjectMeta, RecordContent, RecordOp};
use crate::index::Object;
use crate::limits;
use crate::name::{BucketName, ObjectKey, ObjectName};
use crate::progress::ProgressCallback;

/// Filter of a listing of noncurrent versions.
#[derive(Clone, Debug)]
pub struct NoncurrentFilter {
    /// Bucket of the objects.
    pub bucket: BucketName,
    /// Prefix of the keys; empty for the whole bucket.
    pub prefix: String,
    /// LSN range of the put records.
    pub span: LsnRange,
    /// Time of the earliest put to include, in milliseconds since 1970.
    pub put_since_ms: u64,
}

/// Page of noncurrent versions.
#[derive(Clone, Debug, Default)]
pub struct NoncurrentPage {
    /// Versions, ordered by name, the oldest of each name first.
    pub versions: Vec<NoncurrentVersion>,
    /// Key and LSN of the last version on this page, to pass as `after` for the next one; `None` on the last page.
    pub next: Option<(ObjectKey, u64)>,
}

impl NoncurrentFilter {
    pub(crate) fn matches(&self, object: &Object) -> bool {
        self.matches_name(&object.name)
            && !object.is_derived()
            && object.lsn() > self.span.after_lsn
            && object.lsn() <= self.span.through_lsn
            && object.modified_ms() >= self.put_since_ms
    }

    pub(super) fn matches_name(&self, name: &ObjectName) -> bool {
        name.bucket == self.bucket && name.key.as_str().starts_with(&self.prefix)
    }
}

/// Record of a matching name.
struct ScannedVersion {
    happened_ms: u64,
    /// Object put, if it matches the filter, is noncurrent and should still be readable.
    noncurrent: Option<Object>,
    end: NoncurrentReason,
    /// For a deletion: metadata of the object put under another name directly before.
    moved: Option<ObjectMeta>,
}

/// Returns the first noncurrent, restorable versions after `after`.
pub(crate) fn list_noncurrent(
    log: &LogReader<'_>,
    asked: &NoncurrentFilter,
    after: Option<&(ObjectKey, u64)>,
    limit: usize,
    watch: &mut ProgressCallback<'_>,
) -> Result<NoncurrentPage> {
    let mut seen: BTreeMap<(ObjectKey, u64), ScannedVersion> = BTreeMap::new();
    // Key from which on nothing is collected, because the limit was reached.
    let mut cut: Option<ObjectKey> = None;
    LogScan::new(log).run(watch, &mut |found| {
        let record = found.record();
        let Some((name, happened_ms)) = subject(record) else { return Ok(()) };
        if !asked.matches_name(name) || cut.as_ref().is_some_and(|cut| name.key >= *cut) {
            return Ok(());
        }
        let at = (name.key.clone(), record.lsn);
        if after.is_some_and(|after| at <= *after)
            || seen.get(&at).is_some_and(|it| it.noncurrent.is_some())
        {
            return Ok(());
        }
        let (end, gone) = match &record.op {
            RecordOp::Put { .. } => {
                // The current version is not listed here: the index has it.
                if (log.entry)(name)?.is_some_and(|entry| entry.lsn == record.lsn) {
                    return Ok(());
                }
                (NoncurrentReason::Replaced, noncurrent_object(log, asked, found, name)?)
            }
            _ => (NoncurrentReason::Deleted, None),
        };
        // A record and its copy may both exist, and only one of them next to the other half of a move.
        let known = seen.get_mut(&at).and_then(|it| it.moved.take());
        let moved = known.or_else(|| found.move_target().cloned());
        seen.insert(at, ScannedVersion { happened_ms, noncurrent: gone, end, moved });
        if seen.len() > limits::VERSIONS_MAX {
            let last = seen.last_key_value().map(|((key, _), _)| key.clone());
            seen.retain(|(key, _), _| last.as_ref().is_some_and(|last| key < last));
            cut = last;
        }
        Ok(())
    })?;
    // All collected records were processed; a name with more records than the limit is skipped.
    let last = seen.last_key_value().map(|((key, _), _)| key.clone());
    let next = cut.map(|cut| (last.unwrap_or(cut), u64::MAX));
    let mut page = NoncurrentPage { versions: Vec::new(), next };
    let mut records = seen.into_iter().peekable();
    while let Some(((key, _), seen)) = records.next() {
        let Some(object) = seen.noncurrent else { continue };
        let next = records.peek().filter(|((next, _), _)| *next == key);
        let moved = next.and_then(|(_, next)| next.moved.as_ref());
        if moved.is_some_and(|put| is_move(put, &object.entry.meta)) {
            continue;
        }
        if page.versions.len() == limit {
            let last = page.versions.last().map(|it| &it.object);
            page.next = last.map(|last| (last.name.key.clone(), last.lsn()));
            break;
        }
        let (end, ended_ms) = match next {
            Some((_, next)) => (next.end, Some(next.happened_ms)),
            None => match (log.entry)(&object.name)? {
                Some(now) => (NoncurrentReason::Replaced, Some(now.meta.modified_ms)),
                // The record of its deletion is damaged, or was dropped.
                None => (NoncurrentReason::Deleted, None),
            },
        };
        page.versions.push(NoncurrentVersion {
            object,
            reason: end,
            noncurrent_since_ms: ended_ms,
        });
    }
    Ok(page)
}

/// Returns the object put, if it matches the filter, was not put again, and should still be readable.
pub(super) fn noncurrent_object(
    log: &LogReader<'_>,
    asked: &NoncurrentFilter,
    found: &LogRecord<'_>,
    name: &ObjectName,
) -> Result<Option<Object>> {
    let Some(object) = put_object(found, name).filter(|object| asked.matches(object)) else {
        return Ok(None);
    };
    if is_current_again(log, &object)? {
        return Ok(None);
    }
    let usage = (log.usage_of)(object.entry.record.segment)?;
    let is_plain = matches!(object.entry.content, EntryContent::Inline { .. })
        && usage.is_some_and(|usage| usage.punched_bytes == 0);
    Ok((is_plain || verify(log, found)?.is_ok()).then_some(object))
}

/// Returns the object that the record puts.
fn put_object(found: &LogRecord<'_>, name: &ObjectName) -> Option<Object> {
    let record = found.record();
    let RecordOp::Put { meta, content, .. } = &record.op else { return None };
    if matches!(content, RecordContent::Lost { .. }) {
        return None;
    }
    let content = EntryContent::of(content);
    let entry = Entry { lsn: record.lsn, record: found.location(), meta: meta.clone(), content };
    Some(Object { name: name.clone(), entry: entry.into() })
}

/// Returns whether the current object is equal (content, type and attributes), so that there is nothing to restore.
pub(crate) fn is_current_again(log: &LogReader<'_>, gone: &Object) -> Result<bool> {
    let now = (log.entry)(&gone.name)?;
    let now = now.filter(|now| !matches!(now.content, EntryContent::Lost { .. }));
    Ok(now.is_some_and(|now| is_same_file(&now.meta, &gone.entry.meta)))
}

/// Returns whether the segment of a noncurrent version still exists, so that its bytes should be readable.
pub(crate) fn may_be_recoverable(log: &LogReader<'_>, object: &Object) -> Result<bool> {
    if let EntryContent::Big { segment, .. } = object.entry.content {
        return Ok(log.segments.is_retained(segment));
    }
    let usage = (log.usage_of)(object.entry.record.segment)?;
    Ok(usage.is_some_and(|usage| usage.punched_bytes == 0))
}

/// Returns one noncurrent version of an object, or the newest intact one.
pub(crate) fn noncurrent_version(
    log: &LogReader<'_>,
    name: &ObjectName,
    lsn: Option<u64>,
    span: LsnRange,
    watch: &mut ProgressCallback<'_>,
) -> Result<Result<Object, RestoreError>> {
    let wanted = RestoreCandidate { lsn, after_lsn: span.after_lsn, ..RestoreCandidate::default() };
    let mut wanted = BTreeMap::from([(name.clone(), wanted)]);
    let current = (log.entry)(name)?.map(|entry| entry.lsn);
    if lsn.is_some() && lsn == current {
        return Ok(Err(RestoreError::NotDeleted));
    }
    // For a given LSN, only the segments that may contain it are read.
    let scan = LogScan::new(log);
    let scan = if let Some(lsn) = lsn { scan.for_record(lsn) } else { scan };
    scan.run(watch, &mut |found| {
        // For an existing object, earlier versions are meant.
        match Some(found.record().lsn) == current {
            true => Ok(()),
            false => choose(log, &mut wanted, found),
        }
    })?;
    let Some((name, wanted)) = wanted.pop_first() else { return Ok(Err(RestoreError::NotFound)) };
    let why_not = wanted.unrecoverable_reason();
    let found = wanted.chosen.map(|entry| Object { name, entry: entry.into() });
    Ok(found.ok_or(why_not))
}

/// Returns, for each matching object that does not exist, its newest intact version, or why there is none.
pub(crate) fn newest_deleted_versions(
    log: &LogReader<'_>,
    asked: &DeletedFilter,
    watch: &mut ProgressCallback<'_>,
) -> Result<Vec<Result<Object, (ObjectName, RestoreError)>>> {
    let mut wanted = candidates_in_folder(log, asked, watch)?;
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    LogScan::new(log).run(watch, &mut |found| choose(log, &mut wanted, found))?;
    wanted.retain(|_, wanted| !wanted.is_moved);
    let found = wanted.into_iter().map(|(name, wanted)| {
        let why_not = wanted.unrecoverable_reason();
        match wanted.chosen {
            Some(entry) => Ok(Object { name, entry: entry.into() }),
            None => Err((name, why_not)),
        }
    });
    Ok(found.collect())
}
