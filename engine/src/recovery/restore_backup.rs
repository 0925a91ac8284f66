//! Opens a backup folder as a store: removes what its manifest does not list.
//!
//! A backup is updated file by file, and its content changes atomically when the `BACKUP` file is replaced. A log or
//! compacted segment that is not listed, and bytes after the listed end, belong to an interrupted or to the previous
//! backup. Without them the folder is an ordinary store.
//!
//! Non-goals: creating backups.

use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::format::{
    BACKUP_FILE, BackupFile, COMPACTED_FOLDER, LOG_FOLDER, Malformed, SegmentClass, SegmentId,
};

/// Turns a backup folder in any state into a store; a store is not changed.
pub(super) fn apply_manifest(disk: &dyn Disk, store: uuid::Uuid) -> Result<()> {
    let io = |source| Error::io(format!("reading {BACKUP_FILE}"), source);
    let file = match disk.open(BACKUP_FILE) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(io)?,
    };
    let length = usize::try_from(file.bytes_len().map_err(io)?).unwrap_or(usize::MAX);
    let mut bytes = vec![0; length.min(BACKUP_BYTES_MAX)];
    file.read_at(0, &mut bytes).map_err(io)?;
    let damaged = |reason| Error::corrupt(BACKUP_FILE, 0, reason);
    let image = BackupFile::decode(&bytes).map_err(damaged)?;
    if image.store != store {
        return Err(damaged(Malformed::Misplaced));
    }
    let settled = || {
        let folders =
            [(LOG_FOLDER, SegmentClass::Log), (COMPACTED_FOLDER, SegmentClass::Compacted)];
        for (folder, class) in folders {
            let names = disk.list(folder)?;
            let ids = names.iter().filter_map(|name| SegmentId::from_file_name(name));
            for id in ids.filter(|id| image.segments.binary_search(id).is_err()) {
                disk.remove(&id.path(class))?;
            }
            if !names.is_empty() {
                disk.sync_folder(folder)?;
            }
        }
        if let Some(last) = image.end {
            cut(disk, &last.segment.path(SegmentClass::Log), last.end)?;
        }
        disk.remove(BACKUP_FILE)?;
        disk.sync_folder("")
    };
    settled().map_err(|source| Error::io("converting the backup to a store", source))
}

/// Truncates what an interrupted backup appended to the end of the log.
fn cut(disk: &dyn Disk, path: &str, end: u64) -> std::io::Result<()> {
    let file = match disk.open(path) {
        // A missing file is damage, which replay reports.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    if file.bytes_len()? > end {
        file.set_len(end)?;
        file.sync_data()?;
    }
    Ok(())
}

/// Maximum size of a manifest; no store has as many segments.
const BACKUP_BYTES_MAX: usize = 64 << 20;
