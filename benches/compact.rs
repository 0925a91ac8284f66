//! Cost of compaction: reclaim rate, write amplification, and the effect on concurrent readers and writers.
//!
//! Expected: a segment of which a share d is dead is read once and its live part written once, so reclaiming one byte
//! costs (1 - d) / d bytes of copies; with the byte that takes its place the write amplification is 1 / d: 3.3, 2.0 and
//! 1.4 at 30, 50 and 70 % dead. Alone it is bound by checksums, copies through the page cache and the disk: some
//! hundred MB/s. At its default rate of 32 MiB/s it takes a few per cent of one core, so p99 of reads from memory
//! should not change, and p99 of durable writes only as far as its syncs delay theirs.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use benches::arguments::Arguments;
use benches::data::{self, SeededRng};
use benches::rounds::median;
use benches::table::{self, Table};
use benches::{folder, stores};
use engine::compaction::{CompactionReport, CompactionRules};
use engine::{Batch, Create, OpenOptions, PutOptions, Store};

const SEED: u64 = 5;
const OBJECT_BYTES: usize = 16 << 10;
const DEAD_PERCENTS: [u64; 3] = [30, 50, 70];
const RULES: CompactionRules =
    CompactionRules { store_dead_percent_min: 0, segment_dead_percent_min: 20 };

fn main() {
    let arguments = Arguments::read();
    let count = arguments.number("--objects").unwrap_or(60_000);
    let count = if arguments.quick { count.min(4_000) } else { count };
    let rounds = if arguments.quick { 1 } else { 3 };
    alone(&arguments, count, rounds);
    println!();
    concurrent(&arguments, count, rounds);
}

/// Fills a store with so many objects, a share of which is dead, spread evenly.
fn half_dead(folder: &Path, count: u64, dead_percent: u64) -> Store {
    let mut options = OpenOptions::new(Create::IfMissing);
    options.compaction = None;
    let (store, _) = Store::open_folder(folder, options).expect("a store");
    let body = data::bytes(SEED, OBJECT_BYTES);
    for first in (0..count).step_by(64) {
        let mut batch = Batch::new();
        for number in first..count.min(first + 64) {
            let staged = stores::stage(&store, &body);
            batch = batch.put(data::name(SEED, number), staged, PutOptions::default());
        }
        store.commit(batch).expect("a durable put");
    }
    for first in (0..count).step_by(64) {
        let mut batch = Batch::new();
        for number in (first..count.min(first + 64)).filter(|it| is_dead(*it, dead_percent)) {
            batch = batch.delete(data::name(SEED, number));
        }
        store.commit(batch).expect("a durable deletion");
    }
    store.close().expect("a closed store");
    drop(store);
    // The last written segment is compacted only once another one is active.
    let mut options = OpenOptions::new(Create::Never);
    options.compaction = None;
    let (store, _) = Store::open_folder(folder, options).expect("a store");
    stores::put(&store, data::name(SEED, count), &body);
    store.checkpoint().expect("a checkpoint");
    store
}

fn is_dead(number: u64, dead_percent: u64) -> bool {
    SeededRng::new(SEED ^ number.rotate_left(17)).below(100) < dead_percent
}

fn alone(arguments: &Arguments, count: u64, rounds: usize) {
    let head = [
        "dead",
        "copied",
        "given back",
        "write amplification",
        "theory",
        "copied, MB/s",
        "freed, MB/s",
    ];
    let mut table = Table::new(&head);
    for dead_percent in DEAD_PERCENTS {
        let (mut reports, mut seconds) = (Vec::<CompactionReport>::new(), Vec::new());
        for _ in 0..rounds {
            let folder = folder::make(&arguments.data_folder()).expect("a data folder");
            let store = half_dead(folder.path(), count, dead_percent);
            let started = Instant::now();
            let report = store.compact(RULES, None, &mut |_| ControlFlow::Continue(()));
            seconds.push(started.elapsed().as_secs_f64());
            reports.push(report.expect("a compaction"));
        }
        let of = |figure: fn(&CompactionReport) -> u64| {
            median(reports.iter().map(|report| figure(report) as f64))
        };
        let (copied, freed) = (of(|it| it.copied_bytes), of(|it| it.freed_bytes));
        let seconds = median(seconds);
        table.row(vec![
            format!("{dead_percent} %"),
            table::bytes(copied as u64),
            table::bytes(freed as u64),
            format!("{:.2}", (copied + freed) / freed),
            format!("{:.2}", 100.0 / dead_percent as f64),
            table::figure(copied / seconds / 1e6),
            table::figure(freed / seconds / 1e6),
        ]);
    }
    table.print();
}

/// Latencies in microseconds.
#[derive(Default)]
struct Latencies {
    reads: Vec<f64>,
    writes: Vec<f64>,
}

fn concurrent(arguments: &Arguments, count: u64, rounds: usize) {
    let length = Duration::from_millis(if arguments.quick { 300 } else { 4_000 });
    let (mut off, mut on) = (Vec::new(), Vec::new());
    let mut compacted = Vec::new();
    for _ in 0..rounds {
        let folder = folder::make(&arguments.data_folder()).expect("a data folder");
        let store = half_dead(folder.path(), count, 50);
        off.push(foreground(&store, count, length));
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let compaction =
                scope.spawn(|| {
                    store.compact(RULES, Some(32 << 20), &mut |_| match is_over
                        .load(Ordering::SeqCst)
                    {
                        true => ControlFlow::Break(()),
                        false => ControlFlow::Continue(()),
                    })
                });
            on.push(foreground(&store, count, length));
            is_over.store(true, Ordering::SeqCst);
            let ended = compaction.join().expect("a thread");
            compacted.push(f64::from(u8::from(ended.is_err())));
        });
    }
    let is_long_enough = median(compacted) > 0.0;
    let mut table = Table::new(&["", "p50, us", "p99, us", "p99 with / without"]);
    for (what, of) in [
        ("reads of 16 KiB", (|it| &it.reads) as fn(&Latencies) -> &Vec<f64>),
        ("durable writes of 16 KiB", |it| &it.writes),
    ] {
        let percentile = |all: &[Latencies], at: f64| median(all.iter().map(|it| nth(of(it), at)));
        for (label, all) in [("without", &off), ("with", &on)] {
            let ratios =
                off.iter().zip(&on).map(|(off, on)| nth(of(on), 0.99) / nth(of(off), 0.99));
            table.row(vec![
                format!("{what}, {label} compaction"),
                table::figure(percentile(all, 0.50)),
                table::figure(percentile(all, 0.99)),
                if label == "with" { format!("{:.2}", median(ratios)) } else { String::new() },
            ]);
        }
    }
    table.print();
    if !is_long_enough {
        println!("\nThe compaction ended before the measurement did: more --objects are needed.");
    }
}

/// Runs one reader and one writer for so long, both at a pace that leaves them idle time.
fn foreground(store: &Store, count: u64, length: Duration) -> Latencies {
    let started = Instant::now();
    let timed = |work: &mut dyn FnMut()| {
        let began = Instant::now();
        work();
        began.elapsed().as_secs_f64() * 1e6
    };
    let mut all = Latencies::default();
    std::thread::scope(|scope| {
        let reads = scope.spawn(|| {
            let mut chance = SeededRng::new(SEED + 1);
            let mut times = Vec::new();
            while started.elapsed() < length {
                let number = chance.below(count);
                if is_dead(number, 50) {
                    continue;
                }
                times.push(timed(&mut || {
                    let object = store.get(&data::name(SEED, number)).expect("an index");
                    let body = store.body(&object.expect("an object")).expect("a body");
                    let read = body.read(0..OBJECT_BYTES as u64).expect("bytes");
                    assert_eq!(read.len(), OBJECT_BYTES);
                }));
                std::thread::sleep(Duration::from_micros(200));
            }
            times
        });
        let body = data::bytes(SEED, OBJECT_BYTES);
        let mut number = count + 1;
        while started.elapsed() < length {
            all.writes.push(timed(&mut || stores::put(store, data::name(SEED, number), &body)));
            number += 1;
            std::thread::sleep(Duration::from_millis(1));
        }
        all.reads = reads.join().expect("a thread");
    });
    all
}

fn nth(times: &[f64], share: f64) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (sorted.len() as f64 * share) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
}
