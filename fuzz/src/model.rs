//! A store on a simulated machine, with disk, clock and random numbers controlled by the test, and a model to compare
//! with.
//!
//! Segments have their minimum size, so that a few writes cover rolls, seals and big segments. Only the test runs the
//! committer: [`commit`] takes one step, so each disk operation can be attributed to its cause. Non-goals: the
//! invariants themselves; the suites define them.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Arc, mpsc};

use bytes::Bytes;
use engine::clock::SimClock;
use engine::compaction::{CompactionReport, CompactionRules};
use engine::disk::sim::SimDisk;
use engine::listing::FolderCursor;
use engine::recovery::RecoveryReport;
use engine::rng::SeededRng;
use engine::stats::ClassStats;
use engine::{
    Background, Batch, BucketName, CommitInfo, Create, Environment, Error, FactName, FolderKey,
    ObjectKey, ObjectName, OpenOptions, PutOptions, Result, StagedBody, Store, Usage, fsck,
};

/// Initial time of a simulated machine's clock.
pub const START_MS: u64 = 1_700_000_000_000;
/// Size of the log segments of a small world in bytes.
pub const SMALL_SEGMENT_BYTES: u64 = 64 << 10;
/// Size of the largest body that a small world keeps in its log, in bytes.
pub const SMALL_INLINE_BYTES: usize = 4 << 10;

/// One machine with one disk.
pub struct World {
    /// Simulated disk.
    pub disk: SimDisk,
    /// Simulated clock.
    pub clock: Arc<SimClock>,
    /// Options for opening stores on this machine.
    pub options: OpenOptions,
    seed: u64,
    openings: Cell<u64>,
}

impl World {
    /// Creates an empty machine with small segments.
    pub fn new(seed: u64) -> Self {
        Self::on(SimDisk::with_seed(seed), seed)
    }

    /// Creates a machine with this disk in it.
    pub fn on(disk: SimDisk, seed: u64) -> Self {
        let mut options = OpenOptions::new(Create::IfMissing);
        options.segment_bytes = SMALL_SEGMENT_BYTES;
        options.inline_bytes_max = SMALL_INLINE_BYTES;
        options.index_cache_bytes = 1 << 20;
        // Tests that need a reserve set its size.
        options.reserve_bytes = Some(0);
        options.background = Background::Manual;
        let clock = Arc::new(SimClock::at(START_MS));
        Self { disk, clock, options, seed, openings: Cell::new(0) }
    }

    /// Creates an empty machine with room for bodies of several blocks in the log.
    pub fn wide(seed: u64) -> Self {
        let mut world = Self::new(seed);
        world.options.segment_bytes = 2 << 20;
        world.options.inline_bytes_max = 192 << 10;
        world
    }

    /// Opens the store; each opening draws its own random seed.
    pub fn try_open(&self) -> Result<(Store, RecoveryReport)> {
        Store::open(self.environment(), self.options.clone())
    }

    /// Returns the environment of a store on this machine, with its own random seed.
    pub fn environment(&self) -> Environment {
        let opening = self.openings.get() + 1;
        self.openings.set(opening);
        Environment {
            disk: Arc::new(self.disk.clone()),
            clock: Arc::clone(&self.clock) as _,
            rng: Arc::new(SeededRng::new(self.seed.wrapping_mul(1_000) + opening)),
            remote: self.options.replication.as_ref().map(|it| Arc::clone(&it.remote)),
        }
    }

    /// Checks the store, which must be closed.
    pub fn fsck(&self, deep: bool) -> Result<fsck::Report> {
        let watch = &mut |_| ControlFlow::Continue(());
        fsck::check(&self.environment(), Self::check_options(deep), watch)
    }

    /// Returns the options of a check by one worker.
    pub fn check_options(deep: bool) -> fsck::CheckOptions {
        let derived_bucket = Some(bucket_named(DERIVED));
        fsck::CheckOptions { deep, derived_bucket, workers: 1, ..fsck::CheckOptions::default() }
    }

    /// Repairs the store, which must be closed; the second value is the printed messages.
    pub fn repair(&self) -> Result<(fsck::RepairReport, Vec<String>)> {
        let mut said = Vec::new();
        let options =
            fsck::RepairOptions { check: Self::check_options(true), open: self.options.clone() };
        let watch = &mut |_| ControlFlow::Continue(());
        let repaired = fsck::repair(&self.environment(), &options, watch, &mut |what| {
            said.push(what.to_owned());
        })?;
        Ok((repaired, said))
    }

    /// Opens the store, and panics on failure.
    pub fn open(&self) -> Store {
        self.open_with_report().0
    }

    /// Opens the store, panics on failure, and returns the recovery report too.
    pub fn open_with_report(&self) -> (Store, RecoveryReport) {
        self.try_open().unwrap_or_else(|error| panic!("the store opens: {error}"))
    }

    /// Opens the store with its own threads.
    pub fn open_with_threads(&mut self) -> Store {
        self.options.background = Background::Threads;
        let store = self.open();
        self.options.background = Background::Manual;
        store
    }

    /// Lists the files below a folder.
    pub fn files_in(&self, folder: &str) -> Vec<String> {
        self.disk.paths().into_iter().filter(|path| path.starts_with(folder)).collect()
    }
}

/// Bucket of derived objects, which are regenerated when they are missing.
pub const DERIVED: &str = "remade";

/// Returns the default bucket of the tests.
pub fn bucket() -> BucketName {
    bucket_named("photos")
}

/// Returns the bucket name.
pub fn bucket_named(name: &str) -> BucketName {
    BucketName::parse(name).unwrap_or_else(|why| panic!("{name:?} names a bucket: {why}"))
}

/// Returns the name of an object in the default bucket.
pub fn name(key: &str) -> ObjectName {
    name_in(&bucket(), key)
}

/// Returns the name of an object in a bucket.
pub fn name_in(bucket: &BucketName, key: &str) -> ObjectName {
    let key = ObjectKey::parse(key).unwrap_or_else(|why| panic!("{key:?} is a key: {why}"));
    ObjectName::new(bucket.clone(), key)
}

/// Returns the name of a fact.
pub fn fact(name: &str) -> FactName {
    FactName::parse(name).unwrap_or_else(|why| panic!("{name:?} names a fact: {why}"))
}

/// Returns bytes that vary by position and by seed.
pub fn body(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut out = Vec::with_capacity(bytes + 8);
    while out.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.extend_from_slice(&state.to_le_bytes());
    }
    out.truncate(bytes);
    out
}

/// Uploads a body.
pub fn stage(store: &Store, body: &[u8]) -> Result<StagedBody> {
    let mut upload = store.upload();
    upload.push(body)?;
    upload.finish()
}

/// Commits a batch in one step of the committer, without the watermark that a second step would write.
pub fn commit(store: &Store, batch: Batch) -> Result<CommitInfo> {
    let (answer, outcome) = mpsc::channel();
    store.submit(batch, move |result| {
        let _ = answer.send(result);
    });
    store.step_committer();
    outcome.try_recv().unwrap_or(Err(Error::Closed))
}

/// Puts an object.
pub fn put(store: &Store, name: &ObjectName, body: &[u8]) -> Result<CommitInfo> {
    let staged = stage(store, body)?;
    commit(store, Batch::new().put(name.clone(), staged, PutOptions::default()))
}

/// Deletes an object.
pub fn delete(store: &Store, name: &ObjectName) -> Result<CommitInfo> {
    commit(store, Batch::new().delete(name.clone()))
}

/// Marks the store idle for a moment, which writes a watermark for the last group.
pub fn idle(store: &Store) {
    while store.step_committer() == engine::commit::CommitStep::Worked {}
}

/// Runs the work of the store's threads other than the committer.
pub fn roll_over(store: &Store) -> Result<()> {
    while store.step_rollover()? {}
    Ok(())
}

/// Compacts every segment with dead bytes, without a rate limit.
pub fn compact(store: &Store) -> Result<CompactionReport> {
    let rules = CompactionRules { store_dead_percent_min: 0, segment_dead_percent_min: 1 };
    store.compact(rules, None, &mut |_| ControlFlow::Continue(()))
}

/// Reads an object in full; none when it does not exist.
pub fn read(store: &Store, name: &ObjectName) -> Result<Option<Vec<u8>>> {
    let Some(object) = store.get(name)? else { return Ok(None) };
    let body = store.body(&object)?;
    let mut all = Vec::new();
    while (all.len() as u64) < body.bytes() {
        all.extend_from_slice(&body.read(all.len() as u64..body.bytes())?);
    }
    Ok(Some(all))
}

/// Expected content of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    /// Objects, each with whether it is derived.
    pub objects: BTreeMap<ObjectName, (Bytes, bool)>,
    /// Facts.
    pub facts: BTreeMap<FactName, Bytes>,
}

/// Counters of buckets, as their roots, and of top-level folders.
pub type Usages = BTreeMap<(BucketName, FolderKey), Usage>;

/// One operation of a batch, for model and store alike.
#[derive(Clone, Debug)]
pub enum Change {
    /// Puts an object.
    Put(ObjectName, Bytes),
    /// Puts a derived object.
    PutDerived(ObjectName, Bytes),
    /// Deletes an object.
    Delete(ObjectName),
    /// Sets a fact.
    PutFact(FactName, Bytes),
    /// Removes a fact.
    DeleteFact(FactName),
}

impl Model {
    /// Applies the changes of a committed batch.
    pub fn apply(&mut self, changes: &[Change]) {
        for change in changes {
            match change.clone() {
                Change::Put(name, body) => {
                    self.objects.insert(name, (body, false));
                }
                Change::PutDerived(name, body) => {
                    self.objects.insert(name, (body, true));
                }
                Change::Delete(name) => {
                    self.objects.remove(&name);
                }
                Change::PutFact(name, value) => {
                    self.facts.insert(name, value);
                }
                Change::DeleteFact(name) => {
                    self.facts.remove(&name);
                }
            }
        }
    }

    /// Returns the expected counters of every bucket, as its root, and of every top-level folder.
    pub fn usages(&self) -> Usages {
        let mut usages = Usages::new();
        for (name, (body, derived)) in &self.objects {
            let folder = name.key.as_str().split_once('/').map(|(folder, _)| format!("{folder}/"));
            for folder in std::iter::once(String::new()).chain(folder) {
                let folder = FolderKey::parse(&folder).expect("the beginning of a key is a folder");
                let usage = usages.entry((name.bucket.clone(), folder)).or_default();
                let (objects, bytes) = match derived {
                    true => (&mut usage.derived_objects, &mut usage.derived_bytes),
                    false => (&mut usage.objects, &mut usage.bytes),
                };
                *objects += 1;
                *bytes += body.len() as u64;
            }
        }
        usages
    }
}

/// Builds the batch of these changes, with its bodies uploaded.
pub fn batch(store: &Store, changes: &[Change]) -> Result<Batch> {
    batch_with(changes, &mut |body| stage(store, body))
}

/// Builds the batch of these changes, with bodies uploaded by the given function.
pub fn batch_with(
    changes: &[Change],
    stage: &mut dyn FnMut(&Bytes) -> Result<StagedBody>,
) -> Result<Batch> {
    let mut batch = Batch::new();
    for change in changes {
        batch = match change.clone() {
            Change::Put(name, body) => batch.put(name, stage(&body)?, PutOptions::default()),
            Change::PutDerived(name, body) => {
                let options = PutOptions { derived: true, ..PutOptions::default() };
                batch.put(name, stage(&body)?, options)
            }
            Change::Delete(name) => batch.delete(name),
            Change::PutFact(name, value) => batch.put_fact(name, value),
            Change::DeleteFact(name) => batch.delete_fact(name),
        };
    }
    Ok(batch)
}

/// Everything observable through the store's interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Every object, read in full.
    pub objects: BTreeMap<ObjectName, ObservedObject>,
    /// Every fact.
    pub facts: BTreeMap<FactName, Bytes>,
    /// Counters of every bucket and folder that is not empty.
    pub usages: Usages,
    /// Live and dead bytes of the log.
    pub log: ClassStats,
    /// Live and dead bytes of compacted segments.
    pub compacted: ClassStats,
    /// Live and dead bytes of big segments.
    pub big: ClassStats,
    /// Number of the last record.
    pub last_lsn: u64,
}

/// An object as the store reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedObject {
    /// Body of the object.
    pub body: Bytes,
    /// Number of its record.
    pub lsn: u64,
    /// Content type, attributes, times, and whether it is derived.
    pub described: (String, Vec<u8>, u64, u64, bool),
}

impl Contents {
    /// Reads the whole store; the listings must agree with each other and with lookups by name.
    pub fn of(store: &Store) -> Result<Self, String> {
        let describe = |error: Error| error.to_string();
        let stats = store.stats().map_err(describe)?;
        let mut contents = Self {
            log: stats.log,
            compacted: stats.compacted,
            big: stats.big,
            last_lsn: stats.last_lsn,
            ..Self::default()
        };
        for (bucket, usage) in stats.buckets {
            let listed = keys(store, &bucket, "", 1_000).map_err(describe)?;
            let mut walked = Vec::new();
            walk_folders(store, &bucket, &FolderKey::root(), &mut walked).map_err(describe)?;
            walked.sort();
            if listed != walked {
                return Err(format!("{bucket}: keys {listed:?}, folders {walked:?}"));
            }
            for key in listed {
                let name = ObjectName::new(bucket.clone(), key);
                let seen = observe(store, &name).map_err(describe)?;
                let seen = seen.ok_or_else(|| format!("{name} is listed and not there"))?;
                contents.objects.insert(name, seen);
            }
            for (folder, usage) in folder_usages(store, &bucket, 3).map_err(describe)? {
                contents.usages.insert((bucket.clone(), folder), usage);
            }
            contents.usages.insert((bucket, FolderKey::root()), usage);
        }
        let facts = store.facts("", None, 1_000).map_err(describe)?;
        contents.facts = facts.into_iter().collect();
        Ok(contents)
    }

    /// Compares with the model, byte for byte and count for count.
    pub fn check_against(&self, model: &Model) -> Result<(), String> {
        for (name, (body, derived)) in &model.objects {
            match self.objects.get(name) {
                None => return Err(format!("{name} is missing")),
                Some(seen) if seen.body != *body => {
                    return Err(format!("{name} has other bytes: {}", compare(&seen.body, body)));
                }
                Some(seen) if seen.described.4 != *derived => {
                    return Err(format!("{name} is derived, or should be"));
                }
                Some(_) => {}
            }
        }
        if let Some(name) = self.objects.keys().find(|name| !model.objects.contains_key(name)) {
            return Err(format!("{name} is there and should not be"));
        }
        if self.facts != model.facts {
            return Err(format!("facts are {:?}, not {:?}", self.facts, model.facts));
        }
        match model.usages() {
            usages if usages == self.usages => Ok(()),
            usages => Err(format!("counters are {:?}, not {usages:?}", self.usages)),
        }
    }
}

/// Returns the counters of every top-level folder of a bucket, in pages of the given size.
pub fn folder_usages(
    store: &Store,
    bucket: &BucketName,
    page: usize,
) -> Result<Vec<(FolderKey, Usage)>> {
    let mut all: Vec<(FolderKey, Usage)> = Vec::new();
    loop {
        let after = all.last().map(|(folder, _)| folder);
        let found = store.folder_usages(bucket, after, page)?;
        all.extend(found.folders);
        if !found.more {
            return Ok(all);
        }
    }
}

/// Returns every key of a bucket with a prefix, in pages of the given size.
pub fn keys(
    store: &Store,
    bucket: &BucketName,
    prefix: &str,
    page: usize,
) -> Result<Vec<ObjectKey>> {
    let mut all: Vec<ObjectKey> = Vec::new();
    loop {
        let after = all.last().map(|key| key.as_str().to_owned());
        let found = store.list_keys(bucket, prefix, after.as_deref(), page)?;
        all.extend(found.objects.iter().map(|object| object.name().key.clone()));
        if !found.more {
            return Ok(all);
        }
        assert!(!found.objects.is_empty(), "a page with more to come is not empty");
    }
}

/// Returns every key below a folder, by walking its subfolders.
fn walk_folders(
    store: &Store,
    bucket: &BucketName,
    folder: &FolderKey,
    all: &mut Vec<ObjectKey>,
) -> Result<()> {
    if let Ok(marker) = ObjectKey::parse(folder.as_str()) {
        let name = ObjectName::new(bucket.clone(), marker.clone());
        if store.get(&name)?.is_some() {
            all.push(marker);
        }
    }
    let mut after: Option<FolderCursor> = None;
    loop {
        let page = store.list_folder(bucket, folder, after.as_ref(), 7)?;
        all.extend(page.files.iter().map(|object| object.name().key.clone()));
        for subfolder in &page.folders {
            walk_folders(store, bucket, subfolder, all)?;
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

/// Reads an object with its metadata; none when it does not exist.
pub fn observe(store: &Store, name: &ObjectName) -> Result<Option<ObservedObject>> {
    let Some(object) = store.get(name)? else { return Ok(None) };
    let body = read(store, name)?.unwrap_or_default().into();
    let described = (
        object.content_type().to_owned(),
        object.attributes().to_vec(),
        object.created_ms(),
        object.modified_ms(),
        object.is_derived(),
    );
    Ok(Some(ObservedObject { body, lsn: object.lsn(), described }))
}

fn compare(found: &[u8], wanted: &[u8]) -> String {
    let differs = found.iter().zip(wanted).position(|(found, wanted)| found != wanted);
    format!("{} of {} bytes, first difference at {differs:?}", found.len(), wanted.len())
}
