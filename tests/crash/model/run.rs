//! One run: a store, its model, and the deviations allowed after a failure.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use bytes::Bytes;
use engine::disk::sim::{LossPolicy, SimDisk};
use engine::recovery::RecoveryReport;
use engine::rng::{Rng, SeededRng};
use engine::{Body, Error, Etag, Health, ObjectName, StagedBody, Store};
use search::{NameSearch, SearchOptions};
use tests::store::{Contents, Model, World};

use super::faults::Trouble;
use super::tally::Tally;
use crate::survivor::{self, Syncs};

/// Mean number of progress callbacks between small steps during long work.
const DURING_ONE_IN: u64 = 12;
/// Mean number of progress callbacks before long work is stopped.
const STOP_ONE_IN: u64 = 150;
/// Number of tokens of a run.
pub(super) const TOKENS: usize = 3;

/// Sizes of segments and inline bodies.
#[derive(Clone, Copy)]
struct Geometry {
    segment_bytes: u64,
    inline_bytes_max: usize,
    reserve_bytes: u64,
}

const GEOMETRIES: [Geometry; 4] = [
    Geometry { segment_bytes: 64 << 10, inline_bytes_max: 4 << 10, reserve_bytes: 0 },
    Geometry { segment_bytes: 64 << 10, inline_bytes_max: 8 << 10, reserve_bytes: 256 << 10 },
    Geometry { segment_bytes: 128 << 10, inline_bytes_max: 16 << 10, reserve_bytes: 0 },
    Geometry { segment_bytes: 1 << 20, inline_bytes_max: 128 << 10, reserve_bytes: 1 << 20 },
];

/// A version as it was put.
#[derive(Clone)]
pub(super) struct Put {
    pub(super) bytes: Bytes,
    pub(super) derived: bool,
    pub(super) etag: Etag,
}

/// An open body, and its content.
pub(super) struct Pinned {
    pub(super) body: Body,
    pub(super) piece: Bytes,
    pub(super) bytes: Bytes,
}

/// A run of one seed.
pub(super) struct Run {
    pub(super) world: World,
    pub(super) chance: SeededRng,
    pub(super) store: Option<Store>,
    /// Acknowledged state.
    pub(super) model: Model,
    /// Alternative states that the next opening may find.
    pub(super) doubts: Vec<Model>,
    /// Objects that a failed undelete may have restored, in any version, without a result.
    pub(super) returning: Vec<ObjectName>,
    /// Every version that was acknowledged or seen, by name and number.
    pub(super) versions: BTreeMap<ObjectName, BTreeMap<u64, Put>>,
    /// Bodies in batches that failed: they may be among the versions of their names.
    pub(super) unsure: BTreeMap<ObjectName, Vec<Bytes>>,
    /// The last value of each token, where it is known.
    pub(super) tokens: [Option<Bytes>; TOKENS],
    pub(super) pinned: Vec<Pinned>,
    /// An uploaded body that waits for its batch.
    pub(super) staged: Option<(StagedBody, Bytes)>,
    /// Search of the open store, once it was used.
    pub(super) search: Option<NameSearch>,
    pub(super) search_options: SearchOptions,
    /// Disk of the backups.
    pub(super) image: SimDisk,
    /// Whether a compaction may have reclaimed anything.
    pub(super) was_compacted: bool,
    pub(super) trouble: Trouble,
    /// First failure in a step concurrent with long work.
    pub(super) failed: Option<String>,
    pub(super) is_concurrent: bool,
    pub(super) bodies: u64,
    pub(super) tally: Tally,
    /// Number of steps between disturbances.
    pace: u64,
    length: u64,
}

impl Run {
    /// Creates the run of a seed.
    pub(super) fn new(seed: u64) -> Result<Self, String> {
        let chance = SeededRng::new(seed);
        let one_of = |choice: &[u64]| choice[chance.below(choice.len() as u64) as usize];
        let (pace, length) = (one_of(&[6, 25, 100]), one_of(&[60, 150, 400, 800]));
        let mut run = Self {
            world: World::new(seed),
            image: SimDisk::with_seed(seed),
            store: None,
            model: Model::default(),
            doubts: Vec::new(),
            returning: Vec::new(),
            versions: BTreeMap::new(),
            unsure: BTreeMap::new(),
            tokens: [const { None }; TOKENS],
            pinned: Vec::new(),
            staged: None,
            search: None,
            search_options: SearchOptions::default(),
            was_compacted: false,
            trouble: Trouble::default(),
            failed: None,
            is_concurrent: false,
            bodies: 0,
            tally: Tally::default(),
            pace,
            length,
            chance,
        };
        run.choose_geometry();
        run.open()?;
        Ok(run)
    }

    /// Returns its disk.
    pub(super) fn disk(&self) -> &SimDisk {
        &self.world.disk
    }

    /// Plays to the end, checks the remaining state, and returns the counts.
    pub(super) fn play(mut self) -> Result<Tally, String> {
        self.steps()?;
        self.stop_process(false)?;
        self.open()?;
        let store = self.store.take().ok_or("the store is open")?;
        self.search = None;
        drop(store.close());
        drop(store);
        survivor::check_after(&self.world.disk, &[&self.model], Syncs::Failed)
            .map_err(|what| format!("end: {what}"))?;
        self.tally.count_many("disk operations", self.world.disk.operations());
        self.tally.count_many("faults that hit", self.world.disk.fault_count());
        Ok(self.tally)
    }

    /// Plays its steps, and returns the counts.
    pub(super) fn steps(&mut self) -> Result<Tally, String> {
        for step in 0..self.length {
            self.step().map_err(|what| format!("step {step}: {what}"))?;
        }
        Ok(self.tally.clone())
    }

    fn step(&mut self) -> Result<(), String> {
        if self.below(self.pace) == 0 {
            self.disturb();
        }
        self.world.clock.advance(self.below(1_000));
        let store = self.store.clone().ok_or("a step begins with an open store")?;
        self.trouble.hits_before = self.world.disk.fault_count();
        let done = self.act(&store);
        if let Some(what) = self.failed.take() {
            return Err(what);
        }
        done?;
        let is_failed = is_read_only(&store);
        if is_failed && !self.trouble.explains_failure(&self.world.disk) {
            return Err(format!("it takes no writes: {:?}", store.health()));
        }
        drop(store);
        self.trouble.steps_left = self.trouble.steps_left.saturating_sub(1);
        if self.world.disk.is_off() || !self.returning.is_empty() {
            self.stop_process(false)?;
            return self.open();
        }
        if is_failed && self.below(4) == 0 || self.below(80) == 0 {
            self.stop_process(true)?;
            return self.open();
        }
        if self.trouble.steps_left == 0 && !is_failed {
            self.trouble.clear_faults(&self.world);
        }
        if self.below(300) == 0 { self.check_survivor() } else { Ok(()) }
    }

    /// Runs one operation.
    fn act(&mut self, store: &Store) -> Result<(), String> {
        self.tally.count("operations");
        match self.below(100) {
            0..=35 => self.commit(store, 1),
            36..=42 => {
                let count = 2 + self.below(4);
                self.commit(store, count)
            }
            43..=48 => self.use_tokens(store),
            49..=51 => self.upload(store),
            52..=60 => self.check_one_object(store),
            61..=65 => self.list_keys(store),
            66..=69 => self.list_folder(store),
            70..=72 => self.search(store),
            73..=75 => self.check_facts_and_counters(store),
            76..=79 => self.pin(store),
            80..=84 => self.read_pinned(store),
            85..=88 => self.checkpoint(store),
            89..=91 => self.roll_over(store),
            92 => self.idle(store),
            93 => self.scrub(store),
            94 | 95 => self.compact(store),
            96 => self.check_history(store),
            97 | 98 => self.undelete(store),
            _ => self.back_up(store),
        }
    }

    /// Runs during long work: perhaps a small operation, or stops the work.
    pub(super) fn run_concurrent(&mut self, store: &Store) -> ControlFlow<()> {
        if self.failed.is_some() || self.below(STOP_ONE_IN) == 0 {
            return ControlFlow::Break(());
        }
        if self.below(DURING_ONE_IN) != 0 {
            return ControlFlow::Continue(());
        }
        self.is_concurrent = true;
        self.tally.count("operations");
        self.tally.count("operations during long work");
        let done = match self.below(13) {
            0..=4 => self.commit(store, 1),
            5 => self.use_tokens(store),
            6 => self.check_one_object(store),
            7 => self.read_pinned(store),
            8 => self.checkpoint(store),
            9 => self.roll_over(store),
            10 => self.list_keys(store),
            11 => self.search(store),
            _ => self.pin(store),
        };
        self.is_concurrent = false;
        self.failed = done.err().map(|what| format!("concurrent: {what}"));
        ControlFlow::Continue(())
    }

    /// Accepts an error that the disk explains.
    pub(super) fn excuse(&self, store: &Store, what: &str, error: Error) -> Result<(), String> {
        let disk = &self.world.disk;
        let was_hit = disk.is_off() || disk.fault_count() > self.trouble.hits_before;
        let is_fine = match &error {
            Error::ReadOnly(_) => {
                is_read_only(store) && self.trouble.explains_failure(&self.world.disk)
            }
            Error::NoSpace => was_hit || self.trouble.is_full,
            // An index that could not read or write is reopened from time to time at most, or not at all.
            Error::Io { doing, .. } if doing == "using the index" => {
                self.trouble.explains_failure(disk)
            }
            Error::Io { .. } => was_hit,
            _ => false,
        };
        if is_fine { Ok(()) } else { Err(format!("{what}: {error} ({error:?})")) }
    }

    // Restarts of the process.

    /// Ends the process: closed, dropped, killed or without power, at random, or, where it may not be closed, one of
    /// the last two. Open bodies stay readable after closing, and not otherwise.
    pub(super) fn stop_process(&mut self, may_close: bool) -> Result<(), String> {
        let is_off = self.world.disk.is_off();
        let store = self.store.take();
        self.trouble.hits_before = self.world.disk.fault_count();
        match self.below(8) {
            0 | 1 if may_close && !is_off => {
                if let Some(store) = &store {
                    match store.close() {
                        Ok(()) => self.tally.count("closed"),
                        Err(error) => self.excuse(store, "closing", error)?,
                    }
                    self.read_pinned(store)?;
                }
            }
            2 if may_close && !is_off => self.tally.count("dropped"),
            3 | 4 => {
                self.world.disk.cut_power();
                self.tally.count(if is_off { "killed in an operation" } else { "killed" });
                self.tally.count("crashes");
                self.release_all(store);
                self.world.disk.restart_process();
                return Ok(());
            }
            _ => self.world.disk.cut_power(),
        }
        self.release_all(store);
        if self.world.disk.is_off() {
            self.power_on(if is_off { "power cut in an operation" } else { "power cut" });
        }
        Ok(())
    }

    fn power_on(&mut self, what: &'static str) {
        self.tally.count(what);
        self.tally.count("crashes");
        let policy = LossPolicy::ALL[self.below(6) as usize];
        self.world.disk.power_on(policy, self.chance.next_u64());
    }

    fn release_all(&mut self, store: Option<Store>) {
        self.pinned.clear();
        self.staged = None;
        self.search = None;
        drop(store);
    }

    /// Opens the store under any disturbance of the disk, and compares.
    pub(super) fn open(&mut self) -> Result<(), String> {
        let mut tries = 0;
        let (store, report) = loop {
            tries += 1;
            if tries > 2 {
                self.trouble.clear_faults(&self.world);
            }
            self.disturb_opening();
            self.trouble.hits_before = self.world.disk.fault_count();
            self.trouble.hits_at_opening = self.trouble.hits_before;
            match self.world.try_open() {
                Ok(opened) if !self.world.disk.is_off() => break opened,
                Ok(_) | Err(_) if self.world.disk.is_off() => {
                    self.power_on("power cut while opening");
                }
                Ok(_) => {}
                Err(error) => {
                    let disk = &self.world.disk;
                    let was_hit = disk.fault_count() > self.trouble.hits_before;
                    let is_fine = match &error {
                        Error::NoSpace => was_hit || self.trouble.is_full,
                        Error::Io { .. } => was_hit,
                        _ => false,
                    };
                    if !is_fine {
                        return Err(format!("opening: {error} ({error:?})"));
                    }
                    self.tally.count("openings that failed");
                    self.trouble.clear_faults(&self.world);
                }
            }
        };
        self.trouble.clear_faults(&self.world);
        self.record_report(&report)?;
        self.compare(&store)?;
        self.store = Some(store);
        Ok(())
    }

    fn record_report(&mut self, report: &RecoveryReport) -> Result<(), String> {
        if report.damage_count() > 0 {
            return Err(format!("damage: {report}"));
        }
        self.tally.count("openings");
        self.tally.count_many("records replayed", report.replayed_records);
        self.tally.count_many("indexes rebuilt", u64::from(report.index_rebuilt));
        self.tally.count_many("torn tails", u64::from(report.torn_tail.is_some()));
        self.tally.count_many("segments sealed by recovery", report.segments_sealed);
        self.tally.count_many("orphans removed", report.orphans_removed);
        Ok(())
    }

    /// Checks that acknowledged changes are present, and changes in progress whole or absent.
    fn compare(&mut self, store: &Store) -> Result<(), String> {
        let contents = Contents::of(store)?;
        let doubts = std::mem::take(&mut self.doubts);
        let had_doubts = !doubts.is_empty();
        let mut possible = vec![std::mem::take(&mut self.model)];
        possible.extend(doubts);
        for name in std::mem::take(&mut self.returning) {
            let Some(seen) = contents.objects.get(&name) else { continue };
            let derived = seen.described.4;
            if self.is_known_version(&name, &seen.body) {
                let value = (seen.body.clone(), derived);
                possible
                    .iter_mut()
                    .for_each(|it| drop(it.objects.insert(name.clone(), value.clone())));
            }
        }
        let faults: Vec<Result<(), String>> =
            possible.iter().map(|model| contents.check_against(model)).collect();
        let Some(found) = faults.iter().position(Result::is_ok) else {
            let faults: Vec<String> = faults.into_iter().filter_map(Result::err).collect();
            return Err(faults.join("; or: "));
        };
        if had_doubts {
            self.tally.count(if found > 0 {
                "doubts that happened"
            } else {
                "doubts that did not"
            });
        }
        self.model = possible.swap_remove(found);
        for (name, seen) in &contents.objects {
            let object = store.get(name).map_err(|error| error.to_string())?;
            let etag = object.ok_or_else(|| format!("{name} is gone again"))?.etag();
            let put = Put { bytes: seen.body.clone(), derived: seen.described.4, etag };
            self.versions.entry(name.clone()).or_default().insert(seen.lsn, put);
        }
        self.tokens_must_be_whole(&contents)
    }

    /// Cuts the power in a copy of the machine, and checks the invariants of the remaining state.
    fn check_survivor(&mut self) -> Result<(), String> {
        self.tally.count("survivors checked");
        let disk = self.world.disk.fork();
        disk.clear_faults();
        disk.set_free_bytes(super::faults::AMPLE_FREE_BYTES);
        let policy = LossPolicy::ALL[self.below(6) as usize];
        disk.power_on(policy, self.chance.next_u64());
        let acceptable: Vec<&Model> = [&self.model].into_iter().chain(&self.doubts).collect();
        survivor::check_after(&disk, &acceptable, Syncs::Failed)
            .map_err(|what| format!("a survivor: {what}"))
    }

    pub(super) fn choose_geometry(&mut self) {
        // Large segments make long runs slow.
        let Geometry { segment_bytes, inline_bytes_max, reserve_bytes } =
            GEOMETRIES[[0, 0, 0, 1, 1, 1, 2, 2, 3][self.below(9) as usize]];
        self.world.options.segment_bytes = segment_bytes;
        self.world.options.inline_bytes_max = inline_bytes_max;
        self.world.options.reserve_bytes = Some(reserve_bytes);
        // Names for searches are cached, or cached as far as there is room, or never.
        self.search_options.objects_min = if self.below(4) == 0 { u64::MAX } else { 0 };
        self.search_options.names_bytes_max = if self.below(3) == 0 { 2_000 } else { 1 << 20 };
        // Large deleted versions can be restored for no time, for some steps, or for good.
        self.world.options.retention_window_ms = [0, 20_000, 1 << 40][self.below(3) as usize];
        self.world.options.index_cache_bytes = if self.below(3) == 0 { 0 } else { 1 << 20 };
    }

    pub(super) fn below(&self, bound: u64) -> u64 {
        self.chance.below(bound)
    }

    /// Whether an object of this name ever had, or may have had, this body.
    pub(super) fn is_known_version(&self, name: &ObjectName, body: &Bytes) -> bool {
        let mut known = self.versions.get(name).into_iter().flat_map(BTreeMap::values);
        known.any(|put| put.bytes == *body)
            || self.unsure.get(name).is_some_and(|bodies| bodies.contains(body))
    }
}

pub(super) fn is_read_only(store: &Store) -> bool {
    matches!(store.health(), Health::ReadOnly(_))
}
