//! Small GETs at an even pace while something else goes on.
//!
//! Who asks runs before everything else on the machine where that is permitted (`SCHED_FIFO`, sched(7), which takes
//! root): clients have machines of their own, so what a client waits for a processor is not the server's.

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
use super::rounds::median;
use super::server::Running;
use super::table::{self, Table};
use super::wire::Wire;

/// The name of the file that is asked for,
pub const SMALL: &str = "small.bin";
/// how long it is,
pub const SMALL_BYTES: usize = 4 << 10;
/// and how often it is.
const PACE: Duration = Duration::from_millis(2);

/// What small GETs took while something went on.
pub struct SmallGets {
    /// How long each answer took, sorted: from when it was asked for, or from when that was due if it had to wait for
    /// the answer before it.
    pub answers: Vec<Duration>,
    /// How late the asking was where no answer was waited for, sorted: a processor did not turn to this program when
    /// its time to sleep was over. No server is the cause of that, and none can mend it.
    pub late: Vec<Duration>,
}

/// Asks for the small file until `meanwhile` is done.
pub fn small_gets(
    server: &Running,
    path: &str,
    meanwhile: impl FnOnce() -> Result<(), String>,
) -> Result<SmallGets, String> {
    let mut wire = Wire::open(server.address()).map_err(text)?;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let first = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
            if let Err(why) = schedule(first) {
                eprintln!("who asks has to wait for processors, too, which is counted: {why}");
            }
            let (began, mut answers, mut late) = (Instant::now(), Vec::new(), Vec::new());
            while !is_over.load(Ordering::Relaxed) {
                let due = began + PACE * answers.len() as u32;
                let time_left = due.saturating_duration_since(Instant::now());
                let mut asked = due;
                if !time_left.is_zero() {
                    thread::sleep(time_left);
                    asked = Instant::now();
                    late.push(asked - due);
                }
                let (status, body) = wire.get(path).map_err(text)?;
                if (status, body.len()) != (200, SMALL_BYTES) {
                    return Err(format!("{path}: {status}"));
                }
                answers.push(asked.elapsed());
            }
            answers.sort_unstable();
            late.sort_unstable();
            Ok(SmallGets { answers, late })
        });
        let done = meanwhile();
        is_over.store(true, Ordering::Relaxed);
        let seen = asking.join().map_err(|_| "asking panicked".to_owned())?;
        done.and(seen)
    })
}

/// Leaves the processor to every other thread that wants it, as the server's threads that work on pictures do.
pub fn give_way() -> Result<(), String> {
    schedule(ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle))
}

fn schedule(policy: ThreadSchedulePolicy) -> Result<(), String> {
    set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy)
        .map_err(|error| format!("{policy:?}: {error:?}"))
}

/// Makes the folder of the files that are uploaded; the small one lies there.
pub fn make_files(folder: &Path) -> io::Result<PathBuf> {
    let files = folder.join("files");
    fs::create_dir_all(&files)?;
    fs::write(files.join(SMALL), data::bytes(7, SMALL_BYTES))?;
    Ok(files)
}

/// Does the same on so many threads at once.
pub fn at_once(
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

/// Prints what the answers took in each round: first alone, then beside something.
pub fn print(labels: &[&str], seen: &[Vec<SmallGets>]) {
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

/// What so many of a hundred took at most, in microseconds.
pub fn part(sorted: &[Duration], of_hundred: usize) -> f64 {
    let at = (sorted.len() * of_hundred / 100).min(sorted.len().saturating_sub(1));
    sorted.get(at).map_or(0.0, |time| time.as_secs_f64() * 1e6)
}

fn text(error: io::Error) -> String {
    error.to_string()
}
