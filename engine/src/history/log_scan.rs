//! Scans all published records of the log, segment by segment.
//!
//! Guarantees: a segment that is removed during the scan is not an error; its replacement is read instead. Segments
//! are read in id order, which is log order only without compactions.
//! Non-goals: the use of the records.

use std::collections::BTreeSet;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;

use super::RestoreError;
use crate::commit::may_be_move;
use crate::error::{Error, Result};
use crate::format::{
    COMPACTED_FOLDER, Entry, EntryContent, LOG_FOLDER, Location, Malformed, ObjectMeta, Record,
    RecordContent, RecordOp, SegmentClass, SegmentHeader, SegmentId, SegmentUsage,
};
use crate::name::ObjectName;
use crate::progress::{ProgressCallback, WorkProgress};
use crate::segment::{
    CursorRecord, LogPosition, ReadMode, RecordCursor, SegmentSet, read_header, read_origin,
};

/// Access to the records and to the current index.
pub(crate) struct LogReader<'a> {
    pub(crate) segments: &'a SegmentSet,
    /// Published position: records after it are not read.
    pub(crate) position: LogPosition,
    pub(crate) entry: &'a dyn Fn(&ObjectName) -> Result<Option<Arc<Entry>>>,
    pub(crate) usage_of: &'a dyn Fn(SegmentId) -> Result<Option<SegmentUsage>>,
    /// Returns whether the body of a record may have been punched.
    pub(crate) may_be_punched: &'a dyn Fn(&Record, Location) -> Result<bool>,
}

/// One pass over the log.
pub(super) struct LogScan<'a> {
    log: &'a LogReader<'a>,
    seen: BTreeSet<SegmentId>,
    progress: WorkProgress,
    damage_count: usize,
    /// LSN of the only record to be found.
    only_lsn: Option<u64>,
}

/// Record with the cursor that can read its body.
pub(super) struct LogRecord<'a> {
    cursor: &'a RecordCursor,
    found: CursorRecord,
    /// Preceding record in the same segment, if there is one.
    before: Option<&'a Record>,
}

impl LogRecord<'_> {
    pub(super) fn record(&self) -> &Record {
        &self.found.record
    }

    /// Returns, for a deletion, the metadata of the object put under another name directly before, if both may be a
    /// move.
    pub(super) fn move_target(&self) -> Option<&ObjectMeta> {
        let RecordOp::Delete { name, deleted_ms } = &self.record().op else { return None };
        let before = self.before.filter(|it| it.lsn + 1 == self.record().lsn)?;
        let RecordOp::Put { name: to, meta, .. } = &before.op else { return None };
        may_be_move((to, meta), name, *deleted_ms).then_some(meta)
    }

    /// Returns the location of the record in index form.
    pub(super) fn location(&self) -> Location {
        self.found.place
    }
}

impl<'a> LogScan<'a> {
    pub(super) fn new(log: &'a LogReader<'a>) -> Self {
        let progress = WorkProgress::default();
        Self { log, seen: BTreeSet::new(), progress, damage_count: 0, only_lsn: None }
    }

    /// Restricts the scan to the segments that may contain the record with this LSN.
    pub(super) fn for_record(self, lsn: u64) -> Self {
        Self { only_lsn: Some(lsn), ..self }
    }

    /// Visits every record and returns the number of locations at which records may be missing.
    pub(super) fn run(
        self,
        watch: &mut ProgressCallback<'_>,
        visit: &mut dyn FnMut(&LogRecord<'_>) -> Result<()>,
    ) -> Result<usize> {
        self.run_from(0, watch, visit)
    }

    /// Visits every record from a segment on, as [`LogScan::run`].
    pub(super) fn run_from(
        mut self,
        first: u64,
        watch: &mut ProgressCallback<'_>,
        visit: &mut dyn FnMut(&LogRecord<'_>) -> Result<()>,
    ) -> Result<usize> {
        loop {
            let (headers, mut is_all) = self.headers()?;
            self.progress.total_items = (self.seen.len() + headers.len()) as u64;
            for (at, header) in headers.iter().enumerate() {
                let later = headers.get(at + 1..).unwrap_or_default();
                if header.segment.get() < first || !self.may_contain_name(header, later)? {
                    continue;
                }
                // A compacted segment may be between a log segment and its successor.
                let named_end = header.end_from_successors(&headers);
                is_all &= self.segment(header, named_end, watch, visit)?;
                self.seen.insert(header.segment);
                self.progress.done_items += 1;
            }
            // The removed segment was compacted, and its records are in a segment that may not have been listed.
            if is_all {
                return Ok(self.damage_count);
            }
        }
    }

    /// Returns the headers of the segments not visited yet, by id, and whether none of them was removed in between.
    fn headers(&mut self) -> Result<(Vec<SegmentHeader>, bool)> {
        let disk = self.log.segments.disk();
        let mut listed = Vec::new();
        let folders =
            [(LOG_FOLDER, SegmentClass::Log), (COMPACTED_FOLDER, SegmentClass::Compacted)];
        for (folder, class) in folders {
            let names = disk.list(folder);
            let names = names.map_err(|source| Error::io(format!("listing {folder}"), source))?;
            let ids = names.iter().filter_map(|name| SegmentId::from_file_name(name));
            listed.extend(ids.filter(|id| !self.seen.contains(id)).map(|id| (id, class)));
        }
        let mut headers = Vec::new();
        let mut is_all = true;
        for (id, class) in listed {
            let is_in_use = match class {
                // An uncommitted compacted segment repeats records that are read elsewhere.
                SegmentClass::Compacted => self.log.segments.class_of(id) == class,
                // Ids ascend with the log: a later one was begun since, is a spare, or could not be begun.
                _ => Some(id) <= self.log.position.segment,
            };
            if !is_in_use {
                continue;
            }
            let path = id.path(class);
            let file = match disk.open(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    is_all = false;
                    continue;
                }
                other => other.map_err(|source| Error::io(format!("opening {path}"), source))?,
            };
            let store = self.log.segments.store();
            match read_header(file.as_ref(), &path, id, class, store) {
                Ok(header) if header.base_lsn <= self.log.position.lsn => headers.push(header),
                // Begun since, or a spare.
                Ok(_) => {}
                Err(Error::Corrupt(corruption)) if corruption.reason == Malformed::Blank => {}
                // A segment that could not be created or begun is empty.
                Err(Error::Corrupt(_)) if (self.log.usage_of)(id)?.is_none() => {}
                Err(Error::Corrupt(_)) => {
                    self.damage_count += 1;
                    self.seen.insert(id);
                }
                Err(other) => return Err(other),
            }
        }
        headers.sort_by_key(|header| header.segment);
        Ok((headers, is_all))
    }

    /// Returns whether a segment may contain the requested record. `later` are the segments with greater ids.
    fn may_contain_name(&self, header: &SegmentHeader, later: &[SegmentHeader]) -> Result<bool> {
        let Some(lsn) = self.only_lsn else { return Ok(true) };
        if header.base_lsn > lsn {
            return Ok(false);
        }
        if header.class == SegmentClass::Compacted {
            let segments = self.log.segments;
            return match read_origin(segments.disk(), header.segment, segments.store()) {
                Ok((_, origin)) => Ok(origin.lsn_ranges.contains(lsn, lsn)),
                // Reading the segment reports the error.
                Err(_) => Ok(true),
            };
        }
        let next = later.iter().find(|it| it.class == SegmentClass::Log);
        Ok(next.is_none_or(|next| next.base_lsn > lsn))
    }

    /// Visits the records of one segment. Returns false if it was removed before it could be read.
    fn segment(
        &mut self,
        header: &SegmentHeader,
        named_end: Option<u64>,
        watch: &mut ProgressCallback<'_>,
        visit: &mut dyn FnMut(&LogRecord<'_>) -> Result<()>,
    ) -> Result<bool> {
        let path = header.segment.path(header.class);
        let file = match self.log.segments.disk().open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            other => other.map_err(|source| Error::io(format!("opening {path}"), source))?,
        };
        let position = &self.log.position;
        let end = match position.segment == Some(header.segment) {
            true => Some(position.offset),
            false => named_end,
        };
        let mut cursor = RecordCursor::open(file, path, *header, end)?;
        let mut count = 0_u64;
        let mut before = None;
        while let Some(found) = cursor.step()? {
            if found.record.lsn > position.lsn {
                break;
            }
            if count.is_multiple_of(WATCH_STRIDE) && watch(self.progress) == ControlFlow::Break(())
            {
                return Err(Error::Cancelled);
            }
            count += 1;
            let bytes = u64::from(found.place.head_bytes) + found.record.body_bytes();
            let shown = LogRecord { cursor: &cursor, found, before: before.as_ref() };
            visit(&shown)?;
            before = Some(shown.found.record);
            self.progress.done_bytes += bytes;
        }
        self.damage_count += cursor.fault_count();
        Ok(true)
    }
}

/// Returns whether the body of a put is readable and intact.
pub(super) fn verify(
    log: &LogReader<'_>,
    found: &LogRecord<'_>,
) -> Result<Result<(), RestoreError>> {
    let RecordOp::Put { meta, content, .. } = &found.record().op else {
        return Ok(Err(RestoreError::NotFound));
    };
    match content {
        RecordContent::Inline { .. } => Ok(read_body(log, found.cursor, &found.found)?.map(|_| ())),
        RecordContent::Lost { .. } => Ok(Err(RestoreError::Damaged)),
        RecordContent::Big { bytes, segment } => {
            let opened = log.segments.open(*segment, SegmentClass::Big, ReadMode::Blocking);
            match opened.map(|segment| {
                let trailer = segment.as_ref().and_then(|segment| segment.big());
                trailer.is_some_and(|big| {
                    big.trailer.body_bytes == *bytes && big.trailer.hash == meta.hash
                })
            }) {
                Ok(true) => Ok(Ok(())),
                Ok(false) => Ok(Err(RestoreError::Damaged)),
                Err(error) => unrecoverable(error).map(Err),
            }
        }
    }
}

/// Reads the body of a version in a log or compacted segment.
fn read_body(
    log: &LogReader<'_>,
    cursor: &RecordCursor,
    of: &CursorRecord,
) -> Result<Result<Bytes, RestoreError>> {
    match cursor.read_body(of) {
        Ok(body) => Ok(Ok(body)),
        Err(Error::Corrupt(_))
            if (log.may_be_punched)(&of.record, of.place)? && cursor.is_punched(of)? =>
        {
            Ok(Err(RestoreError::SpaceReclaimed))
        }
        Err(error) => unrecoverable(error).map(Err),
    }
}

/// Reads the body of a version in the log by the copy of its head in the footer.
pub(super) fn read_by_footer(
    log: &LogReader<'_>,
    of: &Entry,
) -> Result<Option<Result<Bytes, RestoreError>>> {
    if !matches!(of.content, EntryContent::Inline { .. }) {
        return Ok(None);
    }
    let mut records = log.segments.records(of.record.segment)?;
    while let Some(found) = records.step()? {
        if found.record.lsn == of.lsn {
            return read_body(log, &records, &found).map(Some);
        }
    }
    Ok(None)
}

/// Converts corruption to its meaning for a version; other errors are returned.
pub(super) fn unrecoverable(error: Error) -> Result<RestoreError> {
    match error {
        Error::Corrupt(corruption) if corruption.reason == Malformed::Missing => {
            Ok(RestoreError::SpaceReclaimed)
        }
        Error::Corrupt(_) => Ok(RestoreError::Damaged),
        other => Err(other),
    }
}

/// Number of records between two calls of the watch callback.
const WATCH_STRIDE: u64 = 1_024;
