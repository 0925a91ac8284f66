//! Version history, undelete and backup API of the store.
//!
//! Non-goals: implementation. Each call is delegated to a lower layer.

use std::sync::Arc;

use super::Store;
use crate::backup::{self, BackupReport, IndexAccess, Published};
use crate::commit::{Batch, NoncurrentVersion};
use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::format::{EntryContent, SegmentClass};
use crate::history::{
    self, DeletedFilter, LogReader, LogScanCursor, LsnRange, NoncurrentFilter, NoncurrentLogPage,
    NoncurrentPage, RestoreContext, RestoreError, UndeleteReport, UndeleteRequest, VersionFilter,
    VersionHistory,
};
use crate::index::Object;
use crate::limits;
use crate::name::{ObjectKey, ObjectName};
use crate::progress::{ProgressCallback, WorkProgress};
use crate::segment::LogPosition;
use crate::upload::StagedBody;

impl Store {
    /// Returns the version history of the objects that match `filter`: the first `limit` versions by name, at most
    /// [`limits::VERSIONS_MAX`](crate::limits::VERSIONS_MAX).
    ///
    /// Reads the record heads of the whole log and verifies the bodies of the returned versions. Waits for the disk.
    pub fn version_history(
        &self,
        filter: &VersionFilter,
        limit: usize,
        watch: &mut ProgressCallback<'_>,
    ) -> Result<VersionHistory> {
        self.read_log(|log| history::version_history(log, filter, limit, watch))
    }

    /// Restores deleted objects, or one earlier version, as new versions. Concurrent writes are not overwritten. Reads
    /// the record heads of the whole log, up to twice. Waits for the disk.
    pub fn undelete(
        &self,
        request: &UndeleteRequest,
        watch: &mut ProgressCallback<'_>,
    ) -> Result<UndeleteReport> {
        self.undelete_with(request, &|_| Batch::new(), watch)
    }

    /// Restores like [`Store::undelete`], and adds the operations returned by `along` to the batch that puts an object:
    /// a few operations without bodies, such as [`Batch::delete_derived`].
    pub fn undelete_with(
        &self,
        request: &UndeleteRequest,
        along: &dyn Fn(&ObjectName) -> Batch,
        watch: &mut ProgressCallback<'_>,
    ) -> Result<UndeleteReport> {
        self.0.health.require_writable()?;
        let put_back = RestoreContext {
            upload: &|| self.upload(),
            commit: &|batch| self.commit(batch),
            along,
            batch_bytes_max: self.0.batch_bytes_max,
        };
        self.read_log(|log| history::undelete(log, &put_back, request, watch))
    }

    /// Returns recently deleted or replaced versions that can be restored and were not put again, newest first, and the
    /// LSN to pass as `before_lsn` for the next page, if there is one.
    ///
    /// Examines at most `limit` versions; with `before_lsn`, only versions that became noncurrent by a record with a
    /// lower LSN. Uses a list in memory, which is empty after an open, and reads no log.
    pub fn recent_noncurrent(
        &self,
        asked: &NoncurrentFilter,
        before_lsn: Option<u64>,
        limit: usize,
    ) -> Result<(Vec<NoncurrentVersion>, Option<u64>)> {
        let is_asked = |it: &NoncurrentVersion| asked.matches(&it.object);
        let found = self.0.recent_noncurrent.newest(before_lsn, limit.saturating_add(1), is_asked);
        let next =
            found.get(limit).and_then(|_| found.get(limit - 1)).map(|last| last.noncurrent_lsn);
        self.read_log(|log| {
            let mut versions = Vec::new();
            for ended in found.into_iter().take(limit) {
                let object = &ended.version.object;
                if history::may_be_recoverable(log, object)?
                    && !history::is_current_again(log, object)?
                {
                    versions.push(ended.version.clone());
                }
            }
            Ok((versions, next))
        })
    }

    /// Returns the time until which a noncurrent version is retained, in milliseconds since 1970; it may end earlier if
    /// space is short. `None` without a promised time: the version may be reclaimed at any time, or already was.
    pub fn recoverable_until_ms(&self, object: &Object) -> Option<u64> {
        match object.entry.content {
            EntryContent::Big { segment, .. } => self.0.segments.retained_until_ms(segment),
            EntryContent::Inline { .. } | EntryContent::Lost { .. } => None,
        }
    }

    /// Returns noncurrent versions that can be restored and were not put again: the first `limit` by name and LSN,
    /// starting after `after`, at most [`limits::LIST_PAGE_MAX`]. Reads the record heads of the whole log. Waits for
    /// the disk.
    pub fn list_noncurrent(
        &self,
        asked: &NoncurrentFilter,
        after: Option<&(ObjectKey, u64)>,
        limit: usize,
        watch: &mut ProgressCallback<'_>,
    ) -> Result<NoncurrentPage> {
        let limit = limit.min(limits::LIST_PAGE_MAX);
        self.read_log(|log| history::list_noncurrent(log, asked, after, limit, watch))
    }

    /// Returns restorable noncurrent versions in log order, starting after the position `from`: at most `limit`
    /// versions and [`limits::LIST_PAGE_MAX`], reading at most `records_max` records. Waits for the disk.
    ///
    /// If `watch` stops it, returns the versions found so far. For logs that are too large for
    /// [`Store::list_noncurrent`].
    pub fn list_noncurrent_in_log_order(
        &self,
        asked: &NoncurrentFilter,
        from: LogScanCursor,
        limit: usize,
        records_max: usize,
        watch: &mut ProgressCallback<'_>,
    ) -> Result<NoncurrentLogPage> {
        let bounds = (limit.clamp(1, limits::LIST_PAGE_MAX), records_max.max(1));
        self.read_log(|log| history::list_in_log_order(log, asked, from, bounds, watch))
    }

    /// Returns the recently noncurrent version of an object with this LSN, or the latest one if `lsn` is `None`; `None`
    /// if it cannot be restored or is not in the list in memory.
    ///
    /// Only versions put after `span.after_lsn` are considered; `span.through_lsn` is ignored. Reads no log.
    pub fn recent_noncurrent_version(
        &self,
        name: &ObjectName,
        lsn: Option<u64>,
        span: LsnRange,
    ) -> Result<Option<Object>> {
        let is_meant = |it: &NoncurrentVersion| {
            let object = &it.object;
            let is_it = lsn.is_none_or(|lsn| lsn == object.lsn());
            is_it && object.name == *name && object.lsn() > span.after_lsn
        };
        let Some(ended) = self.0.recent_noncurrent.newest(None, 1, is_meant).pop() else {
            return Ok(None);
        };
        let object = &ended.version.object;
        self.read_log(|log| Ok(history::may_be_recoverable(log, object)?.then(|| object.clone())))
    }

    /// Returns the noncurrent version of an object with this LSN, or the newest intact one if `lsn` is `None`. Waits
    /// for the disk.
    ///
    /// Only versions put after `span.after_lsn` are considered; `span.through_lsn` is ignored. Reads the record heads
    /// of the whole log, or with an LSN only those of the segments that may contain it. The inner error is the reason
    /// why there is no such version.
    pub fn noncurrent_version(
        &self,
        name: &ObjectName,
        lsn: Option<u64>,
        span: LsnRange,
        watch: &mut ProgressCallback<'_>,
    ) -> Result<Result<Object, RestoreError>> {
        self.read_log(|log| history::noncurrent_version(log, name, lsn, span, watch))
    }

    /// Returns the newest intact version, or the reason why there is none, of each object that matches the filter, was
    /// deleted and does not exist again. Reads the record heads of the whole log twice. Waits for the disk.
    pub fn newest_deleted_versions(
        &self,
        asked: &DeletedFilter,
        watch: &mut ProgressCallback<'_>,
    ) -> Result<Vec<Result<Object, (ObjectName, RestoreError)>>> {
        self.read_log(|log| history::newest_deleted_versions(log, asked, watch))
    }

    /// Stages the body of a noncurrent version, so that it can be put again. The inner error is the reason why the body
    /// cannot be restored. Waits for the disk.
    pub fn stage_noncurrent(&self, object: &Object) -> Result<Result<StagedBody, RestoreError>> {
        let begin = || self.upload();
        self.read_log(|log| history::stage(log, &begin, &object.name, &object.entry))
    }

    /// Stages a copy of an object's body, so that it can be put under another name. Waits for the disk.
    ///
    /// Fails with [`Conflict::KeyChanged`](crate::Conflict::KeyChanged) like [`Store::body`], and with
    /// [`Error::Cancelled`] soon after `watch` stops it.
    pub fn stage_copy(
        &self,
        object: &Object,
        watch: &mut ProgressCallback<'_>,
    ) -> Result<StagedBody> {
        let body = self.body(object)?;
        let mut upload = self.upload();
        let total_bytes = body.bytes();
        while upload.bytes() < total_bytes {
            let done_bytes = upload.bytes();
            let progress = WorkProgress { done_bytes, total_bytes, ..WorkProgress::default() };
            if watch(progress).is_break() {
                return Err(Error::Cancelled);
            }
            upload.push(&body.read(done_bytes..total_bytes)?)?;
        }
        upload.finish()
    }

    /// Returns the LSN of the last committed record, 0 for an empty store. Later records have greater LSNs.
    pub fn last_lsn(&self) -> Result<u64> {
        self.read_checked(|view| Ok(view.position().map_or(0, |position| position.lsn)))
    }

    /// Creates or updates a backup of the current state in the folder of `to`, while the store is in use. Waits for the
    /// disk.
    ///
    /// The backup is a store without an index. To restore it, open it, or copy it to another folder and open that.
    /// Fails with [`Error::NotAStore`] if the folder contains another store or other files.
    pub fn backup(
        &self,
        to: &Arc<dyn Disk>,
        watch: &mut ProgressCallback<'_>,
    ) -> Result<BackupReport> {
        let published = || {
            self.read_checked(|view| {
                let used = view.segments()?.into_iter();
                let big = used.filter(|(_, usage)| usage.class == SegmentClass::Big);
                Ok(Published {
                    position: view.position().map_or(LogPosition::START, LogPosition::from),
                    big: big.map(|(id, _)| id).collect(),
                })
            })
        };
        let index = IndexAccess {
            published: &published,
            usage_of: &|id| self.read_checked(|view| view.segment_usage(id)),
            may_be_punched: &|record, at| self.read_checked(|view| view.may_be_punched(record, at)),
        };
        backup::backup(&self.0.segments, &index, to.as_ref(), watch)
    }

    fn read_log<T>(&self, read: impl FnOnce(&LogReader<'_>) -> Result<T>) -> Result<T> {
        let position = self.read_checked(|view| Ok(view.position()))?;
        read(&LogReader {
            segments: &self.0.segments,
            position: position.map_or(LogPosition::START, LogPosition::from),
            entry: &|name| self.read_checked(|view| view.entry(name)),
            usage_of: &|id| self.read_checked(|view| view.segment_usage(id)),
            may_be_punched: &|record, at| self.read_checked(|view| view.may_be_punched(record, at)),
        })
    }
}
