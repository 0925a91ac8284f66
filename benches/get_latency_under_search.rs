//! Latency of small GETs while 50 or 500 clients search 200,000 names without a pause.
//!
//! Expected: the number of concurrent searches is the number of processors, each on two threads of a lower priority, so
//! a GET waits only for the scheduler to preempt one: p99 at most twice the p99 without load.
//!
//! One connection requests 4 KiB every two milliseconds, alone and while the others search, in turns. A client that is
//! rejected because too many wait retries. No rate limit applies.

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use benches::arguments::Arguments;
use benches::get_latency::{self, SMALL, part, run_on_threads, small_gets};
use benches::http_connection::Wire;
use benches::name_generator::Names;
use benches::server::{Running, ServerKind};
use benches::trug::{BUCKET, Trug};
use benches::{folder, stores, table};
use engine::{Batch, BucketName, ObjectKey, ObjectName, PutOptions};

const SEED: u64 = 6;
const QUERIES: [&str; 6] = ["img", "2024", "screenshot", "chloe", "kitchn", "bdg"];
/// Numbers of concurrent searching clients, in turns.
const SEARCHING: [usize; 3] = [0, 50, 500];
const REPEAT_INTERVAL: Duration = Duration::from_millis(100);

fn main() -> ExitCode {
    Arguments::run("get_latency_under_search", run)
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let (rounds, names, length) = match arguments.quick {
        true => (1, 5_000, Duration::from_secs(1)),
        false => (4, 200_000, Duration::from_secs(8)),
    };
    let program = Trug::chosen(arguments)?;
    let folder = folder::make(&arguments.data_folder()).map_err(text)?;
    let files = get_latency::make_files(folder.path()).map_err(text)?;
    let kind = Trug {
        program,
        files,
        names: vec![SMALL.to_owned()],
        settings: vec![
            ("TRUG_PLAN_RATES", "false".to_owned()),
            ("TRUG_ADDRESS_REQUESTS_PER_SECOND", "0".to_owned()),
        ],
    };
    drop(Running::start(&kind, folder.path(), SMALL)?);
    fill(&folder.path().join("store"), names)?;
    let server = Running::start(&kind, folder.path(), SMALL)?;
    let key = fs::read_to_string(folder.path().join("api-key")).map_err(text)?;
    let paths = QUERIES.map(|query| format!("/api/search/{BUCKET}?q={query}&apiKey={key}"));
    wait_until_cached(&server, &paths[0])?;

    let mut seen = SEARCHING.map(|_| Vec::new());
    let searches = SEARCHING.map(|_| Mutex::new(Vec::new()));
    for round in 0..rounds {
        // The order rotates.
        for turn in 0..SEARCHING.len() {
            let at = (turn + round) % SEARCHING.len();
            let gets = small_gets(&server, &kind.path(SMALL), || match SEARCHING[at] {
                0 => {
                    thread::sleep(length);
                    Ok(())
                }
                count => search(&server, &paths, count, length, &searches[at]),
            })?;
            seen[at].push(gets);
        }
    }
    let labels = SEARCHING.map(|count| match count {
        0 => "alone".to_owned(),
        count => format!("with {count} searching"),
    });
    get_latency::print(&labels.each_ref().map(String::as_str), &seen);
    println!();
    for (count, searches) in SEARCHING.iter().zip(searches).skip(1) {
        let mut searches = searches.into_inner().unwrap_or_default();
        searches.sort_unstable();
        println!(
            "{count} who search: {} searches, p50 {} ms, p99 {} ms, waiting included",
            table::count(searches.len() as f64),
            table::figure(part(&searches, 50) / 1e3),
            table::figure(part(&searches, 99) / 1e3),
        );
    }
    Ok(())
}

/// Puts names into the bucket that the server created.
fn fill(store: &Path, count: u64) -> Result<(), String> {
    let (store, _) = stores::open(store);
    let bucket = BucketName::parse(BUCKET).map_err(|why| why.to_string())?;
    let staged = stores::stage(&store, b"");
    let mut names = Names::new(SEED);
    for first in (0..count).step_by(1_000) {
        let mut batch = Batch::new();
        for number in first..(first + 1_000).min(count) {
            let key = ObjectKey::parse(&names.next(number)).map_err(|why| why.to_string())?;
            let name = ObjectName::new(bucket.clone(), key);
            batch = batch.put(name, staged.clone(), PutOptions::default());
        }
        store.commit(batch).map_err(|error| error.to_string())?;
    }
    store.close().map_err(|error| error.to_string())
}

/// Searches until the names are in memory.
fn wait_until_cached(server: &Running, path: &str) -> Result<(), String> {
    let mut wire = Wire::open(server.address()).map_err(text)?;
    loop {
        let (status, body) = wire.get(path).map_err(text)?;
        if status != 200 {
            return Err(format!("a search: {status}"));
        }
        let answer: serde_json::Value =
            serde_json::from_slice(&body).map_err(|error| error.to_string())?;
        if answer["totalIsExact"] == true {
            return Ok(());
        }
        thread::sleep(REPEAT_INTERVAL);
    }
}

/// Searches over many concurrent connections; records the duration of each search.
fn search(
    server: &Running,
    paths: &[String],
    count: usize,
    length: Duration,
    times: &Mutex<Vec<Duration>>,
) -> Result<(), String> {
    let (began, next) = (Instant::now(), AtomicUsize::new(0));
    let ask = || -> Result<(), String> {
        let mut wire = Wire::open(server.address()).map_err(text)?;
        while began.elapsed() < length {
            let path = &paths[next.fetch_add(1, Ordering::Relaxed) % paths.len()];
            let asked = Instant::now();
            match wire.get(path).map_err(text)?.0 {
                200 => times.lock().map_err(|why| why.to_string())?.push(asked.elapsed()),
                503 => thread::sleep(REPEAT_INTERVAL),
                status => return Err(format!("a search: {status}")),
            }
        }
        Ok(())
    };
    run_on_threads(count, ask)
}

fn text(error: std::io::Error) -> String {
    error.to_string()
}
