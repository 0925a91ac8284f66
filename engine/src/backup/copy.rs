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
use crate::error::{Corruption, Error, Result};
use crate::format::{
    BIG_TRAILER_BYTES, BigTrailer, CheckClass, Malformed, SEGMENT_HEADER_BYTES, SegmentClass,
    SegmentHeader,
};
use crate::limits;
use crate::progress::{ProgressCallback, WorkProgress};
use crate::segment::{RecordCursor, read_header};

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
        let found = match read_header(copy.as_ref(), &file.path, file.id, file.class, self.store) {
            Ok(header) if file.class == SegmentClass::Big => {
                verify_big(copy.as_ref(), &file.path, &header, report)
            }
            Ok(header) => verify_records(copy, file, header, self.index, report),
            Err(error) => Err(error),
        };
        note(found, report)
    }
}

/// Records damage in the report; other errors are returned.
fn note(found: Result<()>, report: &mut BackupReport) -> Result<()> {
    match found {
        Err(Error::Corrupt(corruption)) => {
            report.add_damage(corruption);
            Ok(())
        }
        other => other,
    }
}

fn verify_records(
    copy: &Arc<dyn DiskFile>,
    file: &SourceFile,
    header: SegmentHeader,
    index: &IndexAccess<'_>,
    report: &mut BackupReport,
) -> Result<()> {
    let mut cursor = RecordCursor::open(Arc::clone(copy), file.path.clone(), header, file.end)?;
    while let Some(found) = cursor.step()? {
        match cursor.read_body(&found) {
            Ok(_) => {}
            Err(Error::Corrupt(_))
                if (index.may_be_punched)(&found.record, found.place)?
                    && cursor.is_punched(&found)? => {}
            Err(error) => note(Err(error), report)?,
        }
    }
    for fault in cursor.faults() {
        let (offset, reason) = (fault.offset, fault.reason);
        report.add_damage(Corruption { file: file.path.clone(), offset, reason, object: None });
    }
    Ok(())
}

fn verify_big(
    copy: &dyn DiskFile,
    path: &str,
    header: &SegmentHeader,
    report: &mut BackupReport,
) -> Result<()> {
    let io = |source| Error::io(format!("reading {path}"), source);
    let damaged = |offset, reason| Error::corrupt(path, offset, reason);
    let length = copy.bytes_len().map_err(io)?;
    let trailer_at = length
        .checked_sub(BIG_TRAILER_BYTES as u64)
        .ok_or_else(|| damaged(length, Malformed::Short))?;
    let mut trailer = [0; BIG_TRAILER_BYTES];
    copy.read_at(trailer_at, &mut trailer).map_err(io)?;
    let trailer = BigTrailer::decode(&trailer, header.context().at(trailer_at))
        .map_err(|reason| damaged(trailer_at, reason))?;
    let table_at = BigTrailer::table_offset(trailer.body_bytes);
    let mut table = vec![0; usize::try_from(trailer_at - table_at).unwrap_or(0)];
    copy.read_at(table_at, &mut table).map_err(io)?;
    trailer.verify_table(&table).map_err(|reason| damaged(table_at, reason))?;
    let mut block = vec![0; limits::BLOCK_BYTES];
    let mut at = SEGMENT_HEADER_BYTES as u64;
    for number in 0.. {
        let Some(checksum) = BigTrailer::block(&table, number) else { break };
        let length = (table_at - at).min(limits::BLOCK_BYTES as u64);
        let bytes = block.get_mut(..usize::try_from(length).unwrap_or(0)).unwrap_or_default();
        copy.read_at(at, bytes).map_err(io)?;
        let verified = checksum.verify(CheckClass::Block, bytes, header.context().at(at));
        note(verified.map_err(|reason| damaged(at, reason)), report)?;
        at += length;
    }
    Ok(())
}
