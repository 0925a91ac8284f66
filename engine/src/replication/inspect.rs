//! State of a remote store, and of a data folder compared with it, without opening a store.
//!
//! Guarantees: reads only, also while a server has the folder open.
//! Non-goals: whether the folder has writes that were not shipped, which its index decides.

use std::io::ErrorKind;
use std::path::Path;

use uuid::Uuid;

use super::RestorePoint;
use super::mark::read_mark;
use super::remote_log::{
    damaged, list_all, list_manifests, newest_manifest, read_chunk_header, read_remote_file,
};
use crate::disk::{Disk, RealDisk};
use crate::error::{Error, Result};
use crate::format::{
    CHUNK_PREFIX, Chunk, MANIFEST_PREFIX, Malformed, REMOTE_SEGMENT_PREFIX, STORE_FILE,
    STORE_FILE_BYTES, StoreFile,
};
use crate::remote::RemoteStore;

/// State of a remote store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteStatus {
    /// Store that is replicated there.
    pub store: Uuid,
    /// Last chunk; `None` if no process was the primary yet.
    pub last_chunk: Option<LastChunk>,
    /// Number of restore points.
    pub restore_points: u64,
    /// Newest restore point; `None` before the first upload is complete.
    pub newest_point: Option<RestorePoint>,
}

/// Last chunk of a remote store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastChunk {
    /// Number.
    pub number: u64,
    /// Epoch, which is the newest.
    pub epoch: u64,
    /// Process that created it.
    pub primary: Uuid,
    /// Time of its creation, in milliseconds since 1970, by the clock of the primary.
    pub sent_ms: u64,
    /// LSN of the last record in the remote store.
    pub last_lsn: u64,
}

/// Number and size of the objects with a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixSize {
    /// Prefix, which ends with `/`.
    pub prefix: &'static str,
    /// Number of objects.
    pub objects: u64,
    /// Size of all objects in bytes.
    pub bytes: u64,
}

/// Data folder compared with a remote store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolderStatus {
    /// Store in the folder.
    pub store: Uuid,
    /// Whether the remote store belongs to this store.
    pub is_same_store: bool,
    /// Last epoch whose primary had this folder, 0 for none; `None` if the folder is not replicated.
    pub epoch: Option<u64>,
    /// Whether that is the newest epoch of the remote store.
    pub is_newest_epoch: bool,
}

/// Returns the state of a remote store. Reads the newest manifest, the names of the chunks after it and the last one.
///
/// Fails with [`Error::NotAStore`] if no store was replicated there.
pub fn remote_status(remote: &dyn RemoteStore) -> Result<RemoteStatus> {
    let store = read_remote_file(remote)?;
    let store = store.ok_or_else(|| Error::NotAStore("the remote store is empty".to_owned()))?;
    let manifest = newest_manifest(remote)?;
    let newest_point = manifest.as_ref().map(|manifest| RestorePoint {
        chunk: manifest.chunk,
        created_ms: manifest.created_ms,
        last_lsn: manifest.last_lsn,
    });
    Ok(RemoteStatus {
        store: store.store,
        last_chunk: last_chunk(remote, &store, newest_point.map_or(0, |point| point.chunk))?,
        restore_points: list_manifests(remote)?.len() as u64,
        newest_point,
    })
}

/// Counts the objects of the log, the segments and the manifests. Lists all of them.
pub fn remote_sizes(remote: &dyn RemoteStore) -> Result<Vec<PrefixSize>> {
    let prefixes = [CHUNK_PREFIX, REMOTE_SEGMENT_PREFIX, MANIFEST_PREFIX];
    let sized = prefixes.into_iter().map(|prefix| {
        let mut size = PrefixSize { prefix, objects: 0, bytes: 0 };
        list_all(remote, prefix, None, |object| {
            size.objects += 1;
            size.bytes += object.bytes;
        })?;
        Ok(size)
    });
    sized.collect()
}

/// Compares a data folder with a remote store. Needs no lock. To see a start of the server in the meantime, read the
/// state of the remote store first.
///
/// Fails with [`Error::NotAStore`] if there is no store in the folder.
pub fn folder_status(path: &Path, remote: &RemoteStatus) -> Result<FolderStatus> {
    let io = |source| Error::io(format!("opening {}", path.display()), source);
    let missing = || Error::NotAStore(format!("folder {} has no store", path.display()));
    let disk = match RealDisk::open_existing(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(missing()),
        other => other.map_err(io)?,
    };
    let store = read_store_file(&disk)?.ok_or_else(missing)?.store;
    let is_same_store = store == remote.store;
    let mark = read_mark(&disk)?;
    let is_newest_epoch = is_same_store
        && mark.is_some_and(|mark| match remote.last_chunk {
            Some(last) => mark.epoch >= last.epoch || mark.primary == last.primary,
            None => true,
        });
    Ok(FolderStatus { store, is_same_store, epoch: mark.map(|mark| mark.epoch), is_newest_epoch })
}

fn read_store_file(disk: &dyn Disk) -> Result<Option<StoreFile>> {
    let io = |source| Error::io(format!("reading {STORE_FILE}"), source);
    let file = match disk.open(STORE_FILE) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        other => other.map_err(io)?,
    };
    let mut bytes = [0; STORE_FILE_BYTES];
    file.read_at(0, &mut bytes).map_err(io)?;
    let decoded = StoreFile::decode(&bytes);
    decoded.map(Some).map_err(|reason| Error::corrupt(STORE_FILE, 0, reason))
}

/// Returns the last chunk of the log that continues after the chunk `from`, which a manifest names; 0: from the first.
fn last_chunk(remote: &dyn RemoteStore, store: &StoreFile, from: u64) -> Result<Option<LastChunk>> {
    let mut number = from;
    list_all(remote, CHUNK_PREFIX, Some(&Chunk::object_name(from)), |object| {
        number += u64::from(Chunk::number_of(&object.name) == Some(number + 1));
    })?;
    let mut last = None;
    // The chunks that were created since.
    while let Some(chunk) = read_chunk_header(remote, number.max(1))? {
        let follows = last.is_none_or(|before: Chunk| before.checksum() == chunk.previous);
        if chunk.store != store.store || !follows {
            return Err(damaged(&Chunk::object_name(chunk.number), Malformed::Chain));
        }
        number = chunk.number + 1;
        last = Some(chunk);
    }
    if last.is_none() && from > 0 {
        return Err(damaged(&Chunk::object_name(number), Malformed::Missing));
    }
    Ok(last.map(|Chunk { number, epoch, primary, sent_ms, last_lsn, .. }| LastChunk {
        number,
        epoch,
        primary,
        sent_ms,
        last_lsn,
    }))
}
