//! Puts, GETs, ranges and listings of objects, by trug and other object servers.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use benches::arguments::Arguments;
use benches::data::SeededRng;
use benches::http_connection::Wire;
use benches::put_load::{self, PutRequests, Window};
use benches::rounds::{self, Sample};
use benches::server::{Load, require_program};
use benches::table::{self, Table};
use benches::{folder, process};

use super::contestant::{self, Contestant, Peer};
use super::object_api::{self, PAGE};
use super::{garage, radosgw, swift, webdav};

const PEERS: [Peer; 5] =
    [webdav::PEER, radosgw::PEER, swift::PEER, garage::UNSYNCED, garage::SYNCED];
const CONNECTIONS: usize = 16;
const SEED: u64 = 31;
/// Folder, object length in bytes, and number of the objects that are read.
const SETS: [(&str, usize, u64); 3] =
    [("small", 4 << 10, 10_000), ("medium", 64 << 10, 2_000), ("large", 1 << 20, 200)];
/// Length of the object whose ranges are read, in bytes.
const RANGED_BYTES: usize = 64 << 20;
const RANGE_BYTES: u64 = 64 << 10;
/// Different requests of a load of GETs.
const REQUESTS_MAX: u64 = 4_000;
/// Maximum length of all puts in the window of a round, in bytes: the disk decides otherwise.
const ROUND_BYTES_MAX: u64 = 128 << 20;
/// Maximum length of all files, in bytes.
const DISK_BYTES: u64 = 10 << 30;
/// Memory that is touched first, in bytes.
const MEMORY_BYTES: usize = 2 << 30;

/// Work of a row of the table of reads.
#[derive(Clone, Copy)]
enum Read {
    /// Objects of a set.
    Objects(usize),
    /// Ranges of the large object.
    Ranges,
    /// Pages of the names of the first set.
    Pages,
}

const READS: [Read; 5] =
    [Read::Objects(0), Read::Objects(1), Read::Objects(2), Read::Ranges, Read::Pages];

/// Numbers of rounds and durations of samples.
struct Amounts {
    put_rounds: usize,
    put_length: Duration,
    read_rounds: usize,
    read_seconds: u64,
    /// Divisor of the numbers of objects.
    share: u64,
}

/// Measures all servers that are installed.
pub(crate) fn measure(arguments: &Arguments) -> Result<(), String> {
    require_program("wrk", "on Debian, apt-get install wrk")?;
    let parent = arguments.data_folder();
    folder::require_free_space(&parent, DISK_BYTES)?;
    let folder = folder::make(&parent).map_err(text)?;
    let amounts = Amounts::of(arguments);
    let (contestants, missing) = start_all(arguments, folder.path())?;
    let all: Vec<&Contestant> = contestants.iter().collect();
    let readers: Vec<&Contestant> = contestants.iter().filter(|it| it.is_read).collect();
    for contestant in &readers {
        let began = Instant::now();
        fill(contestant, &amounts).map_err(|why| format!("{}: {why}", contestant.label))?;
        eprintln!("{}: filled in {:.1} s", contestant.label, began.elapsed().as_secs_f64());
    }
    process::touch_memory(MEMORY_BYTES);
    let mut puts = Table::new(&[
        "put, 16 connections",
        "server",
        "acknowledged when",
        "puts/s",
        "MB/s",
        "CPU us",
        "trug's ratio",
    ]);
    for (_, bytes, _) in SETS {
        measure_puts(&all, bytes, &amounts, folder.path(), &mut puts)?;
    }
    let mut reads = Table::new(&[
        "read, 16 connections",
        "server",
        "requests/s",
        "MB/s",
        "CPU us",
        "trug's ratio",
    ]);
    for read in READS {
        measure_reads(&readers, read, &amounts, folder.path(), &mut reads)?;
    }
    puts.print();
    println!();
    reads.print();
    for peer in missing {
        println!("\n{}: not installed: {}", peer.label, peer.install);
    }
    Ok(())
}

impl Amounts {
    fn of(arguments: &Arguments) -> Self {
        let (put_length, read_length) = (Duration::from_secs(1), 2);
        match arguments.quick {
            true => Self {
                put_rounds: 1,
                put_length: put_length / 4,
                read_rounds: 1,
                read_seconds: 1,
                share: 8,
            },
            false => Self {
                put_rounds: 3,
                put_length,
                read_rounds: 3,
                read_seconds: read_length,
                share: 1,
            },
        }
    }

    /// Returns the number of objects in a set.
    fn count(&self, set: usize) -> u64 {
        let (_, _, count) = SETS[set];
        count / self.share
    }
}

/// Starts trug and the peers that are installed, each in a folder of its own. Returns the others, too.
fn start_all(arguments: &Arguments, folder: &Path) -> Result<(Vec<Contestant>, Vec<Peer>), String> {
    let own = |name: &str| {
        let own = folder.join(name);
        fs::create_dir(&own).map(|()| own).map_err(text)
    };
    let mut contestants = Vec::from(contestant::trug(arguments, &own("trug")?)?);
    let mut missing = Vec::new();
    for (number, peer) in PEERS.into_iter().enumerate() {
        if (peer.is_installed)() {
            let started = (peer.start)(&own(&number.to_string())?);
            contestants.push(started.map_err(|why| format!("{}: {why}", peer.label))?);
        } else {
            missing.push(peer);
        }
    }
    Ok((contestants, missing))
}

/// Puts the objects that are read.
fn fill(contestant: &Contestant, amounts: &Amounts) -> Result<(), String> {
    for (set, (folder, bytes, _)) in SETS.into_iter().enumerate() {
        put_all(contestant, folder, bytes, amounts.count(set))?;
    }
    put_all(contestant, "ranged", RANGED_BYTES, 1)
}

fn put_all(contestant: &Contestant, folder: &str, bytes: usize, count: u64) -> Result<(), String> {
    let head = |number, body_bytes| contestant.api.put(&name(folder, number), body_bytes);
    put_load::fill(&contestant.requests(bytes, &head), CONNECTIONS, count)
}

/// Returns the name of an object.
fn name(folder: &str, number: u64) -> String {
    format!("{folder}/{}", file_name(number))
}

fn file_name(number: u64) -> String {
    format!("{number:07}.bin")
}

impl Contestant {
    fn requests<'a>(
        &'a self,
        bytes: usize,
        head: &'a dyn Fn(u64, usize) -> String,
    ) -> PutRequests<'a> {
        PutRequests { address: self.server.address(), bytes, frame: self.api.frame(), head }
    }
}

/// Adds the rows of puts of a length.
fn measure_puts(
    contestants: &[&Contestant],
    bytes: usize,
    amounts: &Amounts,
    folder: &Path,
    table: &mut Table,
) -> Result<(), String> {
    let window = Window { length: amounts.put_length, puts_max: ROUND_BYTES_MAX / bytes as u64 };
    let mut next = vec![0; contestants.len()];
    let samples = in_turns(contestants, amounts.put_rounds, |turn| {
        let contestant = &contestants[turn];
        let names = format!("puts-{}-{bytes}", contestant.is_s3);
        let head = |number, body_bytes| contestant.api.put(&name(&names, number), body_bytes);
        let requests = contestant.requests(bytes, &head);
        let server = &contestant.server;
        let sample = put_load::measure(server, &requests, CONNECTIONS, window, &mut next[turn])?;
        // What a server left in the page cache is not written in the turn of another one.
        let root = fs::File::open(folder).map_err(text)?;
        rustix::fs::syncfs(&root).map_err(|error| error.to_string())?;
        Ok(sample)
    })?;
    for (at, contestant) in contestants.iter().enumerate() {
        let own = &samples[at];
        let mut row = vec![
            table::bytes(bytes as u64),
            contestant.label.to_owned(),
            contestant.durability.label().to_owned(),
        ];
        row.extend(figures(own, Some(bytes as u64)));
        row.push(ratio(contestants, &samples, at));
        table.row(row);
    }
    Ok(())
}

/// Adds the rows of a kind of reads.
fn measure_reads(
    contestants: &[&Contestant],
    read: Read,
    amounts: &Amounts,
    folder: &Path,
    table: &mut Table,
) -> Result<(), String> {
    let can = |it: &Contestant| !matches!(read, Read::Pages) || it.api.list("", "").is_some();
    for contestant in contestants.iter().filter(|it| can(it)) {
        check(contestant, read, amounts)?;
    }
    let samples = in_turns(contestants, amounts.read_rounds, |turn| {
        let contestant = &contestants[turn];
        if !can(contestant) {
            return Ok(Sample::default());
        }
        let script = object_api::script(&read.requests(contestant, amounts));
        let load = Load {
            path: "/",
            script: Some(script),
            connections: CONNECTIONS as u32,
            seconds: amounts.read_seconds,
        };
        contestant.server.load(folder, &load)
    })?;
    for (at, contestant) in contestants.iter().enumerate() {
        let mut row = vec![read.label(amounts), contestant.label.to_owned()];
        if can(contestant) {
            row.extend(figures(&samples[at], read.bytes()));
            row.push(ratio(contestants, &samples, at));
        } else {
            row.extend(["no pages", "", "", ""].map(str::to_owned));
        }
        table.row(row);
    }
    Ok(())
}

/// Checks the length of one response of a kind of reads.
fn check(contestant: &Contestant, read: Read, amounts: &Amounts) -> Result<(), String> {
    let requests = read.requests(contestant, amounts);
    let mut wire = Wire::open(contestant.server.address()).map_err(text)?;
    let (status, body) = wire.exchange(&requests[0]).map_err(text)?;
    let is_right = match read.bytes() {
        Some(bytes) => body.len() as u64 == bytes,
        None => String::from_utf8_lossy(&body).matches(".bin").count() >= PAGE,
    };
    if is_right && (200..300).contains(&status) {
        return Ok(());
    }
    let (label, what) = (contestant.label, read.label(amounts));
    Err(format!("{label}: {what}: {status}, {} bytes", body.len()))
}

impl Read {
    fn label(self, amounts: &Amounts) -> String {
        let count = |number: u64| table::count(number as f64);
        match self {
            Self::Objects(set) => {
                format!("GET {} of {}", table::bytes(SETS[set].1 as u64), count(amounts.count(set)))
            }
            Self::Ranges => format!(
                "range of {} in {}",
                table::bytes(RANGE_BYTES),
                table::bytes(RANGED_BYTES as u64)
            ),
            Self::Pages => {
                format!("{} of {} names", count(PAGE as u64), count(amounts.count(0)))
            }
        }
    }

    /// Returns the length of a response body; `None` for listings, which differ by server.
    fn bytes(self) -> Option<u64> {
        match self {
            Self::Objects(set) => Some(SETS[set].1 as u64),
            Self::Ranges => Some(RANGE_BYTES),
            Self::Pages => None,
        }
    }

    /// Returns different requests, in random order.
    fn requests(self, contestant: &Contestant, amounts: &Amounts) -> Vec<String> {
        let mut random = SeededRng::new(SEED);
        let api = &contestant.api;
        let mut request = || match self {
            Self::Objects(set) => {
                api.get(&name(SETS[set].0, random.below(amounts.count(set))), None)
            }
            Self::Ranges => {
                let first = random.below(RANGED_BYTES as u64 / RANGE_BYTES) * RANGE_BYTES;
                api.get(&name("ranged", 0), Some((first, first + RANGE_BYTES - 1)))
            }
            Self::Pages => {
                // A whole page follows.
                let last = amounts.count(0).saturating_sub(PAGE as u64 + 1);
                api.list(SETS[0].0, &file_name(random.below(last))).unwrap_or_default()
            }
        };
        (0..REQUESTS_MAX).map(|_| request()).collect()
    }
}

/// Runs rounds; an error has the label of the contestant.
fn in_turns(
    contestants: &[&Contestant],
    round_count: usize,
    mut run: impl FnMut(usize) -> Result<Sample, String>,
) -> Result<Vec<Vec<Sample>>, String> {
    rounds::try_interleaved(round_count, contestants.len(), |turn| {
        run(turn).map_err(|why| format!("{}: {why}", contestants[turn].label))
    })
}

/// Returns the cells of rate, bytes per second and CPU time.
fn figures(samples: &[Sample], bytes: Option<u64>) -> [String; 3] {
    let rate = rounds::rate(samples);
    let megabytes = bytes.map(|bytes| table::figure(rate * bytes as f64 / 1e6));
    [table::figure(rate), megabytes.unwrap_or_default(), table::figure(rounds::cpu_us(samples))]
}

/// Returns the cell with the ratio of trug, in the same protocol, to a contestant.
fn ratio(contestants: &[&Contestant], samples: &[Vec<Sample>], at: usize) -> String {
    let is_s3 = contestants[at].is_s3;
    let trug = contestants.iter().position(|it| it.is_s3 == is_s3).unwrap_or(at);
    let (low, high) = rounds::spread(&samples[trug], &samples[at]);
    let ratio = rounds::ratio(&samples[trug], &samples[at]);
    format!("{} ({}-{})", table::figure(ratio), table::figure(low), table::figure(high))
}

fn text(error: std::io::Error) -> String {
    error.to_string()
}
