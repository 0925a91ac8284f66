//! Durable puts per second of the engine, compared with a file per object, SQLite, and fjall.
//!
//! Expected: one `fdatasync` costs a few hundred microseconds on this class of disk for every contestant. A file per
//! object needs two of them (file, folder) and shares them only through the file system's journal; SQLite in WAL mode
//! with synchronous=FULL needs one for each put, one put at a time. The engine shares one among all waiting writers: 64
//! writers of 4 KiB should reach 10-30 thousand puts/s, ten times either peer. At 1 MiB the disk's bandwidth
//! decides, about 1 GiB/s here, and the peers write the same bytes twice (WAL) or with more metadata: 2 to 4 times.
//!
//! The second table shows a bare log with groups of as many objects: one thread that writes and syncs, the same with
//! write-back started early, two threads that overlap, and two that also copy and hash what they write, with half a
//! group each. This is the upper bound for an engine with one log.
//!
//! A put does the work of a server: hash, checksum, commit, wait. All write through the page cache. On a virtual
//! machine, memory that the host has not yet provided makes each written MiB cost 2.4 ms of CPU instead of 0.2: so
//! memory is touched first, and after each sample the written pages are evicted from the cache, for the next sample to
//! reuse the memory.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use benches::arguments::Arguments;
use benches::batched_fjall::BatchedFjall;
use benches::raw_log_baseline::{self, WRITE_STRATEGIES};
use benches::rounds::{self, Sample};
use benches::table::{self, Table};
use benches::{data, folder, process, stores};
use engine::{Store, limits};
use rusqlite::Connection;

const SEED: u64 = 1;
const SIZES: [usize; 3] = [4 << 10, 64 << 10, 1 << 20];
const WRITERS: [usize; 3] = [1, 16, 64];
const FOLDERS: u64 = 256;
/// Maximum bytes written per sample, approximately.
const MEMORY_BYTES: usize = 2 << 30;
/// Maximum bytes that all contestants of a row leave on the disk.
const ROOM_BYTES: u64 = 8 << 30;
/// The largest group, as the engine makes them.
const GROUP_BYTES_MAX: usize = limits::GROUP_BYTES_MAX as usize;

/// Puts one object after another, on one thread.
type Putter = Box<dyn FnMut(u64, &[u8]) + Send>;

/// Creates a contestant in an empty folder.
type Make = fn(&Path) -> Box<dyn Contestant>;

/// A store under test.
trait Contestant {
    fn putter(&self) -> Putter;
}

struct Engine(Store);
struct Files(PathBuf);
struct Sqlite(PathBuf);
struct Fjall(BatchedFjall);

fn main() -> ExitCode {
    let arguments = Arguments::read();
    if let Err(why) = folder::require_free_space(&arguments.data_folder(), ROOM_BYTES) {
        eprintln!("error: {why}");
        return ExitCode::FAILURE;
    }
    let (round_count, length) = if arguments.quick { (1, 200) } else { (5, 500) };
    let length = Duration::from_millis(length);
    let only_size = arguments.number("--size").map(|size| size as usize);
    let only_writers = arguments.number("--writers").map(|writers| writers as usize);
    // fjall continues to write after a sample, so it never runs together with the others.
    let peers: &[(&str, Make)] = match (arguments.has("--alone"), arguments.has("--fjall")) {
        (true, _) => &[],
        (false, true) => &[("fjall", Fjall::make)],
        (false, false) => &[("files", Files::make), ("SQLite", Sqlite::make)],
    };
    let contestants: Vec<Make> =
        [Engine::make as Make].into_iter().chain(peers.iter().map(|(_, make)| *make)).collect();
    process::touch_memory(MEMORY_BYTES);
    let mut head = vec!["object".to_owned(), "writers".to_owned(), "engine, puts/s".to_owned()];
    head.extend(peers.iter().map(|(label, _)| (*label).to_owned()));
    head.extend(peers.iter().map(|(label, _)| format!("engine / {label}")));
    head.push("CPU us per put: engine".to_owned());
    head.extend(peers.iter().map(|(label, _)| (*label).to_owned()));
    let mut table = Table::new(&head.iter().map(String::as_str).collect::<Vec<_>>());
    let mut bare = Table::new(&[
        "bare log, groups of",
        "objects of",
        "in turn, objects/s",
        "begun early",
        "overlapped",
        "with hashes",
    ]);
    for size in SIZES.into_iter().filter(|size| only_size.is_none_or(|only| only == *size)) {
        for writers in WRITERS.into_iter().filter(|w| only_writers.is_none_or(|only| only == *w)) {
            let folder = folder::make(&arguments.data_folder()).expect("a data folder");
            let made: Vec<_> = contestants.iter().map(|make| make(folder.path())).collect();
            let next = AtomicU64::new(0);
            let samples = rounds::interleaved(round_count, made.len(), |contestant| {
                let sample = measure(made[contestant].as_ref(), size, writers, length, &next);
                folder::drop_page_cache(folder.path()).expect("pages to forget");
                sample
            });
            table.row(row(size, writers, &samples));
            let group_bytes = (size * writers).min(GROUP_BYTES_MAX);
            if group_bytes > limits::WRITE_BYTES_MAX {
                bare.row(bare_row(round_count, folder.path(), group_bytes, size));
            }
            eprintln!("done: {} x {writers}", table::bytes(size as u64));
        }
    }
    table.print();
    println!();
    bare.print();
    ExitCode::SUCCESS
}

/// Measures a bare log with groups of this length.
fn bare_row(round_count: usize, folder: &Path, group_bytes: usize, size: usize) -> Vec<String> {
    let samples = rounds::interleaved(round_count, WRITE_STRATEGIES.len(), |way| {
        raw_log_baseline::fill(folder, WRITE_STRATEGIES[way], group_bytes as u64, size as u64)
            .expect("a bare log")
    });
    let mut row = vec![table::bytes(group_bytes as u64), table::bytes(size as u64)];
    row.extend(samples.iter().map(|samples| table::count(rounds::rate(samples))));
    row
}

/// Runs all writers, and counts the acknowledged puts in a window that starts after the warm-up.
fn measure(
    contestant: &dyn Contestant,
    size: usize,
    writers: usize,
    length: Duration,
    next: &AtomicU64,
) -> Sample {
    let (done, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for writer in 0..writers {
            let mut put = contestant.putter();
            let (done, stop) = (&done, &stop);
            scope.spawn(move || {
                let mut body = data::bytes(SEED + writer as u64, size);
                while !stop.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    body[..8].copy_from_slice(&number.to_le_bytes());
                    put(number, &body);
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        std::thread::sleep(length / 4);
        let before = (done.load(Ordering::Relaxed), Instant::now(), process::own_cpu());
        std::thread::sleep(length);
        let count = done.load(Ordering::Relaxed) - before.0;
        let sample = rounds::sample(count, before.1.elapsed(), process::own_cpu() - before.2);
        stop.store(true, Ordering::Relaxed);
        sample
    })
}

fn row(size: usize, writers: usize, samples: &[Vec<Sample>]) -> Vec<String> {
    let mut row = vec![table::bytes(size as u64), writers.to_string()];
    row.extend(samples.iter().map(|samples| table::count(rounds::rate(samples))));
    for peer in &samples[1..] {
        let (low, high) = rounds::spread(&samples[0], peer);
        let ratio = table::figure(rounds::ratio(&samples[0], peer));
        row.push(format!("{ratio} ({}-{})", table::figure(low), table::figure(high)));
    }
    row.extend(samples.iter().map(|samples| table::count(rounds::cpu_us(samples))));
    row
}

impl Engine {
    fn make(folder: &Path) -> Box<dyn Contestant> {
        Box::new(Self(stores::open(&folder.join("store")).0))
    }
}

impl Contestant for Engine {
    fn putter(&self) -> Putter {
        let store = self.0.clone();
        Box::new(move |number, body| stores::put(&store, data::name(SEED, number), body))
    }
}

impl Files {
    fn make(folder: &Path) -> Box<dyn Contestant> {
        for number in 0..FOLDERS {
            fs::create_dir_all(folder.join(number.to_string())).expect("a folder for files");
        }
        Box::new(Self(folder.to_owned()))
    }
}

impl Contestant for Files {
    fn putter(&self) -> Putter {
        let root = self.0.clone();
        Box::new(move |number, body| {
            let folder = root.join((number % FOLDERS).to_string());
            let (path, unfinished) =
                (folder.join(number.to_string()), folder.join(format!("{number}.new")));
            let mut file = File::create(&unfinished).expect("a new file");
            file.write_all(body).expect("a written file");
            file.sync_all().expect("a durable file");
            fs::rename(&unfinished, &path).expect("a renamed file");
            File::open(&folder).and_then(|folder| folder.sync_all()).expect("a durable name");
        })
    }
}

impl Fjall {
    fn make(folder: &Path) -> Box<dyn Contestant> {
        Box::new(Self(BatchedFjall::open(&folder.join("fjall"))))
    }
}

impl Contestant for Fjall {
    fn putter(&self) -> Putter {
        let mut put = self.0.putter();
        Box::new(move |number, body| put(data::key(SEED, number), body))
    }
}

impl Sqlite {
    fn make(folder: &Path) -> Box<dyn Contestant> {
        let made = Self(folder.join("objects.sqlite"));
        let table = "CREATE TABLE objects (key TEXT PRIMARY KEY, body BLOB NOT NULL)";
        made.connect().execute(table, ()).expect("a new table");
        Box::new(made)
    }

    fn connect(&self) -> Connection {
        let connection = Connection::open(&self.0).expect("a database");
        connection.busy_timeout(Duration::from_secs(120)).expect("a busy timeout");
        connection.pragma_update(None, "journal_mode", "WAL").expect("a write-ahead log");
        connection.pragma_update(None, "synchronous", "FULL").expect("full durability");
        connection
    }
}

impl Contestant for Sqlite {
    fn putter(&self) -> Putter {
        let connection = self.connect();
        Box::new(move |number, body| {
            let mut put = connection
                .prepare_cached("INSERT INTO objects (key, body) VALUES (?1, ?2)")
                .expect("a statement");
            put.execute((data::key(SEED, number), body)).expect("a durable row");
        })
    }
}
