//! Replication of a folder of the local file system: restore, end, and whether it has all segments.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::mark::detach;
use super::restore::{RestoreReport, restore, restore_references};
use crate::disk::{Disk, RealDisk};
use crate::error::{Error, Result};
use crate::progress::ProgressCallback;
use crate::remote::RemoteStore;
use crate::tier::evicted_segments;

/// Restores a store like [`restore`] into a folder, which is created if it does not exist.
///
/// Fails with [`Error::InUse`] if another process has a store open there.
pub fn restore_folder(
    remote: &dyn RemoteStore,
    path: &Path,
    at_ms: Option<u64>,
    watch: &mut ProgressCallback<'_>,
) -> Result<RestoreReport> {
    let disk = RealDisk::open(path).map_err(|source| opening(path, source))?;
    let _lock = disk.lock().map_err(|source| Error::locking(&disk, source))?;
    restore(remote, &disk, at_ms, watch)
}

/// Restores the newest state like [`restore_references`] into a folder, which is created if it does not exist.
///
/// Fails with [`Error::InUse`] if another process has a store open there.
pub fn restore_folder_references(
    remote: &Arc<dyn RemoteStore>,
    path: &Path,
    watch: &mut ProgressCallback<'_>,
) -> Result<RestoreReport> {
    let disk = RealDisk::open(path).map_err(|source| opening(path, source))?;
    let _lock = disk.lock().map_err(|source| Error::locking(&disk, source))?;
    let disk: Arc<dyn Disk> = Arc::new(disk);
    restore_references(remote, &disk, watch)
}

/// Ends replication like [`detach`] in a folder.
///
/// Fails with [`Error::InUse`] if another process has the store open.
pub fn detach_folder(path: &Path) -> Result<()> {
    let disk = RealDisk::open_existing(path).map_err(|source| opening(path, source))?;
    let _lock = disk.lock().map_err(|source| Error::locking(&disk, source))?;
    detach(&disk)
}

/// Returns whether segments of the store in a folder are only in a remote store. False if there is no folder.
pub fn folder_needs_remote(path: &Path) -> Result<bool> {
    let disk = match RealDisk::open_existing(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        opened => opened.map_err(|source| opening(path, source))?,
    };
    let evicted = evicted_segments(&disk);
    Ok(!evicted.map_err(|source| opening(path, source))?.is_empty())
}

fn opening(path: &Path, source: io::Error) -> Error {
    Error::io(format!("opening {}", path.display()), source)
}
