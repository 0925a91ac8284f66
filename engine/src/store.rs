//! Store: the public API of an open store.
//!
//! Guarantees: all calls are thread-safe. Lookups and listings of the index may wait for a page of the index file;
//! calls that read or write other files say that they wait for the disk. Dropping the last clone without
//! [`Store::close`] loses no acknowledged data: the next open replays it.
//! Non-goals: implementation. Each call is delegated to a lower layer.

mod background_threads;
mod compacting;
mod open;
mod replicating;
mod scrubbing;
mod versions;

use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use uuid::Uuid;

use self::background_threads::Threads;
pub use self::open::{Background, Environment, OpenOptions};
use crate::clock::Clock;
use crate::commit::{
    self, Batch, CommitInfo, CommitLatency, CommitStep, Committer, Etag, Health, HealthState,
    Queue, RecentNoncurrent, Rollover,
};
use crate::compaction::Compactor;
use crate::disk::Lock;
use crate::error::{Conflict, Error, Result};
use crate::format::{EntryContent, SegmentClass, SegmentId, Usage};
use crate::free_space::FreeSpace;
use crate::index::{
    self, FolderCursor, FolderPage, Index, KeyGroupPage, KeyGrouping, KeyPage, Object, UsagePage,
    View,
};
use crate::limits;
use crate::metrics::{Metrics, StoreMetrics};
use crate::name::{BucketName, FactName, FolderKey, ObjectName};
use crate::replication::Replication;
use crate::scrub::{ScrubContext, Scrubber};
use crate::segment::{Body, ReadMode, SegmentSet};
use crate::snapshot::{Snapshot, Subscription};
use crate::stats::{DiskStats, StoreStats};
use crate::upload::{ResumableUpload, ResumePoint, Upload, Uploads};

/// Open store. Clones share one store and its threads; the last one that is dropped stops the threads and releases the
/// folder.
#[derive(Clone)]
pub struct Store(Arc<StoreInner>);

struct StoreInner {
    segments: Arc<SegmentSet>,
    index: Arc<Index>,
    queue: Arc<Queue>,
    rollover: Arc<Rollover>,
    health: Arc<HealthState>,
    space: Arc<FreeSpace>,
    uploads: Uploads,
    options: OpenOptions,
    batch_bytes_max: u64,
    committer: Arc<Mutex<Committer>>,
    compactor: Arc<Compactor>,
    load: Arc<CommitLatency>,
    recent_noncurrent: Arc<RecentNoncurrent>,
    metrics: Arc<Metrics>,
    clock: Arc<dyn Clock>,
    opened_ms: u64,
    scrubbed: ScrubContext,
    scrubber: Arc<Mutex<Scrubber>>,
    replication: Option<Arc<Replication>>,
    threads: Threads,
    /// Lock of the folder while the store is open.
    lock: Mutex<Option<Box<dyn Lock>>>,
}

impl Store {
    /// Returns the current object of this name; `None` if there is none. Reads only the index: about a microsecond if
    /// the page of the entry is in memory.
    pub fn get(&self, name: &ObjectName) -> Result<Option<Object>> {
        let entry = self.read_checked(|view| view.entry(name))?;
        Ok(entry.map(|entry| Object { name: name.clone(), entry }))
    }

    /// Opens the body of an object for reading. Waits for the disk.
    ///
    /// Fails with [`Conflict::KeyChanged`] if the object was overwritten or deleted after its lookup and its bytes were
    /// reclaimed: look it up again. Fails with [`Error::Corrupt`] if the record or a small body is damaged.
    pub fn body(&self, object: &Object) -> Result<Body> {
        self.open_body(object, ReadMode::Blocking)?.ok_or(Error::Closed)
    }

    /// Opens the body of an object without waiting for the disk; `None` if [`Store::body`] would have to wait.
    pub fn body_if_open(&self, object: &Object) -> Result<Option<Body>> {
        self.open_body(object, ReadMode::NonBlocking)
    }

    fn open_body(&self, object: &Object, patience: ReadMode) -> Result<Option<Body>> {
        let sightings = self.0.segments.reported_corruption();
        let opened = self.open_body_at_current_location(object, patience);
        let opened = opened.inspect_err(|error| sightings.add(error))?;
        Ok(opened.map(|body| body.reporting_to(sightings)))
    }

    fn open_body_at_current_location(
        &self,
        object: &Object,
        patience: ReadMode,
    ) -> Result<Option<Body>> {
        match self.try_open_body(object, patience) {
            // Missing bytes may have been reclaimed since the object was looked up.
            Err(error @ Error::Corrupt(_)) => match self.get(&object.name)? {
                Some(now) if now.lsn() != object.lsn() => {
                    Err(Error::Conflict(Conflict::KeyChanged(object.name.clone())))
                }
                Some(now) if now.entry.record != object.entry.record => {
                    self.try_open_body(&now, patience)
                }
                Some(_) => Err(error),
                None => Err(Error::Conflict(Conflict::KeyChanged(object.name.clone()))),
            },
            other => other,
        }
    }

    fn try_open_body(&self, object: &Object, patience: ReadMode) -> Result<Option<Body>> {
        let (id, class): (SegmentId, SegmentClass) = match object.entry.content {
            EntryContent::Inline { .. } | EntryContent::Lost { .. } => {
                (object.entry.record.segment, SegmentClass::Log)
            }
            EntryContent::Big { segment, .. } => (segment, SegmentClass::Big),
        };
        match self.0.segments.open(id, class, patience) {
            Ok(Some(segment)) => {
                let kept = self.0.segments.body_cache();
                Body::open(segment, &object.name, &object.entry, kept, patience)
            }
            Ok(None) => Ok(None),
            Err(error) => Err(error.about(&object.name)),
        }
    }

    /// Begins an upload of a body, which stays in memory or goes to a big segment, depending on its size.
    pub fn upload(&self) -> Upload {
        Upload::new(self.0.uploads.clone())
    }

    /// Begins an upload that survives restarts, under an id chosen by the caller. [`Store::resume_upload`] resumes it
    /// until [`Store::remove_upload`] removes it. Waits for the disk.
    ///
    /// Fails with [`Error::Io`] (`AlreadyExists`) if the id is in use, and with [`Error::NoSpace`] on a full disk.
    pub fn begin_upload(&self, id: Uuid) -> Result<ResumableUpload> {
        self.0.uploads.begin(id)
    }

    /// Resumes an upload at the state last returned by [`ResumableUpload::sync`], and drops later bytes. Reads all
    /// received bytes and fails with [`Error::Corrupt`] if their hash differs. Waits for the disk.
    pub fn resume_upload(&self, id: Uuid, received: ResumePoint) -> Result<ResumableUpload> {
        self.0.uploads.resume(id, received)
    }

    /// Passes the bytes of a resumable upload to `take` in pieces, up to the state last returned by
    /// [`ResumableUpload::sync`]. The bytes are verified only once this returns Ok. Waits for the disk.
    pub fn read_upload(
        &self,
        id: Uuid,
        received: ResumePoint,
        take: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        self.0.uploads.read(id, received, take)
    }

    /// Removes a resumable upload and its bytes. A missing upload is not an error. Waits for the disk.
    pub fn remove_upload(&self, id: Uuid) -> Result<()> {
        self.0.uploads.remove(id)
    }

    /// Registers a callback that frees disk space of the application.
    ///
    /// It is called before a body is rejected with [`Error::NoSpace`], if reclaiming garbage of the store is not
    /// sufficient. It receives the number of bytes needed and returns the number of bytes freed. It runs on writing
    /// threads, and must neither commit nor wait for a commit; [`Store::remove_upload`] is allowed. Only the first
    /// registration is used.
    pub fn reclaim_by(&self, reclaim: impl Fn(u64) -> u64 + Send + Sync + 'static) {
        self.0.space.give_back_last_by(reclaim);
    }

    /// Returns the ids of all resumable uploads, finished or not. Waits for the disk.
    pub fn resumable_uploads(&self) -> Result<Vec<Uuid>> {
        self.0.uploads.list()
    }

    /// Commits a batch and waits until it is durable or rejected.
    ///
    /// Fails with [`Error::Conflict`] if a precondition does not hold, [`Error::TooLarge`] beyond a limit of
    /// [`limits`], [`Error::NoSpace`] on a full disk, [`Error::Busy`] if the queue is full or checkpoints are too slow,
    /// [`Error::ReadOnly`] after a failed write, and [`Error::Closed`]. A rejected batch changes nothing. After
    /// [`Error::Io`] a batch may or may not be in the log: the next open decides.
    pub fn commit(&self, batch: Batch) -> Result<CommitInfo> {
        let (answer, outcome) = mpsc::sync_channel(1);
        self.submit(batch, move |result| {
            let _ = answer.send(result);
        });
        if self.0.options.background == Background::Manual {
            while self.step_committer() == CommitStep::Worked {}
            self.ship_manually()?;
        }
        outcome.recv().unwrap_or(Err(Error::Closed))
    }

    /// Queues a batch for the committer and returns without waiting for the disk.
    ///
    /// `answer` is called exactly once, with the result of [`Store::commit`]: on the committer thread when the batch is
    /// durable or rejected, or on the calling thread if it cannot be queued. It must not block, because it delays all
    /// other commits.
    pub fn submit(&self, batch: Batch, answer: impl FnOnce(Result<CommitInfo>) + Send + 'static) {
        let checked = self.0.health.require_writable().and(batch.check(self.0.batch_bytes_max));
        match checked.and_then(|()| self.require_replication()) {
            Ok(()) => self.0.queue.push(batch, self.when_replicated(Box::new(answer))),
            Err(error) => answer(Err(error)),
        }
    }

    /// Returns the value of a fact; `None` if it does not exist. Reads only the index.
    pub fn fact(&self, name: &FactName) -> Result<Option<Bytes>> {
        Ok(self.read_checked(|view| view.fact(name))?.map(|fact| fact.value.clone()))
    }

    /// Returns facts whose names begin with `prefix`, in byte order, starting after the name `after`: at most `limit`,
    /// and at most [`limits::LIST_PAGE_MAX`].
    pub fn facts(
        &self,
        prefix: &str,
        after: Option<&FactName>,
        limit: usize,
    ) -> Result<Vec<(FactName, Bytes)>> {
        let limit = limit.min(limits::LIST_PAGE_MAX);
        let facts = self.read_checked(|view| view.facts(prefix, after, limit))?;
        Ok(facts.into_iter().map(|(name, fact)| (name, fact.value.clone())).collect())
    }

    /// Lists the direct content of a folder: subfolders first, then files, starting after the item `after`. At most
    /// `limit` items, and at most [`limits::LIST_PAGE_MAX`].
    pub fn list_folder(
        &self,
        bucket: &BucketName,
        folder: &FolderKey,
        after: Option<&FolderCursor>,
        limit: usize,
    ) -> Result<FolderPage> {
        self.read_checked(|view| index::list_folder(view, bucket, folder, after, limit))
    }

    /// Lists objects whose keys begin with `prefix`, in byte order of full keys, starting after the key `after`. At
    /// most `limit` objects, and at most [`limits::LIST_PAGE_MAX`].
    pub fn list_keys(
        &self,
        bucket: &BucketName,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<KeyPage> {
        self.read_checked(|view| index::list_keys(view, bucket, prefix, after, limit))
    }

    /// Lists objects and common prefixes (S3 `delimiter`), starting after the key or group `after`.
    ///
    /// Keys that contain the delimiter after the prefix form groups. Each group is one item and costs one seek,
    /// whatever its size. At most `limit` items, and at most [`limits::LIST_PAGE_MAX`].
    pub fn list_key_groups(
        &self,
        bucket: &BucketName,
        grouping: KeyGrouping<'_>,
        after: Option<&str>,
        limit: usize,
    ) -> Result<KeyGroupPage> {
        self.read_checked(|view| index::list_key_groups(view, bucket, grouping, after, limit))
    }

    /// Takes a snapshot of the objects.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(&self.0.index)
    }

    /// Takes a snapshot of the objects, and subscribes to the names that are created and deleted in a bucket after it.
    pub fn subscribe(&self, bucket: &BucketName) -> (Snapshot, Arc<Subscription>) {
        Snapshot::with_subscription(&self.0.index, bucket)
    }

    /// Returns the exact number of objects and of their content bytes in a bucket; zeros if it is empty.
    pub fn bucket_usage(&self, bucket: &BucketName) -> Result<Usage> {
        self.read_checked(|view| view.bucket_usage(bucket))
    }

    /// Returns the exact number of objects and of their content bytes in a top-level folder and its subfolders, or in
    /// the whole bucket if `folder` is the root. `None` for a nested folder, which has no counters.
    pub fn folder_usage(&self, bucket: &BucketName, folder: &FolderKey) -> Result<Option<Usage>> {
        match folder.as_str().split_terminator('/').count() {
            0 | 1 => self.read_checked(|view| view.folder_usage(bucket, folder)).map(Some),
            _ => Ok(None),
        }
    }

    /// Lists the nonempty top-level folders of a bucket with their exact usage, in byte order, starting after the
    /// folder `after`. At most `limit` folders, and at most [`limits::LIST_PAGE_MAX`]. Keys without a slash are in no
    /// folder.
    pub fn folder_usages(
        &self,
        bucket: &BucketName,
        after: Option<&FolderKey>,
        limit: usize,
    ) -> Result<UsagePage> {
        self.read_checked(|view| view.folder_usages(bucket, after, limit))
    }

    /// Returns the statistics of the store. Reads the counters of all buckets and segments.
    pub fn stats(&self) -> Result<StoreStats> {
        self.0.scrubbed.collect_reported()?;
        Ok(StoreStats {
            queued_batches: self.0.queue.len(),
            upload_memory_bytes: self.0.uploads.memory.used(),
            mapped_segments: self.0.segments.mapped_count(),
            index_is_corrupt: self.0.index.is_marked_corrupt(),
            retained: self.0.segments.retained_stats(),
            ..self.read_checked(|view| StoreStats::of(view, &self.0.index))?
        })
    }

    /// Returns the counters and histograms since the store was opened. Does not block.
    pub fn metrics(&self) -> StoreMetrics {
        self.0.metrics.read()
    }

    /// Returns capacity and free space of the disk, and the size of the index file; `None` if the disk does not report
    /// its capacity. Waits for the disk.
    pub fn disk_stats(&self) -> Result<Option<DiskStats>> {
        let Some((total_bytes, free_bytes, reserve_bytes)) = self.0.space.disk_usage() else {
            return Ok(None);
        };
        let io = |source| Error::io(format!("looking at {}", index::INDEX_FILE), source);
        let index = self.0.segments.disk().open(index::INDEX_FILE);
        let index_bytes = index.and_then(|file| file.bytes_len()).map_err(io)?;
        Ok(Some(DiskStats { total_bytes, free_bytes, reserve_bytes, index_bytes }))
    }

    fn read_checked<T>(&self, read: impl FnOnce(&View) -> Result<T>) -> Result<T> {
        self.0.index.read_checked(read)
    }

    /// Returns whether the store accepts writes, and why not.
    pub fn health(&self) -> Health {
        self.0.health.get()
    }

    /// Commits queued batches, writes a last checkpoint, seals the log, and releases the folder. Waits for the disk.
    /// Later writes fail with [`Error::Closed`]; open bodies stay readable. Must not be called by a callback of
    /// [`Self::submit`], which runs on a thread that this waits for.
    pub fn close(&self) -> Result<()> {
        self.0.queue.close();
        if self.0.options.background == Background::Manual {
            while self.step_committer() == CommitStep::Worked {}
        }
        self.0.threads.join();
        let closed = self.finish();
        if let Some(replication) = &self.0.replication {
            replication.finish();
        }
        self.0.index.close();
        self.0.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
        closed
    }

    fn finish(&self) -> Result<()> {
        if self.0.health.require_writable().is_err() {
            return Ok(());
        }
        self.committer().close_segment();
        self.0.rollover.finish()?;
        loop {
            match self.checkpoint() {
                Ok(true) => {}
                // The next open replays what could not be written.
                Ok(false) | Err(Error::NoSpace) => break,
                Err(other) => return Err(other),
            }
        }
        // Corruption that is not recorded now will be detected again.
        let _ = self.0.scrubbed.collect_reported();
        self.0.scrubbed.save();
        Ok(())
    }

    /// Performs one step of the committer. For stores without threads.
    #[doc(hidden)]
    pub fn step_committer(&self) -> CommitStep {
        self.committer().step()
    }

    /// Writes the changes in memory to the index file, whether or not a checkpoint is due. Returns false if there was
    /// nothing to write. Waits for the disk.
    ///
    /// Fails with [`Error::NoSpace`] if the disk is too full: nothing is lost, and the call can be retried.
    pub fn checkpoint(&self) -> Result<bool> {
        self.0.health.require_writable()?;
        let has_frozen = self.committer().freeze() || self.0.index.view().frozen.is_some();
        if has_frozen {
            let StoreInner { index, segments, health, metrics: measures, .. } = &*self.0;
            commit::checkpoint(index, segments, health, measures)?;
        }
        Ok(has_frozen)
    }

    /// Preallocates the next segment and seals closed ones. For stores without threads.
    #[doc(hidden)]
    pub fn step_rollover(&self) -> Result<bool> {
        self.0.rollover.step()
    }

    fn committer(&self) -> std::sync::MutexGuard<'_, Committer> {
        self.0.committer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StoreInner {
    fn drop(&mut self) {
        // Acknowledged data is in the log; the threads must end before the lock is released.
        self.queue.close();
        let lock = self.lock.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        self.threads.join_and_drop(lock);
    }
}

impl Object {
    /// Returns the name of the object.
    pub fn name(&self) -> &ObjectName {
        &self.name
    }

    /// Returns the length of the body in bytes.
    pub fn bytes(&self) -> u64 {
        self.entry.body_bytes()
    }

    /// Returns the content type, as it was put.
    pub fn content_type(&self) -> &str {
        &self.entry.meta.content_type
    }

    /// Returns the ETag of the body.
    pub fn etag(&self) -> Etag {
        Etag::of_hash(&self.entry.meta.hash)
    }

    /// Returns the creation time of the object, which overwrites preserve, in milliseconds since 1970.
    pub fn created_ms(&self) -> u64 {
        self.entry.meta.created_ms
    }

    /// Returns the creation time of this version, in milliseconds since 1970.
    pub fn modified_ms(&self) -> u64 {
        self.entry.meta.modified_ms
    }

    /// Returns the opaque attributes that were put with the object.
    pub fn attributes(&self) -> &[u8] {
        &self.entry.meta.attributes
    }

    /// Returns the LSN of the put record: greater for each newer version.
    pub fn lsn(&self) -> u64 {
        self.entry.lsn
    }

    /// Returns whether the object is derived: it can be regenerated from another object, and is counted separately.
    pub fn is_derived(&self) -> bool {
        self.entry.meta.flags.derived
    }
}
