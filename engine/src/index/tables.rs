//! redb's tables, and what they hold.
//!
//! | table      | key                  | value           |
//! | ---------- | -------------------- | --------------- |
//! | `entries`  | encoded object key   | `Entry`         |
//! | `facts`    | fact name            | `FactEntry`     |
//! | `usage`    | what object keys in it begin with | `Usage` |
//! | `segments` | segment id           | `SegmentUsage`  |
//! | `position` | nothing              | `AppliedPosition` |
//! | `store`    | nothing              | id of the store, and the version of these tables |
//! | `scrubs`   | segment id           | `ScrubResult`   |
//! | `damage`   | segment id, offset   | `Damage`        |
//! | `retained` | segment id           | `Retained`      |
//!
//! redb does not verify pages when it reads them, so every value carries a checksum of its own and a mismatch is
//! [`Error::Corrupt`]. Never here: overlays.

use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redb::{
    Database, ReadOnlyTable, ReadTransaction, ReadableDatabase, TableDefinition, TableError,
    WriteTransaction,
};

use super::notes::Notes;
use super::view::Fact;
use crate::disk::{Disk, GivenUp, RedbFile};
use crate::error::{Error, Result};
use crate::format::{
    AppliedPosition, Entry, FactEntry, Malformed, Retained, SegmentId, SegmentUsage, Usage,
};
use crate::name::FactName;

/// The index's file in the data folder.
pub(crate) const INDEX_FILE: &str = "index.redb";

pub(super) const ENTRIES: TableDefinition<&[u8], &[u8]> = TableDefinition::new("entries");
pub(super) const FACTS: TableDefinition<&[u8], &[u8]> = TableDefinition::new("facts");
pub(super) const USAGE: TableDefinition<&[u8], &[u8]> = TableDefinition::new("usage");
pub(super) const SEGMENTS: TableDefinition<u64, &[u8]> = TableDefinition::new("segments");
/// Made with the first value.
pub(super) const RETAINED: TableDefinition<u64, &[u8]> = TableDefinition::new("retained");
pub(super) const POSITION: TableDefinition<(), &[u8]> = TableDefinition::new("position");
pub(super) const STORE: TableDefinition<(), &[u8]> = TableDefinition::new("store");

pub(super) type ByBytes = ReadOnlyTable<&'static [u8], &'static [u8]>;

/// The database.
pub(crate) struct Tables {
    /// None once it is closed.
    database: Mutex<Option<Opened>>,
}

/// A database that is open.
pub(super) struct Opened {
    database: Database,
    given_up: Arc<GivenUp>,
}

/// The database as of its last checkpoint: a read transaction's tables, kept open until the next.
pub(crate) struct Checkpointed {
    pub(super) entries: ByBytes,
    facts: ByBytes,
    pub(super) usage: ByBytes,
    segments: ReadOnlyTable<u64, &'static [u8]>,
    retained: Option<ReadOnlyTable<u64, &'static [u8]>>,
    position: Option<AppliedPosition>,
    given_up: Arc<GivenUp>,
}

impl Tables {
    /// Opens the database of the store with this id, or makes an empty one in an empty or new file.
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

    /// Puts another opening of the same file in the place of one that was given up.
    pub(super) fn replace(&self, opened: Opened) {
        *self.lock() = Some(opened);
    }

    /// Closes the database: redb writes to the file when it does, so nobody else may have the store open yet. What was
    /// read before can still be read.
    pub(crate) fn close(&self) {
        self.lock().take();
    }

    /// Whether it was closed.
    pub(super) fn is_closed(&self) -> bool {
        self.lock().is_none()
    }

    /// Begins the one writing transaction.
    pub(super) fn begin_write(&self) -> Result<WriteTransaction> {
        self.lock().as_ref().ok_or(Error::Closed)?.begin_write()
    }

    /// Checks every page against its checksum. Reads the whole file.
    pub(crate) fn verify(&mut self) -> Result<()> {
        let opened = self.database.get_mut().unwrap_or_else(PoisonError::into_inner);
        match opened.as_mut().ok_or(Error::Closed)?.database.check_integrity() {
            Ok(true) => Ok(()),
            Ok(false) => Err(damaged(Malformed::Checksum)),
            Err(error) => Err(unusable(error)),
        }
    }

    /// What was noticed about segments, as far as it was written.
    pub(super) fn read_notes(&self) -> Result<Notes> {
        Notes::load(&self.lock().as_ref().ok_or(Error::Closed)?.begin_read()?)
    }

    /// What the database holds now.
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
        let given_up = file.given_up();
        let database = redb::Builder::new()
            .set_cache_size(cache_bytes)
            .create_with_backend(file)
            .map_err(unusable)?;
        Ok(Self { database, given_up })
    }

    /// Whether it is the index of the store with this id; false when it is nobody's yet, damage when it is another's,
    /// or of another version.
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
                    _ => Err(damaged(Malformed::Place)),
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

    /// What it holds now.
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
            given_up: Arc::clone(&self.given_up),
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

    /// Where in the log it stands.
    pub(super) fn position(&self) -> Option<AppliedPosition> {
        self.position
    }

    /// Whether the file under it was given up.
    pub(super) fn given_up(&self) -> &GivenUp {
        &self.given_up
    }

    /// The entries with keys in a range.
    pub(super) fn entries_from(
        &self,
        from: Bound<&[u8]>,
        to: &[u8],
    ) -> Result<redb::Range<'static, &'static [u8], &'static [u8]>> {
        self.entries.range::<&[u8]>((from, Bound::Excluded(to))).map_err(unusable)
    }

    /// The facts with names from a bound on.
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

    /// Big segments whose objects are gone and whose files stay for a while.
    pub(super) fn retained(&self) -> Result<Vec<(SegmentId, Retained)>> {
        let Some(table) = &self.retained else { return Ok(Vec::new()) };
        let range = table.range::<u64>(..).map_err(unusable)?;
        let decoded = range.map(|item| {
            let (id, value) = item.map_err(unusable)?;
            let id = SegmentId::new(id.value()).ok_or_else(|| damaged(Malformed::Place))?;
            Ok((id, Retained::decode(id, value.value()).map_err(damaged)?))
        });
        decoded.collect()
    }

    /// All segments and their usage.
    pub(super) fn segments(&self) -> Result<Vec<(SegmentId, SegmentUsage)>> {
        self.segments_in_order()?.collect()
    }

    /// The same, one after another.
    pub(super) fn segments_in_order(
        &self,
    ) -> Result<impl Iterator<Item = Result<(SegmentId, SegmentUsage)>> + use<>> {
        let range = self.segments.range::<u64>(..).map_err(unusable)?;
        Ok(range.map(|item| {
            let (id, value) = item.map_err(unusable)?;
            let id = SegmentId::new(id.value()).ok_or_else(|| damaged(Malformed::Place))?;
            Ok((id, SegmentUsage::decode(value.value()).map_err(damaged)?))
        }))
    }
}

/// Whose index it is, and the version of its tables.
fn identity(store: uuid::Uuid) -> Vec<u8> {
    let mut identity = store.as_bytes().to_vec();
    identity.push(TABLES_VERSION);
    identity
}

/// Of what tables there are and how their values are encoded. No other version is read: the index is made anew.
const TABLES_VERSION: u8 = 4;

fn decode_fact(name: &FactName, value: &[u8]) -> Result<Arc<Fact>> {
    let entry = FactEntry::decode(name.as_str().as_bytes(), value).map_err(damaged)?;
    Ok(Arc::new(Fact { lsn: entry.lsn, record: entry.record, value: entry.value.into() }))
}

/// The index holds what was not written to it.
pub(crate) fn damaged(reason: Malformed) -> Error {
    Error::corrupt(INDEX_FILE, 0, reason)
}

/// redb failed: the index is damaged, or the disk failed under it.
pub(super) fn unusable(error: impl Into<redb::Error>) -> Error {
    match error.into() {
        redb::Error::Corrupted(_) => damaged(Malformed::Checksum),
        redb::Error::Io(source) => Error::io("using the index", source),
        other => Error::io("using the index", std::io::Error::other(other)),
    }
}
