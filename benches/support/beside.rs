//! Small GETs at an even pace while something else goes on.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

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

/// Asks for the small file until `meanwhile` is done; how long each answer took, sorted.
pub fn small_gets(
    server: &Running,
    path: &str,
    meanwhile: impl FnOnce() -> Result<(), String>,
) -> Result<Vec<Duration>, String> {
    let mut wire = Wire::open(server.address()).map_err(text)?;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let (began, mut times) = (Instant::now(), Vec::new());
            while !is_over.load(Ordering::Relaxed) {
                // What comes late is counted from when it was due.
                let due = began + PACE * times.len() as u32;
                thread::sleep(due.saturating_duration_since(Instant::now()));
                let (status, body) = wire.get(path).map_err(text)?;
                if (status, body.len()) != (200, SMALL_BYTES) {
                    return Err(format!("{path}: {status}"));
                }
                times.push(due.elapsed());
            }
            times.sort_unstable();
            Ok(times)
        });
        let done = meanwhile();
        is_over.store(true, Ordering::Relaxed);
        let times = asking.join().map_err(|_| "asking panicked".to_owned())?;
        done.and(times)
    })
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
pub fn print(labels: &[&str], seen: &[Vec<Vec<Duration>>]) {
    let mut table =
        Table::new(&["4 KiB, every 2 ms", "answers", "p50, us", "p99, us", "p99 / alone"]);
    for (label, rounds) in labels.iter().zip(seen) {
        let ratios = rounds
            .iter()
            .zip(seen.first().into_iter().flatten())
            .map(|(ours, alone)| part(ours, 99) / part(alone, 99));
        let (low, high) =
            ratios.clone().fold((f64::MAX, 0.0_f64), |(low, high), it| (low.min(it), high.max(it)));
        table.row(vec![
            (*label).to_owned(),
            table::count(rounds.iter().map(Vec::len).sum::<usize>() as f64),
            table::figure(median(rounds.iter().map(|times| part(times, 50)))),
            table::figure(median(rounds.iter().map(|times| part(times, 99)))),
            format!("{:.2} ({low:.2}-{high:.2})", median(ratios)),
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
