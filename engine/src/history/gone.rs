//! Lists noncurrent versions by name.
//!
//! Guarantees: returns only noncurrent versions whose bytes should still exist; none that is equal to the current
//! object, because it was restored or put again, and none that was moved; one pass over the log per page, with
//! memory bounded by [`limits::VERSIONS_MAX`] records. The watch callback can end a pass that takes too long.
//! Non-goals: recent changes, which are known without the log (`commit/lately.rs`); restoring.

use std::collections::BTreeMap;

use super::scan::{Found, LogReader, LogScan, verify};
use super::undelete::{Wanted, choose, wanted_folder};
use super::{Unrecoverable, subject};
use crate::commit::{GoneVersion, VersionEnd, is_same_file, is_what_moved};
use crate::error::Result;
use crate::format::{Content, Entry, EntryContent, ObjectMeta, What};
use crate::index::Object;
use crate::limits;
use crate::name::{BucketName, FolderKey, ObjectKey, ObjectName};
use crate::progress::Watch;

/// Range of the log, by LSN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSpan {
    /// Exclusive lower bound.
    pub after_lsn: u64,
    /// Inclusive upper bound.
    pub until_lsn: u64,
}

impl LogSpan {
    /// Whole log.
    pub const ALL: Self = Self { after_lsn: 0, until_lsn: u64::MAX };

    /// Returns the range after this LSN.
    pub fn after(after_lsn: u64) -> Self {
        Self { after_lsn, ..Self::ALL }
    }
}

/// Filter of a listing of noncurrent versions.
#[derive(Clone, Debug)]
pub struct GoneAsked {
    /// Bucket of the objects.
    pub bucket: BucketName,
    /// Prefix of the keys.
    pub prefix: String,
    /// Log range of the puts.
    pub span: LogSpan,
    /// Earliest time of the put, in milliseconds since 1970.
    pub put_since_ms: u64,
}

/// Filter of a listing of deleted objects.
#[derive(Clone, Debug)]
pub struct DeletedAsked {
    /// Bucket of the objects.
    pub bucket: BucketName,
    /// Folder of the objects; the root is the whole bucket.
    pub folder: FolderKey,
    /// Earliest time of the deletion, in milliseconds since 1970.
    pub since_ms: u64,
    /// Log range of the deletions.
    pub span: LogSpan,
}

/// Page of noncurrent versions.
#[derive(Clone, Debug, Default)]
pub struct GonePage {
    /// Versions by name, the oldest of each name first.
    pub versions: Vec<GoneVersion>,
    /// Key and LSN to continue after, if there are more.
    pub next: Option<(ObjectKey, u64)>,
}

impl GoneAsked {
    pub(crate) fn takes(&self, object: &Object) -> bool {
        self.takes_name(&object.name)
            && !object.is_derived()
            && object.lsn() > self.span.after_lsn
            && object.lsn() <= self.span.until_lsn
            && object.modified_ms() >= self.put_since_ms
    }

    pub(super) fn takes_name(&self, name: &ObjectName) -> bool {
        name.bucket == self.bucket && name.key.as_str().starts_with(&self.prefix)
    }
}

/// Record of a matching name.
struct Seen {
    happened_ms: u64,
    /// Object put, if it matches the filter, is noncurrent and should still be readable.
    gone: Option<Object>,
    end: VersionEnd,
    /// For a deletion: metadata of the object put under another name directly before.
    moved: Option<ObjectMeta>,
}

/// Returns the first noncurrent, restorable versions after `after`.
pub(crate) fn gone(
    log: &LogReader<'_>,
    asked: &GoneAsked,
    after: Option<&(ObjectKey, u64)>,
    limit: usize,
    watch: &mut Watch<'_>,
) -> Result<GonePage> {
    let mut seen: BTreeMap<(ObjectKey, u64), Seen> = BTreeMap::new();
    // Key from which on nothing is collected, because the limit was reached.
    let mut cut: Option<ObjectKey> = None;
    LogScan::new(log).run(watch, &mut |found| {
        let record = found.record();
        let Some((name, happened_ms)) = subject(record) else { return Ok(()) };
        if !asked.takes_name(name) || cut.as_ref().is_some_and(|cut| name.key >= *cut) {
            return Ok(());
        }
        let at = (name.key.clone(), record.lsn);
        if after.is_some_and(|after| at <= *after)
            || seen.get(&at).is_some_and(|it| it.gone.is_some())
        {
            return Ok(());
        }
        let (end, gone) = match &record.what {
            What::Put { .. } => {
                // The current version is not listed here: the index has it.
                if (log.entry)(name)?.is_some_and(|entry| entry.lsn == record.lsn) {
                    return Ok(());
                }
                (VersionEnd::Replaced, candidate(log, asked, found, name)?)
            }
            _ => (VersionEnd::Deleted, None),
        };
        // A record and its copy may both exist, and only one of them next to the other half of a move.
        let known = seen.get_mut(&at).and_then(|it| it.moved.take());
        let moved = known.or_else(|| found.moved().cloned());
        seen.insert(at, Seen { happened_ms, gone, end, moved });
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
    let mut page = GonePage { versions: Vec::new(), next };
    let mut records = seen.into_iter().peekable();
    while let Some(((key, _), seen)) = records.next() {
        let Some(object) = seen.gone else { continue };
        let next = records.peek().filter(|((next, _), _)| *next == key);
        let moved = next.and_then(|(_, next)| next.moved.as_ref());
        if moved.is_some_and(|put| is_what_moved(put, &object.entry.meta)) {
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
                Some(now) => (VersionEnd::Replaced, Some(now.meta.modified_ms)),
                // The record of its deletion is damaged, or was dropped.
                None => (VersionEnd::Deleted, None),
            },
        };
        page.versions.push(GoneVersion { object, end, ended_ms });
    }
    Ok(page)
}

/// Returns the object put, if it matches the filter, was not put again, and should still be readable.
pub(super) fn candidate(
    log: &LogReader<'_>,
    asked: &GoneAsked,
    found: &Found<'_>,
    name: &ObjectName,
) -> Result<Option<Object>> {
    let Some(object) = put_object(found, name).filter(|object| asked.takes(object)) else {
        return Ok(None);
    };
    if is_there_again(log, &object)? {
        return Ok(None);
    }
    let usage = (log.usage_of)(object.entry.record.segment)?;
    let is_plain = matches!(object.entry.content, EntryContent::Inline { .. })
        && usage.is_some_and(|usage| usage.punched_bytes == 0);
    Ok((is_plain || verify(log, found)?.is_ok()).then_some(object))
}

/// Returns the object that the record puts.
fn put_object(found: &Found<'_>, name: &ObjectName) -> Option<Object> {
    let record = found.record();
    let What::Put { meta, content, .. } = &record.what else { return None };
    if matches!(content, Content::Lost { .. }) {
        return None;
    }
    let content = EntryContent::of(content);
    let entry = Entry { lsn: record.lsn, record: found.place(), meta: meta.clone(), content };
    Some(Object { name: name.clone(), entry: entry.into() })
}

/// Returns whether the current object is equal (content, type and attributes), so that there is nothing to restore.
pub(crate) fn is_there_again(log: &LogReader<'_>, gone: &Object) -> Result<bool> {
    let now = (log.entry)(&gone.name)?;
    let now = now.filter(|now| !matches!(now.content, EntryContent::Lost { .. }));
    Ok(now.is_some_and(|now| is_same_file(&now.meta, &gone.entry.meta)))
}

/// Returns whether the segment of a noncurrent version still exists, so that its bytes should be readable.
pub(crate) fn may_come_back(log: &LogReader<'_>, object: &Object) -> Result<bool> {
    if let EntryContent::Big { segment, .. } = object.entry.content {
        return Ok(log.segments.is_retained(segment));
    }
    let usage = (log.usage_of)(object.entry.record.segment)?;
    Ok(usage.is_some_and(|usage| usage.punched_bytes == 0))
}

/// Returns one noncurrent version of an object, or the newest intact one.
pub(crate) fn gone_version(
    log: &LogReader<'_>,
    name: &ObjectName,
    lsn: Option<u64>,
    span: LogSpan,
    watch: &mut Watch<'_>,
) -> Result<Result<Object, Unrecoverable>> {
    let wanted = Wanted { lsn, after_lsn: span.after_lsn, ..Wanted::default() };
    let mut wanted = BTreeMap::from([(name.clone(), wanted)]);
    let current = (log.entry)(name)?.map(|entry| entry.lsn);
    if lsn.is_some() && lsn == current {
        return Ok(Err(Unrecoverable::Present));
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
    let Some((name, wanted)) = wanted.pop_first() else { return Ok(Err(Unrecoverable::Unknown)) };
    let why_not = wanted.why_not();
    let found = wanted.chosen.map(|entry| Object { name, entry: entry.into() });
    Ok(found.ok_or(why_not))
}

/// Returns, for each matching object that does not exist, its newest intact version, or why there is none.
pub(crate) fn deleted(
    log: &LogReader<'_>,
    asked: &DeletedAsked,
    watch: &mut Watch<'_>,
) -> Result<Vec<Result<Object, (ObjectName, Unrecoverable)>>> {
    let mut wanted = wanted_folder(log, asked, watch)?;
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    LogScan::new(log).run(watch, &mut |found| choose(log, &mut wanted, found))?;
    wanted.retain(|_, wanted| !wanted.is_moved);
    let found = wanted.into_iter().map(|(name, wanted)| {
        let why_not = wanted.why_not();
        match wanted.chosen {
            Some(entry) => Ok(Object { name, entry: entry.into() }),
            None => Err((name, why_not)),
        }
    });
    Ok(found.collect())
}
