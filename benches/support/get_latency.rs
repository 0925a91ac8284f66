//! Small GETs at an even pace under concurrent load.
//!
//! The requesting thread has priority over everything else on the machine where that is permitted (`SCHED_FIFO`,
//! sched(7), which requires root): real clients have machines of their own, so a client's wait for a processor is not
//! the server's.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use thread_priority::{
    NormalThreadSchedulePolicy, RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

use super::data;
use super::http_connection::Wire;
use super::rounds::median;
use super::server::Running;
use super::table::{self, Table};

/// Name of the requested file.
pub const SMALL: &str = "small.bin";
/// Length of the requested file in bytes.
pub const SMALL_BYTES: usize = 4 << 10;
/// Interval between requests.
const PACE: Duration = Duration::from_millis(2);

/// Latencies of small GETs under load.
pub struct GetLatencies {
    /// Duration of each response, sorted: from the request, or from its due time if it had to wait for the previous
    /// response.
    pub answers: Vec<Duration>,
    /// Delay of each request that did not wait for a response, sorted: this program was not scheduled when its sleep
    /// ended. The server neither causes nor can avoid this delay.
    pub late: Vec<Duration>,
}

/// Requests the small file until `load` returns.
pub fn small_gets(
    server: &Running,
    path: &str,
    load: impl FnOnce() -> Result<(), String>,
) -> Result<GetLatencies, String> {
    let mut wire = Wire::open(server.address()).map_err(text)?;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let first = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
            if let Err(why) = schedule(first) {
                eprintln!("the client waits for processors, too, which is included: {why}");
            }
            let (mut due, mut answers, mut late) = (Instant::now(), Vec::new(), Vec::new());
            while !is_over.load(Ordering::Relaxed) {
                let time_left = due.saturating_duration_since(Instant::now());
                let mut asked = due;
                if !time_left.is_zero() {
                    thread::sleep(time_left);
                    asked = Instant::now();
                    late.push(asked - due);
                }
                // A delay of this program delays the later requests, a slow response does not.
                due = asked + PACE;
                let (status, body) = wire.get(path).map_err(text)?;
                if (status, body.len()) != (200, SMALL_BYTES) {
                    return Err(format!("{path}: {status}"));
                }
                answers.push(asked.elapsed());
            }
            answers.sort_unstable();
            late.sort_unstable();
            Ok(GetLatencies { answers, late })
        });
        let done = load();
        is_over.store(true, Ordering::Relaxed);
        let seen = asking.join().map_err(|_| "asking panicked".to_owned())?;
        done.and(seen)
    })
}

/// Yields the processor to every other thread, as the server's image threads do.
pub fn set_sched_idle() -> Result<(), String> {
    schedule(ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle))
}

fn schedule(policy: ThreadSchedulePolicy) -> Result<(), String> {
    set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy)
        .map_err(|error| format!("{policy:?}: {error:?}"))
}

/// Creates the folder of the files that are uploaded, with the small one in it.
pub fn make_files(folder: &Path) -> io::Result<PathBuf> {
    let files = folder.join("files");
    fs::create_dir_all(&files)?;
    fs::write(files.join(SMALL), data::bytes(7, SMALL_BYTES))?;
    Ok(files)
}

/// Runs the same function on so many threads concurrently.
pub fn run_on_threads(
    count: usize,
    ask: impl Fn() -> Result<(), String> + Copy + Send,
) -> Result<(), String> {
    thread::scope(|scope| {
        let asking: Vec<_> = (0..count).map(|_| scope.spawn(ask)).collect();
        let done =
            asking.into_iter().map(|it| it.join().unwrap_or(Err("asking panicked".to_owned())));
        done.collect()
    })
}

/// Prints the latencies of each round: first alone, then under load.
pub fn print(labels: &[&str], seen: &[Vec<GetLatencies>]) {
    let mut table = Table::new(&[
        "4 KiB, every 2 ms",
        "answers",
        "p50, us",
        "p99, us",
        "p99 / alone",
        "asked late, p99, us",
    ]);
    for (label, rounds) in labels.iter().zip(seen) {
        let ratios = rounds
            .iter()
            .zip(seen.first().into_iter().flatten())
            .map(|(ours, alone)| part(&ours.answers, 99) / part(&alone.answers, 99));
        let (low, high) =
            ratios.clone().fold((f64::MAX, 0.0_f64), |(low, high), it| (low.min(it), high.max(it)));
        let answered = |of_hundred| rounds.iter().map(move |it| part(&it.answers, of_hundred));
        table.row(vec![
            (*label).to_owned(),
            table::count(rounds.iter().map(|it| it.answers.len()).sum::<usize>() as f64),
            table::figure(median(answered(50))),
            table::figure(median(answered(99))),
            format!("{:.2} ({low:.2}-{high:.2})", median(ratios)),
            table::figure(median(rounds.iter().map(|it| part(&it.late, 99)))),
        ]);
    }
    table.print();
}

/// Returns the given percentile in microseconds.
pub fn part(sorted: &[Duration], of_hundred: usize) -> f64 {
    let at = (sorted.len() * of_hundred / 100).min(sorted.len().saturating_sub(1));
    sorted.get(at).map_or(0.0, |time| time.as_secs_f64() * 1e6)
}

fn text(error: io::Error) -> String {
    error.to_string()
}
