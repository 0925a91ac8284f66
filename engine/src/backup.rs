//! Incremental backup of an open store to another folder.
//!
//! The backup folder has the layout of the store, without the index, which is rebuilt from the segments when the
//! backup is opened. Its `BACKUP` file lists what the image consists of, so the image changes atomically. The steps
//! are:
//!
//! 1. Hold the names of the store's segments: segments that are retired from now on remain until the backup is done,
//!    and nothing is punched.
//! 2. Record the published position and the segments in use.
//! 3. Copy the segments that the image does not have yet: big segments, compacted segments, and log segments up to
//!    the recorded position. Each is written under a temporary name, verified, synced, and renamed. The image is
//!    unchanged.
//! 4. Replace the `BACKUP` file. The image is now the recorded state.
//! 5. Remove the files that no longer belong to it.
//!
//! Guarantees: after a crash at any point the image is that of the last complete backup, or of this one. Everything
//! copied was verified; damage is copied and reported. The store is not changed.
//! Non-goals: the command line, schedules, restore: the image is a store.

mod copy;
mod destination;
mod segment_snapshot;

use std::ops::ControlFlow;
use std::sync::Arc;

use self::copy::Copier;
use self::destination::Destination;
use self::segment_snapshot::Source;
pub(crate) use self::segment_snapshot::{IndexAccess, Published};
use crate::disk::Disk;
use crate::error::{Corruption, Error, Result};
use crate::format::BackupFile;
use crate::limits;
use crate::progress::{ProgressCallback, WorkProgress};
use crate::segment::SegmentSet;

/// Report of a backup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackupReport {
    /// Number of copied segments.
    pub copied_files: u64,
    /// Bytes of copied segments.
    pub copied_bytes: u64,
    /// Number of segments that the image already had.
    pub unchanged_files: u64,
    /// Bytes of segments that the image already had.
    pub unchanged_bytes: u64,
    /// Number of segments removed because the store no longer has them.
    pub removed_files: u64,
    /// LSN of the last record in the image.
    pub last_lsn: u64,
    /// Damage in the copied segments, the first [`limits::DAMAGE_LISTED_MAX`] locations.
    pub damage: Vec<Corruption>,
    /// Number of corrupt locations.
    pub damage_count: u64,
    /// Duration in milliseconds.
    pub duration_ms: u64,
}

impl BackupReport {
    fn add_damage(&mut self, corruption: Corruption) {
        self.damage_count += 1;
        if self.damage.len() < limits::DAMAGE_LISTED_MAX {
            self.damage.push(corruption);
        }
    }
}

/// Creates or updates the image in the folder of `to`.
pub(crate) fn backup(
    segments: &Arc<SegmentSet>,
    index: &IndexAccess<'_>,
    to: &dyn Disk,
    watch: &mut ProgressCallback<'_>,
) -> Result<BackupReport> {
    let begun_ms = segments.clock().monotonic_ms();
    let mut destination = Destination::open(to, segments.store())?;
    let held = segments.block_removal();
    let source = Source::find(segments, &held, index)?;
    destination.prepare(&source)?;

    let mut report = BackupReport { last_lsn: source.last_lsn, ..BackupReport::default() };
    let (total_bytes, total_items) = (source.bytes(), source.files.len() as u64);
    let mut progress = WorkProgress { total_bytes, total_items, ..WorkProgress::default() };
    let mut folders = std::collections::BTreeSet::new();
    for missing in &source.damage {
        report.add_damage(missing.clone());
    }
    for file in &source.files {
        if watch(progress) == ControlFlow::Break(()) {
            return Err(Error::Cancelled);
        }
        // An interrupted backup may have left a file whose name is not durable yet.
        folders.insert(file.id.folder(file.class));
        if destination.has(segments.disk(), file)? {
            report.unchanged_files += 1;
            report.unchanged_bytes += file.bytes;
            progress.done_bytes += file.bytes;
        } else {
            let (from, store) = (segments.disk(), segments.store());
            let copier = Copier { from, to, store, index };
            copier.copy(file, &mut report, &mut progress, watch)?;
        }
        progress.done_items += 1;
    }
    destination.sync_folders(&folders)?;

    let image = BackupFile {
        store: segments.store(),
        last_lsn: source.last_lsn,
        finished_ms: segments.clock().unix_ms(),
        end: source.end,
        segments: source.image_segments(),
    };
    destination.publish(segments.disk(), &image)?;
    report.removed_files = destination.remove_others(&source)?;
    drop(held);
    report.duration_ms = segments.clock().monotonic_ms().saturating_sub(begun_ms);
    Ok(report)
}
