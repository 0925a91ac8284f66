//! Time to open a store with a million objects after a crash, and to rebuild its index.
//!
//! Expected: the index was checkpointed at the latest 256 Ki changes or 5 seconds before the crash, so opening reads
//! redb's head (milliseconds, thanks to quick repair) and replays at most that much log: 0.1-0.5 s. Without the index
//! all million records are read and sorted into redb: about 3 us each in memory and as much in redb, 5-10 s. Memory
//! afterwards: the overlay at a few hundred bytes for each replayed object, and redb's cache (64 MiB).
//!
//! The store is filled by a child process that kills itself with SIGKILL; another child opens it, prints its
//! measurements, and ends the same way. The page cache is warm: this measures work, not the disk.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use benches::arguments::Arguments;
use benches::rounds::median;
use benches::table::{self, Table};
use benches::{data, folder, process, stores};
use engine::{Batch, BucketName, PutOptions};
use rustix::process::{Signal, getpid, kill_process};

const SEED: u64 = 3;
const BATCH: u64 = 256;
/// Figures that children print in one line, in this order.
const FIGURES: [&str; 5] = ["open, s", "replayed", "anonymous memory", "of files", "CPU, s"];

fn main() {
    let arguments = Arguments::read();
    let count = arguments.number("--objects").unwrap_or(1_000_000);
    let bytes = arguments.number("--bytes").unwrap_or(128) as usize;
    match (arguments.value("--fill"), arguments.value("--open")) {
        (Some(folder), _) => fill(Path::new(folder), count, bytes),
        (_, Some(folder)) => open(Path::new(folder), count),
        (None, None) => measure(&arguments, count, bytes),
    }
}

fn measure(arguments: &Arguments, count: u64, bytes: usize) {
    let count = if arguments.quick { count.min(50_000) } else { count };
    let rounds = if arguments.quick { 1 } else { 3 };
    let (mut crashed, mut rebuilt, mut filled) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let folder = folder::make(&arguments.data_folder()).expect("a data folder");
        let started = Instant::now();
        child("--fill", folder.path(), count, bytes);
        filled.push(started.elapsed().as_secs_f64());
        crashed.push(child("--open", folder.path(), count, bytes));
        std::fs::remove_file(folder.path().join("index.redb")).expect("an index to remove");
        rebuilt.push(child("--open", folder.path(), count, bytes));
        eprintln!("one round done");
    }
    let mut head = vec!["after", "objects"];
    head.extend(FIGURES);
    let mut table = Table::new(&head);
    for (label, rounds) in [("a kill", &crashed), ("a kill, index removed", &rebuilt)] {
        let mut row = vec![label.to_owned(), table::count(count as f64)];
        for figure in 0..FIGURES.len() {
            let middle = median(rounds.iter().map(|round| round[figure]));
            row.push(match figure {
                0 | 4 => format!("{middle:.3}"),
                1 => table::count(middle),
                _ => format!("{:.0} MiB", middle / f64::from(1 << 20)),
            });
        }
        table.row(row);
    }
    table.print();
    println!("\nFilling took {:.1} s ({bytes} bytes each, batches of {BATCH}).", median(filled));
}

/// Runs this program again with a command, until it is killed, and returns the figures that it printed.
fn child(order: &str, folder: &Path, count: u64, bytes: usize) -> Vec<f64> {
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args([order, &folder.to_string_lossy()])
        .args(["--objects", &count.to_string(), "--bytes", &bytes.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child");
    let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let lines: Vec<String> = lines.map_while(Result::ok).collect();
    let status = child.wait().expect("an ended child");
    assert!(status.code().is_none(), "the child ended by itself: {status}");
    let line = lines.last().map_or("", String::as_str);
    line.split_whitespace().map(|word| word.parse().expect("a figure")).collect()
}

fn fill(folder: &Path, count: u64, bytes: usize) {
    let (store, _) = stores::open(folder);
    let mut body = data::bytes(SEED, bytes.max(8));
    let batches = (0..count).step_by(BATCH as usize).map(|first| {
        (first..count.min(first + BATCH)).fold(Batch::new(), |batch, number| {
            body[..8].copy_from_slice(&number.to_le_bytes());
            let staged = stores::stage(&store, &body);
            batch.put(data::name(SEED, number), staged, PutOptions::default())
        })
    });
    stores::commit_all(&store, batches);
    die();
}

fn open(folder: &Path, count: u64) {
    let (started, cpu) = (Instant::now(), process::own_cpu());
    let (store, report) = stores::open(folder);
    let (seconds, cpu) = (started.elapsed().as_secs_f64(), process::own_cpu() - cpu);
    let (anonymous, of_files) = process::own_memory();
    let bucket = BucketName::parse("bench").expect("a valid bucket name");
    let usage = store.bucket_usage(&bucket).expect("counters");
    assert_eq!(usage.objects, count, "every acknowledged object is there: {report}");
    let replayed = report.replayed_records;
    println!("{seconds} {replayed} {anonymous} {of_files} {}", cpu.as_secs_f64());
    die();
}

/// Ends this process as a crash would: nothing is closed, flushed or dropped.
fn die() {
    let _ = kill_process(getpid(), Signal::KILL);
}
