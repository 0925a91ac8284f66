//! State of the simulated disk: live, durable and pending.
//!
//! Each file has a live and a durable image, each name a live and a durable target. The journal lists unsynced
//! changes in order; a sync moves the changes of a file or folder into the durable state. `sim_loss` defines what a
//! power cut does with the rest.
//!
//! Guarantees: nothing depends on time, addresses or hash order.
//! Non-goals: the disk traits.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::ops::Range;

use bytes::Bytes;

use super::LOCK;
use super::faults::{Fault, FaultInjector, IgnoredSync, Operation};
use super::sim_image::{Image, PAGE_BYTES, SECTOR_BYTES, pages, whole_pages};
use super::sim_journal::{Change, Names, Pending, ancestors, parent, take_synced};

/// Default capacity of a disk.
const CAPACITY_PAGES: u64 = (1 << 40) / PAGE_BYTES;

/// State of one simulated disk.
#[derive(Clone)]
pub(super) struct State {
    /// Number of power-ons; handles of an earlier generation are invalid.
    pub(super) generation: u64,
    pub(super) off: bool,
    pub(super) operations: u64,
    pub(super) reads: u64,
    pub(super) cut_after: Option<u64>,
    pub(super) locked: bool,
    pub(super) cold: bool,
    pub(super) faults: FaultInjector,
    pub(super) ignored: Vec<IgnoredSync>,
    /// If recording, the disk as it was at the start of each operation.
    pub(super) cuts: Option<Vec<State>>,
    pub(super) files: BTreeMap<u64, File>,
    pub(super) live: Names,
    pub(super) durable: Names,
    /// Unsynced changes, in order.
    pub(super) journal: Vec<Pending>,
    pub(super) next_id: u64,
    capacity_pages: u64,
}

/// File, independent of its names.
#[derive(Clone, Default)]
pub(super) struct File {
    pub(super) live: Image,
    pub(super) durable: Image,
    /// Pages that differ from the durable ones, as tracked by the kernel.
    pub(super) dirty: BTreeSet<u64>,
    /// Number of pages from the start that were allocated.
    pub(super) reserved_pages: u64,
    /// Pages that were punched since the allocation.
    pub(super) punched: BTreeSet<u64>,
    /// Number of pages that use space.
    pub(super) held_pages: u64,
    pub(super) handle_count: u64,
}

impl State {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            generation: 0,
            off: false,
            operations: 0,
            reads: 0,
            cut_after: None,
            locked: false,
            cold: false,
            faults: FaultInjector::none(seed),
            ignored: Vec::new(),
            cuts: None,
            files: BTreeMap::new(),
            live: Names::default(),
            durable: Names::default(),
            journal: Vec::new(),
            next_id: 1,
            capacity_pages: CAPACITY_PAGES,
        }
    }

    /// Returns a copy without open files and lock holders.
    pub(super) fn fork(&self) -> Self {
        let mut copy = Self { cuts: None, locked: false, ..self.clone() };
        for file in copy.files.values_mut() {
            file.handle_count = 0;
        }
        copy
    }

    /// Checks that a handle of this generation is valid.
    pub(super) fn powered(&self, generation: u64) -> io::Result<()> {
        if self.off || self.generation != generation { Err(power_lost()) } else { Ok(()) }
    }

    // Names.

    pub(super) fn open(&mut self, path: &str) -> io::Result<u64> {
        self.read_begins(Operation::Open, path)?;
        let id = self.find(path)?;
        self.file(id).handle_count += 1;
        Ok(id)
    }

    pub(super) fn create(&mut self, path: &str) -> io::Result<u64> {
        self.must_be_new(path)?;
        let id = self.next_id;
        let change = Change::Name { path: path.to_owned(), file: id };
        self.begin(Operation::Create, path, Some(&change))?;
        self.next_id += 1;
        self.files.insert(id, File { handle_count: 1, ..File::default() });
        self.live.apply(&change);
        self.remember(change);
        Ok(id)
    }

    pub(super) fn remove(&mut self, path: &str) -> io::Result<()> {
        let id = self.find(path)?;
        let change = Change::NoName { path: path.to_owned() };
        self.begin(Operation::Remove, path, Some(&change))?;
        self.live.apply(&change);
        self.remember(change);
        self.release(id);
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let file = self.find(from)?;
        self.must_have_folder(parent(to))?;
        if self.live.folders.contains(to) {
            return Err(ErrorKind::IsADirectory.into());
        }
        let change = Change::Rename { from: from.to_owned(), to: to.to_owned(), file };
        self.begin(Operation::Rename, from, Some(&change))?;
        let replaced = self.live.files.get(to).copied();
        if replaced == Some(file) && from != to {
            // As in real kernels, renaming one of two links of a file to the other keeps both.
            return Ok(());
        }
        self.live.apply(&change);
        self.remember(change);
        replaced.into_iter().for_each(|id| self.release(id));
        Ok(())
    }

    pub(super) fn link(&mut self, from: &str, to: &str) -> io::Result<()> {
        let file = self.find(from)?;
        self.must_be_new(to)?;
        let change = Change::Name { path: to.to_owned(), file };
        self.begin(Operation::Link, from, Some(&change))?;
        self.live.apply(&change);
        self.remember(change);
        Ok(())
    }

    pub(super) fn list(&mut self, folder: &str) -> io::Result<Vec<String>> {
        self.powered(self.generation)?;
        if self.live.files.contains_key(folder) {
            return Err(ErrorKind::NotADirectory.into());
        }
        self.reads += 1;
        let paths = self.live.files.keys().chain(&self.live.folders);
        let inside = paths.filter(|path| parent(path) == folder);
        let mut names: Vec<String> = inside.map(|path| name(path).to_owned()).collect();
        names.sort_unstable();
        Ok(names)
    }

    pub(super) fn create_folder(&mut self, folder: &str) -> io::Result<()> {
        self.powered(self.generation)?;
        let missing: Vec<&str> = ancestors(folder)
            .filter(|path| !path.is_empty() && !self.live.folders.contains(*path))
            .collect();
        for path in missing.into_iter().rev() {
            self.must_be_new(path)?;
            let change = Change::Folder { path: path.to_owned() };
            self.begin(Operation::CreateFolder, path, Some(&change))?;
            self.live.apply(&change);
            self.remember(change);
        }
        Ok(())
    }

    pub(super) fn sync_folder(&mut self, folder: &str) -> io::Result<()> {
        self.powered(self.generation)?;
        self.must_have_folder(folder)?;
        let fault = self.begin(Operation::SyncFolder, folder, None)?;
        if self.ignored.iter().any(|ignore| ignore.matches(Operation::SyncFolder, folder)) {
            return Ok(());
        }
        let synced = take_synced(&mut self.journal, folder);
        if fault == Some(Fault::SyncLost) {
            return Err(input_output());
        }
        for change in &synced {
            self.durable.apply(change);
        }
        self.forget_unnamed();
        Ok(())
    }

    /// Creates the lock file as well, durable immediately.
    pub(super) fn lock(&mut self) -> io::Result<()> {
        self.powered(self.generation)?;
        if self.locked {
            return Err(ErrorKind::WouldBlock.into());
        }
        self.locked = true;
        if !self.live.files.contains_key(LOCK) {
            let change = Change::Name { path: LOCK.to_owned(), file: self.next_id };
            self.files.insert(self.next_id, File::default());
            self.next_id += 1;
            self.live.apply(&change);
            self.durable.apply(&change);
        }
        Ok(())
    }

    /// Returns all file paths, sorted.
    pub(super) fn paths(&self) -> Vec<String> {
        self.live.files.keys().cloned().collect()
    }

    // Files.

    pub(super) fn bytes_len(&mut self, id: u64) -> u64 {
        self.file(id).live.bytes_len()
    }

    pub(super) fn next_data(&mut self, id: u64, offset: u64) -> Option<Range<u64>> {
        self.file(id).live.next_data(offset)
    }

    pub(super) fn read(
        &mut self,
        id: u64,
        path: &str,
        offset: u64,
        buffer: &mut [u8],
    ) -> io::Result<()> {
        let fault = self.read_begins(Operation::Read, path)?;
        let end = offset.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.bytes_len(id)) && !buffer.is_empty() {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.file(id).live.read(offset, buffer);
        if fault == Some(Fault::BitFlip) {
            self.flip_one(buffer);
        }
        Ok(())
    }

    pub(super) fn whole(&mut self, id: u64, path: &str) -> io::Result<Vec<u8>> {
        let fault = self.read_begins(Operation::Map, path)?;
        let mut bytes = self.peek(id);
        if fault == Some(Fault::BitFlip) {
            self.flip_one(&mut bytes);
        }
        Ok(bytes)
    }

    pub(super) fn write(
        &mut self,
        id: u64,
        path: &str,
        offset: u64,
        mut bytes: Bytes,
    ) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        if offset.checked_add(bytes.len() as u64).is_none_or(|end| end > i64::MAX as u64) {
            return Err(ErrorKind::InvalidInput.into());
        }
        let change = Change::Write { file: id, offset, bytes: bytes.clone() };
        match self.begin(Operation::Write, path, Some(&change))? {
            Some(Fault::WriteLost) => Ok(()),
            Some(Fault::Torn) => {
                let kept = self.faults.below(bytes.len() as u64);
                bytes.truncate(usize::try_from(kept).unwrap_or_default());
                self.write_live(id, offset, bytes)?;
                Err(input_output())
            }
            Some(Fault::Misdirected) => {
                let end = self.bytes_len(id).max(offset).div_ceil(SECTOR_BYTES) + 1;
                let elsewhere = self.faults.below(end) * SECTOR_BYTES;
                let shift = if elsewhere == offset { SECTOR_BYTES } else { 0 };
                self.write_live(id, elsewhere + shift, bytes)
            }
            Some(Fault::BitFlip) => {
                let mut flipped = bytes.to_vec();
                self.flip_one(&mut flipped);
                self.write_live(id, offset, flipped.into())
            }
            _ => self.write_live(id, offset, bytes),
        }
    }

    pub(super) fn set_len(&mut self, id: u64, path: &str, bytes_len: u64) -> io::Result<()> {
        let change = Change::Len { file: id, bytes_len };
        self.begin(Operation::SetLen, path, Some(&change))?;
        self.set_len_live(id, bytes_len);
        self.remember(change);
        Ok(())
    }

    pub(super) fn allocate(&mut self, id: u64, path: &str, bytes_len: u64) -> io::Result<()> {
        let bytes_len = bytes_len.max(self.bytes_len(id));
        let change = Change::Len { file: id, bytes_len };
        self.begin(Operation::Allocate, path, Some(&change))?;
        let reserved_pages = bytes_len.div_ceil(PAGE_BYTES);
        let file = self.file(id);
        let held_pages = reserved_pages + file.live.pages_from(reserved_pages).count() as u64;
        self.hold(id, held_pages)?;
        let file = self.file(id);
        file.reserved_pages = reserved_pages;
        file.punched.clear();
        self.set_len_live(id, bytes_len);
        self.remember(change);
        Ok(())
    }

    pub(super) fn punch(&mut self, id: u64, path: &str, range: Range<u64>) -> io::Result<()> {
        let bytes_len = range.end - range.start;
        let change = Change::Punch { file: id, offset: range.start, bytes_len };
        self.begin(Operation::Punch, path, Some(&change))?;
        let file = self.file(id);
        file.live.punch(range.start, bytes_len);
        file.dirty.extend(pages(range.start, bytes_len));
        file.punched.extend(whole_pages(&range));
        file.count_pages();
        self.remember(change);
        Ok(())
    }

    pub(super) fn sync_data(&mut self, id: u64, path: &str) -> io::Result<()> {
        let fault = self.begin(Operation::SyncData, path, None)?;
        if self.ignored.iter().any(|ignore| ignore.matches(Operation::SyncData, path)) {
            return Ok(());
        }
        self.journal.retain(|pending| pending.change.file() != Some(id));
        let file = self.file(id);
        let dirty = std::mem::take(&mut file.dirty);
        if fault == Some(Fault::SyncLost) {
            return Err(input_output());
        }
        file.durable.take_pages(&dirty, &file.live);
        Ok(())
    }

    /// Closes a handle.
    pub(super) fn close(&mut self, id: u64, generation: u64) {
        if self.generation == generation && self.files.contains_key(&id) {
            self.file(id).handle_count -= 1;
            self.release(id);
        }
    }

    // Direct access for tests.

    pub(super) fn find(&self, path: &str) -> io::Result<u64> {
        if self.off {
            return Err(power_lost());
        }
        self.must_have_folder(parent(path))?;
        match self.live.files.get(path) {
            Some(id) => Ok(*id),
            None if self.live.folders.contains(path) => Err(ErrorKind::IsADirectory.into()),
            None => Err(ErrorKind::NotFound.into()),
        }
    }

    pub(super) fn peek(&mut self, id: u64) -> Vec<u8> {
        let live = &self.file(id).live;
        let mut bytes = vec![0; usize::try_from(live.bytes_len()).unwrap_or(usize::MAX)];
        live.read(0, &mut bytes);
        bytes
    }

    /// Changes existing bytes, live and durable, without a journal entry.
    pub(super) fn damage(&mut self, id: u64, offset: u64, bytes: &[u8]) {
        let file = self.file(id);
        for image in [&mut file.live, &mut file.durable] {
            let bytes_len = image.bytes_len();
            image.write(offset, bytes);
            image.trim(bytes_len);
        }
    }

    pub(super) fn capacity_bytes(&self) -> u64 {
        self.capacity_pages * PAGE_BYTES
    }

    pub(super) fn free_bytes(&self) -> u64 {
        let held_pages: u64 = self.files.values().map(|file| file.held_pages).sum();
        self.capacity_pages.saturating_sub(held_pages) * PAGE_BYTES
    }

    pub(super) fn set_free_bytes(&mut self, bytes: u64) {
        let held_pages: u64 = self.files.values().map(|file| file.held_pages).sum();
        self.capacity_pages = held_pages + bytes / PAGE_BYTES;
    }

    // Helpers.

    /// Counts an operation that reaches the disk; if power is cut instead, the change is in flight.
    fn begin(
        &mut self,
        operation: Operation,
        path: &str,
        change: Option<&Change>,
    ) -> io::Result<Option<Fault>> {
        self.powered(self.generation)?;
        if let Some(mut cuts) = self.cuts.take() {
            let mut cut = self.fork();
            cut.lose_power(change);
            cuts.push(cut);
            self.cuts = Some(cuts);
        }
        if self.cut_after.is_some_and(|count| self.operations >= count) {
            self.lose_power(change);
            return Err(power_lost());
        }
        self.operations += 1;
        plain_errors(self.faults.decide(operation, path))
    }

    pub(super) fn read_begins(
        &mut self,
        operation: Operation,
        path: &str,
    ) -> io::Result<Option<Fault>> {
        self.powered(self.generation)?;
        self.reads += 1;
        plain_errors(self.faults.decide(operation, path))
    }

    fn write_live(&mut self, id: u64, offset: u64, bytes: Bytes) -> io::Result<()> {
        let touched = pages(offset, bytes.len() as u64);
        let file = self.file(id);
        let is_new = |page: &u64| {
            let is_reserved = *page < file.reserved_pages && !file.punched.contains(page);
            !is_reserved && !file.live.has_page(*page)
        };
        let held_pages = file.held_pages + touched.clone().filter(is_new).count() as u64;
        self.hold(id, held_pages)?;
        let file = self.file(id);
        file.live.write(offset, &bytes);
        file.dirty.extend(touched);
        file.count_pages();
        self.remember(Change::Write { file: id, offset, bytes });
        Ok(())
    }

    fn set_len_live(&mut self, id: u64, bytes_len: u64) {
        let kept_pages = bytes_len.div_ceil(PAGE_BYTES);
        let file = self.file(id);
        let cut: Vec<u64> = file.live.pages_from(bytes_len / PAGE_BYTES).collect();
        file.dirty.extend(cut);
        file.live.set_len(bytes_len);
        file.reserved_pages = file.reserved_pages.min(kept_pages);
        file.count_pages();
    }

    fn hold(&mut self, id: u64, held_pages: u64) -> io::Result<()> {
        let more = held_pages.saturating_sub(self.file(id).held_pages);
        if more > 0 && more > self.free_bytes() / PAGE_BYTES {
            return Err(ErrorKind::StorageFull.into());
        }
        self.file(id).held_pages = held_pages;
        Ok(())
    }

    /// Frees the space of an unreachable file.
    fn release(&mut self, id: u64) {
        let named = self.live.files.values().any(|named| *named == id);
        let file = self.file(id);
        if !named && file.handle_count == 0 {
            file.held_pages = 0;
        }
    }

    /// Drops files that have no name, neither live nor durable nor pending.
    fn forget_unnamed(&mut self) {
        let pending = self.journal.iter().filter_map(|pending| match &pending.change {
            Change::Name { file, .. } | Change::Rename { file, .. } => Some(*file),
            _ => None,
        });
        let names = self.live.files.values().chain(self.durable.files.values()).copied();
        let named: BTreeSet<u64> = names.chain(pending).collect();
        self.files.retain(|id, file| file.handle_count > 0 || named.contains(id));
        let files = &self.files;
        self.journal
            .retain(|pending| pending.change.file().is_none_or(|id| files.contains_key(&id)));
    }

    fn remember(&mut self, change: Change) {
        self.journal.push(Pending::new(change, false));
    }

    fn must_be_new(&self, path: &str) -> io::Result<()> {
        self.powered(self.generation)?;
        self.must_have_folder(parent(path))?;
        if self.live.files.contains_key(path) || self.live.folders.contains(path) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        Ok(())
    }

    fn must_have_folder(&self, folder: &str) -> io::Result<()> {
        if folder.is_empty() || self.live.folders.contains(folder) {
            return Ok(());
        }
        let under_a_file = ancestors(folder).any(|path| self.live.files.contains_key(path));
        Err(if under_a_file { ErrorKind::NotADirectory } else { ErrorKind::NotFound }.into())
    }

    pub(super) fn file(&mut self, id: u64) -> &mut File {
        self.files.entry(id).or_default()
    }

    fn flip_one(&mut self, bytes: &mut [u8]) {
        let bit = self.faults.below(bytes.len() as u64 * 8);
        if let Some(byte) = usize::try_from(bit / 8).ok().and_then(|at| bytes.get_mut(at)) {
            *byte ^= 1 << (bit % 8);
        }
    }
}

impl File {
    /// Counts the pages that use space.
    pub(super) fn count_pages(&mut self) {
        let (live, reserved_pages) = (&self.live, self.reserved_pages);
        self.punched.retain(|page| *page < reserved_pages && !live.has_page(*page));
        let written_pages = live.pages_from(reserved_pages).count() as u64;
        self.held_pages = reserved_pages - self.punched.len() as u64 + written_pages;
    }
}

fn plain_errors(fault: Option<Fault>) -> io::Result<Option<Fault>> {
    match fault {
        Some(Fault::Error) => Err(input_output()),
        Some(Fault::Unsupported) => Err(ErrorKind::Unsupported.into()),
        Some(Fault::NoSpace) => Err(ErrorKind::StorageFull.into()),
        other => Ok(other),
    }
}

fn name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

fn input_output() -> io::Error {
    io::Error::other("simulated I/O error")
}

pub(super) fn power_lost() -> io::Error {
    io::Error::other("simulated power loss: this machine is gone")
}
