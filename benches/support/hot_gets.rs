//! Repeated requests of the HTTP benches: files of four sizes, and the requests for them.

use std::fs;
use std::io;
use std::path::Path;

use super::data;
use super::rounds::{self, Sample};
use super::server::{Load, Running, ServerKind};

const SEED: u64 = 4;

/// Concurrent connections.
pub const CONNECTIONS: u32 = 64;

/// Names and lengths of the files.
pub const FILES: [(&str, usize); 4] =
    [("4k.bin", 4 << 10), ("64k.bin", 64 << 10), ("1m.bin", 1 << 20), ("100m.bin", 100 << 20)];

/// Row of a table: label, requested file, and the length and bound of random ranges of it.
pub type Row = (&'static str, &'static str, Option<(u64, u64)>);

/// The rows of the targets.
pub const ROWS: [Row; 4] = [
    ("GET 4 KiB", "4k.bin", None),
    ("GET 64 KiB", "64k.bin", None),
    ("GET 1 MiB", "1m.bin", None),
    ("64 KiB range of 100 MiB", "100m.bin", Some((64 << 10, 100 << 20))),
];

/// Returns the names of all files.
pub fn names() -> Vec<String> {
    FILES.map(|(name, _)| name.to_owned()).to_vec()
}

/// Creates the files in a folder, which is created too.
pub fn make_files(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    FILES
        .iter()
        .try_for_each(|(name, length)| fs::write(folder.join(name), data::bytes(SEED, *length)))
}

/// Loads servers with the request of a row, in turns. Returns the samples by server, by round.
///
/// # Errors
///
/// A failed run.
pub fn in_turns(
    (label, name, range): Row,
    servers: &[(&dyn ServerKind, &Running)],
    (round_count, seconds): (usize, u64),
    folder: &Path,
) -> Result<Vec<Vec<Sample>>, String> {
    let mut failed = None;
    let samples = rounds::interleaved(round_count, servers.len(), |server| {
        let (kind, running) = servers[server];
        let path = kind.path(name);
        let script = range.map(|(length, bound)| range_script(length, bound));
        let load = Load { path: &path, script, connections: CONNECTIONS, seconds };
        running.load(folder, &load).unwrap_or_else(|why| {
            failed = Some(format!("{} {label}: {why}", kind.label()));
            Sample::default()
        })
    });
    failed.map_or(Ok(samples), Err)
}

/// Returns a script that requests random ranges of one length, on multiples of it.
fn range_script(length: u64, bound: u64) -> String {
    format!(
        "math.randomseed(4)\n\
         request = function()\n\
         \x20 local first = math.random(0, {last}) * {length}\n\
         \x20 local range = string.format('bytes=%d-%d', first, first + {length} - 1)\n\
         \x20 return wrk.format('GET', nil, {{ Range = range }})\n\
         end\n",
        last = bound / length - 1,
    )
}
