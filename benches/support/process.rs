//! Resource usage of processes: CPU time and memory, of this one and of others with all their children.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Returns the CPU time of this process so far, user and system, ended threads included.
pub fn own_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Returns the CPU time of a process and of all its living descendants, in clock ticks (10 ms as a rule).
pub fn tree_cpu(root: u32) -> Duration {
    let processes = all();
    let family = with_descendants(&processes, root);
    let ticks: u64 = family.iter().filter_map(|id| Some(processes.get(id)?.ticks)).sum();
    Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// Returns the ids of all living descendants of this process.
pub fn own_descendants() -> Vec<u32> {
    with_descendants(&all(), std::process::id()).split_off(1)
}

/// Returns the id of a process, and then those of its descendants.
fn with_descendants(processes: &BTreeMap<u32, Process>, root: u32) -> Vec<u32> {
    let mut family = vec![root];
    let mut at = 0;
    while let Some(&id) = family.get(at) {
        family.extend(processes.iter().filter(|(_, p)| p.parent == id).map(|(&child, _)| child));
        at += 1;
    }
    family
}

/// Returns the resident memory of this process in bytes: anonymous, and of files.
pub fn own_memory() -> (u64, u64) {
    (own_status("RssAnon:"), own_status("RssFile:"))
}

/// Returns the resident memory of this process in bytes: current and peak.
pub fn own_memory_at_most() -> (u64, u64) {
    (own_status("VmRSS:"), own_status("VmHWM:"))
}

/// Returns the resident anonymous memory of a process in bytes; 0 when there is none.
pub fn anonymous_memory(id: u32) -> u64 {
    number_in(&format!("/proc/{id}/status"), "RssAnon:") << 10
}

/// Returns the bytes that a process has written to disks so far, as the kernel counts them.
pub fn written(id: u32) -> u64 {
    number_in(&format!("/proc/{id}/io"), "write_bytes:")
}

/// Returns the bytes in a line of `status` in proc(5) of this process.
fn own_status(name: &str) -> u64 {
    number_in("/proc/self/status", name) << 10
}

fn number_in(path: &str, name: &str) -> u64 {
    let lines = fs::read_to_string(path).unwrap_or_default();
    let line = lines.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Touches this much memory once and frees it. On a virtual machine the host provides memory at the first touch only,
/// which is far slower than writing to it, and must not be measured.
pub fn touch_memory(bytes: usize) {
    std::hint::black_box(vec![1_u8; bytes]);
}

struct Process {
    parent: u32,
    ticks: u64,
}

fn all() -> BTreeMap<u32, Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return BTreeMap::new() };
    let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(|id| Some((id, read(id)?))).collect()
}

fn read(id: u32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name is in parentheses and may contain anything; the fields after the last one are regular.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some(Process { parent: u32::try_from(number(1)?).ok()?, ticks: number(11)? + number(12)? })
}
