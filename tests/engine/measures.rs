//! Metrics of the store are exact: on a disk with a configured latency, and with a clock that only the disk advances.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use engine::clock::SimClock;
use engine::disk::faults::{Fault, FaultRule, Operation, PathPattern};
use engine::disk::sim::SimDisk;
use engine::disk::{Access, Disk, DiskFile, Lock, Mapping};
use engine::metrics::HistogramSnapshot;
use engine::rng::SeededRng;
use engine::{Background, Batch, Create, Environment, OpenOptions, PutOptions, Store};
use tests::store::{body, name, stage};

/// A disk on which a sync takes time.
struct SlowDisk {
    disk: SimDisk,
    pace: Arc<Pace>,
}

struct SlowFile {
    file: Arc<dyn DiskFile>,
    pace: Arc<Pace>,
}

struct Pace {
    clock: Arc<SimClock>,
    /// Duration of each following sync in milliseconds.
    sync_ms: AtomicU64,
    /// Durations of the syncs that succeeded.
    took_ms: Mutex<Vec<u64>>,
}

impl SlowDisk {
    fn slow(&self, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(SlowFile { file, pace: self.pace.clone() })
    }
}

impl Disk for SlowDisk {
    fn open(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.open(path).map(|file| self.slow(file))
    }

    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.create(path).map(|file| self.slow(file))
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn link(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.link(from, to)
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.disk.list(folder)
    }

    fn create_folder(&self, folder: &str) -> io::Result<()> {
        self.disk.create_folder(folder)
    }

    fn sync_folder(&self, folder: &str) -> io::Result<()> {
        self.disk.sync_folder(folder)
    }

    fn lock(&self) -> io::Result<Box<dyn Lock>> {
        self.disk.lock()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.disk.free_bytes()
    }

    fn capacity_bytes(&self) -> io::Result<u64> {
        self.disk.capacity_bytes()
    }
}

impl DiskFile for SlowFile {
    fn bytes_len(&self) -> io::Result<u64> {
        self.file.bytes_len()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_at(offset, buffer)
    }

    fn write_at(&self, offset: u64, pieces: &[&[u8]]) -> io::Result<()> {
        self.file.write_at(offset, pieces)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        self.file.allocate(bytes)
    }

    fn punch(&self, range: Range<u64>) -> io::Result<()> {
        self.file.punch(range)
    }

    fn sync_data(&self) -> io::Result<()> {
        let ms = self.pace.sync_ms.load(Ordering::Relaxed);
        self.pace.clock.advance(ms);
        self.file.sync_data()?;
        self.pace.took_ms.lock().unwrap().push(ms);
        Ok(())
    }

    fn map(&self, access: Access) -> io::Result<Box<dyn Mapping>> {
        self.file.map(access)
    }
}

struct Slow {
    disk: SimDisk,
    store: Store,
    pace: Arc<Pace>,
}

/// Creates a store that has a log already, so that a commit is a group and nothing else.
fn slow() -> Slow {
    let clock = Arc::new(SimClock::at(1_700_000_000_000));
    let (sync_ms, took_ms) = (AtomicU64::new(0), Mutex::default());
    let pace = Arc::new(Pace { clock: clock.clone(), sync_ms, took_ms });
    let disk = SimDisk::with_seed(5);
    let surroundings = Environment {
        disk: Arc::new(SlowDisk { disk: disk.clone(), pace: pace.clone() }),
        clock,
        rng: Arc::new(SeededRng::new(5)),
        remote: None,
    };
    let options = OpenOptions {
        background: Background::Manual,
        compaction: None,
        ..OpenOptions::new(Create::IfMissing)
    };
    let (store, _) = Store::open(surroundings, options).unwrap();
    let slow = Slow { disk, store, pace };
    slow.put(1).unwrap();
    slow
}

impl Slow {
    /// Commits so many objects in one batch.
    fn put(&self, count: u64) -> engine::Result<()> {
        let mut batch = Batch::new();
        for at in 0..count {
            let staged = stage(&self.store, &body(at, 1_000))?;
            batch = batch.put(name(&format!("{at}.bin")), staged, PutOptions::default());
        }
        self.store.commit(batch).map(drop)
    }

    /// Sets the duration of the following syncs, and clears the recorded durations.
    fn set_pace(&self, ms: u64) {
        self.pace.sync_ms.store(ms, Ordering::Relaxed);
        self.pace.took_ms.lock().unwrap().clear();
    }

    /// Returns the durations of the syncs since.
    fn took_us(&self) -> Vec<u64> {
        self.pace.took_ms.lock().unwrap().iter().map(|ms| ms * 1_000).collect()
    }
}

/// Returns the difference to an earlier reading: counts and sum.
fn since(later: &HistogramSnapshot, earlier: &HistogramSnapshot) -> (Vec<u64>, u64) {
    let counts = later.counts.iter().zip(&earlier.counts).map(|(later, earlier)| later - earlier);
    (counts.collect(), later.sum - earlier.sum)
}

/// Returns the expected content of a histogram with these bounds for these values.
fn held(bounds: &[u64], values: &[u64]) -> (Vec<u64>, u64) {
    let mut counts = vec![0; bounds.len() + 1];
    for value in values {
        let range = bounds.iter().position(|bound| value <= bound).unwrap_or(bounds.len());
        counts[range] += 1;
    }
    (counts, values.iter().sum())
}

#[test]
fn sync_duration_histogram_counts_every_log_sync() {
    let slow = slow();
    for ms in [0, 1, 3, 5, 40, 999, 5_000, 60_000] {
        let before = slow.store.metrics();
        slow.set_pace(ms);
        slow.put(3).unwrap();
        let after = slow.store.metrics();
        let took_us = slow.took_us();
        assert!(!took_us.is_empty());
        let bounds = after.sync_duration_us.bounds;
        assert_eq!(
            since(&after.sync_duration_us, &before.sync_duration_us),
            held(bounds, &took_us),
            "{ms} ms"
        );
        // A group of three, and perhaps an empty one after it, which is not counted.
        let (groups, records) = since(&after.group_records, &before.group_records);
        assert_eq!((groups.iter().sum::<u64>(), records), (1, 3));
        let (groups, bytes) = since(&after.group_bytes, &before.group_bytes);
        assert_eq!(groups.iter().sum::<u64>(), 1);
        assert!((3_000..6_000).contains(&bytes), "{bytes}");
    }
}

#[test]
fn failed_sync_records_no_duration() {
    let slow = slow();
    slow.set_pace(7);
    let before = slow.store.metrics();
    let log = PathPattern::Prefix("log/".to_owned());
    slow.disk.inject(FaultRule::once(Operation::SyncData, log, Fault::Error));
    slow.put(1).unwrap_err();
    let after = slow.store.metrics();
    assert_eq!(since(&after.sync_duration_us, &before.sync_duration_us).1, 0);
    assert_eq!(after.group_records, before.group_records);
}

#[test]
fn checkpoint_duration_includes_its_syncs() {
    let slow = slow();
    assert_eq!(slow.store.metrics().checkpoint_duration_us.count(), 0);
    slow.set_pace(2);
    assert!(slow.store.checkpoint().unwrap());
    let measures = slow.store.metrics();
    let took_us = slow.took_us().iter().sum::<u64>();
    assert!(took_us > 0);
    let (counts, sum) =
        (measures.checkpoint_duration_us.count(), measures.checkpoint_duration_us.sum);
    assert_eq!((counts, sum, measures.checkpoints_failed), (1, took_us, 0));
    // Nothing has changed.
    assert!(!slow.store.checkpoint().unwrap());
    assert_eq!(slow.store.metrics().checkpoint_duration_us.count(), 1);
    // Without room it fails, and is retried later.
    slow.put(1).unwrap();
    slow.disk.set_free_bytes(0);
    slow.store.checkpoint().unwrap_err();
    assert_eq!(slow.store.metrics().checkpoints_failed, 1);
    slow.disk.set_free_bytes(1 << 40);
    assert!(slow.store.checkpoint().unwrap());
    let measures = slow.store.metrics();
    assert_eq!((measures.checkpoint_duration_us.count(), measures.checkpoints_failed), (2, 1));
}

#[test]
fn compaction_and_scrub_work_is_counted() {
    let slow = slow();
    for _ in 0..4 {
        slow.put(20).unwrap();
    }
    let report = tests::store::compact(&slow.store).unwrap();
    let measures = slow.store.metrics();
    assert!(report.copied_bytes > 0 && report.freed_bytes > 0, "{report:?}");
    assert_eq!(measures.compactions, 1);
    assert_eq!(
        (measures.compacted_bytes, measures.reclaimed_bytes),
        (report.copied_bytes, report.freed_bytes + report.punched_bytes)
    );
    let scrubbed = slow.store.scrub(&mut |_| std::ops::ControlFlow::Continue(())).unwrap();
    let measures = slow.store.metrics();
    assert!(scrubbed.segments > 0 && scrubbed.bytes > 0);
    assert_eq!(
        (measures.scrubbed_segments, measures.scrubbed_bytes),
        (scrubbed.segments, scrubbed.bytes)
    );
}
