//! The audit of an index too large to be verified page by page when it is opened: every entry is read, looked up again
//! by its key, and counted.
//!
//! redb checks nothing when it reads, so a damaged page could hide a key. What is found once is enough: the index is
//! condemned, which means that its name is removed and that the next opening makes a new one from the log.
//! Never here: repairing anything; what the segments hold.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Index;
use super::tables::{Checkpointed, INDEX_FILE, damaged, unusable};
use super::view::View;
use crate::error::{Error, Result};
use crate::format::{BucketUsage, Entry, Malformed, entry_key};
use crate::name::BucketName;

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
            // When even this fails, the next opening or audit finds the damage again.
            let _ = Self::remove(self.place.disk.as_ref());
        }
    }

    /// Whether it was.
    pub(crate) fn is_condemned(&self) -> bool {
        self.condemned.0.load(Ordering::SeqCst)
    }

    /// Reads the whole checkpointed index, until `stopped` says that nobody wants to know any more.
    pub(crate) fn audit(&self, stopped: impl Fn() -> bool) -> Result<()> {
        let view = self.view();
        Self::guard(|| audit(&view.checkpointed, stopped))
    }

    /// Does work that reads redb. What lies in its file is the world's: it may meet bytes there that it never wrote,
    /// and panic. That is damage like any other.
    pub(crate) fn guard<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
        std::panic::catch_unwind(AssertUnwindSafe(work))
            .unwrap_or_else(|_| Err(damaged(Malformed::Order)))
    }
}

fn audit(index: &Checkpointed, stopped: impl Fn() -> bool) -> Result<()> {
    let mut counted: BTreeMap<BucketName, BucketUsage> = BTreeMap::new();
    let mut last: Vec<u8> = Vec::new();
    for (number, item) in index.entries_from(Bound::Unbounded, &END_OF_KEYS)?.enumerate() {
        if number.is_multiple_of(AUDIT_STRIDE) && stopped() {
            return Ok(());
        }
        let (key, value) = item.map_err(unusable)?;
        let key = key.value();
        let entry = Entry::decode(key, value.value()).map_err(damaged)?;
        let name = entry_key::decode(key).map_err(damaged)?;
        if last.as_slice() >= key || index.entry(key)?.is_none_or(|found| found.lsn != entry.lsn) {
            return Err(damaged(Malformed::Order));
        }
        counted.entry(name.bucket).or_default().add(&entry);
        key.clone_into(&mut last);
    }
    for (bucket, usage) in index.buckets()? {
        if counted.remove(&bucket).unwrap_or_default() != usage {
            return Err(damaged(Malformed::Count));
        }
    }
    if counted.is_empty() { Ok(()) } else { Err(damaged(Malformed::Count)) }
}

/// How many entries are read between two looks at whether to stop.
const AUDIT_STRIDE: usize = 1_024;
/// No index key sorts after this: bucket names are ASCII.
pub(super) const END_OF_KEYS: [u8; 1] = [0xff];
