//! Latency of small hot GETs while 16 clients stream 100 MiB each of cold data from the disk.
//!
//! Expected: pages that are not resident are read by threads that may block, so no other request waits for the disk;
//! what remains is the copying of 256 KiB at a time on the same processors: p99 at most 1.5 times the p99 without load,
//! and no more with streams from the disk than with streams from memory.
//!
//! One connection requests 4 KiB every two milliseconds: alone, while 16 others read files that were evicted from the
//! page cache, and while they read them again. The server restarts for each round, since the kernel does not evict
//! mapped pages. The streaming clients yield to the server: real clients have machines of their own.

use std::fs;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use benches::arguments::Arguments;
use benches::get_latency::{self, SMALL, run_on_threads, set_sched_idle, small_gets};
use benches::http_connection::Wire;
use benches::server::{Running, ServerKind};
use benches::trug::Trug;
use benches::{data, folder, table};

const SEED: u64 = 8;
const STREAMS: usize = 16;

fn main() -> ExitCode {
    Arguments::run("get_latency_under_cold_reads", run)
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let (rounds, bytes, alone) = match arguments.quick {
        true => (1, 4 << 20, Duration::from_secs(1)),
        false => (6, 100 << 20, Duration::from_secs(4)),
    };
    let program = Trug::chosen(arguments)?;
    let folder = folder::make(&arguments.data_folder()).map_err(text)?;
    let files = get_latency::make_files(folder.path()).map_err(text)?;
    let names: Vec<String> = (0..STREAMS).map(|at| format!("{at}.bin")).collect();
    // One file under all names: each becomes its own object when it is uploaded.
    fs::write(files.join(&names[0]), data::bytes(SEED, bytes)).map_err(text)?;
    for name in &names[1..] {
        fs::hard_link(files.join(&names[0]), files.join(name)).map_err(text)?;
    }
    let all = names.iter().cloned().chain([SMALL.to_owned()]).collect();
    let filled =
        Trug { program: program.clone(), files: files.clone(), names: all, settings: Vec::new() };
    let server = Running::start(&filled, folder.path(), SMALL)?;
    drop(server);
    let kind = Trug { program, files, names: Vec::new(), settings: Vec::new() };
    let (small, paths): (_, Vec<_>) =
        (kind.path(SMALL), names.iter().map(|name| kind.path(name)).collect());

    let mut seen = [Vec::new(), Vec::new(), Vec::new()];
    let mut rates = [0.0, 0.0];
    for _ in 0..rounds {
        folder::drop_page_cache(&folder.path().join("store")).map_err(text)?;
        let server = Running::start(&kind, folder.path(), SMALL)?;
        seen[0].push(small_gets(&server, &small, || {
            thread::sleep(alone);
            Ok(())
        })?);
        for (seen, rate) in seen[1..].iter_mut().zip(&mut rates) {
            let began = Instant::now();
            seen.push(small_gets(&server, &small, || stream(&server, &paths, bytes))?);
            let mib = (STREAMS * bytes) as f64 / f64::from(1 << 20);
            *rate += mib / began.elapsed().as_secs_f64() / f64::from(rounds);
        }
    }
    get_latency::print(&["alone", "with 16 streams from the disk", "the same from memory"], &seen);
    println!();
    println!(
        "streams from the disk: {} MiB/s, from memory: {} MiB/s",
        table::count(rates[0]),
        table::count(rates[1])
    );
    Ok(())
}

/// Reads all files concurrently, each to its end.
fn stream(server: &Running, paths: &[String], bytes: usize) -> Result<(), String> {
    let next = AtomicU64::new(0);
    run_on_threads(paths.len(), || {
        set_sched_idle()?;
        let path = &paths[next.fetch_add(1, Ordering::Relaxed) as usize];
        let (status, read) =
            Wire::open(server.address()).and_then(|mut wire| wire.read_over(path)).map_err(text)?;
        match (status, read) == (200, bytes) {
            true => Ok(()),
            false => Err(format!("{path}: {status} and {read} bytes")),
        }
    })
}

fn text(error: std::io::Error) -> String {
    error.to_string()
}
