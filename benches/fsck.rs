//! Throughput of `fsck --deep`, compared with a bare sequential read of the same files, and with the checksums alone:
//! a read by all processors that computes what the format requires for each body, CRC-32 and BLAKE3, and nothing else.
//! No check can be faster than that.
//!
//! Expected: each byte gets a CRC-32 and a BLAKE3, together about 0.2 ns a byte on one core with AVX-512, and is copied
//! once from the page cache at about 0.1 ns a byte: 2-4 GB/s of large objects, which is more than most disks deliver.
//! The index and the names cost a few microseconds an object, which dominates with small objects.
//!
//! All read files evicted from the page cache, as a check of a whole store does; and once more from the page cache,
//! which shows the CPU work alone.

use std::fs::File;
use std::hint::black_box;
use std::io::Read;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
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
        "checksums alone, GB/s",
        "bare read, GB/s",
        "fsck / read",
        "checksums / read",
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
            let measure = |read: &dyn Fn(&Path) -> u64| {
                if is_cold {
                    folder::drop_page_cache(folder.path()).expect("pages that can be forgotten");
                }
                timed(|| read(folder.path()))
            };
            let checksum = |folder: &Path| checksum_all(folder, size);
            read_all(folder.path());
            let turns =
                (0..rounds).map(|_| [&check as _, &checksum as _, &read_all as _].map(measure));
            let turns: Vec<[f64; 3]> = turns.collect();
            let figure = |of: fn(&[f64; 3]) -> f64| format!("{:.2}", median(turns.iter().map(of)));
            table.row(vec![
                table::bytes(size as u64),
                table::bytes(total),
                from.to_owned(),
                figure(|[checked, ..]| *checked),
                figure(|[_, checksums, _]| *checksums),
                figure(|[.., read]| *read),
                figure(|[checked, _, read]| checked / read),
                figure(|[_, checksums, read]| checksums / read),
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
    let report =
        fsck::check(&surroundings, CheckOptions { deep: true, ..CheckOptions::default() }, watch);
    let report = report.expect("a store that can be checked");
    assert!(report.is_clean(), "{report}");
    report.bytes
}

/// Reads all files on all processors, and computes the checksums of bodies of this size; returns the bytes read.
fn checksum_all(folder: &Path, size: usize) -> u64 {
    let parts = folder::files_below(folder).expect("a folder").into_iter().flat_map(|path| {
        let file = Arc::new(File::open(path).expect("a file"));
        let bytes = file.metadata().expect("its length").len();
        let starts = (0..bytes).step_by(READ_BYTES);
        starts.map(move |at| (file.clone(), at, (bytes - at).min(READ_BYTES as u64) as usize))
    });
    let waiting = Mutex::new(parts);
    let next = || waiting.lock().ok()?.next();
    let checksum_some = || {
        let mut buffer = vec![0; READ_BYTES];
        let mut bytes = 0;
        while let Some((file, at, length)) = next() {
            let part = &mut buffer[..length];
            file.read_exact_at(part, at).expect("its bytes");
            for body in part.chunks(size) {
                black_box((crc32fast::hash(body), blake3::hash(body)));
            }
            bytes += length as u64;
        }
        bytes
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> =
            (0..CheckOptions::workers_here()).map(|_| scope.spawn(checksum_some)).collect();
        workers.into_iter().map(|worker| worker.join().expect("all parts are read")).sum()
    })
}

fn read_all(folder: &Path) -> u64 {
    let mut buffer = vec![0; READ_BYTES];
    let mut bytes = 0;
    for path in folder::files_below(folder).expect("a folder") {
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
