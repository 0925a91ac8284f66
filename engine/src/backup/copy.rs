//! Copies one segment and verifies the copy.
//!
//! Guarantees: the copy gets its name only when it is durable. Verification reads the copy back.
//! Non-goals: the choice of segments.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::BackupReport;
use super::destination::{at_destination, part_of};
use super::segment_snapshot::{IndexAccess, SourceFile};
use crate::disk::{Disk, DiskFile};
use crate::error::{Error, Result};
use crate::limits;
use crate::progress::{ProgressCallback, WorkProgress};
use crate::segment::{CursorRecord, SegmentCopy};

/// Copier of segments from one folder to another.
pub(super) struct Copier<'a> {
    pub(super) from: &'a dyn Disk,
    pub(super) to: &'a dyn Disk,
    pub(super) store: uuid::Uuid,
    pub(super) index: &'a IndexAccess<'a>,
}

impl Copier<'_> {
    /// Copies a segment and replaces an existing file of its name.
    pub(super) fn copy(
        &self,
        file: &SourceFile,
        report: &mut BackupReport,
        progress: &mut WorkProgress,
        watch: &mut ProgressCallback<'_>,
    ) -> Result<()> {
        let part = part_of(&file.path);
        let io = |source| at_destination(&part, source);
        match self.to.remove(&part) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(io(error)),
            _ => {}
        }
        self.to.create_folder(&file.id.folder(file.class)).map_err(io)?;
        let copy = self.to.create(&part).map_err(io)?;
        self.copy_bytes(file, copy.as_ref(), progress, watch)?;
        copy.sync_data().map_err(io)?;
        self.verify(file, &copy, report)?;
        self.to.rename(&part, &file.path).map_err(io)?;
        report.copied_files += 1;
        report.copied_bytes += file.bytes;
        Ok(())
    }

    fn copy_bytes(
        &self,
        file: &SourceFile,
        copy: &dyn DiskFile,
        progress: &mut WorkProgress,
        watch: &mut ProgressCallback<'_>,
    ) -> Result<()> {
        let io = |source| Error::io(format!("reading {}", file.path), source);
        let source = self.from.open(&file.path).map_err(io)?;
        let mut buffer = vec![0; limits::WRITE_BYTES_MAX];
        let mut at = 0;
        while at < file.bytes {
            if watch(*progress) == ControlFlow::Break(()) {
                return Err(Error::Cancelled);
            }
            let length = (file.bytes - at).min(limits::WRITE_BYTES_MAX as u64);
            let piece = buffer.get_mut(..usize::try_from(length).unwrap_or(0)).unwrap_or_default();
            source.read_at(at, piece).map_err(io)?;
            // Punched ranges stay holes in the copy.
            if piece.iter().any(|&byte| byte != 0) {
                copy.write_at(at, &[piece]).map_err(|why| at_destination(&file.path, why))?;
            }
            at += length;
            progress.done_bytes += length;
        }
        copy.set_len(file.bytes).map_err(|why| at_destination(&file.path, why))
    }

    fn verify(
        &self,
        file: &SourceFile,
        copy: &Arc<dyn DiskFile>,
        report: &mut BackupReport,
    ) -> Result<()> {
        let SourceFile { id, class, end, .. } = *file;
        let verified =
            SegmentCopy { file: copy, path: &file.path, id, class, store: self.store, end };
        let may_be_punched =
            |found: &CursorRecord| (self.index.may_be_punched)(&found.record, found.place);
        verified.verify(&may_be_punched, &mut |_| {}, &mut |error| {
            if let Error::Corrupt(corruption) = error {
                report.add_damage(corruption);
            }
        })
    }
}
