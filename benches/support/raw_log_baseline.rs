//! The minimum cost of a durable log: groups of bytes, written and synced, without any structure.
//!
//! It is the upper bound for an engine with one log that writes through the page cache.

use std::hint::black_box;
use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use engine::disk::{Disk, DiskFile, RealDisk};
use engine::limits::BLOCK_BYTES;

use super::data;
use super::process;
use super::rounds::{self, Sample};

/// Write and sync strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteStrategy {
    /// Writes one group, syncs it, then writes the next.
    Sequential,
    /// Writes and syncs in turn, with write-back of each piece started as soon as it is written.
    EarlyWriteBack,
    /// Writes the next group while a second thread syncs one; write-back is started early, too.
    Overlapped,
    /// Overlaps two threads with half a group each, so as many objects are in progress. Before its turn each copies its
    /// objects and computes their BLAKE3 and CRC-32. Write-back of data written during the other thread's sync is
    /// started after that sync, because a sync may wait for all write-back in progress.
    Hashed,
}

/// All strategies.
pub const WRITE_STRATEGIES: [WriteStrategy; 4] = [
    WriteStrategy::Sequential,
    WriteStrategy::EarlyWriteBack,
    WriteStrategy::Overlapped,
    WriteStrategy::Hashed,
];

/// Bytes written per sample, into space reserved before.
const FILE_BYTES: u64 = 512 << 20;
/// Bytes per write, as in the engine.
const PIECE_BYTES: usize = engine::limits::WRITE_BYTES_MAX;

/// Fills a file with groups of this length, and removes it. Counts them in objects of `object_bytes`.
pub fn fill(
    folder: &Path,
    way: WriteStrategy,
    group_bytes: u64,
    object_bytes: u64,
) -> io::Result<Sample> {
    let disk = RealDisk::open_existing(folder)?;
    let file = disk.create("bare.log")?;
    file.allocate(FILE_BYTES)?;
    file.sync_data()?;
    let group_bytes = if way == WriteStrategy::Hashed { group_bytes / 2 } else { group_bytes };
    let group = data::bytes(3, group_bytes as usize);
    let groups = FILE_BYTES / group_bytes;
    let (next, writing, syncing) = (AtomicU64::new(0), Mutex::new(()), Mutex::new(()));
    let (began, cpu) = (Instant::now(), process::own_cpu());
    let write_all = || {
        let mut own = vec![0; group_bytes as usize];
        loop {
            if way == WriteStrategy::Hashed {
                hash(&group, &mut own, object_bytes as usize);
            }
            let turn = writing.lock().map_err(|_| io::Error::other("a writer panicked"))?;
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= groups {
                return Ok(());
            }
            let at = number * group_bytes;
            let bytes = if way == WriteStrategy::Hashed { &own } else { &group };
            write(file.as_ref(), bytes, at, way)?;
            if way == WriteStrategy::Hashed {
                let _turn = syncing.lock().map_err(|_| io::Error::other("a writer panicked"))?;
                drop(turn);
                file.start_write_back(at..at + group_bytes);
                file.sync_data()?;
                continue;
            }
            drop(turn);
            file.sync_data()?;
        }
    };
    let written = match way {
        WriteStrategy::Sequential | WriteStrategy::EarlyWriteBack => write_all(),
        WriteStrategy::Overlapped | WriteStrategy::Hashed => thread::scope(|scope| {
            let other = scope.spawn(write_all);
            write_all().and(other.join().unwrap_or_else(|_| Err(io::Error::other("a panic"))))
        }),
    };
    let objects = groups * group_bytes / object_bytes;
    let sample = rounds::sample(objects, began.elapsed(), process::own_cpu() - cpu);
    disk.remove("bare.log")?;
    written.map(|()| sample)
}

/// Does the work that every store does for each incoming object, block by block.
fn hash(group: &[u8], own: &mut [u8], object_bytes: usize) {
    for (object, own) in group.chunks(object_bytes).zip(own.chunks_mut(object_bytes)) {
        let mut hasher = blake3::Hasher::new();
        for (block, own) in object.chunks(BLOCK_BYTES).zip(own.chunks_mut(BLOCK_BYTES)) {
            own.copy_from_slice(block);
            hasher.update(own);
            black_box(crc32fast::hash(own));
        }
        black_box(hasher.finalize());
    }
}

fn write(file: &dyn DiskFile, group: &[u8], mut at: u64, way: WriteStrategy) -> io::Result<()> {
    for piece in group.chunks(PIECE_BYTES) {
        file.write_at(at, &[piece])?;
        let end = at + piece.len() as u64;
        if matches!(way, WriteStrategy::EarlyWriteBack | WriteStrategy::Overlapped) {
            file.start_write_back(at..end);
        }
        at = end;
    }
    Ok(())
}
