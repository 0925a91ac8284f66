//! Measurements over time.

use std::fmt;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use benches::{folder, process};

use super::client::{Shared, at};

/// Interval between two points.
pub(crate) const STEP: Duration = Duration::from_secs(10);

/// Maximum growth factors from the second quarter to the last. Half of the load is that of the clients, on the same
/// processors, so times vary.
const LATENCY_MAX: f64 = 1.5;
const MEMORY_MAX: f64 = 1.2;
/// Compared quarters; the first one is excluded because it fills caches and the store.
const QUARTERS: [usize; 2] = [1, 3];

/// Measurements at one point in time.
pub(crate) struct Point {
    /// Seconds since the start.
    pub(crate) seconds: f64,
    pub(crate) requests_per_second: f64,
    /// Response times of all requests except pictures.
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    /// Response times of pictures.
    pub(crate) pictures_p99_ms: f64,
    /// Anonymous memory of the server.
    pub(crate) memory_mib: f64,
    /// Disk usage of the data folder.
    pub(crate) disk_mib: f64,
}

/// All points.
pub(crate) struct TimeSeries {
    started: Instant,
    last: Instant,
    pub(crate) points: Vec<Point>,
}

impl TimeSeries {
    pub(crate) fn new(started: Instant) -> Self {
        Self { started, last: started, points: Vec::new() }
    }

    /// Adds the current measurements.
    pub(crate) fn step(
        &mut self,
        shared: &Shared,
        server: u32,
        store: &Path,
    ) -> io::Result<&Point> {
        let times = shared.take_latest();
        let now = Instant::now();
        let elapsed = now.duration_since(std::mem::replace(&mut self.last, now));
        let ms = |times: &[u32], part: f64| f64::from(at(times, part)) / 1e3;
        let count = times.others.len() + times.pictures.len();
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        self.points.push(Point {
            seconds: now.duration_since(self.started).as_secs_f64(),
            requests_per_second: count as f64 / elapsed.as_secs_f64(),
            p50_ms: ms(&times.others, 0.5),
            p99_ms: ms(&times.others, 0.99),
            pictures_p99_ms: ms(&times.pictures, 0.99),
            memory_mib: mib(process::anonymous_memory(server)),
            disk_mib: mib(folder::disk_bytes(store)?),
        });
        self.points.last().ok_or_else(|| io::Error::other("no point"))
    }

    /// Returns, for each bounded figure, its name, its median in the second quarter and in the last, and its maximum
    /// growth factor.
    pub(crate) fn flatness(&self) -> Vec<(&'static str, f64, f64, f64)> {
        let quarter = (self.points.len() / 4).max(1);
        let median = |of: usize, value: fn(&Point) -> f64| {
            let points = self.points.iter().skip(of * quarter).take(quarter);
            benches::rounds::median(points.map(value))
        };
        let row = |name, value: fn(&Point) -> f64, max| {
            let [early, late] = QUARTERS.map(|of| median(of, value));
            (name, early, late, max)
        };
        vec![
            row("p99, ms", |point| point.p99_ms, LATENCY_MAX),
            row("p50, ms", |point| point.p50_ms, LATENCY_MAX),
            row("p99 of pictures, ms", |point| point.pictures_p99_ms, LATENCY_MAX),
            row("anonymous memory, MiB", |point| point.memory_mib, MEMORY_MAX),
        ]
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:5.0} s: {:6.0} requests/s, p50 {:.2} ms, p99 {:.2} ms, of pictures {:.0} ms, memory {:.0} MiB, disk {:.0} MiB",
            self.seconds,
            self.requests_per_second,
            self.p50_ms,
            self.p99_ms,
            self.pictures_p99_ms,
            self.memory_mib,
            self.disk_mib
        )
    }
}
