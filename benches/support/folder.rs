//! A temporary folder on a real disk, removed when its value is dropped.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use engine::limits::{RESERVE_DISK_DIVISOR, RESERVE_INDEX_BYTES, SEGMENT_BYTES_MAX};
use rustix::fs::{Advice, fadvise};
use tempfile::TempDir;

/// `statfs` types of file systems in memory (`TMPFS_MAGIC`, `RAMFS_MAGIC`).
const MEMORY_KINDS: [u64; 2] = [0x0102_1994, 0x8584_58F6];

/// Creates a folder in `parent`, and warns when it is on a file system in memory: then syncs cost nothing and no number
/// is meaningful.
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

/// Checks that the disk has the room that a bench needs and a store keeps in reserve: it would otherwise reject bodies
/// during the run.
///
/// # Errors
///
/// The free and the required bytes; or why the disk cannot be queried.
pub fn require_free_space(parent: &Path, bytes: u64) -> Result<(), String> {
    let space = rustix::fs::statvfs(parent).map_err(|e| format!("{}: {e}", parent.display()))?;
    let share = space.f_blocks.saturating_mul(space.f_frsize) / RESERVE_DISK_DIVISOR;
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

/// Evicts the files of a folder from the page cache; dirty pages stay.
pub fn drop_page_cache(folder: &Path) -> io::Result<()> {
    for path in files_below(folder)? {
        match File::open(&path) {
            Ok(file) => fadvise(&file, 0, None, Advice::DontNeed)?,
            // A spare segment or a log of SQLite may be removed concurrently.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns the paths of the files of a folder and of all folders in it.
pub fn files_below(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let (path, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
        if kind.is_dir() {
            files.extend(files_below(&path)?);
        } else if kind.is_file() {
            files.push(path);
        }
    }
    Ok(files)
}

/// Returns the disk usage of a file, or of a folder with everything below it; nothing where it was removed.
pub fn disk_bytes(path: &Path) -> io::Result<u64> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    // Blocks count 512 bytes, whatever the block size of the file system.
    let mut bytes = found.blocks() * 512;
    if found.is_dir() {
        for entry in fs::read_dir(path)? {
            bytes += disk_bytes(&entry?.path())?;
        }
    }
    Ok(bytes)
}
