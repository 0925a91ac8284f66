//! Process metrics, under their conventional names.
//!
//! Guarantees: unavailable values are left out. Non-goals: metrics of the machine.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use rustix::process::{Resource, getrlimit};

use crate::exposition::MetricWriter;

/// Process metrics.
#[derive(Debug)]
pub struct ProcessMetrics {
    started_ms: u64,
    resident_bytes: Option<u64>,
    open_files: Option<u64>,
    open_files_max: Option<u64>,
    cpu_seconds: Option<f64>,
}

impl ProcessMetrics {
    pub fn read(started_ms: u64) -> Self {
        Self {
            started_ms,
            resident_bytes: resident_bytes(),
            open_files: open_files(),
            open_files_max: getrlimit(Resource::Nofile).current,
            cpu_seconds: cpu_seconds(),
        }
    }

    fn encode_to(&self, sheet: &mut MetricWriter<'_>) -> fmt::Result {
        let number = |value: Option<u64>| value.map(|value| value as f64);
        sheet.info("trug_build", "Build information.", [("version", env!("CARGO_PKG_VERSION"))])?;
        sheet.gauge(
            "process_start_time_seconds",
            "Start time of the process, in Unix seconds.",
            self.started_ms as f64 / 1e3,
        )?;
        sheet.gauge(
            "process_resident_memory_bytes",
            "Resident memory size in bytes.",
            number(self.resident_bytes),
        )?;
        sheet.gauge(
            "process_open_fds",
            "Number of open file descriptors.",
            number(self.open_files),
        )?;
        sheet.gauge(
            "process_max_fds",
            "Maximum number of open file descriptors.",
            number(self.open_files_max),
        )?;
        sheet.seconds_counter(
            "process_cpu_seconds",
            "Total user and system CPU time in seconds.",
            self.cpu_seconds,
        )
    }
}

fn resident_bytes() -> Option<u64> {
    let text = read("/proc/self/statm")?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

fn cpu_seconds() -> Option<f64> {
    let text = read("/proc/self/stat")?;
    // The name of the program is in parentheses, and may contain anything.
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let ticks = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
    Some(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

#[allow(clippy::disallowed_methods, reason = "what the system says is no file of the store")]
fn open_files() -> Option<u64> {
    // One of them is the directory itself, open for this read.
    let count = std::fs::read_dir("/proc/self/fd").ok()?.count();
    Some(count.saturating_sub(1) as u64)
}

#[allow(clippy::disallowed_methods, reason = "what the system says is no file of the store")]
fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

impl Collector for ProcessMetrics {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.encode_to(&mut MetricWriter::new(encoder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_metrics_are_plausible() {
        let process = ProcessMetrics::read(1);
        let resident = process.resident_bytes.unwrap();
        assert!((1 << 20..1 << 40).contains(&resident), "{resident}");
        let open = process.open_files.unwrap();
        assert!(open >= 3 && open <= process.open_files_max.unwrap_or(u64::MAX), "{open}");
        assert!(process.cpu_seconds.is_some_and(|seconds| seconds >= 0.0));
    }
}
