//! File `REMOTE` in the data folder: the store is replicated, and which epoch last began from this folder.
//!
//! Guarantees: the file is replaced atomically.

use std::io::ErrorKind;
use std::sync::Arc;

use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::format::{REMOTE_MARK, RemoteMark};
use crate::segment::{RemoteSegments, SegmentSet};
use crate::tier::evicted_segments;

/// Protects the segments of a store that is replicated, but opened without its remote store: none is replaced.
pub(crate) fn protect_unreplicated(disk: &Arc<dyn Disk>, segments: &SegmentSet) -> Result<()> {
    if read_mark(disk.as_ref())?.is_some() {
        let copies = RemoteSegments::new(Arc::clone(disk), segments.store(), None, false);
        segments.replicate(Arc::new(copies));
    }
    Ok(())
}

/// Ends the replication of a store: its segments may be compacted without a remote store. The caller holds the lock of
/// the folder.
///
/// Fails with [`Error::NotAStore`] if segments are only in the remote store.
pub fn detach(disk: &dyn Disk) -> Result<()> {
    let evicted = evicted_segments(disk);
    let count = evicted.map_err(|source| Error::io("listing segments", source))?.len();
    if count > 0 {
        return Err(Error::NotAStore(format!(
            "{count} segments are only in the remote store; start the server with local_cache_bytes = \"0\" until all \
             are fetched back"
        )));
    }
    let io = |source| Error::io(format!("removing {REMOTE_MARK}"), source);
    match disk.remove(REMOTE_MARK) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other.and_then(|()| disk.sync_folder("")).map_err(io),
    }
}

/// Reads the mark; `None` if the store was never replicated from this folder.
pub(super) fn read_mark(disk: &dyn Disk) -> Result<Option<RemoteMark>> {
    let io = |source| Error::io(format!("reading {REMOTE_MARK}"), source);
    let file = match disk.open(REMOTE_MARK) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        other => other.map_err(io)?,
    };
    let length = usize::try_from(file.bytes_len().map_err(io)?).unwrap_or(usize::MAX);
    let mut bytes = vec![0; length.min(READ_BYTES_MAX)];
    file.read_at(0, &mut bytes).map_err(io)?;
    let mark = RemoteMark::decode(&bytes);
    mark.map(Some).map_err(|reason| Error::corrupt(REMOTE_MARK, 0, reason))
}

/// Writes the mark.
pub(super) fn write_mark(disk: &dyn Disk, mark: &RemoteMark) -> Result<()> {
    let io = |source| Error::io(format!("writing {REMOTE_MARK}"), source);
    let part = format!("{REMOTE_MARK}.part");
    match disk.remove(&part) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(io(error)),
        _ => {}
    }
    let file = disk.create(&part).map_err(io)?;
    file.write_at(0, &[&mark.encode()]).map_err(io)?;
    file.sync_data().map_err(io)?;
    disk.rename(&part, REMOTE_MARK).and_then(|()| disk.sync_folder("")).map_err(io)
}

/// Maximum number of bytes that are read; a longer file is no mark.
const READ_BYTES_MAX: usize = 4_096;
