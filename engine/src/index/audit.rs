//! The audit of an index too large to be verified page by page when it is opened: every entry is read, looked up again
//! by its key, and counted.
//!
//! redb checks nothing when it reads, so a damaged page could hide a key. What is found once is enough: the index is
//! condemned, which means that its name is removed and that the next opening makes a new one from the log.
//! Never here: repairing anything; what the segments hold.

use std::fmt;
use std::ops::Bound;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::{ReadableTable, ReadableTableMetadata};

use super::Index;
use super::tables::{Checkpointed, INDEX_FILE, damaged, unusable};
use super::view::View;
use crate::error::{Error, Result};
use crate::format::{Entry, Malformed, Usage, entry_key};
use crate::name::{BucketName, FolderKey};

/// The counters of a bucket, which is its root folder, or of a top-level folder are not what its entries come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Miscount {
    bucket: BucketName,
    folder: FolderKey,
    /// What the index counts there.
    told: Usage,
    /// What is there.
    counted: Usage,
}

impl fmt::Display for Miscount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bucket, folder, told, counted } = self;
        let amount = |usage: &Usage| {
            let Usage { objects, bytes, derived_objects, derived_bytes } = usage;
            format!(
                "{objects} objects of {bytes} bytes and {derived_objects} derived of {derived_bytes}"
            )
        };
        let (told, counted) = (amount(told), amount(counted));
        write!(f, "it counts {told} in {bucket}/{folder}, but there are {counted}")
    }
}

/// Whether an index was found to be damaged since it was opened.
#[derive(Default)]
pub(super) struct Condemned(AtomicBool);

impl Index {
    /// Whether an error says that the index itself is damaged.
    pub(crate) fn is_damage(error: &Error) -> bool {
        matches!(error, Error::Corrupt(corruption) if corruption.file == INDEX_FILE)
    }

    /// Reads the index. Damage in it shows here: the next opening will not use it.
    pub(crate) fn look<T>(&self, read: impl FnOnce(&View) -> Result<T>) -> Result<T> {
        let view = self.view();
        Self::guard(|| read(&view)).inspect_err(|error| {
            if Self::is_damage(error) {
                self.condemn();
            }
        })
    }

    /// The index is damaged: sees to it that the next opening makes a new one. What is open goes on meanwhile, and says
    /// where it cannot answer.
    pub(crate) fn condemn(&self) {
        // Once it is closed the file may be somebody else's.
        if !self.tables.is_closed() && !self.condemned.0.swap(true, Ordering::SeqCst) {
            // No new one follows whose name would make it durable. When even this fails, the next opening or audit
            // finds the damage again.
            let disk = self.place.disk.as_ref();
            let _ = Self::remove(disk).is_ok_and(|()| disk.sync_folder("").is_ok());
        }
    }

    /// Whether it was.
    pub(crate) fn is_condemned(&self) -> bool {
        self.condemned.0.load(Ordering::SeqCst)
    }

    /// Reads the whole checkpointed index, until `stopped` says that nobody wants to know any more. `miscounted` is
    /// told of every counter that is not what the entries come to.
    pub(crate) fn audit(
        &self,
        stopped: impl Fn() -> bool,
        miscounted: impl FnMut(Miscount),
    ) -> Result<()> {
        let view = self.view();
        Self::guard(|| audit(&view.checkpointed, stopped, miscounted))
    }

    /// Does work that reads redb. What lies in its file is the world's: it may meet bytes there that it never wrote,
    /// and panic. That is damage like any other.
    pub(crate) fn guard<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
        std::panic::catch_unwind(AssertUnwindSafe(work))
            .unwrap_or_else(|_| Err(damaged(Malformed::Order)))
    }
}

fn audit(
    index: &Checkpointed,
    stopped: impl Fn() -> bool,
    miscounted: impl FnMut(Miscount),
) -> Result<()> {
    let mut count = Count { index, miscounted, under_way: Vec::new(), rows: 0 };
    let mut last: Vec<u8> = Vec::new();
    for (number, item) in index.entries_from(Bound::Unbounded, &END_OF_KEYS)?.enumerate() {
        if number.is_multiple_of(AUDIT_STRIDE) && stopped() {
            return Ok(());
        }
        let (key, value) = item.map_err(unusable)?;
        let key = key.value();
        let entry = Entry::decode(key, value.value()).map_err(damaged)?;
        entry_key::decode(key).map_err(damaged)?;
        if last.as_slice() >= key || index.entry(key)?.is_none_or(|found| found.lsn != entry.lsn) {
            return Err(damaged(Malformed::Order));
        }
        count.add(key, &entry)?;
        key.clone_into(&mut last);
    }
    count.end()
}

/// Counts entries in the order of their keys, in which all that is counted together lies together.
struct Count<'a, M> {
    index: &'a Checkpointed,
    miscounted: M,
    /// The counters that the last entry is in, by key: of its bucket, and of its top-level folder.
    under_way: Vec<(Vec<u8>, Usage)>,
    /// How many rows of counters were looked at.
    rows: u64,
}

impl<M: FnMut(Miscount)> Count<'_, M> {
    fn add(&mut self, key: &[u8], entry: &Entry) -> Result<()> {
        self.compare(|counted| !key.starts_with(counted))?;
        let begun = entry_key::counted_in(key).skip(self.under_way.len());
        self.under_way.extend(begun.map(|counted| (counted.to_vec(), Usage::default())));
        self.under_way.iter_mut().for_each(|(_, usage)| usage.add(entry));
        Ok(())
    }

    /// Compares what is counted to its end, the innermost first.
    fn compare(&mut self, is_over: impl Fn(&[u8]) -> bool) -> Result<()> {
        while let Some((key, counted)) = self.under_way.pop_if(|(key, _)| is_over(key)) {
            let told = self.index.usage(&key)?;
            self.rows += u64::from(told.is_some());
            if told != Some(counted) {
                self.tell(&key, told.unwrap_or_default(), counted)?;
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
            let (key, told) = row.map_err(unusable)?;
            let key = key.value();
            let first = self.index.entries_from(Bound::Included(key), &END_OF_KEYS)?.next();
            let first = first.transpose().map_err(unusable)?;
            let is_wanted = first.is_some_and(|(first, _)| {
                entry_key::counted_in(first.value()).any(|counted| counted == key)
            });
            if !is_wanted {
                let told = Usage::decode(told.value()).map_err(damaged)?;
                self.tell(key, told, Usage::default())?;
            }
        }
        Ok(())
    }

    fn tell(&mut self, key: &[u8], told: Usage, counted: Usage) -> Result<()> {
        let (bucket, folder) = entry_key::decode_prefix(key).map_err(damaged)?;
        (self.miscounted)(Miscount { bucket, folder, told, counted });
        Ok(())
    }
}
/// How many entries are read between two looks at whether to stop.
const AUDIT_STRIDE: usize = 1_024;
/// No index key sorts after this: bucket names are ASCII.
pub(super) const END_OF_KEYS: [u8; 1] = [0xff];
