//! Simulated in-memory disk with power cuts and fault injection.
//!
//! Every operation that reaches the disk has a number; power can be cut after any of them, and after power-on the
//! disk has what the [`LossPolicy`] preserves. Other faults are described in [`faults`](super::faults).
//!
//! Guarantees: those of the real disk, verified by the same test suite (`tests/disk`); the same seed and calls give
//! the same bytes.
//! Non-goals: threads, sleeps, the disk of the machine.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;

use super::faults::{FaultRate, FaultRule, IgnoredSync, Operation};
use super::sim_image::pages;
use super::sim_state::State;
use super::{Access, Disk, DiskFile, Lock, Mapping, check_folder, check_path};

/// Process id of every simulated process.
const PID: u32 = 1;

/// Policy for unsynced data after a power cut.
///
/// Synced data always survives. A write in progress at the power cut may survive partially under `Prefix` and
/// `Sectors`, and not at all under the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossPolicy {
    /// Nothing unsynced survives: no bytes, lengths or names.
    KeepSynced,
    /// A random prefix of the operations survives, in order; the write after it partially.
    Prefix,
    /// A random subset of sectors and names survives, and for each file any length that it had since its last sync.
    Sectors,
    /// Bytes and lengths survive, but no names: created files are missing, removed files are present again.
    NamesLost,
    /// Names survive, but no bytes or lengths: a new file exists and is empty.
    NamesKept,
    /// Everything survives.
    KeepAll,
}

impl LossPolicy {
    /// All policies.
    pub const ALL: [Self; 6] = [
        Self::KeepSynced,
        Self::Prefix,
        Self::Sectors,
        Self::NamesLost,
        Self::NamesKept,
        Self::KeepAll,
    ];
}

/// Disk in memory. Clones share the same disk; [`SimDisk::fork`] copies it.
#[derive(Clone)]
pub struct SimDisk(Arc<Mutex<State>>);

impl SimDisk {
    /// Creates an empty disk.
    pub fn new() -> Self {
        Self::with_seed(0)
    }

    /// Creates an empty disk whose random faults are drawn from the seed.
    pub fn with_seed(seed: u64) -> Self {
        Self::of(State::new(seed))
    }

    /// Returns a deep copy without open files and lock holders.
    pub fn fork(&self) -> Self {
        Self::of(self.state().fork())
    }

    /// Returns the number of operations that reached the disk: `create`, `remove`, `create_folder` (one for each
    /// folder created), `rename`, `link`, `sync_folder`, `write_at`, `set_len`, `allocate`, `punch`, `sync_data`.
    /// Operations that were rejected before, for example with `NotFound`, do not count.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// Returns the number of open, list, read, map and populate calls.
    pub fn reads(&self) -> u64 {
        self.state().reads
    }

    // Power.

    /// Makes operation number `count` + 1 since the creation of the disk, and all later ones, fail.
    pub fn cut_power_after(&self, count: u64) {
        self.state().cut_after = Some(count);
    }

    /// Makes all operations fail from now on.
    pub fn cut_power(&self) {
        self.state().off = true;
    }

    /// Returns whether the power is off.
    pub fn is_off(&self) -> bool {
        self.state().off
    }

    /// Turns power on, after cutting it if it was on: the disk has what the policy preserves. Open files and locks
    /// become invalid; faults and ignored syncs remain.
    pub fn power_on(&self, policy: LossPolicy, seed: u64) {
        self.state().power_on(policy, seed);
    }

    /// Simulates a process crash: open files and locks become invalid, no data is lost, but unsynced data still can
    /// be. On a disk without power this undoes the power cut.
    pub fn restart_process(&self) {
        self.state().restart_process();
    }

    /// Starts recording, for each counted operation, the disk as if power had been cut in the middle of it: one run
    /// gives the results of as many runs with [`SimDisk::cut_power_after`]. [`SimDisk::operations`] of a recorded
    /// disk is the number of completed operations.
    pub fn record_cuts(&self) {
        self.state().cuts = Some(Vec::new());
    }

    /// Returns the disks recorded since [`SimDisk::record_cuts`], all without power, in order, and stops recording.
    pub fn take_cuts(&self) -> Vec<Self> {
        let cuts = self.state().cuts.take().unwrap_or_default();
        cuts.into_iter().map(Self::of).collect()
    }

    // Faults.

    /// Adds a fault rule.
    pub fn inject(&self, rule: FaultRule) {
        self.state().faults.add(rule);
    }

    /// Enables random faults.
    pub fn inject_randomly(&self, odds: FaultRate) {
        self.state().faults.by_chance(odds);
    }

    /// Removes all faults except ignored syncs and a planned power cut.
    pub fn clear_faults(&self) {
        self.state().faults.clear();
    }

    /// Returns the number of injected faults.
    pub fn fault_count(&self) -> u64 {
        self.state().faults.hit_count()
    }

    /// Makes matching syncs return Ok without effect, permanently; for the mutation check.
    pub fn ignore_syncs(&self, ignore: IgnoredSync) {
        self.state().ignored.push(ignore);
    }

    /// Sets the free space, in whole pages of 4 KiB; together with the used space this is the capacity.
    pub fn set_free_bytes(&self, bytes: u64) {
        self.state().set_free_bytes(bytes);
    }

    /// Sets whether file contents are not resident: mappings until populated, other reads always. Initially false.
    pub fn set_cold(&self, cold: bool) {
        self.state().cold = cold;
    }

    // Direct access to the bytes; not counted as operations.

    /// Returns all file paths, sorted.
    pub fn paths(&self) -> Vec<String> {
        self.state().paths()
    }

    /// Returns the current bytes of a file. Panics if the file does not exist or power is off.
    pub fn bytes(&self, path: &str) -> Vec<u8> {
        let mut state = self.state();
        let id = found(&state, path);
        state.peek(id)
    }

    /// Flips the bits of `mask` in one byte, both durable and cached. Panics like [`SimDisk::bytes`].
    pub fn flip(&self, path: &str, offset: u64, mask: u8) {
        let mut state = self.state();
        let id = found(&state, path);
        let at = usize::try_from(offset).unwrap_or(usize::MAX);
        let old = state.peek(id).get(at).copied();
        let old = old.unwrap_or_else(|| panic!("{path} has no byte {offset}"));
        state.damage(id, offset, &[old ^ mask]);
    }

    /// Overwrites bytes, both durable and cached; bytes beyond the end of the file are ignored. Panics like
    /// [`SimDisk::bytes`].
    pub fn overwrite(&self, path: &str, offset: u64, bytes: &[u8]) {
        let mut state = self.state();
        let id = found(&state, path);
        state.damage(id, offset, bytes);
    }

    fn of(state: State) -> Self {
        Self(Arc::new(Mutex::new(state)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle(&self, path: &str, file: u64, generation: u64) -> Arc<dyn DiskFile> {
        Arc::new(SimFile { disk: self.clone(), path: path.to_owned(), file, generation })
    }
}

impl Default for SimDisk {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for SimDisk {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        let mut out = out.debug_struct("SimDisk");
        out.field("operations", &state.operations).field("off", &state.off).finish_non_exhaustive()
    }
}

impl Disk for SimDisk {
    fn open(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        check_path(path)?;
        let mut state = self.state();
        let (file, generation) = (state.open(path)?, state.generation);
        drop(state);
        Ok(self.handle(path, file, generation))
    }

    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        check_path(path)?;
        let mut state = self.state();
        let (file, generation) = (state.create(path)?, state.generation);
        drop(state);
        Ok(self.handle(path, file, generation))
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        check_path(path)?;
        self.state().remove(path)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        check_path(from)?;
        check_path(to)?;
        self.state().rename(from, to)
    }

    fn link(&self, from: &str, to: &str) -> io::Result<()> {
        check_path(from)?;
        check_path(to)?;
        self.state().link(from, to)
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        check_folder(folder)?;
        self.state().list(folder)
    }

    fn create_folder(&self, folder: &str) -> io::Result<()> {
        check_folder(folder)?;
        self.state().create_folder(folder)
    }

    fn sync_folder(&self, folder: &str) -> io::Result<()> {
        check_folder(folder)?;
        self.state().sync_folder(folder)
    }

    fn lock(&self) -> io::Result<Box<dyn Lock>> {
        let mut state = self.state();
        state.lock()?;
        let generation = state.generation;
        drop(state);
        Ok(Box::new(SimLock { disk: self.clone(), generation }))
    }

    fn lock_holder(&self) -> Option<u32> {
        self.state().locked.then_some(PID)
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let state = self.state();
        state.powered(state.generation)?;
        Ok(state.free_bytes())
    }

    fn capacity_bytes(&self) -> io::Result<u64> {
        let state = self.state();
        state.powered(state.generation)?;
        Ok(state.capacity_bytes())
    }
}

struct SimLock {
    disk: SimDisk,
    generation: u64,
}

impl Lock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        if state.generation == self.generation {
            state.locked = false;
        }
    }
}

struct SimFile {
    disk: SimDisk,
    path: String,
    file: u64,
    /// Number of power-ons at creation; a handle of an earlier generation is invalid.
    generation: u64,
}

impl SimFile {
    fn state(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.disk.state();
        state.powered(self.generation)?;
        Ok(state)
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        self.disk.state().close(self.file, self.generation);
    }
}

impl DiskFile for SimFile {
    fn bytes_len(&self) -> io::Result<u64> {
        Ok(self.state()?.bytes_len(self.file))
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.state()?.read(self.file, &self.path, offset, buffer)
    }

    fn read_at_if_resident(&self, offset: u64, buffer: &mut [u8]) -> io::Result<bool> {
        let mut state = self.state()?;
        if state.cold {
            return Ok(false);
        }
        state.read(self.file, &self.path, offset, buffer)?;
        Ok(true)
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        Ok(self.state()?.next_data(self.file, offset))
    }

    fn write_at(&self, offset: u64, pieces: &[&[u8]]) -> io::Result<()> {
        self.state()?.write(self.file, &self.path, offset, pieces.concat().into())
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.state()?.set_len(self.file, &self.path, bytes)
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        self.state()?.allocate(self.file, &self.path, bytes)
    }

    fn punch(&self, range: Range<u64>) -> io::Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        self.state()?.punch(self.file, &self.path, range)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.state()?.sync_data(self.file, &self.path)
    }

    /// Copies the current bytes, so that a growing file cannot be mapped.
    fn map(&self, access: Access) -> io::Result<Box<dyn Mapping>> {
        if access == Access::Growing {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let copy = Arc::new(self.state()?.whole(self.file, &self.path)?);
        let bytes = Bytes::from_owner(Copied(Arc::clone(&copy)));
        let (disk, path) = (self.disk.clone(), self.path.clone());
        let populated = Mutex::new(BTreeSet::new());
        Ok(Box::new(SimMapping { disk, path, generation: self.generation, copy, bytes, populated }))
    }
}

struct SimMapping {
    disk: SimDisk,
    path: String,
    generation: u64,
    copy: Arc<Vec<u8>>,
    bytes: Bytes,
    populated: Mutex<BTreeSet<u64>>,
}

/// Owner of the bytes of a slice.
struct Copied(Arc<Vec<u8>>);

impl AsRef<[u8]> for Copied {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl SimMapping {
    fn clamp(&self, range: &Range<usize>) -> Range<usize> {
        let end = range.end.min(self.bytes.len());
        range.start.min(end)..end
    }

    fn pages(&self, range: &Range<usize>) -> Range<u64> {
        let range = self.clamp(range);
        pages(range.start as u64, range.len() as u64)
    }
}

impl Mapping for SimMapping {
    fn bytes_len(&self) -> usize {
        self.bytes.len()
    }

    fn slice(&self, range: Range<usize>) -> Bytes {
        self.bytes.slice(self.clamp(&range))
    }

    fn liveness_handle(&self) -> Weak<dyn Send + Sync> {
        let copy: Weak<Vec<u8>> = Arc::downgrade(&self.copy);
        copy
    }

    fn is_resident(&self, range: Range<usize>) -> bool {
        let warm = !self.disk.state().cold;
        let populated = self.populated.lock().unwrap_or_else(PoisonError::into_inner);
        warm || self.pages(&range).all(|page| populated.contains(&page))
    }

    fn populate(&self, range: Range<usize>) -> io::Result<()> {
        let mut state = self.disk.state();
        state.powered(self.generation)?;
        state.read_begins(Operation::Populate, &self.path)?;
        drop(state);
        let mut populated = self.populated.lock().unwrap_or_else(PoisonError::into_inner);
        populated.extend(self.pages(&range));
        Ok(())
    }
}

fn found(state: &State, path: &str) -> u64 {
    state.find(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}
