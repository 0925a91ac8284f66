//! Log in the remote store: the newest manifest, and the chunks after it.
//!
//! Guarantees: a chunk is accepted only if it names the store, its number and the checksum of the chunk before.
//! Non-goals: the bodies of chunks; writing.

use std::collections::BTreeMap;

use super::status::RemoteLogSegment;
use crate::error::{Error, Result};
use crate::format::{
    CHUNK_HEADER_BYTES, Checksum, Chunk, ChunkKind, MANIFEST_PREFIX, Malformed, Manifest,
    ManifestSegment, REMOTE_FILE, SegmentClass, SegmentId, StoreFile, decode_remote_file,
};
use crate::remote::{Part, RemoteStore};
use crate::segment::LogPosition;

/// Log as found in a remote store.
pub(super) struct RemoteLog {
    pub(super) manifest: Option<Manifest>,
    /// Chunks after the manifest.
    pub(super) chunks: Vec<Chunk>,
    /// Last chunk, with its checksum.
    pub(super) chunk: u64,
    pub(super) checksum: Checksum,
    /// Last epoch; 0 for none.
    pub(super) epoch: u64,
    pub(super) position: LogPosition,
    pub(super) log: BTreeMap<SegmentId, RemoteLogSegment>,
}

/// Reads the `remote` object; `None` if there is none.
pub(super) fn read_remote_file(remote: &dyn RemoteStore) -> Result<Option<StoreFile>> {
    let found = remote.read(REMOTE_FILE, Part::Whole);
    let found = found.map_err(|source| Error::remote(format!("reading {REMOTE_FILE}"), &source))?;
    let decoded = found.map(|found| decode_remote_file(&found.bytes)).transpose();
    decoded.map_err(|reason| damaged(REMOTE_FILE, reason))
}

/// Reads the manifest as of this chunk; `None` if it does not exist.
pub(super) fn read_manifest(remote: &dyn RemoteStore, chunk: u64) -> Result<Option<Manifest>> {
    let name = Manifest::object_name(chunk);
    let found = remote.read(&name, Part::Whole);
    let found = found.map_err(|source| Error::remote(format!("reading {name}"), &source))?;
    let Some(found) = found else { return Ok(None) };
    let manifest = Manifest::decode(&found.bytes).map_err(|reason| damaged(&name, reason))?;
    if manifest.chunk == chunk {
        Ok(Some(manifest))
    } else {
        Err(damaged(&name, Malformed::Misplaced))
    }
}

/// Lists the manifests, ascending, each with its modification time by the clock of the remote store.
pub(super) fn list_manifests(remote: &dyn RemoteStore) -> Result<Vec<(u64, u64)>> {
    let mut all = Vec::new();
    list_all(remote, MANIFEST_PREFIX, None, |object| {
        all.extend(Manifest::chunk_of(&object.name).map(|chunk| (chunk, object.modified_ms)));
    })?;
    Ok(all)
}

/// Calls `each` for all objects with this prefix, starting after the name `after`.
pub(super) fn list_all(
    remote: &dyn RemoteStore,
    prefix: &str,
    after: Option<&str>,
    mut each: impl FnMut(&crate::remote::RemoteObject),
) -> Result<()> {
    let mut after = after.map(str::to_owned);
    loop {
        let page = remote.list(prefix, after.as_deref(), LIST_PAGE);
        let page = page.map_err(|source| Error::remote(format!("listing {prefix}"), &source))?;
        page.iter().for_each(&mut each);
        match page.last() {
            Some(last) if page.len() == LIST_PAGE => after = Some(last.name.clone()),
            _ => return Ok(()),
        }
    }
}

/// Reads the newest manifest that is intact.
pub(super) fn newest_manifest(remote: &dyn RemoteStore) -> Result<Option<Manifest>> {
    for (chunk, _) in list_manifests(remote)?.into_iter().rev() {
        match read_manifest(remote, chunk) {
            Ok(Some(manifest)) => return Ok(Some(manifest)),
            // It was collected since, or an older one has to do.
            Ok(None) | Err(Error::Corrupt(_)) => {}
            Err(other) => return Err(other),
        }
    }
    Ok(None)
}

impl RemoteLog {
    /// Reads the log from its newest manifest, or from the first chunk.
    pub(super) fn read(remote: &dyn RemoteStore, store: &StoreFile) -> Result<Self> {
        let mut log = Self::at(newest_manifest(remote)?, store)?;
        log.follow(remote, store, |_| true)?;
        Ok(log)
    }

    /// Returns the log as of a manifest; empty without one.
    pub(super) fn at(manifest: Option<Manifest>, store: &StoreFile) -> Result<Self> {
        let mut log = Self {
            chunks: Vec::new(),
            chunk: 0,
            checksum: Checksum::default(),
            epoch: 0,
            position: LogPosition::START,
            log: BTreeMap::new(),
            manifest: None,
        };
        let Some(manifest) = manifest else { return Ok(log) };
        if manifest.store != store.store {
            return Err(damaged(&Manifest::object_name(manifest.chunk), Malformed::Misplaced));
        }
        log.chunk = manifest.chunk;
        log.checksum = manifest.chunk_checksum;
        log.epoch = manifest.epoch;
        log.position = LogPosition {
            lsn: manifest.last_lsn,
            segment: manifest.end.map(|end| end.segment),
            offset: manifest.end.map_or(0, |end| end.end),
            next_group: manifest.next_group,
            previous_group: manifest.previous_group,
        };
        let of_log = manifest.segments.iter().filter(|it| it.class == SegmentClass::Log);
        log.log = of_log
            .map(|&ManifestSegment { object, bytes, first_chunk, .. }| {
                (object.id, RemoteLogSegment { salt: object.salt, first_chunk, bytes })
            })
            .collect();
        log.manifest = Some(manifest);
        Ok(log)
    }

    /// Adds the chunks that follow, up to the first that does not exist or that `accepts` rejects. Fails if a chunk
    /// does not follow the one before: a newer manifest may continue.
    pub(super) fn follow(
        &mut self,
        remote: &dyn RemoteStore,
        store: &StoreFile,
        mut accepts: impl FnMut(&Chunk) -> bool,
    ) -> Result<()> {
        while let Some(chunk) = read_chunk_header(remote, self.chunk + 1)? {
            let name = Chunk::object_name(chunk.number);
            if chunk.store != store.store || chunk.previous != self.checksum {
                return Err(damaged(&name, Malformed::Chain));
            }
            if !accepts(&chunk) {
                break;
            }
            self.add(chunk);
        }
        Ok(())
    }

    fn add(&mut self, chunk: Chunk) {
        self.chunk = chunk.number;
        self.checksum = chunk.checksum();
        self.position = end_of(&chunk);
        self.epoch = chunk.epoch;
        add_log_bytes(&mut self.log, &chunk);
        self.chunks.push(chunk);
    }
}

/// Returns the log position at the end of a chunk.
pub(super) fn end_of(chunk: &Chunk) -> LogPosition {
    LogPosition {
        lsn: chunk.last_lsn,
        segment: chunk.segment,
        offset: chunk.from + chunk.bytes,
        next_group: chunk.next_group,
        previous_group: chunk.previous_group,
    }
}

/// Records that a chunk with bytes of the log exists.
pub(super) fn add_log_bytes(log: &mut BTreeMap<SegmentId, RemoteLogSegment>, chunk: &Chunk) {
    if let (ChunkKind::Log, Some(segment)) = (chunk.kind, chunk.segment) {
        let bytes = chunk.from + chunk.bytes;
        let (salt, first_chunk) = (chunk.salt, Some(chunk.number));
        log.entry(segment).or_insert(RemoteLogSegment { salt, first_chunk, bytes }).bytes = bytes;
    }
}

/// Reads the header of a chunk; `None` if there is no chunk of this number.
pub(super) fn read_chunk_header(remote: &dyn RemoteStore, number: u64) -> Result<Option<Chunk>> {
    let name = Chunk::object_name(number);
    let found = remote.read(&name, Part::Range(0..CHUNK_HEADER_BYTES as u64));
    let found = found.map_err(|source| Error::remote(format!("reading {name}"), &source))?;
    let Some(found) = found else { return Ok(None) };
    let chunk = Chunk::decode_header(&found.bytes).map_err(|reason| damaged(&name, reason))?;
    let is_whole = found.object_bytes == CHUNK_HEADER_BYTES as u64 + chunk.bytes;
    match (chunk.number == number, is_whole) {
        (true, true) => Ok(Some(chunk)),
        (false, _) => Err(damaged(&name, Malformed::Misplaced)),
        (true, false) => Err(damaged(&name, Malformed::Short)),
    }
}

/// Creates the error for a damaged object of the remote store.
pub(super) fn damaged(name: &str, reason: Malformed) -> Error {
    Error::corrupt(format!("{name} in the remote store"), 0, reason)
}

const LIST_PAGE: usize = 1_000;
