//! Stores with and without replication, and the loads on them.

use std::collections::VecDeque;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use benches::rounds::{self, Sample};
use benches::{data, process, stores};
use engine::remote::RemoteStore;
use engine::replication::{RemoteAck, ReplicationOptions, ReplicationStatus, ReplicationStep};
use engine::{Background, Create, OpenOptions, Store};

const SEED: u64 = 11;
/// Time in which a store must reach a state.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(5);
/// Time in which uploads must end.
const UPLOAD_PATIENCE: Duration = Duration::from_secs(10);
/// CPU time of an idle process in [`QUIET`].
const IDLE_CPU: Duration = Duration::from_millis(6);
const QUIET: Duration = Duration::from_millis(150);

/// Replication of a store that is measured.
#[derive(Clone)]
pub(crate) struct Shipping {
    pub(crate) remote: Arc<dyn RemoteStore>,
    pub(crate) ack: RemoteAck,
    pub(crate) interval_ms: u64,
}

/// Puts of one length, by several writers.
#[derive(Clone, Copy)]
pub(crate) struct PutLoad {
    pub(crate) bytes: usize,
    pub(crate) writers: usize,
    pub(crate) puts: u64,
}

/// Result of a [`PutLoad`].
pub(crate) struct Written {
    pub(crate) sample: Sample,
    /// Latencies of all puts in milliseconds, ascending.
    pub(crate) latencies_ms: Vec<f64>,
}

/// Opens a store; a replicated one has its first restore point afterwards.
pub(crate) fn open(
    folder: &Path,
    shipping: Option<Shipping>,
    segment_bytes: u64,
) -> Result<Store, String> {
    let mut options = OpenOptions::new(Create::IfMissing);
    options.segment_bytes = segment_bytes;
    options.compaction = None;
    options.replication = shipping.map(|it| ReplicationOptions {
        ack: it.ack,
        ship_interval_ms: it.interval_ms,
        ..ReplicationOptions::new(it.remote)
    });
    let is_replicated = options.replication.is_some();
    let (store, _) = Store::open_folder(folder, options).map_err(|error| error.to_string())?;
    if is_replicated {
        wait_until(&store, |it| it.is_complete && it.last_manifest_ms.is_some())?;
    }
    Ok(store)
}

/// Opens a replicated store without threads, of which at most `local_bytes_max` bytes are on this machine.
pub(crate) fn open_tiered(
    folder: &Path,
    remote: &Arc<dyn RemoteStore>,
    segment_bytes: u64,
    local_bytes_max: u64,
) -> Result<Store, String> {
    let mut replication = ReplicationOptions::new(Arc::clone(remote));
    replication.local_bytes_max = local_bytes_max;
    let mut options = OpenOptions::new(Create::IfMissing);
    options.segment_bytes = segment_bytes;
    options.background = Background::Manual;
    options.replication = Some(replication);
    let (store, _) = Store::open_folder(folder, options).map_err(|error| error.to_string())?;
    Ok(store)
}

/// Does the work of all threads: the first time that there is nothing else to do, segments are evicted.
pub(crate) fn step_all(store: &Store) -> Result<(), String> {
    let step = || {
        while store.step_rollover()? {}
        Ok::<_, engine::Error>([store.step_ship()?, store.step_replication_upkeep()?])
    };
    while step().map_err(|error| error.to_string())? != [ReplicationStep::Idle; 2] {}
    Ok(())
}

/// Returns the status of a replicated store.
pub(crate) fn status(store: &Store) -> Result<ReplicationStatus, String> {
    store.replication_status().ok_or_else(|| "the store is not replicated".to_owned())
}

/// Waits until a state of replication.
pub(crate) fn wait_until(
    store: &Store,
    is_done: impl Fn(&ReplicationStatus) -> bool,
) -> Result<(), String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let status = status(store)?;
        if is_done(&status) {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(format!("replication did not catch up: {status:?}"));
        }
        thread::sleep(LOOK);
    }
}

/// Waits until everything is shipped and uploads have ended: until this process is idle.
pub(crate) fn settle(store: &Store) -> Result<(), String> {
    wait_until(store, |it| it.shipped_lsn == it.last_lsn)?;
    let deadline = Instant::now() + UPLOAD_PATIENCE;
    loop {
        let before = process::own_cpu();
        thread::sleep(QUIET);
        if process::own_cpu() - before <= IDLE_CPU || Instant::now() >= deadline {
            return Ok(());
        }
    }
}

/// Puts objects with consecutive numbers as fast as the writers can.
pub(crate) fn put(store: &Store, load: PutLoad, next: &AtomicU64) -> Written {
    let end = next.load(Ordering::Relaxed) + load.puts;
    let (started, cpu) = (Instant::now(), process::own_cpu());
    let mut latencies_ms = Vec::new();
    thread::scope(|scope| {
        let writer = |writer: usize| {
            let mut body = data::bytes(SEED + writer as u64, load.bytes);
            let mut latencies_ms = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= end {
                    return latencies_ms;
                }
                body[..8].copy_from_slice(&number.to_le_bytes());
                let began = Instant::now();
                stores::put(store, data::name(SEED, number), &body);
                latencies_ms.push(began.elapsed().as_secs_f64() * 1e3);
            }
        };
        let writing: Vec<_> =
            (0..load.writers).map(|number| scope.spawn(move || writer(number))).collect();
        for thread in writing {
            latencies_ms.extend(thread.join().expect("a writer"));
        }
    });
    let sample = rounds::sample(load.puts, started.elapsed(), process::own_cpu() - cpu);
    // Each writer has taken one number in vain.
    next.store(end, Ordering::Relaxed);
    latencies_ms.sort_by(f64::total_cmp);
    Written { sample, latencies_ms }
}

/// Puts objects at a steady rate until `stop`. Returns their number.
pub(crate) fn put_paced(
    store: &Store,
    bytes: usize,
    per_second: u32,
    next: &AtomicU64,
    stop: &AtomicBool,
) -> u64 {
    let mut body = data::bytes(SEED, bytes);
    let (started, mut count) = (Instant::now(), 0_u32);
    while !stop.load(Ordering::Relaxed) {
        let due = Duration::from_secs(1) * count / per_second;
        thread::sleep(due.saturating_sub(started.elapsed()));
        let number = next.fetch_add(1, Ordering::Relaxed);
        body[..8].copy_from_slice(&number.to_le_bytes());
        stores::put(store, data::name(SEED, number), &body);
        count += 1;
    }
    count.into()
}

/// Reads random objects below `count` by several readers, while objects are put at a steady rate.
pub(crate) fn get_under_puts(
    store: &Store,
    readers: usize,
    length: Duration,
    (bytes, per_second): (usize, u32),
    next: &AtomicU64,
) -> Sample {
    let (stop, gets) = (AtomicBool::new(false), AtomicU64::new(0));
    let count = next.load(Ordering::Relaxed);
    thread::scope(|scope| {
        scope.spawn(|| put_paced(store, bytes, per_second, next, &stop));
        for reader in 0..readers {
            let (stop, gets) = (&stop, &gets);
            scope.spawn(move || {
                let mut chance = data::SeededRng::new(SEED + reader as u64);
                while !stop.load(Ordering::Relaxed) {
                    let number = chance.below(count);
                    assert_eq!(read(store, number).len(), bytes, "the whole object");
                    gets.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        thread::sleep(length / 5);
        let before = (gets.load(Ordering::Relaxed), Instant::now(), process::own_cpu());
        thread::sleep(length);
        let done = gets.load(Ordering::Relaxed) - before.0;
        let sample = rounds::sample(done, before.1.elapsed(), process::own_cpu() - before.2);
        stop.store(true, Ordering::Relaxed);
        sample
    })
}

/// Reads one object as a whole.
fn read(store: &Store, number: u64) -> impl Deref<Target = [u8]> + use<> {
    let object = store.get(&data::name(SEED, number)).expect("an index").expect("an object");
    let body = store.body(&object).expect("a body");
    body.read(0..body.bytes()).expect("bytes")
}

/// Returns whether the object is the one that was put with this number.
pub(crate) fn is_intact(store: &Store, number: u64, bytes: usize) -> bool {
    let body = read(store, number);
    body.len() == bytes && body.starts_with(&number.to_le_bytes())
}

/// Samples the age of the oldest write that is not in the remote store, until `stop`: from the status by LSN, and as
/// the status reports it. Returns both in milliseconds, ascending.
pub(crate) fn sample_lag(store: &Store, stop: &AtomicBool) -> Result<[Vec<f64>; 2], String> {
    let mut unshipped: VecDeque<(u64, Instant)> = VecDeque::new();
    let (mut ages, mut reported) = (Vec::new(), Vec::new());
    let mut previous = (0, Instant::now());
    while !stop.load(Ordering::Relaxed) {
        let now = Instant::now();
        let status = status(store)?;
        if status.last_lsn > previous.0 {
            // Written after the previous look.
            unshipped.push_back((status.last_lsn, previous.1));
        }
        previous = (status.last_lsn, now);
        while unshipped.front().is_some_and(|(lsn, _)| *lsn <= status.shipped_lsn) {
            unshipped.pop_front();
        }
        let age = unshipped.front().map_or(Duration::ZERO, |(_, since)| now - *since);
        ages.push(age.as_secs_f64() * 1e3);
        reported.push(status.lag_ms as f64);
        thread::sleep(LOOK);
    }
    ages.sort_by(f64::total_cmp);
    reported.sort_by(f64::total_cmp);
    Ok([ages, reported])
}

/// Returns the value below which this share of the ascending numbers lies; zero if there are none.
pub(crate) fn percentile(ascending: &[f64], share: f64) -> f64 {
    let at = (ascending.len() as f64 * share) as usize;
    ascending.get(at.min(ascending.len().saturating_sub(1))).copied().unwrap_or_default()
}
