//! Latency of small hot GETs while 16 clients stream 100 MiB each of cold data from the disk.
//!
//! Expected: pages that are not resident are read by threads that may block, so no other request waits for the disk;
//! what remains is the copying of 256 KiB at a time on the same processors: p99 at most 1.5 times the p99 without load,
//! and no more with streams from the disk than with streams from memory.
//!
//! One connection requests 4 KiB every two milliseconds: alone, while 16 others read files that were evicted from the
//! page cache, and while they read them again; from trug, and from nginx with the same files. The server restarts for
//! each round, since the kernel does not evict mapped pages. The streaming clients yield to the server: real clients
//! have machines of their own.

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use benches::arguments::Arguments;
use benches::get_latency::{self, SMALL, run_on_threads, set_sched_idle, small_gets};
use benches::http_connection::Wire;
use benches::nginx::Nginx;
use benches::server::{Running, ServerKind};
use benches::trug::{BUCKET, Trug};
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
    std::os::unix::fs::symlink(&files, folder.path().join(BUCKET)).map_err(text)?;
    let names: Vec<String> = (0..STREAMS).map(|at| format!("{at}.bin")).collect();
    for (seed, name) in (SEED..).zip(&names) {
        fs::write(files.join(name), data::bytes(seed, bytes)).map_err(text)?;
    }
    let all = names.iter().cloned().chain([SMALL.to_owned()]).collect();
    let filled =
        Trug { program: program.clone(), files: files.clone(), names: all, settings: Vec::new() };
    drop(Running::start(&filled, folder.path(), SMALL)?);
    let store = folder.path().join("store");
    let trug = Trug { program, files: files.clone(), names: Vec::new(), settings: Vec::new() };
    let nginx = Nginx { root: folder.path().to_owned(), open_files: 100, takes_puts: false };
    let contestants: [(&dyn ServerKind, &Path); 2] = [(&trug, &store), (&nginx, &files)];

    let mut seen = [const { Vec::new() }; 6];
    let mut rates = [[0.0; 2]; 2];
    for _ in 0..rounds {
        for (at, (kind, data)) in contestants.iter().enumerate() {
            folder::drop_page_cache(data).map_err(text)?;
            let server = Running::start(*kind, folder.path(), SMALL)?;
            let small = kind.path(SMALL);
            let paths: Vec<String> = names.iter().map(|name| kind.path(name)).collect();
            let pause = || {
                thread::sleep(alone);
                Ok(())
            };
            seen[3 * at].push(small_gets(&server, &small, pause)?);
            for (load, rate) in rates[at].iter_mut().enumerate() {
                let began = Instant::now();
                let stream = || stream(&server, &paths, bytes);
                seen[3 * at + 1 + load].push(small_gets(&server, &small, stream)?);
                let mib = (STREAMS * bytes) as f64 / f64::from(1 << 20);
                *rate += mib / began.elapsed().as_secs_f64() / f64::from(rounds);
            }
        }
    }
    for ((kind, _), (seen, rates)) in contestants.iter().zip(seen.chunks(3).zip(rates)) {
        println!("{}:\n", kind.label());
        get_latency::print(
            &["alone", "with 16 streams from the disk", "the same from memory"],
            seen,
        );
        let [disk, memory] = rates.map(table::count);
        println!("\nstreams from the disk: {disk} MiB/s, from memory: {memory} MiB/s\n");
    }
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
