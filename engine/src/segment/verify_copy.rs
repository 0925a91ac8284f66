//! Verification of the copy of a segment, in another folder.
//!
//! Guarantees: reads every head and every block. Damage is passed on, and verification continues.
//! Non-goals: the origin of the copy; the index.

use std::sync::Arc;

use super::open_segment::read_header;
use super::record_cursor::{CursorRecord, RecordCursor};
use crate::disk::DiskFile;
use crate::error::{Error, Result};
use crate::format::{
    BIG_TRAILER_BYTES, BigTrailer, CheckClass, Malformed, SEGMENT_HEADER_BYTES, SegmentClass,
    SegmentHeader, SegmentId,
};
use crate::limits;

/// Copy of a segment.
pub(crate) struct SegmentCopy<'a> {
    pub(crate) file: &'a Arc<dyn DiskFile>,
    /// Path for errors.
    pub(crate) path: &'a str,
    pub(crate) id: SegmentId,
    pub(crate) class: SegmentClass,
    pub(crate) store: uuid::Uuid,
    /// End of the groups of a segment without footer.
    pub(crate) end: Option<u64>,
}

/// Returns whether the body of a record may have been punched.
type MayBePunched<'a> = dyn Fn(&CursorRecord) -> Result<bool> + 'a;

impl SegmentCopy<'_> {
    /// Verifies the copy. `each` is called with each record of a log or compacted segment, `damage` with each error.
    pub(crate) fn verify(
        &self,
        may_be_punched: &MayBePunched<'_>,
        each: &mut dyn FnMut(&CursorRecord),
        damage: &mut dyn FnMut(Error),
    ) -> Result<()> {
        let header = read_header(self.file.as_ref(), self.path, self.id, self.class, self.store);
        let verified = header.and_then(|header| match self.class {
            SegmentClass::Big => self.verify_big(&header, damage),
            _ => self.verify_records(header, may_be_punched, each, damage),
        });
        pass_on(verified, damage)
    }

    fn verify_records(
        &self,
        header: SegmentHeader,
        may_be_punched: &MayBePunched<'_>,
        each: &mut dyn FnMut(&CursorRecord),
        damage: &mut dyn FnMut(Error),
    ) -> Result<()> {
        let file = Arc::clone(self.file);
        let mut cursor = RecordCursor::open(file, self.path.to_owned(), header, self.end)?;
        while let Some(found) = cursor.step()? {
            match cursor.read_body(&found) {
                Ok(_) => {}
                Err(Error::Corrupt(_))
                    if may_be_punched(&found)? && cursor.is_punched(&found)? => {}
                Err(error) => pass_on(Err(error), damage)?,
            }
            each(&found);
        }
        for fault in cursor.faults() {
            damage(Error::corrupt(self.path, fault.offset, fault.reason));
        }
        Ok(())
    }

    /// Returns the hash of the body of a big segment, as its trailer states it.
    pub(crate) fn big_hash(&self) -> Result<[u8; 32]> {
        let header = read_header(self.file.as_ref(), self.path, self.id, self.class, self.store)?;
        Ok(self.read_trailer(&header)?.1.hash)
    }

    /// Reads the trailer of a big segment, with its offset.
    fn read_trailer(&self, header: &SegmentHeader) -> Result<(u64, BigTrailer)> {
        let io = |source| Error::io(format!("reading {}", self.path), source);
        let damaged = |offset, reason| Error::corrupt(self.path, offset, reason);
        let length = self.file.bytes_len().map_err(io)?;
        let at = length
            .checked_sub(BIG_TRAILER_BYTES as u64)
            .ok_or_else(|| damaged(length, Malformed::Short))?;
        let mut trailer = [0; BIG_TRAILER_BYTES];
        self.file.read_at(at, &mut trailer).map_err(io)?;
        let trailer = BigTrailer::decode(&trailer, header.context().at(at));
        Ok((at, trailer.map_err(|reason| damaged(at, reason))?))
    }

    fn verify_big(&self, header: &SegmentHeader, damage: &mut dyn FnMut(Error)) -> Result<()> {
        let io = |source| Error::io(format!("reading {}", self.path), source);
        let damaged = |offset, reason| Error::corrupt(self.path, offset, reason);
        let (trailer_at, trailer) = self.read_trailer(header)?;
        let table_at = BigTrailer::table_offset(trailer.body_bytes);
        let mut table = vec![0; usize::try_from(trailer_at.saturating_sub(table_at)).unwrap_or(0)];
        self.file.read_at(table_at, &mut table).map_err(io)?;
        trailer.verify_table(&table).map_err(|reason| damaged(table_at, reason))?;
        let mut block = vec![0; limits::BLOCK_BYTES];
        let mut at = SEGMENT_HEADER_BYTES as u64;
        for number in 0.. {
            let Some(checksum) = BigTrailer::block(&table, number) else { break };
            let length = table_at.saturating_sub(at).min(limits::BLOCK_BYTES as u64);
            let bytes = block.get_mut(..usize::try_from(length).unwrap_or(0)).unwrap_or_default();
            self.file.read_at(at, bytes).map_err(io)?;
            let verified = checksum.verify(CheckClass::Block, bytes, header.context().at(at));
            pass_on(verified.map_err(|reason| damaged(at, reason)), damage)?;
            at += length;
        }
        Ok(())
    }
}

/// Passes damage on; other errors are returned.
fn pass_on(found: Result<()>, damage: &mut dyn FnMut(Error)) -> Result<()> {
    match found {
        Err(error @ Error::Corrupt(_)) => {
            damage(error);
            Ok(())
        }
        other => other,
    }
}
