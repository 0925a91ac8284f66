//! redb tables and their contents.
//!
//! | table      | key                          | value                                            |
//! | ---------- | ---------------------------- | ------------------------------------------------ |
//! | `entries`  | encoded object key           | `Entry`                                          |
//! | `facts`    | fact name                    | `FactEntry`                                      |
//! | `usage`    | common prefix of object keys | `Usage`                                          |
//! | `segments` | segment id                   | `SegmentUsage`                                   |
//! | `position` | nothing                      | `AppliedPosition`                                |
//! | `store`    | nothing                      | id of the store, and the version of these tables |
//! | `scrubs`   | segment id                   | `ScrubResult`                                    |
//! | `damage`   | segment id, offset           | `Damage`                                         |
//! | `retained` | segment id                   | `Retained`                                       |
//!
//! redb does not verify pages when it reads them, so every value has its own checksum; a mismatch is
//! [`Error::Corrupt`].
//! Non-goals: overlays.

use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redb::{
    Database, ReadOnlyTable, ReadTransaction, ReadableDatabase, TableDefinition, TableError,
    WriteTransaction,
};

use super::fact::Fact;
use crate::disk::{Disk, FileFailure, RedbFile};
use crate::error::{Error, Result};
use crate::format::{
    AppliedPosition, Entry, FactEntry, Malformed, RetainedSegment, SegmentId, SegmentUsage, Usage,
};
use crate::name::FactName;

/// Name of the index file in the data folder.
pub(crate) const INDEX_FILE: &str = "index.redb";

pub(super) const ENTRIES: TableDefinition<&[u8], &[u8]> = TableDefinition::new("entries");
pub(super) const FACTS: TableDefinition<&[u8], &[u8]> = TableDefinition::new("facts");
pub(super) const USAGE: TableDefinition<&[u8], &[u8]> = TableDefinition::new("usage");
pub(super) const SEGMENTS: TableDefinition<u64, &[u8]> = TableDefinition::new("segments");
/// Created with the first value.
pub(super) const RETAINED: TableDefinition<u64, &[u8]> = TableDefinition::new("retained");
pub(super) const POSITION: TableDefinition<(), &[u8]> = TableDefinition::new("position");
pub(super) const STORE: TableDefinition<(), &[u8]> = TableDefinition::new("store");

pub(super) type ByBytes = ReadOnlyTable<&'static [u8], &'static [u8]>;

/// Database.
pub(crate) struct Tables {
    /// Open database; `None` once it is closed.
    database: Mutex<Option<Opened>>,
}

/// Open redb database.
pub(super) struct Opened {
    database: Database,
    failure: Arc<FileFailure>,
}

/// Database as of the last checkpoint: the tables of a read transaction that stays open until the next.
pub(crate) struct Checkpointed {
    pub(super) entries: ByBytes,
    facts: ByBytes,
    pub(super) usage: ByBytes,
    segments: ReadOnlyTable<u64, &'static [u8]>,
    retained: Option<ReadOnlyTable<u64, &'static [u8]>>,
    position: Option<AppliedPosition>,
    given_up: Arc<FileFailure>,
}

impl Tables {
    /// Opens the database of the store with this id, or creates an empty one in an empty or new file.
    pub(crate) fn open(disk: &dyn Disk, store: uuid::Uuid, cache_bytes: usize) -> Result<Self> {
        let file = match disk.open(INDEX_FILE) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                disk.create(INDEX_FILE).and_then(|file| disk.sync_folder("").map(|()| file))
            }
            other => other,
        };
        let file = file.map_err(|source| Error::io(format!("opening {INDEX_FILE}"), source))?;
        let opened = Opened::open(RedbFile::new(file), cache_bytes)?;
        if !opened.is_of(store)? {
            opened.make_tables(store)?;
        }
        Ok(Self { database: Mutex::new(Some(opened)) })
    }

    /// Replaces a failed database by a reopened one.
    pub(super) fn replace(&self, opened: Opened) {
        *self.lock() = Some(opened);
    }

    /// Closes the database. redb writes to the file on close, so no other process may have the store open yet.
    /// Earlier snapshots remain readable.
    pub(crate) fn close(&self) {
        self.lock().take();
    }

    /// Returns whether the database was closed.
    pub(super) fn is_closed(&self) -> bool {
        self.lock().is_none()
    }

    /// Begins the only write transaction.
    pub(super) fn begin_write(&self) -> Result<WriteTransaction> {
        self.lock().as_ref().ok_or(Error::Closed)?.begin_write()
    }

    /// Verifies the checksum of every page. Reads the whole file.
    pub(crate) fn verify(&mut self) -> Result<()> {
        let opened = self.database.get_mut().unwrap_or_else(PoisonError::into_inner);
        match opened.as_mut().ok_or(Error::Closed)?.database.check_integrity() {
            Ok(true) => Ok(()),
            Ok(false) => Err(damaged(Malformed::Checksum)),
            Err(error) => Err(unusable(error)),
        }
    }

    /// Begins a read transaction.
    pub(super) fn begin_read(&self) -> Result<ReadTransaction> {
        self.lock().as_ref().ok_or(Error::Closed)?.begin_read()
    }

    /// Returns a snapshot of the current content.
    pub(crate) fn read(&self) -> Result<Checkpointed> {
        self.lock().as_ref().ok_or(Error::Closed)?.read()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Opened>> {
        self.database.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Opened {
    /// Opens a file, which may be empty.
    pub(super) fn open(file: RedbFile, cache_bytes: usize) -> Result<Self> {
        let given_up = file.failure();
        let database = redb::Builder::new()
            .set_cache_size(cache_bytes)
            .create_with_backend(file)
            .map_err(unusable)?;
        Ok(Self { database, failure: given_up })
    }

    /// Returns whether it is the index of the store with this id: false if it belongs to no store yet, a corruption
    /// error if it belongs to another store or has another version.
    pub(super) fn is_of(&self, store: uuid::Uuid) -> Result<bool> {
        let transaction = self.begin_read()?;
        match transaction.open_table(STORE) {
            Ok(table) => {
                let found = table.get(()).map_err(unusable)?;
                match found.as_ref().and_then(|found| found.value().split_last()) {
                    Some((&TABLES_VERSION, id)) if id == store.as_bytes() => Ok(true),
                    Some((&version, id)) if id == store.as_bytes() => {
                        Err(damaged(Malformed::Version(version.into())))
                    }
                    _ => Err(damaged(Malformed::Misplaced)),
                }
            }
            Err(TableError::TableDoesNotExist(_)) => Ok(false),
            Err(other) => Err(unusable(other)),
        }
    }

    fn make_tables(&self, store: uuid::Uuid) -> Result<()> {
        let mut transaction = self.begin_write()?;
        transaction.set_quick_repair(true);
        {
            transaction.open_table(ENTRIES).map_err(unusable)?;
            transaction.open_table(FACTS).map_err(unusable)?;
            transaction.open_table(USAGE).map_err(unusable)?;
            transaction.open_table(SEGMENTS).map_err(unusable)?;
            transaction.open_table(POSITION).map_err(unusable)?;
            let mut table = transaction.open_table(STORE).map_err(unusable)?;
            table.insert((), identity(store).as_slice()).map_err(unusable)?;
        }
        transaction.commit().map_err(unusable)
    }

    /// Returns a snapshot of the current content.
    pub(super) fn read(&self) -> Result<Checkpointed> {
        let transaction = self.begin_read()?;
        let position = transaction.open_table(POSITION).map_err(unusable)?;
        let position = position.get(()).map_err(unusable)?;
        let position = position.map(|value| AppliedPosition::decode(value.value())).transpose();
        let retained = match transaction.open_table(RETAINED) {
            Ok(table) => Some(table),
            Err(TableError::TableDoesNotExist(_)) => None,
            Err(other) => return Err(unusable(other)),
        };
        Ok(Checkpointed {
            entries: transaction.open_table(ENTRIES).map_err(unusable)?,
            facts: transaction.open_table(FACTS).map_err(unusable)?,
            usage: transaction.open_table(USAGE).map_err(unusable)?,
            segments: transaction.open_table(SEGMENTS).map_err(unusable)?,
            retained,
            position: position.map_err(damaged)?,
            given_up: Arc::clone(&self.failure),
        })
    }

    fn begin_read(&self) -> Result<ReadTransaction> {
        self.database.begin_read().map_err(unusable)
    }

    fn begin_write(&self) -> Result<WriteTransaction> {
        self.database.begin_write().map_err(unusable)
    }
}

impl Checkpointed {
    pub(super) fn entry(&self, key: &[u8]) -> Result<Option<Arc<Entry>>> {
        let found = self.entries.get(key).map_err(unusable)?;
        found
            .map(|value| Entry::decode(key, value.value()).map(Arc::new))
            .transpose()
            .map_err(damaged)
    }

    pub(super) fn fact(&self, name: &FactName) -> Result<Option<Arc<Fact>>> {
        let found = self.facts.get(name.as_str().as_bytes()).map_err(unusable)?;
        found.map(|value| decode_fact(name, value.value())).transpose()
    }

    pub(super) fn usage(&self, key: &[u8]) -> Result<Option<Usage>> {
        let found = self.usage.get(key).map_err(unusable)?;
        found.map(|value| Usage::decode(value.value())).transpose().map_err(damaged)
    }

    pub(super) fn segment_usage(&self, id: SegmentId) -> Result<Option<SegmentUsage>> {
        let found = self.segments.get(id.get()).map_err(unusable)?;
        found.map(|value| SegmentUsage::decode(value.value())).transpose().map_err(damaged)
    }

    /// Returns the log position of the checkpoint.
    pub(super) fn position(&self) -> Option<AppliedPosition> {
        self.position
    }

    /// Returns whether the underlying file has failed.
    pub(super) fn given_up(&self) -> &FileFailure {
        &self.given_up
    }

    /// Iterates over the entries with keys in a range.
    pub(super) fn entries_from(
        &self,
        from: Bound<&[u8]>,
        to: &[u8],
    ) -> Result<redb::Range<'static, &'static [u8], &'static [u8]>> {
        self.entries.range::<&[u8]>((from, Bound::Excluded(to))).map_err(unusable)
    }

    /// Iterates over the facts with names from a bound on.
    pub(super) fn facts_from(
        &self,
        from: Bound<&[u8]>,
    ) -> Result<impl Iterator<Item = Result<(FactName, Arc<Fact>)>> + use<>> {
        let range = self.facts.range::<&[u8]>((from, Bound::Unbounded)).map_err(unusable)?;
        Ok(range.map(|item| {
            let (name, value) = item.map_err(unusable)?;
            let name = std::str::from_utf8(name.value())
                .ok()
                .and_then(|text| FactName::parse(text).ok())
                .ok_or_else(|| damaged(Malformed::Text))?;
            let fact = decode_fact(&name, value.value())?;
            Ok((name, fact))
        }))
    }

    /// Returns the retained big segments, whose objects were deleted or replaced.
    pub(super) fn retained(&self) -> Result<Vec<(SegmentId, RetainedSegment)>> {
        let Some(table) = &self.retained else { return Ok(Vec::new()) };
        let range = table.range::<u64>(..).map_err(unusable)?;
        let decoded = range.map(|item| {
            let (id, value) = item.map_err(unusable)?;
            let id = SegmentId::new(id.value()).ok_or_else(|| damaged(Malformed::Misplaced))?;
            Ok((id, RetainedSegment::decode(id, value.value()).map_err(damaged)?))
        });
        decoded.collect()
    }

    /// Returns all segments with their usage.
    pub(super) fn segments(&self) -> Result<Vec<(SegmentId, SegmentUsage)>> {
        self.segments_in_order()?.collect()
    }

    /// Iterates over all segments with their usage, by id.
    pub(super) fn segments_in_order(
        &self,
    ) -> Result<impl Iterator<Item = Result<(SegmentId, SegmentUsage)>> + use<>> {
        let range = self.segments.range::<u64>(..).map_err(unusable)?;
        Ok(range.map(|item| {
            let (id, value) = item.map_err(unusable)?;
            let id = SegmentId::new(id.value()).ok_or_else(|| damaged(Malformed::Misplaced))?;
            Ok((id, SegmentUsage::decode(value.value()).map_err(damaged)?))
        }))
    }
}

/// Encodes the store id and the version of the tables.
fn identity(store: uuid::Uuid) -> Vec<u8> {
    let mut identity = store.as_bytes().to_vec();
    identity.push(TABLES_VERSION);
    identity
}

/// Version of the set of tables and of their value encodings. Any other version is not read: the index is rebuilt.
const TABLES_VERSION: u8 = 4;

fn decode_fact(name: &FactName, value: &[u8]) -> Result<Arc<Fact>> {
    let entry = FactEntry::decode(name.as_str().as_bytes(), value).map_err(damaged)?;
    Ok(Arc::new(Fact { lsn: entry.lsn, record: entry.record, value: entry.value.into() }))
}

/// Returns a corruption error of the index.
pub(crate) fn damaged(reason: Malformed) -> Error {
    Error::corrupt(INDEX_FILE, 0, reason)
}

/// Converts a redb error: the index is corrupt, or the disk failed.
pub(super) fn unusable(error: impl Into<redb::Error>) -> Error {
    match error.into() {
        redb::Error::Corrupted(_) => damaged(Malformed::Checksum),
        redb::Error::Io(source) => Error::io("using the index", source),
        other => Error::io("using the index", std::io::Error::other(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::sim::SimDisk;

    #[test]
    fn index_of_another_version_or_store_is_rejected() {
        let disk = SimDisk::new();
        let (store, other) = (uuid::Uuid::from_u128(1), uuid::Uuid::from_u128(2));
        let open = |store| Tables::open(&disk, store, 1 << 20);
        let tables = open(store).unwrap();
        tables.close();
        let reason = |opened: Result<Tables>| match opened.map(drop) {
            Err(Error::Corrupt(corruption)) => corruption.reason,
            other => panic!("expected corruption: {other:?}"),
        };
        assert_eq!(reason(open(other)), Malformed::Misplaced);
        let tables = open(store).unwrap();
        let transaction = tables.begin_write().unwrap();
        let mut earlier = identity(store);
        *earlier.last_mut().unwrap() -= 1;
        transaction.open_table(STORE).unwrap().insert((), &*earlier).unwrap();
        transaction.commit().unwrap();
        tables.close();
        assert_eq!(reason(open(store)), Malformed::Version((TABLES_VERSION - 1).into()));
    }
}
