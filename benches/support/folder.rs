//! A folder of its own on a real disk, gone with its value.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use engine::limits::{RESERVE_DISK_SHARE, RESERVE_INDEX_BYTES, SEGMENT_BYTES_MAX};
use rustix::fs::{Advice, fadvise};
use tempfile::TempDir;

/// What `statfs` says of a file system that lives in memory (`TMPFS_MAGIC`, `RAMFS_MAGIC`).
const MEMORY_KINDS: [u64; 2] = [0x0102_1994, 0x8584_58F6];

/// Makes a folder in `parent`, and warns when what lies there lies in memory: then syncs cost nothing and no number
/// counts.
pub fn make(parent: &Path) -> io::Result<TempDir> {
    let kind = rustix::fs::statfs(parent)?.f_type;
    if MEMORY_KINDS.contains(&kind.cast_unsigned()) {
        eprintln!(
            "warning: {} is in memory, so nothing is durable: choose another place with --data-folder",
            parent.display()
        );
    }
    tempfile::Builder::new().prefix("bench-data-").tempdir_in(parent)
}

/// Refuses a disk that has less room than a bench takes and a store keeps in reserve: it would take no more bodies on
/// the way.
///
/// # Errors
///
/// What is free, and what is needed; or why the disk cannot say.
pub fn require_room(parent: &Path, bytes: u64) -> Result<(), String> {
    let space = rustix::fs::statvfs(parent).map_err(|e| format!("{}: {e}", parent.display()))?;
    let share = space.f_blocks.saturating_mul(space.f_frsize) / RESERVE_DISK_SHARE;
    let reserve = share.max(2 * SEGMENT_BYTES_MAX + RESERVE_INDEX_BYTES);
    let (free, needed) = (space.f_bavail.saturating_mul(space.f_frsize), bytes + reserve);
    if free >= needed {
        return Ok(());
    }
    let (free, needed) = (free >> 20, needed >> 20);
    Err(format!(
        "{} has {free} MiB free, and {needed} are needed: choose another place with --data-folder",
        parent.display()
    ))
}

/// Lets the page cache forget what lies in a folder; what is not written back yet stays.
pub fn forget_pages(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let (path, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
        if kind.is_dir() {
            forget_pages(&path)?;
        } else if kind.is_file() {
            match File::open(&path) {
                Ok(file) => fadvise(&file, 0, None, Advice::DontNeed)?,
                // A spare, a log of SQLite: files come and go.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// What a file, or a folder with all that is below it, takes on the disk; nothing where it has gone.
pub fn disk_bytes(path: &Path) -> io::Result<u64> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    // Of blocks of 512 bytes, whatever the file system's own are.
    let mut bytes = found.blocks() * 512;
    if found.is_dir() {
        for entry in fs::read_dir(path)? {
            bytes += disk_bytes(&entry?.path())?;
        }
    }
    Ok(bytes)
}
