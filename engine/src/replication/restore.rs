//! Restore of a store from its remote store into an empty folder.
//!
//! The file `STORE` is written last: an interrupted restore leaves no store.
//!
//! Guarantees: the restored store is the one of a manifest, or of a chunk after it: a prefix of the log that ends at a
//! batch. Everything fetched is verified; damage is fetched once more, and then reported.
//! Non-goals: the index, which is rebuilt when the store is opened.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use super::remote_log::{
    RemoteLog, damaged, list_all, list_manifests, newest_manifest, read_manifest, read_remote_file,
};
use crate::clock::SystemClock;
use crate::disk::{Disk, DiskFile, LOCK};
use crate::error::{Error, Result};
use crate::format::{
    BIG_FOLDER, COMPACTED_FOLDER, Chunk, ChunkKind, LOG_FOLDER, Malformed, Manifest,
    ManifestSegment, REMOTE_SEGMENT_PREFIX, Record, RecordContent, RecordOp, RemoteSegment,
    STORE_FILE, SegmentClass, SegmentId, StoreFile,
};
use crate::limits;
use crate::progress::{ProgressCallback, WorkProgress};
use crate::remote::{Part, RemoteStore};
use crate::segment::SegmentCopy;
use crate::tier::TieredDisk;

/// State to which a store can be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestorePoint {
    /// Number of the chunk.
    pub chunk: u64,
    /// Time of the state, in milliseconds since 1970, by the clock of the primary.
    pub created_ms: u64,
    /// LSN of the last record.
    pub last_lsn: u64,
}

/// Report of a restore.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestoreReport {
    /// LSN of the last restored record.
    pub last_lsn: u64,
    /// Time of the restored state, in milliseconds since 1970, by the clock of the primary.
    pub created_ms: u64,
    /// Number of segments fetched or referred to.
    pub segments: u64,
    /// Number of chunks applied.
    pub chunks: u64,
    /// Bytes fetched.
    pub bytes: u64,
    /// Damage in the remote store, the first [`limits::DAMAGE_LISTED_MAX`] errors.
    pub damage: Vec<String>,
    /// Number of errors.
    pub damage_count: u64,
}

/// Lists the restore points of a remote store, from the oldest to the newest.
pub fn restore_points(remote: &dyn RemoteStore) -> Result<Vec<RestorePoint>> {
    let mut points = Vec::new();
    for (chunk, _) in list_manifests(remote)? {
        match read_manifest(remote, chunk) {
            Ok(Some(Manifest { created_ms, last_lsn, .. })) => {
                points.push(RestorePoint { chunk, created_ms, last_lsn });
            }
            Ok(None) | Err(Error::Corrupt(_)) => {}
            Err(other) => return Err(other),
        }
    }
    Ok(points)
}

/// Restores a store into an empty folder, whose lock the caller holds: the newest state, or the last one at or before
/// `at_ms`, in milliseconds since 1970.
///
/// Fails with [`Error::NotAStore`] if the folder is not empty, or the remote store has no restore point of that time.
pub fn restore(
    remote: &dyn RemoteStore,
    to: &dyn Disk,
    at_ms: Option<u64>,
    watch: &mut ProgressCallback<'_>,
) -> Result<RestoreReport> {
    restore_to(remote, to, None, at_ms, watch)
}

/// Restores the newest state like [`restore`], with references to the segments that are in the remote store: they are
/// fetched when they are read, with the same remote store in the options of the store. Of segments with records the
/// record heads are read.
pub fn restore_references(
    remote: &Arc<dyn RemoteStore>,
    to: &Arc<dyn Disk>,
    watch: &mut ProgressCallback<'_>,
) -> Result<RestoreReport> {
    let clock = Arc::new(SystemClock::new());
    let tier = TieredDisk::new(Arc::clone(to), Arc::clone(remote), clock);
    restore_to(remote.as_ref(), to.as_ref(), Some(&tier), None, watch)
}

fn restore_to(
    remote: &dyn RemoteStore,
    to: &dyn Disk,
    tier: Option<&TieredDisk>,
    at_ms: Option<u64>,
    watch: &mut ProgressCallback<'_>,
) -> Result<RestoreReport> {
    let names = to.list("").map_err(|source| Error::io("listing the folder", source))?;
    if let Some(name) = names.iter().find(|name| *name != LOCK) {
        return Err(Error::NotAStore(format!("the folder to restore to contains {name}")));
    }
    let store = read_remote_file(remote)?;
    let store = store.ok_or_else(|| Error::NotAStore("the remote store is empty".to_owned()))?;
    let mut report = RestoreReport::default();
    let log = find_state(remote, &store, at_ms, &mut report)?;
    let mut target = Target {
        remote,
        to,
        tier,
        store: store.store,
        big: BTreeMap::new(),
        report,
        progress: WorkProgress::default(),
        watch,
    };
    target.run(&log)?;
    let mut report = target.report;
    write_store(to, &store)?;
    report.last_lsn = log.position.lsn;
    let newest = log.chunks.last().map(|chunk| chunk.sent_ms);
    let of_manifest = log.manifest.as_ref().map_or(0, |manifest| manifest.created_ms);
    report.created_ms = newest.unwrap_or(of_manifest);
    Ok(report)
}

/// Finds the log to be restored.
fn find_state(
    remote: &dyn RemoteStore,
    store: &StoreFile,
    at_ms: Option<u64>,
    report: &mut RestoreReport,
) -> Result<RemoteLog> {
    let manifest = match at_ms {
        None => newest_manifest(remote)?,
        Some(at_ms) => {
            let points = restore_points(remote)?;
            match points.iter().rev().find(|point| point.created_ms <= at_ms) {
                Some(point) => read_manifest(remote, point.chunk)?,
                None => None,
            }
        }
    };
    if manifest.is_none() {
        return Err(Error::NotAStore(
            match at_ms {
                None => {
                    "the remote store has no restore point yet: the first upload is not complete"
                }
                Some(_) => "the remote store has no restore point at or before this time",
            }
            .to_owned(),
        ));
    }
    let mut log = RemoteLog::at(manifest, store)?;
    // The log ends before a damaged chunk.
    match log.follow(remote, store, |chunk| at_ms.is_none_or(|at_ms| chunk.sent_ms <= at_ms)) {
        Err(error @ Error::Corrupt(_)) => add_damage(report, &error),
        other => other?,
    }
    Ok(log)
}

/// Folder that is restored.
pub(super) struct Target<'a, 'w> {
    pub(super) remote: &'a dyn RemoteStore,
    to: &'a dyn Disk,
    /// `None`: segments are fetched; otherwise they are referred to.
    tier: Option<&'a TieredDisk>,
    pub(super) store: uuid::Uuid,
    /// Big segments that records name, with the hash of their body.
    pub(super) big: BTreeMap<SegmentId, [u8; 32]>,
    pub(super) report: RestoreReport,
    progress: WorkProgress,
    watch: &'a mut ProgressCallback<'w>,
}

impl Target<'_, '_> {
    fn run(&mut self, log: &RemoteLog) -> Result<()> {
        let io = |source| Error::io("creating the folders of the store", source);
        for folder in [LOG_FOLDER, BIG_FOLDER, COMPACTED_FOLDER] {
            self.to.create_folder(folder).map_err(io)?;
        }
        let manifest = log.manifest.as_ref();
        let segments = manifest.map(|manifest| &manifest.segments[..]).unwrap_or_default();
        self.progress.total_bytes = segments.iter().map(|segment| segment.bytes).sum();
        for segment in segments {
            self.fetch_or_assemble(segment, log)?;
        }
        self.apply_chunks(log)?;
        self.check_log(log)?;
        let folders = self.fetch_big_segments()?;
        let fixed = [LOG_FOLDER, COMPACTED_FOLDER, BIG_FOLDER].map(str::to_owned);
        for folder in folders.into_iter().chain(fixed) {
            let synced = self.to.sync_folder(&folder);
            synced.map_err(|source| Error::io(format!("syncing {folder}"), source))?;
        }
        Ok(())
    }

    /// Fetches a segment of the manifest from `seg/`, or assembles it from chunks.
    fn fetch_or_assemble(&mut self, segment: &ManifestSegment, log: &RemoteLog) -> Result<()> {
        let ends = log.manifest.as_ref().and_then(|manifest| manifest.end);
        let id = segment.object.id;
        let end = ends.filter(|end| end.segment == id).map(|end| end.end);
        if let (Some(tier), None, None) = (self.tier, end, segment.first_chunk) {
            return self.refer(tier, segment);
        }
        if self.fetch(segment.object, segment.class, end)? {
            return Ok(());
        }
        let Some(first) = segment.first_chunk else {
            let name = segment.object.object_name();
            add_damage(&mut self.report, &damaged(&name, Malformed::Missing));
            return Ok(());
        };
        let last = log.manifest.as_ref().map_or(0, |manifest| manifest.chunk);
        for number in first..=last {
            let (chunk, body) = match self.read_chunk(number) {
                Ok(Some(read)) => read,
                Ok(None) => continue,
                Err(error @ Error::Corrupt(_)) => {
                    add_damage(&mut self.report, &error);
                    continue;
                }
                Err(other) => return Err(other),
            };
            if chunk.segment == Some(id) {
                self.write(&chunk, &body)?;
            }
        }
        Ok(())
    }

    /// Fetches, or refers to, the big segments that records name, as far as they exist. Returns their folders.
    fn fetch_big_segments(&mut self) -> Result<BTreeSet<String>> {
        let big = std::mem::take(&mut self.big);
        self.progress.total_items = big.len() as u64;
        let mut objects: Vec<(RemoteSegment, u64)> = Vec::new();
        if !big.is_empty() {
            list_all(self.remote, REMOTE_SEGMENT_PREFIX, None, |found| {
                let object = RemoteSegment::from_object_name(&found.name);
                let object = object.filter(|object| big.contains_key(&object.id));
                objects.extend(object.map(|object| (object, found.bytes)));
            })?;
        }
        let mut folders = BTreeSet::new();
        for same_id in objects.chunk_by(|(one, _), (next, _)| one.id == next.id) {
            for (object, bytes) in same_id {
                let id = object.id;
                folders.insert(id.folder(SegmentClass::Big));
                let is_there = match self.tier {
                    None => self.fetch(*object, SegmentClass::Big, None)?,
                    Some(tier) => self.refer_to_big(tier, *object, *bytes).map(|()| true)?,
                };
                let is_known = self.tier.is_some() && same_id.len() == 1;
                if is_there && (is_known || self.is_content(id, big.get(&id))?) {
                    self.progress.done_items += 1;
                    break;
                }
            }
        }
        Ok(folders)
    }

    /// Returns whether a fetched big segment has the content that the record names; otherwise another process uploaded
    /// it, and it is removed.
    fn is_content(&self, id: SegmentId, expected: Option<&[u8; 32]>) -> Result<bool> {
        let class = SegmentClass::Big;
        let path = &id.path(class);
        let disk: &dyn Disk = self.tier.map_or(self.to, |tier| tier);
        let file =
            &disk.open(path).map_err(|source| Error::io(format!("opening {path}"), source))?;
        let copy = SegmentCopy { file, path, id, class, store: self.store, end: None };
        match copy.big_hash() {
            Ok(hash) if Some(&hash) != expected => {
                let removed = disk.remove(path);
                removed.map_err(|source| Error::io(format!("removing {path}"), source))?;
                Ok(false)
            }
            // Damage, which the verification reported.
            Ok(_) | Err(Error::Corrupt(_)) => Ok(true),
            Err(other) => Err(other),
        }
    }

    /// Writes the chunks after the manifest.
    fn apply_chunks(&mut self, log: &RemoteLog) -> Result<()> {
        for chunk in log.chunks.iter().filter(|chunk| chunk.kind == ChunkKind::Log) {
            match self.read_chunk(chunk.number)? {
                Some((found, body)) if found == *chunk => self.write(&found, &body)?,
                _ => return Err(damaged(&Chunk::object_name(chunk.number), Malformed::Missing)),
            }
            self.report.chunks += 1;
        }
        Ok(())
    }

    /// Reads a log chunk; a damaged one is read once more. `None` if there is none.
    fn read_chunk(&mut self, number: u64) -> Result<Option<(Chunk, bytes::Bytes)>> {
        let name = Chunk::object_name(number);
        let mut reason = Malformed::Missing;
        for _ in 0..2 {
            let found = self.remote.read(&name, Part::Whole);
            let found = found.map_err(|why| Error::remote(format!("reading {name}"), &why))?;
            let Some(found) = found else { return Ok(None) };
            match Chunk::decode(&found.bytes) {
                Ok((chunk, body)) => {
                    self.count(found.bytes.len() as u64)?;
                    return Ok(Some((chunk, found.bytes.slice_ref(body))));
                }
                Err(why) => reason = why,
            }
        }
        Err(damaged(&name, reason))
    }

    fn write(&mut self, chunk: &Chunk, body: &[u8]) -> Result<()> {
        let Some(segment) = chunk.segment.filter(|_| !body.is_empty()) else { return Ok(()) };
        let path = segment.path(SegmentClass::Log);
        let io = |source| Error::io(format!("writing {path}"), source);
        let file = self.open_or_create(&path)?;
        file.write_at(chunk.from, &[body]).map_err(io)
    }

    /// Fetches a segment from `seg/` and verifies it. Returns false if it is not there.
    fn fetch(
        &mut self,
        object: RemoteSegment,
        class: SegmentClass,
        end: Option<u64>,
    ) -> Result<bool> {
        let (name, id) = (object.object_name(), object.id);
        let path = id.path(class);
        let folder = id.folder(class);
        let created = self.to.create_folder(&folder);
        created.map_err(|source| Error::io(format!("creating {folder}"), source))?;
        let mut damage = Vec::new();
        for _ in 0..2 {
            if !self.fetch_once(&name, &path, end)? {
                return Ok(false);
            }
            damage = self.verify(id, class, &path, end)?;
            if damage.is_empty() {
                break;
            }
        }
        self.report.segments += 1;
        damage.iter().for_each(|error| add_damage(&mut self.report, error));
        Ok(true)
    }

    fn fetch_once(&mut self, name: &str, path: &str, end: Option<u64>) -> Result<bool> {
        let io = |source| Error::io(format!("writing {path}"), source);
        let mut file: Option<Arc<dyn DiskFile>> = None;
        let mut at = 0;
        loop {
            let piece = Part::Range(at..at + limits::CHUNK_BYTES_MAX);
            let found = self.remote.read(name, piece);
            let found = found.map_err(|why| Error::remote(format!("reading {name}"), &why))?;
            let Some(found) = found else { return Ok(false) };
            let open = match &file {
                Some(file) => file,
                None => file.insert(self.open_or_create(path)?),
            };
            open.write_at(at, &[&found.bytes]).map_err(io)?;
            at += found.bytes.len() as u64;
            self.count(found.bytes.len() as u64)?;
            let bytes = end.unwrap_or(found.object_bytes).min(found.object_bytes);
            if at >= bytes || found.bytes.is_empty() {
                open.set_len(bytes).and_then(|()| open.sync_data()).map_err(io)?;
                return Ok(true);
            }
        }
    }

    fn open_or_create(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        let opened = match self.to.open(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => self.to.create(path),
            other => other,
        };
        opened.map_err(|source| Error::io(format!("creating {path}"), source))
    }

    fn sync(&self, path: &str) -> Result<()> {
        match self.to.open(path) {
            // A missing file is damage, which the verification reports.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            other => other.and_then(|file| file.sync_data()),
        }
        .map_err(|source| Error::io(format!("syncing {path}"), source))
    }

    /// Makes the log segments durable that were written from chunks, and verifies them.
    fn check_log(&mut self, log: &RemoteLog) -> Result<()> {
        let mut assembled: BTreeMap<SegmentId, u64> = BTreeMap::new();
        for (id, segment) in &log.log {
            if segment.first_chunk.is_some() {
                assembled.insert(*id, segment.bytes);
            }
        }
        if let Some(last) = log.position.segment {
            assembled.insert(last, log.position.offset);
        }
        for (id, end) in assembled {
            let path = id.path(SegmentClass::Log);
            self.sync(&path)?;
            for error in self.verify(id, SegmentClass::Log, &path, Some(end))? {
                add_damage(&mut self.report, &error);
            }
        }
        Ok(())
    }

    /// Verifies a segment and collects the big segments that it names. Returns its damage.
    fn verify(
        &mut self,
        id: SegmentId,
        class: SegmentClass,
        path: &str,
        end: Option<u64>,
    ) -> Result<Vec<Error>> {
        let missing = |source: std::io::Error| match source.kind() {
            std::io::ErrorKind::NotFound => Error::corrupt(path, 0, Malformed::Missing),
            _ => Error::io(format!("opening {path}"), source),
        };
        let file = match self.to.open(path).map_err(missing) {
            Err(error @ Error::Corrupt(_)) => return Ok(vec![error]),
            other => other?,
        };
        let copy = SegmentCopy { file: &file, path, id, class, store: self.store, end };
        let mut damage = Vec::new();
        let (big, add) = (&mut self.big, &mut |error| damage.push(error));
        // A body that was punched at the primary before its upload is dead.
        copy.verify(
            &|_| Ok(true),
            &mut |found| {
                big.extend(big_reference(&found.record));
            },
            add,
        )?;
        Ok(damage)
    }

    /// Counts fetched bytes, and reports progress.
    fn count(&mut self, bytes: u64) -> Result<()> {
        self.report.bytes += bytes;
        self.progress.done_bytes += bytes;
        match (self.watch)(self.progress) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::Cancelled),
        }
    }
}

pub(super) fn add_damage(report: &mut RestoreReport, error: &Error) {
    report.damage_count += 1;
    if report.damage.len() < limits::DAMAGE_LISTED_MAX {
        report.damage.push(error.to_string());
    }
}

/// Returns the big segment that a record names, with the hash of its body.
pub(super) fn big_reference(record: &Record) -> Option<(SegmentId, [u8; 32])> {
    match &record.op {
        RecordOp::Put { content: RecordContent::Big { segment, .. }, meta, .. } => {
            Some((*segment, meta.hash))
        }
        _ => None,
    }
}

fn write_store(to: &dyn Disk, store: &StoreFile) -> Result<()> {
    let io = |source| Error::io(format!("writing {STORE_FILE}"), source);
    to.sync_folder("").map_err(io)?;
    let file = to.create(STORE_FILE).map_err(io)?;
    file.write_at(0, &[&store.encode()]).map_err(io)?;
    file.sync_data().map_err(io)?;
    to.sync_folder("").map_err(io)
}
