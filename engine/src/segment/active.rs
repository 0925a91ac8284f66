//! The active log segment: the only file that groups are appended to.
//!
//! Promises: a group is on disk, whole, once [`ActiveSegment::append`] and then [`ActiveSegment::sync`] returned Ok.
//! After an error the segment takes nothing more: what the kernel did with the bytes is unknown, and trying again could
//! acknowledge what is not there.
//! Never here: what the records mean, who waits for them.

use std::sync::Arc;

use crate::disk::DiskFile;
use crate::error::{Error, Result};
use crate::format::{
    AppliedPosition, BuiltGroup, Checksum, Place, Predecessor, SEGMENT_HEADER_BYTES, SegmentClass,
    SegmentHeader, SegmentId, footer_bytes_max,
};
use crate::limits;

/// Where the log ends, and what the next group must say to continue it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogPosition {
    /// LSN of the last record.
    pub(crate) lsn: u64,
    /// The segment that the last group lies in; none when there has been no group yet.
    pub(crate) segment: Option<SegmentId>,
    /// Where that group ends.
    pub(crate) offset: u64,
    /// Number of the next group.
    pub(crate) next_group: u64,
    /// Header checksum of the last group.
    pub(crate) previous_group: Checksum,
}

impl LogPosition {
    /// The position in a store without any group.
    pub(crate) const START: Self =
        Self { lsn: 0, segment: None, offset: 0, next_group: 1, previous_group: Checksum(0) };

    /// The position as the index keeps it; what the checkpoint adds is left at zero.
    pub(crate) fn applied(&self) -> AppliedPosition {
        AppliedPosition {
            lsn: self.lsn,
            segment: self.segment,
            offset: self.offset,
            next_group: self.next_group,
            previous_group: self.previous_group,
            next_segment: 0,
            orphan_floor: 0,
        }
    }
}

impl From<AppliedPosition> for LogPosition {
    fn from(applied: AppliedPosition) -> Self {
        Self {
            lsn: applied.lsn,
            segment: applied.segment,
            offset: applied.offset,
            next_group: applied.next_group,
            previous_group: applied.previous_group,
        }
    }
}

/// The segment that takes the next group.
pub(crate) struct ActiveSegment {
    file: Arc<dyn DiskFile>,
    path: String,
    header: SegmentHeader,
    end: u64,
    /// What the footer's entries take as they are.
    entries_bytes: u64,
    bytes_max: u64,
    broken: bool,
}

impl ActiveSegment {
    /// Turns a spare file into the segment that follows `position`.
    ///
    /// The header is durable before this returns: a segment with groups but without a header is damage, never a torn
    /// roll.
    pub(crate) fn begin(
        file: Arc<dyn DiskFile>,
        mut header: SegmentHeader,
        position: &LogPosition,
        bytes_max: u64,
    ) -> Result<Self> {
        header.base_lsn = position.lsn + 1;
        header.predecessor =
            position.segment.map(|segment| Predecessor { segment, end: position.offset });
        header.first_group = position.next_group;
        header.previous_group = position.previous_group;
        debug_assert!(Some(header.segment) > position.segment, "ids ascend as the log does");
        let path = header.segment.path(SegmentClass::Log);
        file.write_at(0, &[&header.encode_page()])
            .and_then(|()| file.sync_data())
            .map_err(|source| Error::io(format!("writing the header of {path}"), source))?;
        let end = SEGMENT_HEADER_BYTES as u64;
        Ok(Self { file, path, header, end, entries_bytes: 0, bytes_max, broken: false })
    }

    /// The segment's header.
    pub(crate) fn header(&self) -> &SegmentHeader {
        &self.header
    }

    /// The place where the next group begins.
    pub(crate) fn next_place(&self) -> Place {
        self.header.context().at(self.end)
    }

    /// Whether a group of at most this many bytes, with its share of the footer, still fits.
    pub(crate) fn has_room_for(&self, group_bytes: u64) -> bool {
        let footer_bytes = footer_bytes_max(self.entries_bytes + footer_share(group_bytes));
        self.end + group_bytes + footer_bytes <= self.bytes_max
    }

    /// The size of a segment that has room for one group of at most this many bytes.
    pub(crate) fn bytes_for(group_bytes: u64) -> u64 {
        SEGMENT_HEADER_BYTES as u64 + group_bytes + footer_bytes_max(footer_share(group_bytes))
    }

    /// Writes a group, in calls of at most [`limits::WRITE_BYTES_MAX`] bytes.
    pub(crate) fn append(&mut self, group: &BuiltGroup) -> Result<()> {
        if self.broken {
            return Err(Error::ReadOnly(format!("{} failed before", self.path).into()));
        }
        self.broken = true;
        let mut offset = self.end;
        let mut call: Vec<&[u8]> = Vec::new();
        let mut call_bytes = 0;
        let flush = |offset: &mut u64, call: &mut Vec<&[u8]>, call_bytes: &mut usize| {
            self.file
                .write_at(*offset, call)
                .map_err(|source| Error::io(format!("writing {}", self.path), source))?;
            let end = *offset + *call_bytes as u64;
            // The disk works while the next piece is copied, and the sync has less to wait for.
            if group.bytes > limits::WRITE_BYTES_MAX as u64 {
                self.file.begin_sync(*offset..end);
            }
            *offset = end;
            call.clear();
            *call_bytes = 0;
            Ok::<(), Error>(())
        };
        for piece in &group.pieces {
            let mut rest: &[u8] = piece;
            while !rest.is_empty() {
                let (taken, later) =
                    rest.split_at(rest.len().min(limits::WRITE_BYTES_MAX - call_bytes));
                call.push(taken);
                call_bytes += taken.len();
                rest = later;
                if call_bytes == limits::WRITE_BYTES_MAX {
                    flush(&mut offset, &mut call, &mut call_bytes)?;
                }
            }
        }
        if call_bytes > 0 {
            flush(&mut offset, &mut call, &mut call_bytes)?;
        }
        self.end = offset;
        self.entries_bytes += group.footer_bytes;
        self.broken = false;
        Ok(())
    }

    /// Makes everything appended durable.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.broken = true;
        self.file.sync_data().map_err(|source| Error::Io {
            doing: format!("syncing {}", self.path),
            source: Arc::new(source),
        })?;
        self.broken = false;
        Ok(())
    }

    /// Where the last group ends.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }
}

/// A group's share of the footer repeats its record heads, so it is at most as large as the group.
fn footer_share(group_bytes: u64) -> u64 {
    group_bytes.min(FOOTER_SHARE_BYTES_MAX)
}

/// The heads of one group's records are never larger than this together.
const FOOTER_SHARE_BYTES_MAX: u64 = (limits::BATCH_RECORDS_MAX * 4 * 1_024) as u64;
