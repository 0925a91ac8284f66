//! Throughput of `fsck --deep`, compared with a bare sequential read of the same files.
//!
//! Expected: each byte gets a CRC-32 and a BLAKE3, together about 0.2 ns a byte on one core with AVX-512, and is copied
//! once from the page cache at about 0.1 ns a byte: 2-4 GB/s of large objects, which is more than most disks deliver.
//! The index and the names cost a few microseconds an object, which dominates with small objects.
//!
//! Both read files evicted from the page cache, as a check of a whole store does; and once more from the page cache,
//! which shows the CPU work alone.

use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use benches::arguments::Arguments;
use benches::rounds::median;
use benches::table::{self, Table};
use benches::{data, folder, stores};
use engine::fsck::{self, CheckOptions};
use engine::{Environment, RealDisk};

const SEED: u64 = 5;
const SIZES: [usize; 3] = [4 << 10, 256 << 10, 16 << 20];
/// Bytes per call of the bare read.
const READ_BYTES: usize = 1 << 20;

fn main() {
    let arguments = Arguments::read();
    let mib = arguments.number("--mib").unwrap_or(if arguments.quick { 64 } else { 2_048 });
    let total = mib << 20;
    let rounds = if arguments.quick { 1 } else { 5 };
    let mut table = Table::new(&[
        "objects of",
        "store",
        "from",
        "fsck --deep, GB/s",
        "bare read, GB/s",
        "ratio",
    ]);
    for size in SIZES {
        let folder = folder::make(&arguments.data_folder()).expect("a data folder");
        let (store, _) = stores::open(folder.path());
        let body = data::bytes(SEED, size);
        for number in 0..total / size as u64 {
            stores::put(&store, data::name(SEED, number), &body);
        }
        store.close().expect("a closed store");
        drop(store);
        for (from, is_cold) in [("disk", true), ("memory", false)] {
            let read_at_once = |read: fn(&Path) -> u64| {
                if is_cold {
                    folder::drop_page_cache(folder.path()).expect("pages that can be forgotten");
                }
                timed(|| read(folder.path()))
            };
            read_all(folder.path());
            let turns = (0..rounds).map(|_| (read_at_once(check), read_at_once(read_all)));
            let turns: Vec<(f64, f64)> = turns.collect();
            table.row(vec![
                table::bytes(size as u64),
                table::bytes(total),
                from.to_owned(),
                format!("{:.2}", median(turns.iter().map(|(checked, _)| *checked))),
                format!("{:.2}", median(turns.iter().map(|(_, read)| *read))),
                format!("{:.2}", median(turns.iter().map(|(checked, read)| checked / read))),
            ]);
        }
    }
    table.print();
}

/// Returns the GB/s of work that returns the number of bytes it read.
fn timed(work: impl FnOnce() -> u64) -> f64 {
    let started = Instant::now();
    let bytes = work();
    bytes as f64 / 1e9 / started.elapsed().as_secs_f64()
}

fn check(folder: &Path) -> u64 {
    let disk = RealDisk::open_existing(folder).expect("the folder");
    let surroundings = Environment::new(Arc::new(disk));
    let watch = &mut |_| ControlFlow::Continue(());
    let report = fsck::check(
        &surroundings,
        CheckOptions { deep: true, derived_bucket: None, workers: CheckOptions::workers_here() },
        watch,
    );
    let report = report.expect("a store that can be checked");
    assert!(report.is_clean(), "{report}");
    report.bytes
}

fn read_all(folder: &Path) -> u64 {
    let mut buffer = vec![0; READ_BYTES];
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("a name").path();
        if path.is_dir() {
            bytes += read_all(&path);
            continue;
        }
        let mut file = File::open(path).expect("a file");
        loop {
            match file.read(&mut buffer).expect("its bytes") {
                0 => break,
                read => bytes += read as u64,
            }
        }
    }
    bytes
}
