//! The least that a durable log costs: groups of bytes, written and synced, with nothing in them.
//!
//! What an engine with one log comes to cannot be more, as long as it writes through the page cache.

use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use engine::disk::{Disk, DiskFile, RealDisk};

use super::data;
use super::process;
use super::rounds::{self, Sample};

/// How the groups come to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// One is written, then synced, then the next one.
    InTurn,
    /// The same, and the disk begins with each piece as soon as it is written.
    BegunEarly,
    /// The next group is written while one is synced, by a second thread; the disk begins early, too.
    Overlapped,
}

/// All of them.
pub const WAYS: [Way; 3] = [Way::InTurn, Way::BegunEarly, Way::Overlapped];

/// One sample writes so much, into space that is reserved before.
const FILE_BYTES: u64 = 512 << 20;
/// As the engine writes.
const PIECE_BYTES: usize = engine::limits::WRITE_BYTES_MAX;

/// Fills a file with groups of this length, and removes it. Counts them in objects of `object_bytes`.
pub fn fill(folder: &Path, way: Way, group_bytes: u64, object_bytes: u64) -> io::Result<Sample> {
    let disk = RealDisk::open_existing(folder)?;
    let file = disk.create("bare.log")?;
    file.allocate(FILE_BYTES)?;
    file.sync_data()?;
    let group = data::bytes(3, group_bytes as usize);
    let groups = FILE_BYTES / group_bytes;
    let (next, writing) = (AtomicU64::new(0), Mutex::new(()));
    let (began, cpu) = (Instant::now(), process::own_cpu());
    let write_all = || {
        loop {
            let turn = writing.lock().map_err(|_| io::Error::other("a writer panicked"))?;
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= groups {
                return Ok(());
            }
            write(file.as_ref(), &group, number * group_bytes, way)?;
            drop(turn);
            file.sync_data()?;
        }
    };
    let written = match way {
        Way::InTurn | Way::BegunEarly => write_all(),
        Way::Overlapped => thread::scope(|scope| {
            let other = scope.spawn(write_all);
            write_all().and(other.join().unwrap_or_else(|_| Err(io::Error::other("a panic"))))
        }),
    };
    let objects = groups * group_bytes / object_bytes;
    let sample = rounds::sample(objects, began.elapsed(), process::own_cpu() - cpu);
    disk.remove("bare.log")?;
    written.map(|()| sample)
}

fn write(file: &dyn DiskFile, group: &[u8], mut at: u64, way: Way) -> io::Result<()> {
    for piece in group.chunks(PIECE_BYTES) {
        file.write_at(at, &[piece])?;
        let end = at + piece.len() as u64;
        if way != Way::InTurn {
            file.begin_sync(at..end);
        }
        at = end;
    }
    Ok(())
}
