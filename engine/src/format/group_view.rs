//! Decodes and verifies commit groups; salvages records of damaged ones.
//!
//! Replay, rebuild, compaction and fsck read groups through [`GroupView`]; only damage reports also use [`salvage`]
//! and [`find_group_header`].
//!
//! Guarantees: a [`GroupView`] is a whole group whose header, frames, heads, trailer and numbers agree; every scan
//! terminates; no memory is allocated for bytes that are not present.
//! Non-goals: reading files; telling a torn tail from damage, which `recovery.rs` does by the durable LSN of later
//! groups.

use memchr::memmem;

use super::body::BodyFault;
use super::byte_codec::{ByteReader, ByteWriter};
use super::checksum::{
    CheckClass, Checksum, DiskAddress, RunningChecksum, SegmentContext, compare,
};
use super::group::{
    FRAME_HEADER_BYTES, FrameHeader, GROUP_HEADER_BYTES, GROUP_MAGIC, GROUP_TRAILER_BYTES,
    GroupHeader,
};
use super::malformed::Malformed;
use super::record::Record;

/// Distance from the end of the last frame of a group to the first frame of the next.
const BETWEEN_FRAMES_BYTES: usize = GROUP_TRAILER_BYTES + GROUP_HEADER_BYTES;

/// Record decoded from a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScannedRecord<'a> {
    /// Decoded head of the record.
    pub record: Record,
    /// Disk address of the head.
    pub address: DiskAddress,
    /// Encoded head.
    pub head: &'a [u8],
    /// Length of the head.
    pub head_bytes: usize,
    /// Body, whose blocks are not verified yet.
    pub body: &'a [u8],
    /// Index of the frame in the group, from 0.
    pub frame: u32,
}

impl ScannedRecord<'_> {
    /// Verifies every block of the body.
    pub fn verify_body(&self) -> Result<(), BodyFault> {
        self.record.verify_body(self.address, self.body)
    }
}

/// Complete group, verified except for the bodies.
#[derive(Clone, Debug)]
pub struct GroupView<'a> {
    header: GroupHeader,
    header_checksum: Checksum,
    records: Vec<ScannedRecord<'a>>,
}

impl<'a> GroupView<'a> {
    /// Decodes the log group at the start of `bytes`, at `place`. More bytes may follow the group.
    pub fn decode(bytes: &'a [u8], place: DiskAddress) -> Result<Self, Malformed> {
        let view = Self::decode_any(bytes, place)?;
        let lsns = view.header.first_lsn..view.header.next_lsn();
        let is_gapless = view.records.iter().map(|scanned| scanned.record.lsn).eq(lsns);
        if is_gapless { Ok(view) } else { Err(Malformed::Order) }
    }

    /// Decodes a group of a compacted segment, whose LSNs ascend with gaps.
    pub fn decode_compacted(bytes: &'a [u8], place: DiskAddress) -> Result<Self, Malformed> {
        let view = Self::decode_any(bytes, place)?;
        let first = view.records.first().map(|scanned| scanned.record.lsn);
        let ascends = view.records.is_sorted_by(|one, next| one.record.lsn < next.record.lsn);
        let is_first = first.is_none_or(|lsn| lsn == view.header.first_lsn);
        if ascends && is_first { Ok(view) } else { Err(Malformed::Order) }
    }

    fn decode_any(bytes: &'a [u8], place: DiskAddress) -> Result<Self, Malformed> {
        let (header, header_checksum) = GroupHeader::decode(bytes, place)?;
        let mut walk = GroupWalk {
            remaining: ByteReader::new(ByteReader::new(bytes).bytes(header.group_bytes as usize)?),
            address: place,
            running: RunningChecksum::new(),
            records: Vec::new(),
        };
        walk.skip(GROUP_HEADER_BYTES)?;
        for frame in 0..header.frame_count {
            walk.frame(frame)?;
        }
        walk.trailer()?;
        let records = walk.records;
        if records.len() as u64 != u64::from(header.record_count) {
            return Err(Malformed::Count);
        }
        Ok(Self { header, header_checksum, records })
    }

    /// Returns the group header.
    pub fn header(&self) -> &GroupHeader {
        &self.header
    }

    /// Returns the checksum of the header, which the next group refers to as its predecessor.
    pub fn header_checksum(&self) -> Checksum {
        self.header_checksum
    }

    /// Returns the LSN of the last record in or before the group.
    pub fn last_lsn(&self) -> u64 {
        let last = self.records.last().map(|scanned| scanned.record.lsn);
        last.unwrap_or(self.header.last_lsn())
    }

    /// Returns the records in order.
    pub fn records(&self) -> std::slice::Iter<'_, ScannedRecord<'a>> {
        self.records.iter()
    }

    /// Converts the group into its records, in order.
    pub fn into_records(self) -> Vec<ScannedRecord<'a>> {
        self.records
    }

    /// Verifies every block of every body and returns the first corrupt one as an error.
    pub fn verify_bodies(&self) -> Result<(), BodyFault> {
        self.records.iter().try_for_each(ScannedRecord::verify_body)
    }
}

/// Decoder state of a [`GroupView`].
struct GroupWalk<'a> {
    remaining: ByteReader<'a>,
    address: DiskAddress,
    running: RunningChecksum,
    records: Vec<ScannedRecord<'a>>,
}

impl<'a> GroupWalk<'a> {
    fn frame(&mut self, frame: u32) -> Result<(), Malformed> {
        let header = FrameHeader::decode(self.remaining.clone().rest(), self.address)?;
        let start = self.address.offset;
        let bytes = self.skip(FRAME_HEADER_BYTES)?;
        self.running.update(bytes);
        for _ in 0..header.record_count {
            self.record(frame)?;
        }
        if self.address.offset.checked_sub(start) == Some(u64::from(header.frame_bytes)) {
            Ok(())
        } else {
            Err(Malformed::Length)
        }
    }

    fn record(&mut self, frame: u32) -> Result<(), Malformed> {
        let place = self.address;
        let (record, head_bytes) = Record::decode(self.remaining.clone().rest(), place)?;
        let head = self.skip(head_bytes)?;
        self.running.update(head);
        let body_bytes = usize::try_from(record.body_bytes()).map_err(|_| Malformed::Length)?;
        let body = self.skip(body_bytes)?;
        self.records.push(ScannedRecord { record, address: place, head, head_bytes, body, frame });
        Ok(())
    }

    fn trailer(&mut self) -> Result<(), Malformed> {
        let place = self.address;
        let found = std::mem::take(&mut self.running).finish().bind(place);
        let expected = Checksum(ByteReader::new(self.skip(GROUP_TRAILER_BYTES)?).u32()?);
        compare(CheckClass::Group, expected, found)?;
        self.remaining.clone().end()
    }

    fn skip(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let bytes = self.remaining.bytes(count)?;
        // A wrapped offset belongs to no file.
        let offset = self.address.offset.checked_add(count as u64).ok_or(Malformed::Misplaced)?;
        self.address.offset = offset;
        Ok(bytes)
    }
}

/// Returns the records with intact heads of a damaged group.
///
/// Only for a group that is known to be durable; records of a torn tail never took effect. `bytes` start where the
/// group started, at `place`, and end before the next intact group header, so they may contain several damaged
/// groups. After a damaged head, the scan resumes at the next frame if the frame header is intact.
pub fn salvage(bytes: &[u8], place: DiskAddress) -> Vec<ScannedRecord<'_>> {
    let mut walk = GroupWalk {
        remaining: ByteReader::new(bytes),
        address: place,
        running: RunningChecksum::new(),
        records: Vec::new(),
    };
    let mut frame = 0;
    let mut skip = GROUP_HEADER_BYTES;
    let mut may_be_the_end = true;
    while walk.skip(skip).is_ok() {
        let start = walk.address.offset;
        if let Ok(header) = FrameHeader::decode(walk.remaining.clone().rest(), walk.address) {
            if walk.skip(FRAME_HEADER_BYTES).is_err() {
                break;
            }
            while walk.record(frame).is_ok() {}
            frame = frame.saturating_add(1);
            // Skips the rest of the frame after a damaged head.
            let end = start.saturating_add(u64::from(header.frame_bytes));
            let left = end.saturating_sub(walk.address.offset);
            skip = usize::try_from(left).unwrap_or(usize::MAX);
            may_be_the_end = true;
        } else if may_be_the_end {
            // Not a frame: possibly the end of the group, followed by the next group.
            skip = BETWEEN_FRAMES_BYTES;
            may_be_the_end = false;
        } else {
            break;
        }
    }
    walk.records
}

/// Returns the first intact group header in `bytes`, which start at `base_offset` of the file, and its file offset.
///
/// A caller that reads in windows must overlap them by [`GROUP_HEADER_BYTES`] - 1 bytes.
pub fn find_group_header(
    bytes: &[u8],
    context: SegmentContext,
    base_offset: u64,
) -> Option<(u64, GroupHeader)> {
    let magic = salted_magic(context);
    memmem::find_iter(bytes, &magic).find_map(|at| {
        let offset = base_offset.checked_add(at as u64)?;
        let (header, _) = GroupHeader::decode(bytes.get(at..)?, context.at(offset)).ok()?;
        Some((offset, header))
    })
}

fn salted_magic(context: SegmentContext) -> Vec<u8> {
    let mut magic = Vec::with_capacity(8);
    ByteWriter::new(&mut magic).u64(GROUP_MAGIC ^ context.salt);
    magic
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::format::group_builder::{BuiltGroup, GroupBuilder, Placed};
    use crate::format::object_meta::{ObjectFlags, ObjectMeta};
    use crate::format::record::{RecordContent, RecordOp};
    use crate::format::testing::{assert_every_byte_is_checked, context, test_address};
    use crate::limits::BLOCK_BYTES;
    use crate::name::{BucketName, FactName, ObjectKey, ObjectName};

    fn object(key: &str, body: &'static [u8]) -> (RecordOp, Vec<Bytes>) {
        let bucket = BucketName::parse("abc").unwrap();
        let meta = ObjectMeta {
            content_type: "text/plain".to_owned(),
            hash: [1; 32],
            created_ms: 1,
            modified_ms: 2,
            flags: ObjectFlags::default(),
            attributes: Vec::new(),
        };
        let blocks = body.chunks(BLOCK_BYTES).map(Checksum::of).collect();
        let content = RecordContent::Inline { bytes: body.len() as u64, blocks };
        let name = ObjectName::new(bucket, ObjectKey::parse(key).unwrap());
        let what = RecordOp::Put { name, meta, content };
        (what, vec![Bytes::from_static(body)])
    }

    fn fact_tombstone(name: &str) -> (RecordOp, Vec<Bytes>) {
        let what = RecordOp::DeleteFact { name: FactName::parse(name).unwrap() };
        (what, Vec::new())
    }

    fn group(offset: u64) -> BuiltGroup {
        placed_group(offset).0
    }

    fn placed_group(offset: u64) -> (BuiltGroup, Vec<Placed>) {
        let mut builder = GroupBuilder::new(context(), offset, 2, 11, 10, Checksum(77));
        let mut placed = builder.frame(&[object("a", b"first body"), fact_tombstone("token")]);
        placed.extend(builder.frame(&[object("b/c", b"second")]));
        (builder.finish(), placed)
    }

    #[test]
    fn group_round_trips() {
        let (built, placed) = placed_group(4_096);
        let mut bytes = built.pieces.concat();
        bytes.extend_from_slice(&[0; 100]);
        let view = GroupView::decode(&bytes, test_address(4_096)).unwrap();
        assert_eq!(view.header_checksum(), built.header_checksum);
        assert_eq!((view.header().first_lsn, view.header().last_lsn()), (11, built.last_lsn));
        assert_eq!(view.verify_bodies(), Ok(()));
        let seen: Vec<_> =
            view.records().map(|s| (s.record.lsn, s.frame, s.address.offset, s.body)).collect();
        let offsets: Vec<_> = placed.iter().map(|placed| placed.offset).collect();
        assert_eq!(
            seen,
            [
                (11, 0, offsets[0], b"first body".as_slice()),
                (12, 0, offsets[1], b"".as_slice()),
                (13, 1, offsets[2], b"second".as_slice()),
            ]
        );
        for scanned in view.into_records() {
            let mut again = Vec::new();
            scanned.record.encode(scanned.address, &mut again);
            assert_eq!((again.as_slice(), again.len()), (scanned.head, scanned.head_bytes));
        }
    }

    #[test]
    fn group_detects_any_byte_change() {
        let bytes = group(4_096).pieces.concat();
        assert_every_byte_is_checked(&bytes, |bytes| {
            GroupView::decode(bytes, test_address(4_096))
                .is_ok_and(|view| view.verify_bodies().is_ok())
        });
    }

    #[test]
    fn damaged_block_of_a_large_body_is_reported() {
        static BODY: [u8; 2 * BLOCK_BYTES] = [9; 2 * BLOCK_BYTES];
        let mut builder = GroupBuilder::new(context(), 0, 1, 1, 0, Checksum(0));
        let placed = builder.frame(&[object("large", &BODY)]);
        let mut bytes = builder.finish().pieces.concat();
        let body = placed[0].offset + u64::from(placed[0].head_bytes);
        let second = body + BLOCK_BYTES as u64;
        bytes[usize::try_from(second).unwrap() + 3] ^= 0x80;
        let view = GroupView::decode(&bytes, test_address(0)).unwrap();
        assert_eq!(view.verify_bodies(), Err(BodyFault { lsn: 1, offset: second }));
    }

    #[test]
    fn group_is_rejected_at_another_offset() {
        let bytes = group(4_096).pieces.concat();
        assert_eq!(GroupView::decode(&bytes, test_address(8_192)).err(), Some(Malformed::Checksum));
        assert!(GroupView::decode(&bytes, test_address(u64::MAX)).is_err());
        let at_the_end = group(u64::MAX - 100);
        let bytes = at_the_end.pieces.concat();
        assert!(GroupView::decode(&bytes, test_address(u64::MAX - 100)).is_err());
    }

    #[test]
    fn records_of_another_group_are_rejected() {
        let mut bytes = group(4_096).pieces.concat();
        let mut later = GroupBuilder::new(context(), 4_096, 2, 12, 10, Checksum(77));
        later.frame(&[object("a", b"first body"), fact_tombstone("token")]);
        later.frame(&[object("b/c", b"second")]);
        let later = later.finish().pieces.concat();
        bytes[GROUP_HEADER_BYTES..].copy_from_slice(&later[GROUP_HEADER_BYTES..]);
        assert_eq!(GroupView::decode(&bytes, test_address(4_096)).err(), Some(Malformed::Order));
    }

    #[test]
    fn salvage_returns_records_with_intact_heads() {
        let (built, placed) = placed_group(4_096);
        let bytes = built.pieces.concat();
        let start = |record: usize| usize::try_from(placed[record].offset - 4_096).unwrap();
        let lsns = |bytes: &[u8]| {
            salvage(bytes, test_address(4_096)).iter().map(|s| s.record.lsn).collect::<Vec<_>>()
        };
        assert_eq!(lsns(&bytes), [11, 12, 13]);
        let frames: Vec<_> = salvage(&bytes, test_address(4_096)).iter().map(|s| s.frame).collect();
        assert_eq!(frames, [0, 0, 1]);

        let broken_at = |at: usize| {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1;
            lsns(&bytes)
        };
        assert_eq!(broken_at(0), [11, 12, 13], "the group header");
        assert_eq!(broken_at(GROUP_HEADER_BYTES), [0; 0], "the header of the first frame");
        assert_eq!(broken_at(start(0) + 20), [13], "the first head");
        assert_eq!(broken_at(start(1) + 9), [11, 13], "the second head");
        assert_eq!(broken_at(bytes.len() - 1), [11, 12, 13], "the trailer");
        assert_eq!(lsns(&bytes[..start(2)]), [11, 12], "the rest is missing");
        assert_eq!(lsns(&bytes[..30]), [0; 0]);
    }

    #[test]
    fn salvage_continues_into_the_next_group() {
        let first = group(4_096);
        let mut bytes = first.pieces.concat();
        let mut second = GroupBuilder::new(context(), 4_096 + first.bytes, 3, 14, 13, Checksum(0));
        second.frame(&[fact_tombstone("another")]);
        bytes.extend_from_slice(&second.finish().pieces.concat());
        let boundary = usize::try_from(first.bytes).unwrap();
        bytes[boundary - 1] ^= 1;
        bytes[boundary] ^= 1;
        let lsns: Vec<_> =
            salvage(&bytes, test_address(4_096)).iter().map(|s| (s.record.lsn, s.frame)).collect();
        assert_eq!(lsns, [(11, 0), (12, 0), (13, 1), (14, 2)]);
    }

    #[test]
    fn next_group_is_found_after_arbitrary_bytes() {
        let decoy = salted_magic(context());
        let mut bytes = vec![0xee; 1_000];
        bytes.extend_from_slice(&decoy);
        bytes.extend_from_slice(&decoy);
        let offset = 50_000 + bytes.len() as u64;
        bytes.extend_from_slice(&group(offset).pieces.concat());
        let found = find_group_header(&bytes, context(), 50_000);
        assert_eq!(found.map(|(at, header)| (at, header.number)), Some((offset, 2)));

        let moved = find_group_header(&bytes, context(), 50_001);
        assert_eq!(moved, None, "a group that lies elsewhere is not one");
        let start = usize::try_from(offset - 50_000).unwrap();
        let cut = &bytes[..start + GROUP_HEADER_BYTES - 1];
        assert_eq!(find_group_header(cut, context(), 50_000), None);
        assert_eq!(find_group_header(&bytes, context(), u64::MAX - 3), None);
        assert_eq!(find_group_header(&[], context(), 0), None);
    }
}
