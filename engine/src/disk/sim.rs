//! The simulated disk: files in memory that forget what was not synced.
//!
//! Every operation that reaches the disk has a number; power can be cut after any of them, and comes back with what the
//! [`LossPolicy`] lets survive. What else can go wrong is described in [`faults`](super::faults).
//! Promises: those of the real disk, checked by the same suite (`tests/disk`); the same seed and the same calls give
//! the same bytes. Never here: threads, sleeps, the machine's disk.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;

use super::faults::{Ignore, Odds, Operation, Rule};
use super::sim_image::pages;
use super::sim_state::State;
use super::{Access, Disk, DiskFile, Lock, Mapping, check_folder, check_path};

/// The process id that every simulated process has.
const PID: u32 = 1;

/// What a power cut leaves of what was not synced.
///
/// What was synced survives always. A write that was under way when power went may survive in part under `Prefix` and
/// `Sectors`, and not at all under the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossPolicy {
    /// Nothing: no bytes, no lengths, no names.
    KeepSynced,
    /// A random prefix, in the order in which things were done; the write after it in part.
    Prefix,
    /// A random subset of the sectors and of the names, and of each file any length that it had since its last sync.
    Sectors,
    /// Bytes and lengths, but no names: what was created is gone, what was removed is back.
    NamesLost,
    /// Names, but neither bytes nor lengths: a new file is there and empty.
    NamesKept,
    /// Everything.
    KeepAll,
}

impl LossPolicy {
    /// Each of them.
    pub const ALL: [Self; 6] = [
        Self::KeepSynced,
        Self::Prefix,
        Self::Sectors,
        Self::NamesLost,
        Self::NamesKept,
        Self::KeepAll,
    ];
}

/// A disk in memory. Clones are the same disk; [`SimDisk::fork`] makes another.
#[derive(Clone)]
pub struct SimDisk(Arc<Mutex<State>>);

impl SimDisk {
    /// An empty disk.
    pub fn new() -> Self {
        Self::with_seed(0)
    }

    /// An empty disk whose faults draw from the seed.
    pub fn with_seed(seed: u64) -> Self {
        Self::of(State::new(seed))
    }

    /// A deep copy, without anybody who has files open or holds the lock.
    pub fn fork(&self) -> Self {
        Self::of(self.state().fork())
    }

    /// How many operations have reached the disk: `create`, `remove`, `create_folder` (one for each folder made),
    /// `rename`, `link`, `sync_folder`, `write_at`, `set_len`, `allocate`, `punch`, `sync_data`. Those refused before,
    /// as `NotFound`, do not count.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// How many times something was opened, listed, read, mapped or populated.
    pub fn reads(&self) -> u64 {
        self.state().reads
    }

    // Power.

    /// Operation number `count` + 1, counted from the beginning of the disk, and all that come after it fail.
    pub fn cut_power_after(&self, count: u64) {
        self.state().cut_after = Some(count);
    }

    /// Everything fails from now on.
    pub fn cut_power(&self) {
        self.state().off = true;
    }

    /// Whether power is gone.
    pub fn is_off(&self) -> bool {
        self.state().off
    }

    /// Power comes back, after having been cut now if it was not: what the policy lets survive is what is there. Files
    /// open and locks held are so no more; faults and ignored syncs stay as they are.
    pub fn power_on(&self, policy: LossPolicy, seed: u64) {
        self.state().power_on(policy, seed);
    }

    /// The process is killed and the machine goes on: files open and locks held are so no more, and nothing is lost,
    /// but what was not synced still may be. On a disk without power this takes the power cut back.
    pub fn restart_process(&self) {
        self.state().restart_process();
    }

    /// From now on keeps, for each operation counted, the disk as if power had gone in the middle of it: one run gives
    /// what as many runs with [`SimDisk::cut_power_after`] would. [`SimDisk::operations`] of a kept disk says how many
    /// were done.
    pub fn record_cuts(&self) {
        self.state().cuts = Some(Vec::new());
    }

    /// The disks kept since [`SimDisk::record_cuts`], all off, in order, and stops keeping more.
    pub fn take_cuts(&self) -> Vec<Self> {
        let cuts = self.state().cuts.take().unwrap_or_default();
        cuts.into_iter().map(Self::of).collect()
    }

    // Faults.

    /// One more thing that goes wrong.
    pub fn inject(&self, rule: Rule) {
        self.state().faults.add(rule);
    }

    /// Things go wrong by chance.
    pub fn inject_by_chance(&self, odds: Odds) {
        self.state().faults.by_chance(odds);
    }

    /// Nothing more goes wrong, but for ignored syncs and a power cut already planned.
    pub fn clear_faults(&self) {
        self.state().faults.clear();
    }

    /// How many operations went wrong by rule or by chance.
    pub fn fault_count(&self) -> u64 {
        self.state().faults.hit_count()
    }

    /// Some syncs answer Ok and do nothing, for good: the mutation check.
    pub fn ignore(&self, ignore: Ignore) {
        self.state().ignored.push(ignore);
    }

    /// How much room there is from now on, in whole pages of 4 KiB; with what is in use, that is the capacity.
    pub fn set_free_bytes(&self, bytes: u64) {
        self.state().set_free_bytes(bytes);
    }

    /// Whether the bytes of files are out of memory: mappings until populated, other reads always. At first they are
    /// not.
    pub fn set_cold(&self, cold: bool) {
        self.state().cold = cold;
    }

    // The bytes, behind the engine's back; no operation is counted.

    /// All files there are, sorted.
    pub fn paths(&self) -> Vec<String> {
        self.state().paths()
    }

    /// The bytes of a file as they read now. Panics when there is no such file or no power.
    pub fn bytes(&self, path: &str) -> Vec<u8> {
        let mut state = self.state();
        let id = found(&state, path);
        state.peek(id)
    }

    /// Flips the bits of `mask` in one byte, where it lies and where it is cached. Panics as [`SimDisk::bytes`] does.
    pub fn flip(&self, path: &str, offset: u64, mask: u8) {
        let mut state = self.state();
        let id = found(&state, path);
        let at = usize::try_from(offset).unwrap_or(usize::MAX);
        let old = state.peek(id).get(at).copied();
        let old = old.unwrap_or_else(|| panic!("{path} has no byte {offset}"));
        state.damage(id, offset, &[old ^ mask]);
    }

    /// Puts other bytes, where they lie and where they are cached; what would lie beyond the file's end is left out.
    /// Panics as [`SimDisk::bytes`] does.
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
    /// Power has come back this many times; a handle from before is dead for ever.
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

    /// A copy of the bytes as they are now.
    fn map(&self, _: Access) -> io::Result<Box<dyn Mapping>> {
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

/// What a slice keeps alive.
struct Copied(Arc<Vec<u8>>);

impl AsRef<[u8]> for Copied {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl SimMapping {
    fn pages(&self, range: &Range<usize>) -> Range<u64> {
        let end = range.end.min(self.bytes.len());
        let start = range.start.min(end);
        pages(start as u64, (end - start) as u64)
    }
}

impl Mapping for SimMapping {
    fn bytes(&self) -> Bytes {
        self.bytes.clone()
    }

    fn held(&self) -> Weak<dyn Send + Sync> {
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
