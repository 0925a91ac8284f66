//! Group cursor over a log or compacted segment, from a position to the end of the groups.
//!
//! Guarantees: reads only; holds one group in memory at a time, plus a bounded read-ahead on request; bytes that
//! cannot be a group end the iteration with the reason, and [`GroupCursor::skip_to_next_header`] finds where the next
//! group may begin. Recovery decides whether the end is torn or damaged.
//! Non-goals: the meaning of the records.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use crate::disk::DiskFile;
use crate::error::{Error, Result};
use crate::format::{
    Checksum, DiskAddress, GROUP_HEADER_BYTES, GROUP_OVERHEAD_BYTES, GroupHeader, GroupView,
    Malformed, SEGMENT_HEADER_BYTES, SegmentClass, SegmentContext, SegmentHeader,
    find_group_header,
};
use crate::limits;

use super::data_extents::data_extents;
use super::head_reader::read_heads;

/// Cursor over the groups of one segment.
pub(crate) struct GroupCursor {
    file: Arc<dyn DiskFile>,
    path: String,
    context: SegmentContext,
    class: SegmentClass,
    offset: u64,
    end: u64,
    /// Data extents as they were before the cursor read anything.
    data: Vec<Range<u64>>,
    with_bodies: bool,
    next_group: u64,
    next_lsn: u64,
    previous: Checksum,
    ahead: Option<Ahead>,
    /// Buffer for the next group.
    spare: Vec<u8>,
}

/// Read-ahead buffer. Groups that were read ahead share it, until it is refilled.
#[derive(Default)]
struct Ahead {
    buffer: Arc<Vec<u8>>,
    /// Offset in the segment of the first byte of the buffer.
    offset: u64,
    /// Number of bytes that were read into the buffer.
    read_bytes: usize,
    /// Offset in the segment up to which read-ahead in the background was started.
    begun_to: u64,
}

/// Result of one step.
pub(crate) enum GroupStep {
    /// Group whose frames and record heads are intact; its bodies are not verified.
    Group(ReadGroup),
    /// End of the range.
    End,
    /// No group begins here, for this reason.
    Broken(Malformed),
}

/// Group in memory.
pub(crate) struct ReadGroup {
    buffer: Arc<Vec<u8>>,
    range: Range<usize>,
    place: DiskAddress,
    class: SegmentClass,
    /// Offset of the group in its segment.
    pub(crate) start: u64,
    /// Decoded header.
    pub(crate) header: GroupHeader,
    /// Checksum that the next group's header repeats.
    pub(crate) header_checksum: Checksum,
    /// End of the group in its segment.
    pub(crate) end: u64,
}

impl ReadGroup {
    /// Decodes the group.
    pub(crate) fn view(&self) -> Result<GroupView<'_>, Malformed> {
        match self.class {
            SegmentClass::Compacted => GroupView::decode_compacted(self.bytes(), self.place),
            _ => GroupView::decode(self.bytes(), self.place),
        }
    }

    /// Returns the encoded group.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.buffer.get(self.range.clone()).unwrap_or_default()
    }
}

impl AsRef<[u8]> for ReadGroup {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

impl GroupCursor {
    /// Creates a cursor over a whole segment, up to `end`.
    pub(crate) fn new(
        file: Arc<dyn DiskFile>,
        path: String,
        header: &SegmentHeader,
        end: u64,
    ) -> Result<Self> {
        let data = data_extents(file.as_ref(), SEGMENT_HEADER_BYTES as u64, end)
            .map_err(|source| Error::io(format!("reading {path}"), source))?;
        Ok(Self {
            file,
            path,
            context: header.context(),
            class: header.class,
            offset: SEGMENT_HEADER_BYTES as u64,
            end,
            data,
            with_bodies: true,
            next_group: header.first_group,
            next_lsn: header.base_lsn,
            previous: header.previous_group,
            ahead: None,
            spare: Vec::new(),
        })
    }

    /// Enables reads of [`AHEAD_BYTES`], for a segment that is not being written and is read to its end.
    pub(crate) fn reading_ahead(mut self) -> Self {
        self.ahead = Some(Ahead::default());
        self
    }

    /// Reuses the buffer of a group that is no longer needed.
    pub(crate) fn recycle_buffer(&mut self, walked: GroupStep) {
        if let GroupStep::Group(group) = walked
            && let Some(buffer) = Arc::into_inner(group.buffer)
        {
            self.spare = buffer;
        }
    }

    /// Starts at a later group.
    pub(crate) fn starting_at(
        mut self,
        offset: u64,
        next_group: u64,
        next_lsn: u64,
        previous: Checksum,
    ) -> Self {
        self.offset = offset;
        self.next_group = next_group;
        self.next_lsn = next_lsn;
        self.previous = previous;
        self
    }

    /// Skips bodies, whose bytes in the returned groups are meaningless.
    pub(crate) fn heads_only(mut self) -> Self {
        self.with_bodies = false;
        self
    }

    /// Returns the segment part of disk addresses.
    pub(crate) fn context(&self) -> SegmentContext {
        self.context
    }

    /// Returns the offset of the cursor.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the LSN that the next record must have.
    pub(crate) fn next_lsn(&self) -> u64 {
        self.next_lsn
    }

    /// Reads the next group.
    pub(crate) fn step(&mut self) -> Result<GroupStep> {
        let walked = self.peek()?;
        if let GroupStep::Group(group) = &walked {
            match group.view() {
                Ok(view) => self.advance(group, view.last_lsn()),
                Err(reason) => return Ok(GroupStep::Broken(reason)),
            }
        }
        Ok(walked)
    }

    /// Reads the next group without advancing, until [`Self::advance`] is called. Only its header is verified; the
    /// caller decodes the group.
    pub(crate) fn peek(&mut self) -> Result<GroupStep> {
        if self.offset >= self.end {
            return Ok(GroupStep::End);
        }
        let place = self.context.at(self.offset);
        if self.offset + GROUP_HEADER_BYTES as u64 > self.end {
            return Ok(GroupStep::Broken(Malformed::Short));
        }
        let head = self.read_group_header(self.offset)?;
        let (header, header_checksum) = match GroupHeader::decode(&head, place) {
            Ok(decoded) => decoded,
            Err(reason) => return Ok(GroupStep::Broken(reason)),
        };
        let follows = header.number == self.next_group
            && self.resumes_at(header.first_lsn)
            && header.previous == self.previous;
        if !follows {
            return Ok(GroupStep::Broken(Malformed::Chain));
        }
        let end = self.offset + u64::from(header.group_bytes);
        if end > self.end {
            return Ok(GroupStep::Broken(Malformed::Length));
        }
        let start = self.offset;
        let (buffer, range) = self.read_group(&header, place)?;
        let class = self.class;
        let group = ReadGroup { buffer, range, place, class, start, header, header_checksum, end };
        Ok(GroupStep::Group(group))
    }

    /// Advances past a group that was read with [`Self::peek`] and decodes.
    pub(crate) fn advance(&mut self, group: &ReadGroup, last_lsn: u64) {
        self.offset = group.end;
        self.next_group += 1;
        self.next_lsn = last_lsn + 1;
        self.previous = group.header_checksum;
    }

    /// Returns whether the next group may start at this LSN: log LSNs have no gaps; a compacted segment omits dead
    /// records.
    fn resumes_at(&self, first_lsn: u64) -> bool {
        match self.class {
            SegmentClass::Compacted => first_lsn >= self.next_lsn,
            _ => first_lsn == self.next_lsn,
        }
    }

    /// Advances to the next offset where a header of a later group decodes, and returns that header; `None` if there
    /// is none.
    pub(crate) fn skip_to_next_header(&mut self) -> Result<Option<GroupHeader>> {
        self.skip_to_next_header_unless(&|| false)
    }

    /// Advances like [`Self::skip_to_next_header`], but fails with [`Error::Cancelled`] once `stopped` returns true.
    pub(crate) fn skip_to_next_header_unless(
        &mut self,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Option<GroupHeader>> {
        let mut from = self.offset + 1;
        while let Some((offset, header)) = self.find_header(from, stopped)? {
            if header.number > self.next_group && header.first_lsn >= self.next_lsn {
                self.offset = offset;
                self.next_group = header.number;
                self.next_lsn = header.first_lsn;
                self.previous = header.previous;
                return Ok(Some(header));
            }
            from = offset + 1;
        }
        self.offset = self.end;
        Ok(None)
    }

    /// Returns whether a header at or after the position confirms that the record with this LSN was durable, or that
    /// no such record was lost: the skipped group was empty, and the record follows it.
    pub(crate) fn is_durable_later(&self, lsn: u64) -> Result<bool> {
        self.is_durable_later_unless(lsn, &|| false)
    }

    /// Checks like [`Self::is_durable_later`], but fails with [`Error::Cancelled`] once `stopped` returns true.
    pub(crate) fn is_durable_later_unless(
        &self,
        lsn: u64,
        stopped: &dyn Fn() -> bool,
    ) -> Result<bool> {
        let mut from = self.offset;
        while let Some((offset, header)) = self.find_header(from, stopped)? {
            let is_next = header.number > self.next_group && header.first_lsn == lsn;
            if header.durable_lsn >= lsn || is_next {
                return Ok(true);
            }
            from = offset + 1;
        }
        Ok(false)
    }

    /// Returns the bytes from `start` to the position, at most the size of a group, to salvage what was skipped.
    pub(crate) fn skipped(&self, start: u64) -> Result<(Vec<u8>, DiskAddress)> {
        let length = self.offset.saturating_sub(start).min(GROUP_READ_BYTES_MAX);
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        self.read(start, &mut bytes)?;
        Ok((bytes, self.context.at(start)))
    }

    /// Returns whether nothing was ever written at the position of the next group.
    pub(crate) fn is_blank_here(&self) -> Result<bool> {
        let length = self.end.saturating_sub(self.offset).min(GROUP_HEADER_BYTES as u64);
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        self.read(self.offset, &mut bytes)?;
        Ok(bytes.iter().all(|&byte| byte == 0))
    }

    fn find_header(
        &self,
        from: u64,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Option<(u64, GroupHeader)>> {
        let overlap = GROUP_HEADER_BYTES as u64 - 1;
        for data in &self.data {
            // A header may begin in the zeros before.
            let mut window_start = data.start.saturating_sub(overlap).max(from);
            while window_start < data.end {
                if stopped() {
                    return Err(Error::Cancelled);
                }
                let data_end = (data.end + overlap).min(self.end);
                let length = SEARCH_WINDOW_BYTES.min(data_end - window_start);
                let mut window = vec![0; usize::try_from(length).unwrap_or(0)];
                self.read(window_start, &mut window)?;
                if let Some(found) = find_group_header(&window, self.context, window_start) {
                    return Ok(Some(found));
                }
                window_start += length.saturating_sub(overlap).max(1);
            }
        }
        Ok(None)
    }

    /// Reads a header at or after the position, through the read-ahead buffer.
    fn read_group_header(&mut self, offset: u64) -> Result<[u8; GROUP_HEADER_BYTES]> {
        let mut head = [0; GROUP_HEADER_BYTES];
        match self.read_ahead(offset, GROUP_HEADER_BYTES) {
            Some((buffer, range)) => head.copy_from_slice(&buffer[range]),
            None => self.read(offset, &mut head)?,
        }
        Ok(head)
    }

    /// Returns the bytes of the group with this header, at the position.
    fn read_group(
        &mut self,
        header: &GroupHeader,
        place: DiskAddress,
    ) -> Result<(Arc<Vec<u8>>, Range<usize>)> {
        let (start, length) = (self.offset, header.group_bytes as usize);
        if self.with_bodies
            && let Some((buffer, range)) = self.read_ahead(start, length)
        {
            return Ok((Arc::clone(buffer), range));
        }
        let mut group = std::mem::take(&mut self.spare);
        if self.with_bodies {
            let read = self.file.read_to_vec(start, length, &mut group);
            read.map_err(|source| self.read_error(start, source))?;
        } else {
            let read = |at, piece: &mut [u8]| self.read(start + at as u64, piece);
            group = read_heads(header, place, group, read)?;
        }
        Ok((Arc::new(group), 0..length))
    }

    /// Returns bytes in the read-ahead buffer, which is filled from `offset` if needed.
    fn read_ahead(&mut self, offset: u64, length: usize) -> Option<(&Arc<Vec<u8>>, Range<usize>)> {
        let ahead = self.ahead.as_mut().filter(|_| length <= AHEAD_BYTES)?;
        if ahead.range(offset, length).is_none() {
            ahead.read_on(self.file.as_ref(), offset, self.end);
        }
        let range = ahead.range(offset, length)?;
        Some((&ahead.buffer, range))
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.file.read_at(offset, buffer).map_err(|source| self.read_error(offset, source))
    }

    fn read_error(&self, offset: u64, source: io::Error) -> Error {
        match source.kind() {
            io::ErrorKind::UnexpectedEof => {
                Error::corrupt(self.path.clone(), offset, Malformed::Short)
            }
            _ => Error::io(format!("reading {}", self.path), source),
        }
    }
}

impl Ahead {
    /// Returns where the buffer has these bytes of the segment, if it does.
    fn range(&self, offset: u64, length: usize) -> Option<Range<usize>> {
        let start = usize::try_from(offset.checked_sub(self.offset)?).ok()?;
        let end = start.checked_add(length).filter(|end| *end <= self.read_bytes)?;
        Some(start..end)
    }

    /// Fills the buffer from `offset`. On a read error nothing is added; smaller reads may still succeed.
    fn read_on(&mut self, file: &dyn DiskFile, offset: u64, end: u64) {
        let rest = self.range(offset, 0).map_or(0..0, |rest| rest.start..self.read_bytes);
        // Copied only while a caller holds one of its groups.
        let buffer = Arc::make_mut(&mut self.buffer);
        buffer.resize(AHEAD_BYTES, 0);
        self.read_bytes = rest.len();
        buffer.copy_within(rest, 0);
        self.offset = offset;
        let length = end.saturating_sub(offset).min(AHEAD_BYTES as u64) as usize;
        if let Some(more) = buffer.get_mut(self.read_bytes..length)
            && file.read_at(offset + self.read_bytes as u64, more).is_ok()
        {
            self.read_bytes = length;
        }
        let next = offset + length as u64;
        let begun_to = self.begun_to.max(next);
        self.begun_to = end.min(next + READAHEAD_BYTES);
        file.prefetch(begun_to..self.begun_to);
    }
}

const SEARCH_WINDOW_BYTES: u64 = 1 << 20;
const AHEAD_BYTES: usize = 1 << 20;
/// Additional bytes whose read-ahead is started in the background.
const READAHEAD_BYTES: u64 = 4 << 20;
const GROUP_READ_BYTES_MAX: u64 = limits::BATCH_BYTES_MAX + GROUP_OVERHEAD_BYTES as u64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Disk;
    use crate::disk::sim::SimDisk;
    use crate::format::{GroupBuilder, RecordOp};
    use crate::name::FactName;
    use crate::segment::active::tests::first_segment;

    /// Bytes of each body: several groups in one read, and some across two.
    const BODY_BYTES: usize = 60_000;
    const GROUPS: u64 = 40;

    #[test]
    fn read_ahead_groups_are_those_of_single_reads() {
        let disk = SimDisk::new();
        let mut active = first_segment(&disk, 16 << 20);
        let header = *active.header();
        let mut previous = Checksum::default();
        for lsn in 1..=GROUPS {
            let offset = active.next_place().offset;
            let mut builder =
                GroupBuilder::new(header.context(), offset, lsn, lsn, lsn - 1, previous);
            let value = bytes::Bytes::from(vec![lsn as u8; BODY_BYTES]);
            let name = FactName::parse("fact").unwrap();
            let check = Checksum::of(&value);
            let op = RecordOp::PutFact { name, bytes: BODY_BYTES as u32, check };
            builder.frame(&[(op, vec![value])]);
            let built = builder.finish();
            active.append(&built).unwrap();
            previous = built.header_checksum;
        }
        active.sync().unwrap();
        let path = header.segment.path(header.class);
        let cursor = || {
            let file = disk.open(&path).unwrap();
            GroupCursor::new(file, path.clone(), &header, active.end()).unwrap()
        };
        let all = |mut cursor: GroupCursor| {
            let mut groups = Vec::new();
            while let GroupStep::Group(group) = cursor.step().unwrap() {
                groups.push(group);
            }
            groups
        };
        // The groups stay as they are while the buffer is refilled.
        let (ahead, single) = (all(cursor().reading_ahead()), all(cursor()));
        let bytes = |groups: &[ReadGroup]| {
            groups.iter().map(|group| group.bytes().to_vec()).collect::<Vec<_>>()
        };
        assert_eq!(bytes(&ahead), bytes(&single));
        assert_eq!(ahead.len() as u64, GROUPS);
        let buffers: std::collections::BTreeSet<_> =
            ahead.iter().map(|group| Arc::as_ptr(&group.buffer)).collect();
        assert_eq!(buffers.len(), (GROUPS as usize * BODY_BYTES).div_ceil(AHEAD_BYTES));
    }
}
