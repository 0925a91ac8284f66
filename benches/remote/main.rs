//! Cost of replication, against the same store without it: puts, GETs, memory; and what it achieves: lag, the rate of
//! puts that the remote store confirms, requests, the time of a restore, and reads of files that are only there.
//!
//! Expected: shipping reads each group once more from the page cache, hashes it and sends it, on one thread: 0.97 of
//! the puts/s, as far as the remote store has processors of its own. GETs share nothing with it: 0.99. The oldest write
//! that is not in the remote store is as old as the pause between two chunks and the creation of one: 1.1 s at the
//! default of one second. Puts that the remote store must confirm wait for 1.5 creations on average, which they share:
//! some thousand per second. At 100 puts/s and one chunk per second a million puts make 10,000 requests. Memory is one
//! chunk of at most 8 MiB, its copy in the HTTP client, and a part of 8 MiB of a segment. A read of a file that is only
//! in the remote store is one request, of 256 KiB instead of 4 KiB, a write and a checksum: 1.3 of a bare request.
//! Whole files of 1 MiB share units with their neighbours: 1.2 of their bytes.
//!
//! The remote store is a Ceph radosgw that the benchmark starts, or the one of `TRUG_BENCH_REMOTE_URL`. On the same
//! machine it takes processors and disk from the store that is measured; CPU per operation is that of this process
//! alone. The floors of the ratios therefore apply to a remote store that discards what it receives: it costs one copy
//! of each byte, like sending to another machine. The rows with Ceph show both on the same processors. Puts are shipped
//! at intervals of 0.1 s instead of 1 s in the ratios of puts, so that shipping is under way in every sample, and a
//! round is over when everything is shipped. Memory is that of child processes.
//!
//! `--only WORD` measures the stores whose names contain a word: `puts`, `gets`, `lag`, `ack`, `paced`, `cold`,
//! `on-demand`, `memory`.

mod cold_reads;
mod discarding_store;
mod on_demand;
mod ratios;
mod remote_target;
mod store_load;

use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use benches::arguments::Arguments;
use benches::rounds::{self, Sample, median};
use benches::table::{self, Table};
use benches::{folder, process, stores};
use engine::remote::RemoteStore;
use engine::replication::{self, RemoteAck};
use engine::{RealDisk, Store, limits};

use self::remote_target::RemoteTarget;
use self::store_load::{PutLoad, Shipping, percentile};

/// Names of the replicated stores in the remote store.
const STORES: [&str; 12] = [
    "puts-4",
    "puts-64",
    "gets",
    "lag",
    "ack-64",
    "ack-512",
    "paced",
    "cold",
    "on-demand",
    "memory-0",
    "memory-1",
    "memory-2",
];
const SMALL: usize = 4 << 10;
const LARGE: usize = 64 << 10;
const WRITERS: usize = 64;
/// Interval of shipping that makes it continuous in a sample.
const SHORT_INTERVAL_MS: u64 = 100;
/// Small segments for the measurement of memory: some are uploaded.
const MEMORY_SEGMENT_BYTES: u64 = 32 << 20;
const MEMORY_LOAD: PutLoad = PutLoad { bytes: LARGE, writers: WRITERS, puts: 1_600 };
const LOOK: Duration = Duration::from_millis(5);
/// Maximum bytes on the disk, of which Ceph writes two thirds.
const ROOM_BYTES: u64 = 6 << 30;
const MIB: f64 = (1 << 20) as f64;

/// Limit of a figure.
enum Floor {
    AtLeast(f64),
    AtMost(f64),
}

/// Measured figures, and those beyond their floor.
struct Figures {
    table: Table,
    missed: Vec<String>,
}

/// Amounts of a run.
struct Amounts {
    rounds: usize,
    /// Rounds of a ratio, whose single rounds differ by a quarter.
    ratio_rounds: usize,
    /// Divisor of the numbers of puts.
    share: u64,
    sample: Duration,
    paced: Duration,
    /// Word in the names of the stores to measure; `None`: all.
    only: Option<String>,
}

fn main() -> ExitCode {
    let arguments = Arguments::read();
    if let Some(folder) = arguments.value("--memory") {
        return Arguments::run("remote", |_| hold_memory(Path::new(folder), &arguments));
    }
    Arguments::run("remote", run)
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let parent = arguments.data_folder();
    folder::require_free_space(&parent, ROOM_BYTES)?;
    let only = arguments.value("--only").map(str::to_owned);
    let amounts = if arguments.quick {
        Amounts {
            rounds: 1,
            ratio_rounds: 1,
            share: 10,
            sample: Duration::from_millis(200),
            paced: Duration::from_secs(3),
            only,
        }
    } else {
        Amounts {
            rounds: 5,
            ratio_rounds: 25,
            share: 1,
            sample: Duration::from_secs(1),
            paced: Duration::from_secs(20),
            only,
        }
    };
    let target = RemoteTarget::find()?;
    println!("remote store: {}; load average before: {}\n", target.description(), load_average());
    let head = ["measurement", "with", "without", "figure", "floor", "CPU us: with", "without"];
    let mut figures = Figures { table: Table::new(&head), missed: Vec::new() };
    let measured = measure(&target, &parent, &amounts, &mut figures);
    figures.table.print();
    println!("\nload average after: {}", load_average());
    target.clear()?;
    measured?;
    if arguments.quick || figures.missed.is_empty() {
        return Ok(());
    }
    Err(format!("floors missed: {}", figures.missed.join(", ")))
}

fn measure(
    target: &RemoteTarget,
    parent: &Path,
    amounts: &Amounts,
    figures: &mut Figures,
) -> Result<(), String> {
    for store in amounts.stores() {
        match store {
            "puts-4" | "puts-64" | "gets" => {
                ratios::measure(target, parent, amounts, figures, store)
            }
            "lag" => measure_lag_and_restore(target, parent, amounts, figures),
            "ack-64" => {
                measure_remote_ack(target, parent, amounts, figures, (store, WRITERS, 8_000))
            }
            "ack-512" => measure_remote_ack(target, parent, amounts, figures, (store, 512, 20_000)),
            "paced" => count_requests(target, parent, amounts, figures),
            "cold" => cold_reads::measure(target, parent, amounts, figures),
            "on-demand" => on_demand::measure(target, parent, amounts, figures),
            "memory-0" => compare_memory(target, parent, amounts, figures),
            // Further rounds of it.
            _ => Ok(()),
        }?;
    }
    Ok(())
}

impl Amounts {
    /// Returns the names of the stores to measure.
    fn stores(&self) -> impl Iterator<Item = &'static str> {
        STORES.into_iter().filter(|name| self.only.as_ref().is_none_or(|only| name.contains(only)))
    }
}

impl Figures {
    /// Adds a row, and notes whether the figure is beyond its floor.
    fn add(
        &mut self,
        label: &str,
        [with, without]: [String; 2],
        figure: (f64, String),
        floor: Option<Floor>,
    ) {
        self.add_with_cpu(label, [with, without], figure, floor, [String::new(), String::new()]);
    }

    fn add_with_cpu(
        &mut self,
        label: &str,
        [with, without]: [String; 2],
        (figure, text): (f64, String),
        floor: Option<Floor>,
        [cpu_with, cpu_without]: [String; 2],
    ) {
        let (is_missed, floor) = match floor {
            None => (false, String::new()),
            Some(Floor::AtLeast(floor)) => (figure < floor, format!(">= {}", table::figure(floor))),
            Some(Floor::AtMost(floor)) => (figure > floor, format!("<= {}", table::figure(floor))),
        };
        if is_missed {
            self.missed.push(format!("{label}: {text}, floor {floor}"));
        }
        eprintln!("{label}: {with} with, {without} without: {text} (floor {floor})");
        self.table.row(vec![label.to_owned(), with, without, text, floor, cpu_with, cpu_without]);
    }

    /// Adds the ratio of the rates of two stores.
    fn add_ratio(&mut self, label: &str, [with, without]: [&[Sample]; 2], floor: Option<Floor>) {
        let (low, high) = rounds::spread(with, without);
        let ratio = rounds::ratio(with, without);
        let text = format!("{ratio:.3} ({low:.2}-{high:.2})");
        self.add_with_cpu(
            label,
            [with, without].map(|it| format!("{}/s", table::count(rounds::rate(it)))),
            (ratio, text),
            floor,
            [with, without].map(|it| table::figure(rounds::cpu_us(it))),
        );
    }
}

/// Lag with local acknowledgement under full load; then a restore of the same store.
fn measure_lag_and_restore(
    target: &RemoteTarget,
    parent: &Path,
    amounts: &Amounts,
    figures: &mut Figures,
) -> Result<(), String> {
    let folder = folder::make(parent).map_err(text)?;
    let store = open_local_ack(target.connect("lag")?, folder.path(), limits::SHIP_INTERVAL_MS)?;
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let load = PutLoad { bytes: SMALL, writers: WRITERS, puts: 60_000 / amounts.share };
    let (written, lag) = thread::scope(|scope| {
        let sampling = scope.spawn(|| store_load::sample_lag(&store, &stop));
        let written = store_load::put(&store, load, &next);
        stop.store(true, Ordering::Relaxed);
        (written, sampling.join().expect("a sampler"))
    });
    let [ages, reported] = lag?;
    let rate = format!("{} puts/s", table::count(written.sample.per_second));
    let floor = Floor::AtMost(2.0 * limits::SHIP_INTERVAL_MS as f64);
    let label = "oldest write not shipped, p99, ms";
    let p99 = percentile(&ages, 0.99);
    figures.add(label, [rate.clone(), String::new()], (p99, table::figure(p99)), Some(floor));
    let p99 = percentile(&reported, 0.99);
    figures.add("the same as reported", [rate, String::new()], (p99, table::figure(p99)), None);
    store_load::settle(&store)?;
    close([store])?;
    restore(target, &folder.path().join("restored"), load, figures)
}

/// Restores the store of the name `lag`, and opens it.
fn restore(
    target: &RemoteTarget,
    folder: &Path,
    load: PutLoad,
    figures: &mut Figures,
) -> Result<(), String> {
    let remote = target.connect("lag")?;
    let disk = RealDisk::open(folder).map_err(text)?;
    let started = Instant::now();
    let mut watch = |_| ControlFlow::Continue(());
    let report = replication::restore(remote.as_ref(), &disk, None, &mut watch);
    let report = report.map_err(|error| error.to_string())?;
    let seconds = started.elapsed().as_secs_f64();
    if report.damage_count > 0 {
        return Err(format!("the restore found damage: {:?}", report.damage));
    }
    let started = Instant::now();
    let (store, _) = stores::open(folder);
    let opened = started.elapsed().as_secs_f64();
    if let Some(lost) = (0..load.puts).find(|it| !store_load::is_intact(&store, *it, load.bytes)) {
        return Err(format!("object {lost} is lost or differs after the restore"));
    }
    let (rate, count) = (report.bytes as f64 / 1e6 / seconds, table::count(load.puts as f64));
    let label = format!("restore of {count} objects, MB/s");
    let with = format!("{seconds:.2} s, {} chunks, {} segments", report.chunks, report.segments);
    figures.add(&label, [with, String::new()], (rate, table::figure(rate)), None);
    figures.add("opening it, s", Default::default(), (opened, table::figure(opened)), None);
    close([store])
}

/// Puts that the remote store confirms.
fn measure_remote_ack(
    target: &RemoteTarget,
    parent: &Path,
    amounts: &Amounts,
    figures: &mut Figures,
    (name, writers, puts): (&str, usize, u64),
) -> Result<(), String> {
    let folder = folder::make(parent).map_err(text)?;
    let remote = target.connect(name)?;
    let shipping =
        Shipping { remote, ack: RemoteAck::Remote, interval_ms: limits::SHIP_INTERVAL_MS };
    let store = store_load::open(folder.path(), Some(shipping), limits::SEGMENT_BYTES_MAX)?;
    let next = AtomicU64::new(0);
    let load = PutLoad { bytes: SMALL, writers, puts: puts / amounts.share };
    store_load::put(&store, PutLoad { puts: load.puts / 8, ..load }, &next);
    let before = store_load::status(&store)?.chunk;
    let written = store_load::put(&store, load, &next);
    let chunks = (store_load::status(&store)?.chunk - before).max(1);
    let (rate, times) = (written.sample.per_second, written.latencies_ms);
    let has_floor = writers == WRITERS;
    let label = format!("remote ack, {writers} writers of 4 KiB, puts/s");
    let with = format!("{} puts per chunk", table::figure(load.puts as f64 / chunks as f64));
    let floor = has_floor.then_some(Floor::AtLeast(2_000.0));
    figures.add(&label, [with, String::new()], (rate, table::count(rate)), floor);
    let with = format!("p50 {}", table::figure(percentile(&times, 0.5)));
    let p99 = percentile(&times, 0.99);
    let floor = has_floor.then_some(Floor::AtMost(150.0));
    let label = format!("remote ack, {writers} writers of 4 KiB, p99 in ms");
    figures.add(&label, [with, String::new()], (p99, table::figure(p99)), floor);
    close([store])
}

/// Requests for a million puts at a steady rate.
fn count_requests(
    target: &RemoteTarget,
    parent: &Path,
    amounts: &Amounts,
    figures: &mut Figures,
) -> Result<(), String> {
    let folder = folder::make(parent).map_err(text)?;
    let store = open_local_ack(target.connect("paced")?, folder.path(), limits::SHIP_INTERVAL_MS)?;
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let total = || -> Result<u64, String> {
        let counts = store_load::status(&store)?.requests;
        Ok(counts.succeeded.iter().chain(&counts.failed).sum())
    };
    // The first manifest, collection and probe are over.
    store_load::settle(&store)?;
    store_load::wait_until(&store, |it| it.properties.is_some())?;
    let before = total()?;
    let puts = thread::scope(|scope| {
        let putting = scope.spawn(|| store_load::put_paced(&store, SMALL, 100, &next, &stop));
        thread::sleep(amounts.paced);
        stop.store(true, Ordering::Relaxed);
        putting.join().expect("a writer")
    });
    store_load::settle(&store)?;
    let requests = total()? - before;
    let million = requests as f64 * 1e6 / puts.max(1) as f64;
    let with = format!("{requests} for {} puts", table::count(puts as f64));
    let label = "requests per million puts of 4 KiB at 100/s";
    let floor = Some(Floor::AtMost(12_000.0));
    figures.add(label, [with, String::new()], (million, table::count(million)), floor);
    close([store])
}

/// Peak memory with shipping, less that without.
fn compare_memory(
    target: &RemoteTarget,
    parent: &Path,
    amounts: &Amounts,
    figures: &mut Figures,
) -> Result<(), String> {
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for name in STORES.iter().filter(|name| name.starts_with("memory")).take(amounts.rounds) {
        with.push(memory_of_child(target, parent, Some(name))? / MIB);
        without.push(memory_of_child(target, parent, None)? / MIB);
    }
    let more = median(with.iter().zip(&without).map(|(with, without)| with - without));
    let label = "memory of shipping 64 KiB by 64 writers, MiB";
    let sides = [with, without].map(|it| table::figure(median(it)));
    figures.add(label, sides, (more, table::figure(more)), Some(Floor::AtMost(32.0)));
    Ok(())
}

/// Returns the peak of the anonymous memory in bytes of a process with a store, replicated if it has a name.
fn memory_of_child(
    target: &RemoteTarget,
    parent: &Path,
    name: Option<&str>,
) -> Result<f64, String> {
    let folder = folder::make(parent).map_err(text)?;
    let mut child = Command::new(std::env::current_exe().map_err(text)?);
    child.arg("--memory").arg(folder.path()).envs(target.environment());
    if let Some(name) = name {
        child.args(["--name", name]);
    }
    let output = child.output().map_err(text)?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let printed = String::from_utf8_lossy(&output.stdout);
    printed.trim().parse().map_err(|_| format!("it printed: {printed}"))
}

/// Puts objects, as the child of [`memory_of_child`], and prints the peak of the memory.
fn hold_memory(folder: &Path, arguments: &Arguments) -> Result<(), String> {
    let target = RemoteTarget::of_environment("")?;
    let shipping = match arguments.value("--name") {
        None => None,
        Some(name) => Some(Shipping {
            remote: target.connect(name)?,
            ack: RemoteAck::Local,
            interval_ms: SHORT_INTERVAL_MS,
        }),
    };
    let is_replicated = shipping.is_some();
    let store = store_load::open(folder, shipping, MEMORY_SEGMENT_BYTES)?;
    let stop = AtomicBool::new(false);
    let peak = thread::scope(|scope| {
        let looking = scope.spawn(|| {
            let mut peak = 0;
            while !stop.load(Ordering::Relaxed) {
                peak = peak.max(process::own_memory().0);
                thread::sleep(LOOK);
            }
            peak
        });
        store_load::put(&store, MEMORY_LOAD, &AtomicU64::new(0));
        let settled = if is_replicated { store_load::settle(&store) } else { Ok(()) };
        stop.store(true, Ordering::Relaxed);
        let peak = looking.join().map_err(|_| "the sampler panicked".to_owned());
        settled.and(peak)
    })?;
    println!("{peak}");
    close([store])
}

/// Opens a store that is replicated with local acknowledgement.
fn open_local_ack(
    remote: Arc<dyn RemoteStore>,
    folder: &Path,
    interval_ms: u64,
) -> Result<Store, String> {
    let shipping = Shipping { remote, ack: RemoteAck::Local, interval_ms };
    let folder = folder.join("replicated");
    store_load::open(&folder, Some(shipping), limits::SEGMENT_BYTES_MAX)
}

fn close<const N: usize>(stores: [Store; N]) -> Result<(), String> {
    stores.into_iter().try_for_each(|store| store.close().map_err(|error| error.to_string()))
}

/// Returns the numbers of runnable tasks in the last minute, five minutes and fifteen minutes.
fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

fn text(error: std::io::Error) -> String {
    error.to_string()
}
