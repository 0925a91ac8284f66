//! Active log segment: the only file that groups are appended to.
//!
//! Guarantees: a group is durable once [`ActiveSegment::append`] and then [`ActiveSegment::sync`] returned Ok. After an
//! error the segment rejects every append: the state of the written bytes is unknown, and a retry could acknowledge
//! data that is not on disk.
//! Non-goals: the meaning of the records, and the acknowledgement of batches.
//!
//! Reserved space that was never written costs a sync more than the data: the file system has to record in its journal
//! that it is written now. Therefore zeros are written ahead of small groups, which the next groups overwrite.

use std::sync::Arc;

use crate::disk::DiskFile;
use crate::error::{Error, Result};
use crate::format::{
    AppliedPosition, BuiltGroup, Checksum, DiskAddress, Predecessor, SEGMENT_HEADER_BYTES,
    SegmentClass, SegmentHeader, SegmentId, footer_bytes_max,
};
use crate::limits;

/// End of the log, and the values that the next group's header must have to continue it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogPosition {
    /// LSN of the last record.
    pub(crate) lsn: u64,
    /// Segment of the last group; `None` if there is no group yet.
    pub(crate) segment: Option<SegmentId>,
    /// End of the last group in its segment.
    pub(crate) offset: u64,
    /// Number of the next group.
    pub(crate) next_group: u64,
    /// Header checksum of the last group.
    pub(crate) previous_group: Checksum,
}

impl LogPosition {
    /// Position in a store without groups.
    pub(crate) const START: Self =
        Self { lsn: 0, segment: None, offset: 0, next_group: 1, previous_group: Checksum(0) };

    /// Converts the position to its index form; the fields that the checkpoint adds are zero.
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

/// Segment that the next group is appended to.
pub(crate) struct ActiveSegment {
    file: Arc<dyn DiskFile>,
    path: String,
    header: SegmentHeader,
    end: u64,
    /// End of the written bytes, including zeros.
    written_end: u64,
    /// Total size of the last groups, back to one that was not small.
    small_bytes: u64,
    /// Uncompressed length of the footer entries so far.
    entries_bytes: u64,
    bytes_max: u64,
    broken: bool,
}

impl ActiveSegment {
    /// Turns a spare file into the segment that follows `position`.
    ///
    /// The header is durable when this returns: a segment with groups but without a header is damage, never a torn
    /// rollover.
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
        Ok(Self {
            file,
            path,
            header,
            end,
            written_end: end,
            small_bytes: 0,
            entries_bytes: 0,
            bytes_max,
            broken: false,
        })
    }

    /// Returns the header of the segment.
    pub(crate) fn header(&self) -> &SegmentHeader {
        &self.header
    }

    /// Returns the disk address of the next group.
    pub(crate) fn next_place(&self) -> DiskAddress {
        self.header.context().at(self.end)
    }

    /// Returns whether a group of at most this many bytes, with its footer entries, still fits.
    pub(crate) fn has_room_for(&self, group_bytes: u64) -> bool {
        let footer_bytes = footer_bytes_max(self.entries_bytes + footer_share(group_bytes));
        self.end + group_bytes + footer_bytes <= self.bytes_max
    }

    /// Returns the size of a segment with room for one group of at most this many bytes.
    pub(crate) fn bytes_for(group_bytes: u64) -> u64 {
        SEGMENT_HEADER_BYTES as u64 + group_bytes + footer_bytes_max(footer_share(group_bytes))
    }

    /// Appends a group, in writes of at most [`limits::WRITE_BYTES_MAX`] bytes.
    pub(crate) fn append(&mut self, group: &BuiltGroup) -> Result<()> {
        if self.broken {
            return Err(Error::ReadOnly(format!("{} failed before", self.path).into()));
        }
        self.broken = true;
        let mut zeros = self.zeros_after(group.bytes);
        let mut offset = self.end;
        let mut call: Vec<&[u8]> = Vec::new();
        let mut call_bytes = 0;
        let flush = |offset: &mut u64, call: &mut Vec<&[u8]>, call_bytes: &mut usize| {
            self.file
                .write_at(*offset, call)
                .map_err(|source| Error::io(format!("writing {}", self.path), source))?;
            let end = *offset + *call_bytes as u64;
            // Starts write-back while the next piece is copied, to reduce the latency of the sync.
            if group.bytes > limits::WRITE_BYTES_MAX as u64 {
                self.file.start_write_back(*offset..end);
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
            while zeros > 0 {
                let piece = zeros.min(ZEROS.len());
                call.push(&ZEROS[..piece]);
                zeros -= piece;
            }
            flush(&mut offset, &mut call, &mut call_bytes)?;
        }
        self.end = offset;
        self.entries_bytes += group.footer_bytes;
        self.broken = false;
        Ok(())
    }

    /// Returns the number of zeros to write after a group of this many bytes: at most the size of the small groups
    /// before it, so that they at most double what is written, and none while there are some.
    fn zeros_after(&mut self, group_bytes: u64) -> usize {
        if group_bytes > limits::ZEROS_GROUP_BYTES_MAX {
            self.small_bytes = 0;
            return 0;
        }
        let before = self.small_bytes;
        self.small_bytes += group_bytes;
        let end = self.end + group_bytes;
        if end <= self.written_end {
            return 0;
        }
        let bytes = before.min(self.bytes_max.saturating_sub(end)).min(limits::ZEROS_BYTES_MAX);
        self.written_end = end + bytes;
        bytes as usize
    }

    /// Makes all appended groups durable.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.broken = true;
        self.file.sync_data().map_err(|source| Error::Io {
            doing: format!("syncing {}", self.path),
            source: Arc::new(source),
        })?;
        self.broken = false;
        Ok(())
    }

    /// Returns the end of the last group.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }
}

/// Zeros, which are written as often as needed in one call. They are part of the binary.
static ZEROS: [u8; 64 * 1_024] = [0; 64 * 1_024];

/// Returns the maximum size of a group's footer entries, which repeat its record heads.
fn footer_share(group_bytes: u64) -> u64 {
    group_bytes.min(FOOTER_SHARE_BYTES_MAX)
}

/// Maximum total size of the record heads of one group.
const FOOTER_SHARE_BYTES_MAX: u64 = (limits::BATCH_RECORDS_MAX * 4 * 1_024) as u64;

#[cfg(test)]
pub(super) mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::disk::Disk;
    use crate::disk::sim::SimDisk;

    const SEGMENT_BYTES: u64 = 4 << 20;
    const PAGE_BYTES: u64 = 4_096;

    /// Begins the first segment of a store, with this size.
    pub(in crate::segment) fn first_segment(disk: &SimDisk, bytes: u64) -> ActiveSegment {
        disk.create_folder("log").unwrap();
        let header = SegmentHeader {
            store: uuid::Uuid::from_u128(7),
            segment: SegmentId::new(1).unwrap(),
            class: SegmentClass::Log,
            salt: 0x5a17,
            base_lsn: 1,
            predecessor: None,
            first_group: 1,
            previous_group: Checksum::default(),
            created_ms: 1,
        };
        let file = disk.create(&header.segment.path(SegmentClass::Log)).unwrap();
        file.allocate(bytes).unwrap();
        ActiveSegment::begin(file, header, &LogPosition::START, bytes).unwrap()
    }

    /// Appends a group of this many bytes. Returns the end of the written pages.
    fn append(segment: &mut ActiveSegment, bytes: u64) -> u64 {
        let pieces = vec![Bytes::from(vec![1; bytes as usize])];
        segment
            .append(&BuiltGroup {
                pieces,
                offset: segment.end,
                bytes,
                records: 1,
                footer_bytes: 0,
                last_lsn: 1,
                header_checksum: Checksum::default(),
            })
            .unwrap();
        segment.file.next_data(0).unwrap().unwrap().end
    }

    #[test]
    fn small_groups_are_written_over_zeros() {
        let disk = SimDisk::new();
        let mut segment = first_segment(&disk, SEGMENT_BYTES);
        let (mut written, mut extensions) = (PAGE_BYTES, 0);
        for number in 1..=600 {
            let end = append(&mut segment, 4_600);
            extensions += u32::from(end > written);
            written = end;
            let ahead = end.saturating_sub(segment.end());
            assert!(ahead <= 4_600 * number + PAGE_BYTES, "{ahead} after {number} groups");
            let mut rest = vec![1; ahead as usize];
            segment.file.read_at(segment.end(), &mut rest).unwrap();
            assert!(rest.iter().all(|byte| *byte == 0), "zeros follow group {number}");
        }
        assert!(extensions < 16, "{extensions} of 600 groups extended the written bytes");
    }

    #[test]
    fn no_zeros_follow_large_groups_or_the_first_small_one() {
        let disk = SimDisk::new();
        let mut segment = first_segment(&disk, SEGMENT_BYTES);
        for bytes in [100, limits::ZEROS_GROUP_BYTES_MAX + 1, 100, 1 << 20, 100] {
            let end = append(&mut segment, bytes);
            assert_eq!(end, segment.end().next_multiple_of(PAGE_BYTES), "after {bytes} bytes");
        }
    }

    #[test]
    fn zeros_end_with_the_reserved_space() {
        let disk = SimDisk::new();
        let mut segment = first_segment(&disk, SEGMENT_BYTES);
        while segment.end() + 16_000 <= SEGMENT_BYTES {
            append(&mut segment, 16_000);
            assert_eq!(segment.file.bytes_len().unwrap(), SEGMENT_BYTES);
        }
    }
}
