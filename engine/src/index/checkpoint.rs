//! Checkpoint: writes the frozen overlay to redb in one durable transaction.
//!
//! Steps: freeze the active overlay; if it is large, commit an empty transaction so that redb reuses the pages replaced
//! by the last checkpoint; write the overlay, sorted, with its log position; publish the new tables without the frozen
//! overlay. After a crash before the commit the older checkpoint and the log remain; after it, the newer one. Quick
//! repair is enabled, so that opening after a crash does not scan the file.
//!
//! Non-goals: the decision when a checkpoint is due.

use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};

use redb::Durability;

use super::background_verify::CorruptFlag;
use super::change_feed::ChangeFeed;
use super::entry_writer::write_entries;
use super::integrity::IntegrityState;
use super::overlay::Overlay;
use super::tables::{
    ENTRIES, FACTS, INDEX_FILE, POSITION, RETAINED, SEGMENTS, Tables, USAGE, unusable,
};
use super::view::View;
use super::{Index, IndexLocation};
use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::format::{AppliedPosition, FactEntry};
use crate::limits;

impl Index {
    /// Opens the index, or creates an empty one.
    ///
    /// Files up to `verify_bytes_max` long are verified page by page; redb itself verifies nothing when it reads.
    /// After an error the index must be removed and rebuilt, unless it is [`Error::Io`] from the disk itself.
    pub(crate) fn open(place: IndexLocation, verify_bytes_max: u64) -> Result<Self> {
        Self::guard(|| {
            let disk = place.disk.as_ref();
            let mut tables = Tables::open(disk, place.store, place.cache_bytes)?;
            let file_bytes = disk.open(INDEX_FILE).and_then(|file| file.bytes_len());
            if file_bytes.is_ok_and(|bytes| bytes <= verify_bytes_max) {
                tables.verify()?;
            }
            let checkpointed = Arc::new(tables.read()?);
            let notes = IntegrityState::load(&tables.begin_read()?)?;
            let view = View { active: Overlay::default(), frozen: None, checkpointed };
            Ok(Self {
                place,
                tables,
                published: RwLock::new(Arc::new(view)),
                publishing: Mutex::new(()),
                draining: Mutex::default(),
                drained: Condvar::new(),
                condemned: CorruptFlag::default(),
                feed: ChangeFeed::default(),
                integrity: notes,
            })
        })
    }

    /// Removes the index file, so that a new one can be created. Durable together with the name of the new file.
    pub(crate) fn remove(disk: &dyn Disk) -> Result<()> {
        match disk.remove(INDEX_FILE) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            removed => {
                removed.map_err(|source| Error::io(format!("removing {INDEX_FILE}"), source))
            }
        }
    }

    /// Closes the file: nothing is written to it from now on.
    pub(crate) fn close(&self) {
        let _draining = self.draining.lock().unwrap_or_else(PoisonError::into_inner);
        self.tables.close();
    }

    /// Freezes the active overlay for [`Index::drain`]. Returns false if it is empty, or if another is already
    /// frozen.
    pub(crate) fn freeze(&self) -> bool {
        let mut frozen = false;
        self.update(|view| {
            if view.frozen.is_some() || view.active.position.is_none() {
                return view;
            }
            frozen = true;
            View {
                frozen: Some(Arc::new(view.active)),
                active: Overlay::default(),
                checkpointed: view.checkpointed,
            }
        });
        frozen
    }

    /// Writes the frozen overlay. `finish` completes the position with values that are known only now, or returns
    /// none: an index without a position is not finished.
    ///
    /// Fails with [`Error::NoSpace`] if the disk is full: the overlay stays frozen and can be written later. If the
    /// file could not be read, it is reopened once before an error is returned.
    pub(crate) fn drain(
        &self,
        finish: impl Fn(AppliedPosition) -> Option<AppliedPosition>,
    ) -> Result<()> {
        let mut reopening = self.draining.lock().unwrap_or_else(PoisonError::into_inner);
        let view = self.published();
        let Some(frozen) = &view.frozen else {
            return Ok(());
        };
        let is_second_try = self.require_open().is_err();
        self.reopen(&mut reopening)?;
        let write = || self.write(frozen, &finish).and_then(|()| self.tables.read());
        let checkpointed = write().or_else(|error| match self.require_open() {
            Ok(()) => Err(error),
            Err(Error::NoSpace) => Err(Error::NoSpace),
            Err(given_up) if is_second_try => Err(given_up),
            Err(_) => self.reopen(&mut reopening).and_then(|()| write()),
        })?;
        let checkpointed = Arc::new(checkpointed);
        self.update(|view| View { active: view.active, frozen: None, checkpointed });
        self.drained.notify_all();
        Ok(())
    }

    fn write(
        &self,
        overlay: &Overlay,
        finish: impl Fn(AppliedPosition) -> Option<AppliedPosition>,
    ) -> Result<()> {
        let begin = || {
            let mut transaction = self.tables.begin_write()?;
            transaction.set_durability(Durability::Immediate).map_err(unusable)?;
            transaction.set_quick_repair(true);
            Ok::<_, Error>(transaction)
        };
        // The pages replaced by the last checkpoint become reusable after the next commit. Without an empty
        // transaction they would stay allocated until the end of this checkpoint, which matters only if it is large.
        if overlay.len() > limits::CHECKPOINT_SMALL_ENTRIES {
            begin()?.commit().map_err(unusable)?;
        }
        let transaction = begin()?;
        {
            let mut entries = transaction.open_table(ENTRIES).map_err(unusable)?;
            write_entries(&mut entries, &overlay.entries)?;
            let mut facts = transaction.open_table(FACTS).map_err(unusable)?;
            for (name, fact) in &overlay.facts {
                let name = name.as_str().as_bytes();
                match fact {
                    Some(fact) => {
                        let entry = FactEntry {
                            lsn: fact.lsn,
                            record: fact.record,
                            value: fact.value.to_vec(),
                        };
                        facts.insert(name, entry.encode(name).as_slice()).map_err(unusable)?;
                    }
                    None => {
                        facts.remove(name).map_err(unusable)?;
                    }
                }
            }
            let mut usages = transaction.open_table(USAGE).map_err(unusable)?;
            for (key, usage) in &overlay.usage {
                if usage.is_empty() {
                    usages.remove(&**key).map_err(unusable)?;
                } else {
                    usages.insert(&**key, usage.encode().as_slice()).map_err(unusable)?;
                }
            }
            let mut segments = transaction.open_table(SEGMENTS).map_err(unusable)?;
            for (id, usage) in &overlay.segments {
                match usage {
                    Some(usage) => {
                        segments.insert(id.get(), usage.encode().as_slice()).map_err(unusable)?;
                    }
                    None => {
                        segments.remove(id.get()).map_err(unusable)?;
                    }
                }
            }
            if !overlay.retained.is_empty() {
                let mut table = transaction.open_table(RETAINED).map_err(unusable)?;
                for (id, retained) in &overlay.retained {
                    match retained {
                        Some(retained) => table
                            .insert(id.get(), retained.encode(*id).as_slice())
                            .map_err(unusable)?,
                        None => table.remove(id.get()).map_err(unusable)?,
                    };
                }
            }
            if let Some(position) = overlay.position.and_then(finish) {
                let mut table = transaction.open_table(POSITION).map_err(unusable)?;
                table.insert((), position.encode().as_slice()).map_err(unusable)?;
            }
        }
        transaction.commit().map_err(unusable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::sim::SimDisk;
    use crate::format::{Location, SegmentId};
    use crate::index::Fact;
    use crate::name::FactName;

    fn name(lsn: u64) -> FactName {
        FactName::parse(&format!("fact/{lsn}")).unwrap()
    }

    /// Publishes a fact as the committer would.
    fn commit(index: &Index, lsn: u64) {
        let mut view = View::clone(&index.view());
        let record =
            Location { segment: SegmentId::new(1).unwrap(), offset: lsn * 100, head_bytes: 40 };
        view.put_fact(&name(lsn), Fact { lsn, record, value: bytes::Bytes::new() }).unwrap();
        view.active.position = Some(AppliedPosition { lsn, ..AppliedPosition::default() });
        index.publish(view.active);
    }

    #[test]
    fn checkpoint_contains_only_the_frozen_overlay() {
        let disk = SimDisk::new();
        let open = || Index::open(IndexLocation::on(&disk), u64::MAX).unwrap();
        let index = open();
        assert!(!index.freeze(), "nothing was committed");
        commit(&index, 1);
        assert!(index.freeze());
        commit(&index, 2);
        assert!(!index.freeze(), "one is set aside already");
        index.drain(Some).unwrap();
        let seen =
            |index: &Index| [1, 2].map(|lsn| index.view().fact(&name(lsn)).unwrap().is_some());
        assert_eq!(seen(&index), [true, true]);
        index.close();
        drop(index);
        // The rest of the log is replayed.
        let index = open();
        assert_eq!(index.checkpointed().map(|position| position.lsn), Some(1));
        assert_eq!(seen(&index), [true, false]);
    }

    #[test]
    fn small_checkpoints_are_one_transaction_and_reuse_pages() {
        let disk = SimDisk::new();
        let index = Index::open(IndexLocation::on(&disk), u64::MAX).unwrap();
        let bytes = disk.bytes(INDEX_FILE).len();
        for lsn in 1..=200 {
            commit(&index, lsn);
            assert!(index.freeze());
            let before = disk.operations();
            index.drain(Some).unwrap();
            // An empty transaction would take 9 more.
            assert!(disk.operations() - before <= 16, "checkpoint {lsn}");
            assert!(disk.bytes(INDEX_FILE).len() <= bytes, "checkpoint {lsn}");
        }
    }
}
