//! The backup: an image of the store in another folder, made and renewed while the store is in use.
//!
//! The folder is laid out as the store's own, without the index, which is made anew from the segments when the image is
//! opened. What the image consists of is said by its `BACKUP` file, so it changes at once; the steps are:
//!
//! 1. Hold the names of the store's segments: what is retired from now on stays until the backup is done, and nothing
//!    is punched.
//! 2. Note what was published, and which segments it lies in.
//! 3. Copy what the image does not have yet: big segments, compacted ones, those of the log up to the noted position.
//!    Each is written under another name, verified, synced, and renamed. The image still is what it was.
//! 4. Replace the `BACKUP` file. The image now is what was noted.
//! 5. Remove what belongs to it no more.
//!
//! Promises: a crash at any point leaves an image of the store as it was at the last whole backup, or at this one.
//! Everything copied was verified; damage is copied as it is, and told. Nothing of the store is changed.
//! Never here: the command line, schedules, restoring: the image is a store.

mod copy;
mod destination;
mod source;

use std::ops::ControlFlow;
use std::sync::Arc;

use self::copy::Copier;
use self::destination::Destination;
use self::source::Source;
pub(crate) use self::source::{AskIndex, Published};
use crate::disk::Disk;
use crate::error::{Corruption, Error, Result};
use crate::format::BackupFile;
use crate::limits;
use crate::progress::{Watch, WorkProgress};
use crate::segment::SegmentSet;

/// What a backup did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackupReport {
    /// Segments copied, and their bytes.
    pub copied_files: u64,
    /// See [`BackupReport::copied_files`].
    pub copied_bytes: u64,
    /// Segments that were there already, and their bytes.
    pub kept_files: u64,
    /// See [`BackupReport::kept_files`].
    pub kept_bytes: u64,
    /// Segments removed because the store has them no more.
    pub removed_files: u64,
    /// The last record in the image: what was committed up to it is there.
    pub last_lsn: u64,
    /// Damage in what was copied, the first [`limits::DAMAGE_LISTED_MAX`] places of it.
    pub damage: Vec<Corruption>,
    /// In how many places there is damage.
    pub damage_count: u64,
    /// How long it took, in milliseconds.
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

/// Makes or renews the image in the folder of `to`.
pub(crate) fn backup(
    segments: &Arc<SegmentSet>,
    index: &AskIndex<'_>,
    to: &dyn Disk,
    watch: &mut Watch<'_>,
) -> Result<BackupReport> {
    let begun_ms = segments.clock().monotonic_ms();
    let mut destination = Destination::open(to, segments.store())?;
    let held = segments.hold_names();
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
        // A backup that was cut off may have left a file whose name is not durable yet.
        folders.insert(file.id.folder(file.class));
        if destination.has(segments.disk(), file)? {
            report.kept_files += 1;
            report.kept_bytes += file.bytes;
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
