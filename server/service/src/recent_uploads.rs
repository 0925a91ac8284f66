//! Latest uploads of each bucket, for the home page of the dashboard.
//!
//! Guarantees: at most [`RECENT_UPLOADS_MAX`] names per bucket; after a start, a bucket of at most `RECENT_FILES_MAX`
//! files is scanned once. Non-goals: the history of larger buckets across restarts.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use engine::{BucketName, Object, ObjectName, Result, Store};

use crate::limits::RECENT_UPLOADS_MAX;

/// Maximum files of a bucket whose recent uploads are read after a start.
const RECENT_FILES_MAX: u64 = 20_000;

/// Names of the latest uploads, by bucket.
#[derive(Default)]
pub struct RecentUploads(Mutex<HashMap<BucketName, Latest>>);

/// Latest uploads of a bucket, newest first, each with its LSN.
#[derive(Default)]
struct Latest {
    uploads: VecDeque<(ObjectName, u64)>,
    /// Whether uploads from before the start are included.
    is_read: bool,
}

impl RecentUploads {
    /// Adds stored files.
    pub fn add<'o>(&self, stored: impl Iterator<Item = &'o Object>) {
        let mut buckets = self.buckets();
        for object in stored.filter(|object| !object.is_derived()) {
            let name = object.name().clone();
            buckets.entry(name.bucket.clone()).or_default().add(name, object.lsn());
        }
    }

    /// Returns the latest uploads of a bucket that still exist unchanged, newest first. Blocks on the disk.
    pub fn of(&self, store: &Store, bucket: &BucketName) -> Result<Vec<Object>> {
        let is_read = self.buckets().entry(bucket.clone()).or_default().is_read;
        if !is_read && store.bucket_usage(bucket)?.objects <= RECENT_FILES_MAX {
            self.read(store, bucket)?;
        }
        let uploads: Vec<_> =
            self.buckets().entry(bucket.clone()).or_default().uploads.clone().into();
        let mut found = Vec::with_capacity(uploads.len());
        for (name, lsn) in uploads {
            // A deleted or replaced version is skipped.
            found.extend(store.get(&name)?.filter(|object| object.lsn() == lsn));
        }
        Ok(found)
    }

    /// Finds the latest files of a bucket.
    fn read(&self, store: &Store, bucket: &BucketName) -> Result<()> {
        let mut latest: Vec<(u64, ObjectName)> = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let limit = engine::limits::LIST_PAGE_MAX;
            let page = store.list_keys(bucket, "", after.as_deref(), limit)?;
            let files = page.objects.iter().filter(|object| !object.is_derived());
            latest.extend(files.map(|object| (object.lsn(), object.name().clone())));
            latest.sort_unstable_by_key(|(lsn, _)| std::cmp::Reverse(*lsn));
            latest.truncate(RECENT_UPLOADS_MAX);
            if !page.more {
                break;
            }
            after = page.objects.last().map(|object| object.name().key.to_string());
        }
        let mut buckets = self.buckets();
        let known = buckets.entry(bucket.clone()).or_default();
        for (lsn, name) in latest.into_iter().rev() {
            known.add(name, lsn);
        }
        known.is_read = true;
        Ok(())
    }

    fn buckets(&self) -> MutexGuard<'_, HashMap<BucketName, Latest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Latest {
    fn add(&mut self, name: ObjectName, lsn: u64) {
        if self.uploads.iter().any(|(known, at)| *known == name && *at >= lsn) {
            return;
        }
        self.uploads.retain(|(known, _)| *known != name);
        let place = self.uploads.partition_point(|(_, at)| *at > lsn);
        self.uploads.insert(place, (name, lsn));
        self.uploads.truncate(RECENT_UPLOADS_MAX);
    }
}
