//! Record cursor over a log or compacted segment, in log order: heads first, bodies on demand.
//!
//! The cursor reads the footer if it is intact, otherwise the groups. After a damaged group it continues with the
//! next one that decodes and with the records salvaged in between, and reports the damage as a fault.
//!
//! Guarantees: reads only; LSNs ascend; no entry of a footer is used before the whole footer was verified; memory is
//! bounded by one window of the footer, or by one group.
//! Non-goals: the meaning of the records, the reaction to faults.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::disk::DiskFile;
use crate::error::{Error, Result};
use crate::format::{
    DiskAddress, FOOTER_ENTRY_BYTES_MAX, FooterEntry, FooterReader, FooterTrailer, Location,
    Malformed, Record, RecordOp, SegmentClass, SegmentContext, SegmentHeader, SegmentId, salvage,
};
use crate::limits;

use super::group_cursor::{GroupCursor, GroupStep};
use super::seal::read_footer;

/// Cursor over the records of one segment.
pub(crate) struct RecordCursor {
    file: Arc<dyn DiskFile>,
    path: String,
    header: SegmentHeader,
    /// End of the groups, if known.
    known_end: Option<u64>,
    file_bytes: u64,
    source: CursorSource,
    /// Decoded records that were not returned yet.
    ready: VecDeque<CursorRecord>,
    last_lsn: u64,
    faults: Vec<CursorFault>,
    fault_count: usize,
    has_whole_footer: bool,
    footer_damage: Option<(u64, Malformed)>,
}

/// Record and its location.
pub(crate) struct CursorRecord {
    /// Decoded head of the record.
    pub(crate) record: Record,
    /// Location of the head; the body follows it.
    pub(crate) place: Location,
}

/// Location where records may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CursorFault {
    /// Offset in the segment.
    pub(crate) offset: u64,
    /// LSN of the first record that may be missing.
    pub(crate) first_lsn: u64,
    /// Reason why the bytes were rejected.
    pub(crate) reason: Malformed,
}

enum CursorSource {
    Footer(Box<FooterWindow>),
    Groups(Box<GroupCursor>),
    Done,
}

impl RecordCursor {
    /// Creates a cursor before the first record.
    ///
    /// `end` is the end of the groups of a segment without footer, if known: then all records before it count. If it
    /// is unknown, the file may end in zeros or in a torn tail, and records that are not known to be durable are not
    /// returned.
    pub(crate) fn open(
        file: Arc<dyn DiskFile>,
        path: String,
        header: SegmentHeader,
        end: Option<u64>,
    ) -> Result<Self> {
        let io = |source| Error::io(format!("reading {path}"), source);
        // Sealing the segment concurrently truncates the file, possibly just before the trailer is read.
        let footer =
            read_footer(file.as_ref(), &header).or_else(|_| read_footer(file.as_ref(), &header))?;
        let file_bytes = file.bytes_len().map_err(io)?;
        let mut cursor = Self {
            known_end: footer.map(|footer| footer.footer_offset).or(end),
            file_bytes,
            file,
            path,
            header,
            source: CursorSource::Done,
            ready: VecDeque::new(),
            last_lsn: header.base_lsn.saturating_sub(1),
            faults: Vec::new(),
            fault_count: 0,
            has_whole_footer: false,
            footer_damage: None,
        };
        // A compacted segment is complete before it is used: without a footer it has lost its end.
        if header.class == SegmentClass::Compacted && footer.is_none() {
            let (offset, reason) = (file_bytes, Malformed::Short);
            cursor.note(CursorFault { offset, first_lsn: header.base_lsn, reason });
        }
        let checked = footer.map(|footer| cursor.check_footer(&footer)).transpose()?;
        cursor.source = match footer.zip(checked) {
            Some((footer, Ok(()))) => {
                cursor.has_whole_footer = true;
                CursorSource::Footer(Box::new(FooterWindow::new(&footer, header.context())))
            }
            Some((footer, Err(reason))) => {
                cursor.footer_damage = Some((footer.footer_offset, reason));
                cursor.walk()?
            }
            None => cursor.walk()?,
        };
        Ok(cursor)
    }

    /// Returns the next record; `None` at the end.
    pub(crate) fn step(&mut self) -> Result<Option<CursorRecord>> {
        loop {
            // Records salvaged after a fault may have been returned before it.
            while let Some(next) = self.ready.pop_front() {
                if next.record.lsn > self.last_lsn {
                    self.last_lsn = next.record.lsn;
                    return Ok(Some(next));
                }
            }
            match std::mem::replace(&mut self.source, CursorSource::Done) {
                CursorSource::Done => return Ok(None),
                CursorSource::Footer(window) => self.step_footer(window)?,
                CursorSource::Groups(walk) => self.step_groups(walk)?,
            }
        }
    }

    /// Reads the body of a record of this segment and verifies every block.
    pub(crate) fn read_body(&self, of: &CursorRecord) -> Result<Bytes> {
        let about = |error: Error| match &of.record.op {
            RecordOp::Put { name, .. } => error.about(name),
            _ => error,
        };
        let body = self.read_body_unverified(&of.record, of.place).map_err(about)?;
        match of.record.verify_body(self.place(of.place), &body) {
            Ok(()) => Ok(body),
            Err(fault) => {
                let path = self.path.clone();
                Err(about(Error::corrupt(path, fault.offset, Malformed::Checksum)))
            }
        }
    }

    /// Returns whether all records returned so far came from an intact footer.
    pub(crate) fn has_whole_footer(&self) -> bool {
        self.has_whole_footer
    }

    /// Returns the damage of the footer entries if the trailer is intact; the groups are read instead.
    pub(crate) fn footer_damage(&self) -> Option<Error> {
        let (offset, reason) = self.footer_damage?;
        Some(Error::corrupt(self.path.clone(), offset, reason))
    }

    /// Reads the body of a record of this segment without verifying it.
    pub(crate) fn read_body_unverified(&self, record: &Record, at: Location) -> Result<Bytes> {
        let mut body = vec![0; usize::try_from(record.body_bytes()).unwrap_or(usize::MAX)];
        self.read(at.offset + u64::from(at.head_bytes), &mut body)?;
        Ok(body.into())
    }

    /// Returns the disk address of a location in this segment.
    pub(crate) fn place(&self, at: Location) -> DiskAddress {
        self.header.context().at(at.offset)
    }

    /// Returns whether a corrupt body looks like a punched one: every corrupt block has a page of zeros. If power
    /// was cut during the punch, any of the other pages may be unchanged.
    pub(crate) fn is_punched(&self, of: &CursorRecord) -> Result<bool> {
        let body = match self.read_body_unverified(&of.record, of.place) {
            Err(Error::Corrupt(_)) => return Ok(false),
            other => other?,
        };
        let start = of.place.offset + u64::from(of.place.head_bytes);
        let mut broken = of.record.damaged_blocks(self.place(of.place), &body);
        Ok(broken.all(|block| has_zero_page(&body, start, block)))
    }

    /// Returns the faults found so far, the first [`limits::DAMAGE_LISTED_MAX`] of them.
    pub(crate) fn faults(&self) -> &[CursorFault] {
        &self.faults
    }

    /// Returns the number of faults found so far.
    pub(crate) fn fault_count(&self) -> usize {
        self.fault_count
    }

    /// Verifies the entries of a footer. Fails if the remote store does.
    fn check_footer(&self, footer: &FooterTrailer) -> Result<Result<(), Malformed>> {
        let mut reader = FooterReader::new(footer, self.header.context());
        while let Some(wanted) = reader.next_range() {
            let piece = match self.read_piece(wanted) {
                Err(error @ Error::RemoteUnavailable(_)) => return Err(error),
                piece => piece.map_err(|_| Malformed::Unreadable),
            };
            if let Err(reason) = piece.and_then(|piece| reader.feed(&piece).map(drop)) {
                return Ok(Err(reason));
            }
        }
        Ok(Ok(()))
    }

    fn step_footer(&mut self, mut window: Box<FooterWindow>) -> Result<()> {
        if window.is_done() {
            return Ok(());
        }
        let filled = self.fill(&mut window)?;
        match filled.and_then(|()| window.entry(self.header.context())) {
            Ok(entry) => {
                self.ready.push_back(record(self.header.segment, entry.offset, entry.record));
                self.source = CursorSource::Footer(window);
            }
            // Falls back to the groups, from the start; records that were already returned are skipped.
            Err(_) => {
                self.has_whole_footer = false;
                self.source = self.walk()?;
            }
        }
        Ok(())
    }

    /// Reads until a whole entry is in memory, or all that are left.
    fn fill(&self, window: &mut FooterWindow) -> Result<Result<(), Malformed>> {
        while let Some(wanted) = window.wanted() {
            let bytes = self.read_piece(wanted)?;
            if let Err(reason) = window.extend(bytes) {
                return Ok(Err(reason));
            }
        }
        Ok(Ok(()))
    }

    fn step_groups(&mut self, mut walk: Box<GroupCursor>) -> Result<()> {
        let start = walk.offset();
        let first_lsn = walk.next_lsn();
        match walk.step()? {
            GroupStep::End => {
                if self.known_end.is_some_and(|end| end > start) {
                    self.note(CursorFault { offset: start, first_lsn, reason: Malformed::Short });
                }
                return Ok(());
            }
            GroupStep::Group(group) => {
                let view = group
                    .view()
                    .map_err(|reason| Error::corrupt(self.path.clone(), start, reason))?;
                let records = view.into_records().into_iter();
                self.ready.extend(
                    records.map(|s| record(self.header.segment, s.address.offset, s.record)),
                );
            }
            GroupStep::Broken(reason) => {
                if self.known_end.is_none() && !walk.is_durable_later(first_lsn)? {
                    return Ok(());
                }
                self.note(CursorFault { offset: start, first_lsn, reason });
                let next = walk.skip_to_next_header()?;
                let (bytes, place) = walk.skipped(start)?;
                self.ready.extend(
                    salvage(&bytes, place)
                        .into_iter()
                        .filter(|salvaged| salvaged.record.lsn >= first_lsn)
                        .map(|s| record(self.header.segment, s.address.offset, s.record)),
                );
                if next.is_none() {
                    return Ok(());
                }
            }
        }
        self.source = CursorSource::Groups(walk);
        Ok(())
    }

    fn walk(&self) -> Result<CursorSource> {
        let (file, path) = (Arc::clone(&self.file), self.path.clone());
        let end = self.known_end.unwrap_or(u64::MAX).min(self.file_bytes);
        GroupCursor::new(file, path, &self.header, end).map(|it| CursorSource::Groups(Box::new(it)))
    }

    fn note(&mut self, fault: CursorFault) {
        self.fault_count += 1;
        if self.faults.len() < limits::DAMAGE_LISTED_MAX {
            self.faults.push(fault);
        }
    }

    fn read_piece(&self, (offset, bytes): (u64, usize)) -> Result<Vec<u8>> {
        let mut piece = vec![0; bytes];
        self.read(offset, &mut piece)?;
        Ok(piece)
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.file.read_at(offset, buffer).map_err(|source| match source.kind() {
            io::ErrorKind::UnexpectedEof => {
                Error::corrupt(self.path.clone(), offset, Malformed::Short)
            }
            _ => Error::io(format!("reading {}", self.path), source),
        })
    }
}

/// Window of footer entries in memory, with the read position.
struct FooterWindow {
    bytes: Vec<u8>,
    used: usize,
    reader: FooterReader,
    /// Number of entries not decoded yet.
    left: u64,
    /// Offset and LSN of the last entry's record: both ascend.
    last: Option<(u64, u64)>,
}

impl FooterWindow {
    fn new(footer: &FooterTrailer, context: SegmentContext) -> Self {
        let reader = FooterReader::new(footer, context);
        Self { bytes: Vec::new(), used: 0, reader, left: footer.entry_count, last: None }
    }

    fn is_done(&self) -> bool {
        self.left == 0 && self.used == self.bytes.len() && self.reader.next_range().is_none()
    }

    /// Returns the range to read if the next entry may not be complete in memory.
    fn wanted(&self) -> Option<(u64, usize)> {
        let is_short = self.bytes.len() - self.used < FOOTER_ENTRY_BYTES_MAX;
        if is_short { self.reader.next_range() } else { None }
    }

    fn extend(&mut self, bytes: Vec<u8>) -> Result<(), Malformed> {
        let more = self.reader.feed(&bytes)?;
        self.bytes.drain(..self.used);
        self.used = 0;
        self.bytes.extend_from_slice(&more);
        Ok(())
    }

    fn entry(&mut self, context: SegmentContext) -> Result<FooterEntry, Malformed> {
        let rest = self.bytes.get(self.used..).unwrap_or_default();
        let (entry, bytes) = FooterEntry::decode(rest, context)?.ok_or(Malformed::Short)?;
        let (offset, lsn) = (entry.offset, entry.record.lsn);
        if self.last.is_some_and(|last| offset <= last.0 || lsn <= last.1) {
            return Err(Malformed::Order);
        }
        self.last = Some((offset, lsn));
        self.left = self.left.checked_sub(1).ok_or(Malformed::Count)?;
        self.used += bytes;
        Ok(entry)
    }
}

fn record(segment: SegmentId, offset: u64, record: Record) -> CursorRecord {
    // The length of a head is a u16 on disk.
    let head_bytes = u32::try_from(record.head_bytes()).unwrap_or(u32::MAX);
    CursorRecord { record, place: Location { segment, offset, head_bytes } }
}

/// Returns whether a whole page of zeros overlaps this block and is inside the body, which starts at `start` of the
/// file.
fn has_zero_page(body: &[u8], start: u64, block: Range<u64>) -> bool {
    // The first partial page also contains the head.
    let before = usize::try_from(start.next_multiple_of(PAGE_BYTES) - start).unwrap_or(usize::MAX);
    let pages = body.get(before..).unwrap_or_default().chunks_exact(PAGE_BYTES as usize);
    let mut pages = (before as u64..).step_by(PAGE_BYTES as usize).zip(pages);
    pages.any(|(at, page)| {
        at < block.end && at + PAGE_BYTES > block.start && page.iter().all(|&byte| byte == 0)
    })
}

/// Page size of hole punching.
const PAGE_BYTES: u64 = 4_096;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Disk;
    use crate::disk::sim::SimDisk;
    use crate::format::{
        Checksum, FOOTER_BLOCK_BYTES, GroupBuilder, ObjectMeta, RecordContent,
        SEGMENT_HEADER_BYTES, block_count,
    };
    use crate::name::{BucketName, ObjectKey, ObjectName};
    use crate::segment::active::tests::first_segment;
    use crate::segment::seal;

    const GROUPS: u64 = 40;

    /// Segment of groups of three records, with the offset of each group and the end of the last.
    struct Built {
        disk: SimDisk,
        header: SegmentHeader,
        groups: Vec<u64>,
        end: u64,
    }

    impl Built {
        fn new() -> Self {
            let disk = SimDisk::new();
            let mut active = first_segment(&disk, 16 << 20);
            let header = *active.header();
            let mut previous = Checksum::default();
            let mut groups = Vec::new();
            for group in 0..GROUPS {
                let first_lsn = 1 + 3 * group;
                let place = active.next_place();
                let mut builder = GroupBuilder::new(
                    header.context(),
                    place.offset,
                    group + 1,
                    first_lsn,
                    first_lsn - 1,
                    previous,
                );
                for lsn in first_lsn..first_lsn + 3 {
                    builder.frame(&[put(lsn)]);
                }
                let built = builder.finish();
                active.append(&built).unwrap();
                groups.push(place.offset);
                previous = built.header_checksum;
            }
            active.sync().unwrap();
            Self { disk, header, groups, end: active.end() }
        }

        fn seal(self) -> Self {
            seal(&self.disk, &self.header, self.end).unwrap();
            self
        }

        fn cursor(&self, end: Option<u64>) -> RecordCursor {
            let file = self.disk.open(&path()).unwrap();
            RecordCursor::open(file, path(), self.header, end).unwrap()
        }
    }

    fn path() -> String {
        "log/0000000001.seg".to_owned()
    }

    fn body_of(lsn: u64) -> Bytes {
        vec![lsn as u8; 1 + (lsn as usize * 977) % 90_000].into()
    }

    fn put(lsn: u64) -> (RecordOp, Vec<Bytes>) {
        // Incompressible letters.
        let mut seed = lsn as u32;
        let letters = (0..900).map(|_| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            char::from(b'A' + (seed >> 24) as u8 % 26)
        });
        let key = ObjectKey::parse(&letters.collect::<String>()).unwrap();
        let body = body_of(lsn);
        let blocks: Vec<_> = body.chunks(limits::BLOCK_BYTES).map(Checksum::of).collect();
        assert_eq!(blocks.len() as u64, block_count(body.len() as u64));
        let meta = ObjectMeta {
            content_type: String::new(),
            hash: [0; 32],
            created_ms: lsn,
            modified_ms: lsn,
            flags: Default::default(),
            attributes: Vec::new(),
        };
        let name = ObjectName::new(BucketName::parse("abc").unwrap(), key);
        let content = RecordContent::Inline { bytes: body.len() as u64, blocks };
        (RecordOp::Put { name, meta, content }, vec![body])
    }

    fn read(cursor: &mut RecordCursor) -> Vec<u64> {
        let mut lsns = Vec::new();
        while let Some(next) = cursor.step().unwrap() {
            assert_eq!(cursor.read_body(&next).unwrap(), body_of(next.record.lsn));
            lsns.push(next.record.lsn);
        }
        lsns
    }

    fn all_but(missing: std::ops::Range<u64>) -> Vec<u64> {
        (1..=3 * GROUPS).filter(|lsn| !missing.contains(lsn)).collect()
    }

    #[test]
    fn footer_and_groups_yield_the_same_records() {
        let growing = Built::new();
        for end in [Some(growing.end), None] {
            let mut cursor = growing.cursor(end);
            assert_eq!(read(&mut cursor), all_but(0..0));
            assert_eq!(cursor.faults(), []);
        }
        let sealed = growing.seal();
        let footer_bytes = sealed.disk.bytes(&path()).len() as u64 - sealed.end;
        assert!(footer_bytes > FOOTER_BLOCK_BYTES as u64, "the footer takes several blocks");
        let mut cursor = sealed.cursor(None);
        assert!(matches!(cursor.source, CursorSource::Footer(_)));
        assert_eq!(read(&mut cursor), all_but(0..0));
        assert_eq!(cursor.faults(), []);
    }

    #[test]
    fn records_are_read_without_a_footer() {
        let sealed = Built::new().seal();
        let length = sealed.disk.bytes(&path()).len() as u64;
        for offset in (sealed.end..length).step_by(4_999).chain(length - 64..length) {
            let damaged = Built { disk: sealed.disk.fork(), groups: Vec::new(), ..sealed };
            damaged.disk.flip(&path(), offset, 0x10);
            for end in [Some(sealed.end), None] {
                let mut cursor = damaged.cursor(end);
                assert!(matches!(cursor.source, CursorSource::Groups(_)), "{offset}");
                assert_eq!(read(&mut cursor), all_but(0..0), "{offset}");
                assert_eq!(cursor.faults(), [], "{offset}");
            }
        }
    }

    #[test]
    fn damaged_group_is_a_fault_and_the_rest_is_read() {
        let built = Built::new();
        let start = built.groups[9];
        // Frame header, then the head of the group's first record, LSN 28.
        built.disk.flip(&path(), start + 52 + 12 + 30, 1);
        for end in [Some(built.end), None] {
            let mut cursor = built.cursor(end);
            assert_eq!(read(&mut cursor), all_but(28..29));
            let fault = CursorFault { offset: start, first_lsn: 28, reason: Malformed::Checksum };
            assert_eq!(cursor.faults(), [fault]);
            assert_eq!(cursor.fault_count(), 1);
        }
    }

    #[test]
    fn torn_tail_yields_no_record_unless_known_durable() {
        let built = Built::new();
        let start = built.groups[GROUPS as usize - 1];
        built.disk.flip(&path(), start + 52 + 12 + 30, 1);
        let last = 3 * GROUPS;
        let mut unknown = built.cursor(None);
        assert_eq!(read(&mut unknown), all_but(last - 2..last + 1));
        assert_eq!(unknown.faults(), []);
        let mut known = built.cursor(Some(built.end));
        assert_eq!(read(&mut known), all_but(last - 2..last - 1));
        assert_eq!(known.fault_count(), 1);
    }

    #[test]
    fn short_or_empty_segment_ends_early() {
        let built = Built::new();
        let file = built.disk.open(&path()).unwrap();
        for length in [built.groups[5] + 100, built.groups[5] + 10, built.groups[5]] {
            file.set_len(length).unwrap();
            let mut cursor = built.cursor(Some(built.end));
            assert_eq!(read(&mut cursor), (1..=15).collect::<Vec<_>>());
            assert_eq!(cursor.fault_count(), 1);
        }
        file.set_len(SEGMENT_HEADER_BYTES as u64).unwrap();
        assert_eq!(read(&mut built.cursor(None)), []);
    }

    #[test]
    fn damaged_body_error_names_object_and_location() {
        let sealed = Built::new().seal();
        let mut cursor = sealed.cursor(None);
        let first = cursor.step().unwrap().unwrap();
        let at = first.place.offset + u64::from(first.place.head_bytes);
        sealed.disk.flip(&path(), at, 1);
        let Err(Error::Corrupt(corruption)) = cursor.read_body(&first) else {
            panic!("the body is damaged");
        };
        assert_eq!((corruption.file, corruption.offset), (path(), at));
        assert!(corruption.object.is_some());
        let second = cursor.step().unwrap().unwrap();
        assert_eq!(cursor.read_body(&second).unwrap(), body_of(2));
    }
}
