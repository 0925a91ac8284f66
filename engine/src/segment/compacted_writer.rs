//! Writer of compacted segments: records of other segments, copied with their LSNs.
//!
//! Guarantees: when [`CompactedWriter::finish`] returns Ok, groups and footer are durable; the file name is durable
//! after [`SegmentSet::sync_compacted_names`]. The file has no effect until a log record commits it; it is removed
//! if the writer is dropped before. Body checksums are copied, never recomputed, so corruption stays detectable.
//! Non-goals: the selection of live records.

use std::sync::Arc;

use bytes::Bytes;

use super::seal::seal;
use super::set::SegmentSet;
use crate::disk::DiskFile;
use crate::error::{Error, Result};
use crate::format::{
    Checksum, DiskAddress, FOOTER_TRAILER_BYTES, GROUP_OVERHEAD_BYTES, GroupBuilder, Location,
    LsnRanges, Origin, Record, SEGMENT_HEADER_BYTES, SegmentClass, SegmentHeader, SegmentId,
    SegmentUsage,
};
use crate::limits;

/// Writer of one compacted segment from front to back.
pub(crate) struct CompactedWriter {
    segments: Arc<SegmentSet>,
    file: Arc<dyn DiskFile>,
    path: String,
    header: SegmentHeader,
    inputs: Vec<SegmentId>,
    group: Option<GroupBuilder>,
    next_group: u64,
    previous_group: Checksum,
    /// End of the written groups.
    end: u64,
    unsynced_bytes: u64,
    footer_bytes: u64,
    usage: SegmentUsage,
    finished: bool,
}

impl CompactedWriter {
    /// Creates the file for records of these segments, from `base_lsn` on.
    pub(crate) fn create(
        segments: &Arc<SegmentSet>,
        base_lsn: u64,
        inputs: Vec<SegmentId>,
    ) -> Result<Self> {
        let (file, mut header) = segments.create_compacted()?;
        header.base_lsn = base_lsn;
        header.first_group = 1;
        let path = header.segment.path(SegmentClass::Compacted);
        Ok(Self {
            inputs,
            segments: Arc::clone(segments),
            group: None,
            next_group: header.first_group,
            previous_group: header.previous_group,
            end: SEGMENT_HEADER_BYTES as u64,
            unsynced_bytes: 0,
            footer_bytes: FOOTER_TRAILER_BYTES as u64,
            usage: SegmentUsage::empty(SegmentClass::Compacted),
            finished: false,
            file,
            path,
            header,
        })
    }

    /// Returns the length that the file will have with one more record of this size.
    pub(crate) fn bytes_with(&self, record: &Record) -> u64 {
        let head = record.head_bytes() as u64;
        let group = self.group.as_ref().map_or(0, GroupBuilder::bytes);
        // The footer repeats the head, compressed or with a small overhead.
        self.end
            + group
            + self.footer_bytes
            + 2 * head
            + record.body_bytes()
            + RECORD_OVERHEAD_BYTES_MAX
    }

    /// Copies a record from the address `from`, with its body as it was read.
    pub(crate) fn push(
        &mut self,
        mut record: Record,
        from: DiskAddress,
        body: Bytes,
    ) -> Result<Location> {
        self.usage.add(&record);
        let head_bytes = record.head_bytes() as u64;
        self.footer_bytes += head_bytes + RECORD_OVERHEAD_BYTES_MAX;
        // Checksums are unbound from the source address here and bound to the new one by the builder.
        record.op.bind(from.plus(head_bytes));
        let group = self.group.get_or_insert_with(|| {
            GroupBuilder::new(
                self.header.context(),
                self.end,
                self.next_group,
                record.lsn,
                record.lsn.saturating_sub(1),
                self.previous_group,
            )
        });
        group.skip_to(record.lsn);
        let placed = group.frame(&[(record.op, vec![body])]);
        let is_full = group.bytes() >= COMPACTED_GROUP_BYTES;
        let placed = placed.first().ok_or(Error::TooLarge("a record"))?;
        let (segment, offset, head_bytes) = (placed.segment, placed.offset, placed.head_bytes);
        if is_full {
            self.end_group()?;
        }
        Ok(Location { segment, offset, head_bytes })
    }

    /// Finishes the segment and makes it durable, except for its name. `covers` are the LSN ranges that it replaces.
    pub(crate) fn finish(mut self, covers: LsnRanges) -> Result<SegmentUsage> {
        self.end_group()?;
        let origin = Origin { inputs: std::mem::take(&mut self.inputs), lsn_ranges: covers };
        let page = origin.encode_page(&self.header);
        self.file.write_at(0, &[&page]).map_err(|source| self.failed("writing", source))?;
        seal(self.segments.disk(), &self.header, self.end)?;
        self.finished = true;
        Ok(self.usage)
    }

    /// Returns the header of the segment.
    pub(crate) fn header(&self) -> &SegmentHeader {
        &self.header
    }

    fn end_group(&mut self) -> Result<()> {
        let Some(group) = self.group.take() else { return Ok(()) };
        let group = group.finish();
        for piece in &group.pieces {
            for call in piece.chunks(limits::WRITE_BYTES_MAX) {
                self.file
                    .write_at(self.end, &[call])
                    .map_err(|source| self.failed("writing", source))?;
                self.end += call.len() as u64;
            }
        }
        self.next_group += 1;
        self.previous_group = group.header_checksum;
        self.unsynced_bytes += group.bytes;
        // Syncs in small steps, so that a sync of the log never waits for a whole segment.
        if self.unsynced_bytes >= SYNC_BYTES {
            self.file.sync_data().map_err(|source| self.failed("syncing", source))?;
            self.unsynced_bytes = 0;
        }
        Ok(())
    }

    fn failed(&self, doing: &str, source: std::io::Error) -> Error {
        Error::io(format!("{doing} {}", self.path), source)
    }
}

impl Drop for CompactedWriter {
    fn drop(&mut self) {
        if !self.finished {
            self.segments.retire(self.header.segment, SegmentClass::Compacted);
        }
    }
}

/// Size at which a group of a compacted segment is finished.
const COMPACTED_GROUP_BYTES: u64 = 1 << 20;
/// Number of bytes between syncs of a compacted segment while it is written.
const SYNC_BYTES: u64 = 8 << 20;
/// Maximum overhead of a record in a group or footer, in addition to head and body.
const RECORD_OVERHEAD_BYTES_MAX: u64 = 2 * GROUP_OVERHEAD_BYTES as u64;
