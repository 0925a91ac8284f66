//! A compacted segment on its way: records of other segments, copied under the numbers that they have.
//!
//! Promises: when [`CompactedWriter::finish`] returns Ok, groups and footer are durable; its name is, after
//! [`SegmentSet::sync_compacted_names`]. The file means nothing until a record in the log commits it; dropped before
//! that, it is removed. A checksum of a body is carried over, never computed anew: what was damaged stays damaged.
//! Never here: which records are wanted.

use std::sync::Arc;

use bytes::Bytes;

use super::seal::seal;
use super::set::SegmentSet;
use crate::disk::DiskFile;
use crate::error::{Error, Result};
use crate::format::{
    Checksum, Covers, FOOTER_TRAILER_BYTES, GROUP_OVERHEAD_BYTES, GroupBuilder, Location, Origin,
    Place, Record, SEGMENT_HEADER_BYTES, SegmentClass, SegmentHeader, SegmentId, SegmentUsage,
};
use crate::limits;

/// Writes one compacted segment from front to back.
pub(crate) struct CompactedWriter {
    segments: Arc<SegmentSet>,
    file: Arc<dyn DiskFile>,
    path: String,
    header: SegmentHeader,
    inputs: Vec<SegmentId>,
    group: Option<GroupBuilder>,
    next_group: u64,
    previous_group: Checksum,
    /// Where the groups that are written end.
    end: u64,
    unsynced_bytes: u64,
    footer_bytes: u64,
    usage: SegmentUsage,
    finished: bool,
}

impl CompactedWriter {
    /// Makes the file, for records of these segments from `base_lsn` on.
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

    /// The length that the file will have with one more record of this size.
    pub(crate) fn bytes_with(&self, record: &Record) -> u64 {
        let head = record.head_bytes() as u64;
        let group = self.group.as_ref().map_or(0, GroupBuilder::bytes);
        // The footer repeats the head, and packs it to less, or to hardly more.
        self.end
            + group
            + self.footer_bytes
            + 2 * head
            + record.body_bytes()
            + RECORD_OVERHEAD_BYTES_MAX
    }

    /// Copies a record that lay at `from`, with its body as it was read there.
    pub(crate) fn push(
        &mut self,
        mut record: Record,
        from: Place,
        body: Bytes,
    ) -> Result<Location> {
        self.usage.add(&record);
        let head_bytes = record.head_bytes() as u64;
        self.footer_bytes += head_bytes + RECORD_OVERHEAD_BYTES_MAX;
        // The checksums are taken off the place where they were, and bound to the new one by the builder.
        record.what.bind(from.plus(head_bytes));
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
        let placed = group.frame(&[(record.what, vec![body])]);
        let is_full = group.bytes() >= COMPACTED_GROUP_BYTES;
        let placed = placed.first().ok_or(Error::TooLarge("a record"))?;
        let (segment, offset, head_bytes) = (placed.segment, placed.offset, placed.head_bytes);
        if is_full {
            self.end_group()?;
        }
        Ok(Location { segment, offset, head_bytes })
    }

    /// Ends the segment and makes it durable, but for its name. `covers` are the stretches of the log that it stands
    /// for.
    pub(crate) fn finish(mut self, covers: Covers) -> Result<SegmentUsage> {
        self.end_group()?;
        let origin = Origin { inputs: std::mem::take(&mut self.inputs), covers };
        let page = origin.encode_page(&self.header);
        self.file.write_at(0, &[&page]).map_err(|source| self.failed("writing", source))?;
        seal(self.segments.disk(), &self.header, self.end)?;
        self.finished = true;
        Ok(self.usage)
    }

    /// The segment's header.
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
        // In small helpings, so that a sync of the log never waits behind a whole segment.
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

/// A group of a compacted segment ends when it has this size.
const COMPACTED_GROUP_BYTES: u64 = 1 << 20;
/// After this much a compacted segment is synced on the way.
const SYNC_BYTES: u64 = 8 << 20;
/// What a record takes beside head and body, in a group or in the footer.
const RECORD_OVERHEAD_BYTES_MAX: u64 = 2 * GROUP_OVERHEAD_BYTES as u64;
