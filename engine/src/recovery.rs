//! Recovery: opens a store after a crash, or creates one, in numbered steps.
//!
//! 1. Read the STORE file, or create it in an empty folder. Turn a backup folder into a store.
//! 2. Open the index; rebuild a missing or unusable one from the whole log. An index that is ahead of the log is
//!    retained, and the missing part of the log is damage.
//! 3. Read the headers of the log segments. A segment with a blank header is a spare and has no content.
//! 4. Replay the log from the position of the index, segment by segment. Finish compactions that were committed
//!    before it.
//! 5. At a broken group, tell a torn tail from damage: it is damage if something durable confirms the group. Corrupt
//!    bodies of records that are superseded later are no damage: they may have been punched.
//! 6. Seal every segment that has groups and no footer, at the end of its last group; a long one is left to be
//!    sealed while the store is in use. New groups go to a new segment.
//! 7. Write a checkpoint if the index was rebuilt, or refers to segments that a compaction replaced.
//! 8. Load the retained segments: big segments whose objects can still be restored.
//! 9. Remove orphans: spares, empty segments, and, unless records are lost, unreferenced big segments, compacted
//!    segments without a committed compaction, and segments that a compaction replaced.
//!
//! Compacted segments retain the LSNs of their records. A rebuilt index gets these records merged with those of the
//! log, in LSN order, as if they were still in it.
//!
//! Guarantees: nothing is truncated that something durable confirms; damage to the last group before a crash may be
//! taken for a torn tail; recovery is idempotent; memory is bounded by one group and one overlay.
//! Non-goals: repairing damage.

mod compaction_state;
mod replay_segment;
mod report;
mod restore_backup;

use std::sync::Arc;

pub(crate) use self::compaction_state::CompactionState;
use self::replay_segment::SegmentReplay;
pub(crate) use self::replay_segment::follows;
pub use self::report::{LogDamage, RecoveryReport};
use crate::clock::Clock;
use crate::commit::write_checkpoint;
use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::format::{
    BIG_FOLDER, BIG_FOLDER_SEGMENTS, COMPACTED_FOLDER, LOG_FOLDER, LsnRanges, Malformed,
    SEGMENT_HEADER_BYTES, STORE_FILE, STORE_FILE_BYTES, SegmentClass, SegmentHeader, SegmentId,
    StoreFile, big_folder_number,
};
use crate::index::{Index, IndexLocation};
use crate::limits;
use crate::replay::Replay;
use crate::rng::Rng;
use crate::segment::{
    CursorFault, LogPosition, SegmentSet, Verification, is_zero, read_header, seal,
};
use crate::upload::UPLOADS_FOLDER;

/// Maximum size of an index file that is verified page by page when the store is opened.
const INDEX_VERIFY_BYTES_MAX: u64 = 64 << 20;

/// Whether a folder without a store may be initialized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Create {
    /// Creates a store in an empty folder; fails with [`Error::NotAStore`] if the folder contains other files.
    IfMissing,
    /// Fails with [`Error::NotAStore`] if there is no store.
    Never,
}

/// Result of recovery: the parts of an open store.
pub(crate) struct RecoveredStore {
    pub(crate) store: StoreFile,
    pub(crate) segments: Arc<SegmentSet>,
    pub(crate) index: Index,
    pub(crate) position: LogPosition,
    pub(crate) report: RecoveryReport,
    /// Whether the index was too large to be verified, so that it needs background verification.
    pub(crate) needs_index_verify: bool,
}

/// Sizes of the caches in bytes.
#[derive(Clone, Copy)]
pub(crate) struct CacheSizes {
    pub(crate) index: usize,
    pub(crate) bodies: usize,
}

/// Opens the folder in any state. The caller holds its lock.
pub(crate) fn recover(
    disk: &Arc<dyn Disk>,
    clock: &Arc<dyn Clock>,
    rng: &Arc<dyn Rng>,
    create: Create,
    caches: CacheSizes,
    verification: Verification,
    undelete_window_ms: u64,
) -> Result<RecoveredStore> {
    let mut report = RecoveryReport::default();
    let store = open_or_create_store_file(disk.as_ref(), clock.as_ref(), rng.as_ref(), create)?;
    restore_backup::apply_manifest(disk.as_ref(), store.store)?;
    let segments = Arc::new(SegmentSet::new(
        Arc::clone(disk),
        Arc::clone(clock),
        Arc::clone(rng),
        store.store,
        verification,
        undelete_window_ms,
        caches.bodies,
    ));
    let mut log = log_segments(&segments, &mut report)?;
    let mut compacted = CompactionState::find(&segments)?;

    let place = || IndexLocation {
        disk: Arc::clone(disk),
        clock: Arc::clone(clock),
        store: store.store,
        cache_bytes: caches.index,
    };
    let index = open_index(place, &log, &mut report)?;
    require_log_of(&index, &log, &mut report);
    let checkpointed = index.checkpointed();
    if let Some(applied) = checkpointed {
        segments.skip_ids_through(applied.next_segment.saturating_sub(1));
    }

    let is_rebuild = checkpointed.is_none();
    if is_rebuild {
        let superseded = compacted.retain_effective();
        // Includes segments that were replaced long ago by a segment replaced since, and that reappear because their
        // removal never became durable: the records that keep their objects dead may no longer exist.
        let covers = compacted.lsn_ranges();
        let is_replaced = |header: &SegmentHeader| {
            superseded.contains(&header.segment)
                || covers.contains(header.base_lsn, header.base_lsn)
        };
        log.retain(|header| !is_replaced(header));
    }
    compacted.make_known(&segments);
    let position = replay_log(&segments, &index, &log, &compacted, &mut report)?;
    segments.restore_retained(index.view().retained()?);
    remove_orphans(&segments, &index, checkpointed.map_or(0, |p| p.orphan_floor), &mut report)?;
    if report.index_rebuilt || compacted.were_replaced(&index.view())? {
        index.freeze();
        match write_checkpoint(&index, &segments) {
            Err(Error::NoSpace) if !report.index_rebuilt => {}
            other => other?,
        }
    }
    compacted.remove_leftovers(&segments, &index.view(), &mut report)?;
    segments.sync_removals()?;
    let index_bytes = disk.open(crate::index::INDEX_FILE).and_then(|file| file.bytes_len());
    let index_wants_audit = !index_bytes.is_ok_and(|bytes| bytes <= INDEX_VERIFY_BYTES_MAX);
    let needs_index_verify = index_wants_audit;
    Ok(RecoveredStore { store, segments, index, position, report, needs_index_verify })
}

fn open_or_create_store_file(
    disk: &dyn Disk,
    clock: &dyn Clock,
    rng: &dyn Rng,
    create: Create,
) -> Result<StoreFile> {
    let io = |source| Error::io("reading STORE", source);
    let file = match disk.open(STORE_FILE) {
        Ok(file) => Some(file),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(io(error)),
    };
    let has_log = !disk.list(LOG_FOLDER).map_err(io)?.is_empty();
    if let Some(file) = &file {
        let mut bytes = [0; STORE_FILE_BYTES];
        let whole = file.bytes_len().map_err(io)? == STORE_FILE_BYTES as u64;
        if whole {
            file.read_at(0, &mut bytes).map_err(io)?;
        }
        match StoreFile::decode(&bytes) {
            Ok(store) if has_log => return Ok(store),
            // The content read may not be durable: the process that created the store may have been killed before
            // its sync.
            Ok(store) => return make_store(disk, store),
            Err(Malformed::Version(version)) => {
                let why = format!(
                    "the store has format version {version}, which this build does not support"
                );
                return Err(Error::NotAStore(why));
            }
            Err(Malformed::Features(bits)) => {
                let why =
                    format!("the store uses features {bits:#x}, which this build does not support");
                return Err(Error::NotAStore(why));
            }
            // The STORE file is durable before anything else is created, so an invalid one in an otherwise empty
            // folder is an unfinished initialization.
            Err(reason) if has_log => return Err(Error::corrupt(STORE_FILE, 0, reason)),
            Err(_) => {}
        }
    }
    if has_log {
        return Err(Error::NotAStore("the folder has log segments but no STORE file".to_owned()));
    }
    if create == Create::Never {
        return Err(Error::NotAStore("the folder contains no store".to_owned()));
    }
    if file.is_none() {
        reject_foreign_files(disk)?;
    }
    make_store(disk, StoreFile { store: rng.uuid(), created_ms: clock.unix_ms() })
}

/// Fails if the folder contains foreign files.
fn reject_foreign_files(disk: &dyn Disk) -> Result<()> {
    let names = disk.list("").map_err(|source| Error::io("listing the data folder", source))?;
    let known = ["LOCK", LOG_FOLDER, BIG_FOLDER, COMPACTED_FOLDER, UPLOADS_FOLDER, "lost+found"];
    match names.iter().find(|name| !known.contains(&name.as_str())) {
        Some(file) => Err(Error::NotAStore(format!(
            "the folder is not a store and contains other files, such as {file}"
        ))),
        None => Ok(()),
    }
}

fn make_store(disk: &dyn Disk, store: StoreFile) -> Result<StoreFile> {
    let made = || {
        disk.create_folder(LOG_FOLDER)?;
        disk.create_folder(BIG_FOLDER)?;
        let file = match disk.create(STORE_FILE) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                disk.open(STORE_FILE)
            }
            other => other,
        }?;
        file.write_at(0, &[&store.encode()])?;
        file.sync_data()?;
        disk.sync_folder("")
    };
    made().map_err(|source| Error::io("creating the store", source))?;
    Ok(store)
}

/// Returns the log segments that have a header, by id. Spares are removed.
fn log_segments(segments: &SegmentSet, report: &mut RecoveryReport) -> Result<Vec<SegmentHeader>> {
    let disk = segments.disk();
    let names = disk.list(LOG_FOLDER).map_err(|source| Error::io("listing the log", source))?;
    // As for big segments: a removed file that reappears after a power cut may have an id that was assigned again.
    segments.was_removed_from(LOG_FOLDER.to_owned());
    let ids = names.iter().filter_map(|name| SegmentId::from_file_name(name));
    let mut headers = Vec::new();
    for id in ids {
        segments.skip_ids_through(id.get());
        let path = id.path(SegmentClass::Log);
        let io = |source| Error::io(format!("opening {path}"), source);
        let file = disk.open(&path).map_err(io)?;
        match read_header(file.as_ref(), &path, id, SegmentClass::Log, segments.store()) {
            Ok(header) => headers.push(header),
            Err(Error::Corrupt(corruption)) => {
                // The header is durable before the first group is written, so a segment with groups has had one.
                let in_use = !is_zero(file.as_ref(), SEGMENT_HEADER_BYTES as u64).map_err(io)?;
                if in_use {
                    report.add_damage(LogDamage {
                        segment: id,
                        offset: 0,
                        first_lsn: None,
                        reason: corruption.reason,
                    });
                } else {
                    segments.retire(id, SegmentClass::Log);
                    report.orphans_removed += 1;
                }
            }
            Err(other) => return Err(other),
        }
    }
    headers.sort_by_key(|header| header.segment);
    remove_unused_segments(segments, &mut headers, report);
    Ok(headers)
}

/// Removes segments that got no group: their successors began at the same log position.
fn remove_unused_segments(
    segments: &SegmentSet,
    headers: &mut Vec<SegmentHeader>,
    report: &mut RecoveryReport,
) {
    let place =
        |header: &SegmentHeader| (header.predecessor, header.first_group, header.previous_group);
    let places: Vec<_> = headers.iter().map(place).collect();
    let mut at = 0;
    headers.retain(|header| {
        at += 1;
        let is_used = !places[at..].contains(&places[at - 1]);
        if !is_used {
            segments.retire(header.segment, SegmentClass::Log);
            report.orphans_removed += 1;
        }
        is_used
    });
}

/// Opens the index, or rebuilds it if it cannot be used with this log.
fn open_index(
    place: impl Fn() -> IndexLocation,
    log: &[SegmentHeader],
    report: &mut RecoveryReport,
) -> Result<Index> {
    let disk = place().disk;
    let had_index = disk.open(crate::index::INDEX_FILE).is_ok();
    let open = || {
        let index = Index::open(place(), INDEX_VERIFY_BYTES_MAX)?;
        // This table is always read entirely.
        index.view().retained()?;
        Ok::<_, Error>(index)
    };
    match open() {
        // An index without a position was not completed.
        Ok(index) if index.checkpointed().is_some() || index.view().segments()?.is_empty() => {
            report.index_rebuilt = !had_index && !log.is_empty();
            return Ok(index);
        }
        Ok(index) => index.close(),
        Err(error) => report.index_fault = Some(error.to_string()),
    }
    report.index_rebuilt = true;
    Index::remove(disk.as_ref())?;
    open()
}

/// Reports a log that ends before the index does. The index is retained, because it identifies the lost objects.
fn require_log_of(index: &Index, log: &[SegmentHeader], report: &mut RecoveryReport) {
    let Some(applied) = index.checkpointed() else { return };
    let Some(segment) = applied.segment else { return };
    let is_known = log.iter().any(|header| header.segment == segment)
        || report.damage.iter().any(|damage| damage.segment == segment);
    if !is_known {
        let first_lsn = Some(applied.lsn);
        let reason = Malformed::Missing;
        report.add_damage(LogDamage { segment, offset: 0, first_lsn, reason });
    }
}

fn replay_log(
    segments: &Arc<SegmentSet>,
    index: &Index,
    log: &[SegmentHeader],
    compacted: &CompactionState,
    report: &mut RecoveryReport,
) -> Result<LogPosition> {
    let is_rebuild = index.checkpointed().is_none();
    let covers = if is_rebuild { compacted.lsn_ranges() } else { LsnRanges::default() };
    let mut replay = match is_rebuild {
        true => Replay::from_scratch(index, segments, compacted.merge(segments))?,
        false => Replay::new(index, segments)?,
    };
    let start = replay.position().segment;
    for (at, header) in log.iter().enumerate() {
        if start.is_some_and(|start| header.segment < start) {
            // All its records are in the index; it was sealed, or is sealed now. Those in the remote store are sealed.
            if segments.is_local(header.segment, SegmentClass::Log) {
                let successors = log.get(at + 1..).unwrap_or_default();
                replay_segment::seal_if_needed(segments, header, successors, report)?;
            }
            continue;
        }
        let successors = log.get(at + 1..).unwrap_or_default();
        SegmentReplay { segments, header, successors, lsn_ranges: &covers }
            .run(&mut replay, report)?;
    }
    replay.apply_merged()?;
    if !is_rebuild {
        compacted.resume_unfinished(&mut replay)?;
    }
    let (faults, unlisted) = replay.take_faults();
    for (segment, fault) in faults {
        let CursorFault { offset, first_lsn, reason } = fault;
        report.add_damage(LogDamage { segment, offset, first_lsn: Some(first_lsn), reason });
    }
    report.damage_unlisted += unlisted;
    let position = replay.position();
    report.replayed_records = replay.finish();
    report.last_lsn = position.lsn;
    Ok(position)
}

/// Removes unreferenced big segments. Only those that the last checkpoint could not account for are examined.
fn remove_orphans(
    segments: &SegmentSet,
    index: &Index,
    floor: u64,
    report: &mut RecoveryReport,
) -> Result<()> {
    let view = index.view();
    let io = |source| Error::io("listing big segments", source);
    for folder in segments.disk().list(BIG_FOLDER).map_err(io)? {
        let Some(number) = big_folder_number(&folder) else { continue };
        if (number + 1).saturating_mul(BIG_FOLDER_SEGMENTS) <= floor {
            continue;
        }
        let folder = format!("{BIG_FOLDER}/{folder}");
        let names = segments.disk().list(&folder).map_err(io)?;
        // Files removed by a killed process are not listed here, and may reappear after a power cut.
        segments.was_removed_from(folder);
        for id in names.iter().filter_map(|name| SegmentId::from_file_name(name)) {
            segments.skip_ids_through(id.get());
            // If records are lost, a lost record may refer to an unreferenced segment.
            let is_orphan = report.damage.is_empty()
                && view.segment_usage(id)?.is_none()
                && !segments.is_retained(id);
            if id.get() >= floor && is_orphan {
                segments.retire(id, SegmentClass::Big);
                report.orphans_removed += 1;
            }
        }
    }
    Ok(())
}

/// Seals a segment at the end of its groups, or defers that until the store is in use: sealing reads the whole
/// segment.
fn seal_at(
    segments: &SegmentSet,
    header: &SegmentHeader,
    end: u64,
    report: &mut RecoveryReport,
) -> Result<()> {
    if end > limits::SEAL_AT_OPENING_BYTES_MAX {
        segments.seal_later(*header, end);
        return replay_segment::leave_unsealed(segments, header);
    }
    match seal(segments.disk(), header, end) {
        Ok(_) => {
            report.segments_sealed += 1;
            Ok(())
        }
        Err(Error::NoSpace | Error::Corrupt(_)) => replay_segment::leave_unsealed(segments, header),
        Err(other) => Err(other),
    }
}
