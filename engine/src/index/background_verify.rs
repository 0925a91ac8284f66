//! Background verification of large indexes, which are not verified page by page when opened: reads every entry, looks
//! it up by its key, and recounts the usage.
//!
//! redb verifies nothing when it reads, so a damaged page could hide a key. At the first damage the index is marked
//! corrupt: its file name is removed, and the next open rebuilds the index from the log.
//!
//! Non-goals: repair, and the content of the segments.

use std::fmt;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::{ReadableTable, ReadableTableMetadata};

use super::tables::{Checkpointed, INDEX_FILE, damaged, unusable};
use super::view::View;
use super::{Index, redb_panics};
use crate::error::{Error, Result};
use crate::format::{Entry, Malformed, Usage, entry_key};
use crate::name::{BucketName, FolderKey};

/// Usage counters of a bucket (which is its root folder) or top-level folder that differ from its entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CounterMismatch {
    bucket: BucketName,
    folder: FolderKey,
    /// Counters in the index.
    stored: Usage,
    /// Counted entries.
    counted: Usage,
}

impl fmt::Display for CounterMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bucket, folder, stored, counted } = self;
        let amount = |usage: &Usage| {
            let Usage { objects, bytes, derived_objects, derived_bytes } = usage;
            format!(
                "{objects} objects of {bytes} bytes and {derived_objects} derived of {derived_bytes}"
            )
        };
        let (stored, counted) = (amount(stored), amount(counted));
        write!(f, "it counts {stored} in {bucket}/{folder}, but there are {counted}")
    }
}

/// Whether the index was found corrupt since it was opened.
#[derive(Default)]
pub(super) struct CorruptFlag(AtomicBool);

impl Index {
    /// Returns whether an error means that the index itself is corrupt.
    pub(crate) fn is_damage(error: &Error) -> bool {
        matches!(error, Error::Corrupt(corruption) if corruption.file == INDEX_FILE)
    }

    /// Reads the index. Corruption marks the index, so that the next open does not use it.
    pub(crate) fn read_checked<T>(&self, read: impl FnOnce(&View) -> Result<T>) -> Result<T> {
        let view = self.view();
        self.checked(|| read(&view))
    }

    /// Reads from a view of this index. If that finds damage, the index is marked corrupt.
    pub(crate) fn checked<T>(&self, read: impl FnOnce() -> Result<T>) -> Result<T> {
        Self::guard(read).inspect_err(|error| {
            if Self::is_damage(error) {
                self.mark_corrupt();
            }
        })
    }

    /// Marks the index corrupt, so that the next open rebuilds it. The open index stays in use and returns errors
    /// where it is damaged.
    pub(crate) fn mark_corrupt(&self) {
        // Once the index is closed, the file may belong to another process.
        if !self.tables.is_closed() && !self.condemned.0.swap(true, Ordering::SeqCst) {
            // No new file follows whose creation would make the removal durable. If even this fails, the next open
            // or verification finds the damage again.
            let disk = self.place.disk.as_ref();
            let _ = Self::remove(disk).is_ok_and(|()| disk.sync_folder("").is_ok());
        }
    }

    /// Returns whether the index was marked corrupt.
    pub(crate) fn is_marked_corrupt(&self) -> bool {
        self.condemned.0.load(Ordering::SeqCst)
    }

    /// Runs work that reads redb. Its file is untrusted: redb may panic on bytes that it never wrote, which counts
    /// as corruption.
    pub(crate) fn guard<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
        redb_panics::catch(work)
    }
}

impl View {
    /// Verifies every entry of the checkpointed index, and calls `each` with its key and value, in key order, until
    /// that fails. `miscounted` is called for every counter that differs from its entries. Lookups are verified by
    /// [`Self::verify_lookup`].
    pub(crate) fn verify_entries(
        &self,
        miscounted: impl FnMut(CounterMismatch),
        mut each: impl FnMut(&[u8], &[u8]) -> Result<()>,
    ) -> Result<()> {
        let index = self.checkpointed.as_ref();
        let mut count = CounterCheck { index, miscounted, under_way: Vec::new(), rows: 0 };
        let mut last: Vec<u8> = Vec::new();
        Index::guard(|| {
            for item in index.entries_from(Bound::Unbounded, &END_OF_KEYS)? {
                let (key, value) = item.map_err(unusable)?;
                let (key, value) = (key.value(), value.value());
                Index::name_of(key)?;
                if last.as_slice() >= key {
                    return Err(damaged(Malformed::Structure));
                }
                count.add(key, &Index::entry_of(key, value)?)?;
                key.clone_into(&mut last);
                each(key, value)?;
            }
            count.end()
        })
    }

    /// Verifies that a lookup in the checkpointed index finds an entry.
    pub(crate) fn verify_lookup(&self, key: &[u8], value: &[u8]) -> Result<()> {
        Index::guard(|| {
            let found = self.checkpointed.entries.get(key).map_err(unusable)?;
            match found.is_some_and(|found| found.value() == value) {
                true => Ok(()),
                false => Err(damaged(Malformed::Structure)),
            }
        })
    }
}

/// Counter over entries in key order, in which the entries of a bucket or folder are contiguous.
struct CounterCheck<'a, M> {
    index: &'a Checkpointed,
    miscounted: M,
    /// Counters that include the last entry, by key: those of its bucket and of its top-level folder.
    under_way: Vec<(Vec<u8>, Usage)>,
    /// Number of counter rows compared.
    rows: u64,
}

impl<M: FnMut(CounterMismatch)> CounterCheck<'_, M> {
    fn add(&mut self, key: &[u8], entry: &Entry) -> Result<()> {
        self.compare(|counted| !key.starts_with(counted))?;
        let begun = entry_key::counted_in(key).skip(self.under_way.len());
        self.under_way.extend(begun.map(|counted| (counted.to_vec(), Usage::default())));
        self.under_way.iter_mut().for_each(|(_, usage)| usage.add(entry));
        Ok(())
    }

    /// Compares the counters that are complete, the innermost first.
    fn compare(&mut self, is_over: impl Fn(&[u8]) -> bool) -> Result<()> {
        while let Some((key, counted)) = self.under_way.pop_if(|(key, _)| is_over(key)) {
            let stored = self.index.usage(&key)?;
            self.rows += u64::from(stored.is_some());
            if stored != Some(counted) {
                self.report_mismatch(&key, stored.unwrap_or_default(), counted)?;
            }
        }
        Ok(())
    }

    fn end(mut self) -> Result<()> {
        self.compare(|_| true)?;
        if self.index.usage.len().map_err(unusable)? == self.rows {
            return Ok(());
        }
        for row in self.index.usage.iter().map_err(unusable)? {
            let (key, value) = row.map_err(unusable)?;
            let key = key.value();
            let first = self.index.entries_from(Bound::Included(key), &END_OF_KEYS)?.next();
            let first = first.transpose().map_err(unusable)?;
            let is_wanted = first.is_some_and(|(first, _)| {
                entry_key::counted_in(first.value()).any(|counted| counted == key)
            });
            if !is_wanted {
                let stored = Usage::decode(value.value()).map_err(damaged)?;
                self.report_mismatch(key, stored, Usage::default())?;
            }
        }
        Ok(())
    }

    fn report_mismatch(&mut self, key: &[u8], stored: Usage, counted: Usage) -> Result<()> {
        let (bucket, folder) = entry_key::decode_prefix(key).map_err(damaged)?;
        (self.miscounted)(CounterMismatch { bucket, folder, stored, counted });
        Ok(())
    }
}
/// Sorts after every index key, because bucket names are ASCII.
pub(super) const END_OF_KEYS: [u8; 1] = [0xff];
