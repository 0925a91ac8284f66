//! Latency of small GETs while 4,000 pictures are rendered, and the cost of a cached variant.
//!
//! Expected: image work has threads of its own of the lowest priority, and leaves a processor to delivery, so a GET
//! waits for nothing but cold caches: p99 at most 1.5 times. A cached variant is one lookup more than a file of its
//! size, and a query to be parsed: 1.1 to 1.2 times the CPU.
//!
//! One connection requests 4 KiB every two milliseconds: alone; while 64 others request pictures of 3 MP, each at sizes
//! of its own; and while other processes, at idle priority and one for each processor, render such pictures and 64
//! others request 4 KiB as often as pictures before. They take turns. The last case shows the cost of busy processors
//! on this machine itself. A client that is rejected because too many wait retries. No rate limit applies.

use std::fs;
use std::process::{Child, Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use benches::arguments::Arguments;
use benches::folder;
use benches::get_latency::{self, SMALL, run_on_threads, small_gets};
use benches::http_connection::Wire;
use benches::rounds::{self, Sample};
use benches::server::{Running, ServerKind, post_file};
use benches::table::{self, Table};
use benches::trug::Trug;
use fuzz::synthetic_photo::{Encoding, SyntheticPhoto};
use images::{Format, PlanOutcome, TransformOptions, plan, read_source, render};

/// Requested variants of one picture; 64 are cached.
const SIZES: usize = 50;
const ASKING: usize = 64;
const REPEAT_INTERVAL: Duration = Duration::from_millis(100);

/// Request interval of each of the 64 other clients of 4 KiB.
const ASKING_PACE: Duration = Duration::from_millis(500);

/// Option that runs this program as a renderer until it is killed.
const WORK: &str = "--work";

fn main() -> ExitCode {
    Arguments::run("get_latency_under_renders", |arguments| match arguments.has(WORK) {
        true => render_until_killed(),
        false => run(arguments),
    })
}

fn run(arguments: &Arguments) -> Result<(), String> {
    // Each round has 1,000 variants of 20 pictures.
    let (round_count, pictures, alone) = match arguments.quick {
        true => (1, 2, Duration::from_secs(1)),
        false => (4, 20, Duration::from_secs(8)),
    };
    let program = Trug::chosen(arguments)?;
    let folder = folder::make(&arguments.data_folder()).map_err(text)?;
    let files = get_latency::make_files(folder.path()).map_err(text)?;
    let names: Vec<String> = (0..round_count * pictures).map(|at| format!("{at}.jpg")).collect();
    let picture = photograph();
    for name in &names {
        fs::write(files.join(name), &picture).map_err(text)?;
    }
    let mut kind = Trug {
        program,
        files: files.clone(),
        names: names.iter().cloned().chain([SMALL.to_owned()]).collect(),
        settings: vec![("TRUG_IMAGE_MS_PER_SECOND_PER_BUCKET", "0".to_owned())],
    };
    let server = Running::start(&kind, folder.path(), SMALL)?;
    let small = kind.path(SMALL);

    let mut seen = [Vec::new(), Vec::new(), Vec::new()];
    for round in 0..round_count {
        let paths: Vec<String> = names[round * pictures..][..pictures]
            .iter()
            .flat_map(|name| {
                (0..SIZES).map(|size| format!("{}?width={}", kind.path(name), width(size)))
            })
            .collect();
        // The order rotates.
        for turn in 0..seen.len() {
            let made = (turn + round) % seen.len();
            let times = match made {
                0 => small_gets(&server, &small, || {
                    thread::sleep(alone);
                    Ok(())
                })?,
                1 => small_gets(&server, &small, || request_all(&server, &paths))?,
                _ => small_gets(&server, &small, || work_elsewhere(&server, &small, alone))?,
            };
            seen[made].push(times);
        }
    }
    get_latency::print(&["alone", "with variants", "with other processes"], &seen);
    println!();

    // The variant of the first round is cached.
    let variant = format!("{}?width=200", kind.path(&names[0]));
    let (status, bytes) = get(&server, &variant)?;
    if status != 200 {
        return Err(format!("{variant}: {status}"));
    }
    fs::write(files.join("same.bin"), &bytes).map_err(text)?;
    kind.names.push("same.bin".to_owned());
    let key = fs::read_to_string(folder.path().join("api-key")).map_err(text)?;
    let same = kind.path("same.bin");
    post_file(server.address(), &same, &key, &files.join("same.bin"))?;
    let contestants = [("a variant that is kept", &variant), ("a file of its size", &same)];
    let mut failed = None;
    let samples = rounds::interleaved(2 * round_count + 1, contestants.len(), |contestant| {
        request_repeatedly(&server, contestants[contestant].1, alone / 4).unwrap_or_else(|why| {
            failed = Some(why);
            Sample::default()
        })
    });
    if let Some(why) = failed {
        return Err(why);
    }
    let mut table =
        Table::new(&["GET, one connection", "bytes", "requests/s", "CPU us", "CPU / file"]);
    for ((label, _), own) in contestants.iter().zip(&samples) {
        table.row(vec![
            (*label).to_owned(),
            table::bytes(bytes.len() as u64),
            table::count(rounds::rate(own)),
            table::figure(rounds::cpu_us(own)),
            table::figure(rounds::cpu_us(own) / rounds::cpu_us(&samples[1]).max(f64::MIN_POSITIVE)),
        ]);
    }
    table.print();
    Ok(())
}

/// Requests all of these over many connections, each until it succeeds.
fn request_all(server: &Running, paths: &[String]) -> Result<(), String> {
    let next = AtomicUsize::new(0);
    let ask = || -> Result<(), String> {
        let mut wire = Wire::open(server.address()).map_err(text)?;
        while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
            loop {
                match wire.get(path).map_err(text)?.0 {
                    200 => break,
                    503 => thread::sleep(REPEAT_INTERVAL),
                    status => return Err(format!("{path}: {status}")),
                }
            }
        }
        Ok(())
    };
    run_on_threads(ASKING, ask)
}

/// Runs a rendering process for each processor for so long, while others request the small file.
fn work_elsewhere(server: &Running, small: &str, length: Duration) -> Result<(), String> {
    let program = std::env::current_exe().map_err(text)?;
    let count = thread::available_parallelism().map_err(text)?.get();
    let workers: Result<Vec<Child>, _> =
        (0..count).map(|_| Command::new(&program).arg(WORK).spawn()).collect();
    let mut workers = workers.map_err(text)?;
    let began = Instant::now();
    let asked = run_on_threads(ASKING, || {
        let mut wire = Wire::open(server.address()).map_err(text)?;
        while began.elapsed() < length {
            wire.get(small).map_err(text)?;
            thread::sleep(ASKING_PACE);
        }
        Ok(())
    });
    workers.iter_mut().try_for_each(|worker| {
        let ended = worker.try_wait().map_err(text)?;
        worker.kill().and_then(|()| worker.wait()).map_err(text)?;
        ended.map_or(Ok(()), |status| Err(format!("a process that makes pictures ended: {status}")))
    })?;
    asked
}

/// Renders pictures of the same photograph, as the server does, until the process is killed.
fn render_until_killed() -> Result<(), String> {
    get_latency::set_sched_idle()?;
    let file = photograph();
    let source = read_source(Format::Jpeg, &file).map_err(|error| error.to_string())?;
    for size in (0..SIZES).cycle() {
        let wish = TransformOptions { width: Some(width(size)), ..TransformOptions::default() };
        let Ok(PlanOutcome::Transform(plan)) = plan(&source, &wish) else {
            return Err("no plan".into());
        };
        render(&file, &source, &plan, &|| false).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Returns the width of a variant, one for each of [`SIZES`].
fn width(size: usize) -> u32 {
    200 + 8 * size as u32
}

fn request_repeatedly(server: &Running, path: &str, length: Duration) -> Result<Sample, String> {
    let mut wire = Wire::open(server.address()).map_err(text)?;
    let (began, cpu, mut done) = (Instant::now(), server.cpu(), 0);
    while began.elapsed() < length {
        let (status, _) = wire.get(path).map_err(text)?;
        if status != 200 {
            return Err(format!("{path}: {status}"));
        }
        done += 1;
    }
    Ok(rounds::sample(done, began.elapsed(), server.cpu().saturating_sub(cpu)))
}

fn get(server: &Running, path: &str) -> Result<(u16, Vec<u8>), String> {
    Wire::open(server.address()).and_then(|mut wire| wire.get(path)).map_err(text)
}

fn photograph() -> Vec<u8> {
    SyntheticPhoto::new(1, 2_000, 1_500).jpeg(&Encoding::PLAIN)
}

fn text(error: std::io::Error) -> String {
    error.to_string()
}
