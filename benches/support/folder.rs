//! A folder of its own on a real disk, gone with its value.

use std::io;
use std::path::Path;

use tempfile::TempDir;

/// What `statfs` says of a file system that lives in memory (`TMPFS_MAGIC`, `RAMFS_MAGIC`).
const MEMORY_KINDS: [u64; 2] = [0x0102_1994, 0x8584_58F6];

/// Makes a folder in `parent`, and warns when what lies there lies in memory: then syncs cost nothing and no number counts.
pub fn make(parent: &Path) -> io::Result<TempDir> {
    let kind = rustix::fs::statfs(parent)?.f_type;
    if MEMORY_KINDS.contains(&u64::from(kind.cast_unsigned())) {
        eprintln!(
            "warning: {} is in memory, so nothing is durable: choose another place with --data-folder",
            parent.display()
        );
    }
    tempfile::Builder::new().prefix("bench-data-").tempdir_in(parent)
}
