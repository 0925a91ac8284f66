//! Builds a commit group: assigns LSNs and offsets, binds checksums.
//!
//! The layout is that of `group.rs`. Body checksums are computed, unbound, where the bytes are received; binding
//! costs one XOR each.
//!
//! Guarantees: the records of a group follow each other without padding; a body given as [`Bytes`] is not copied,
//! unless it is so small that a separate piece would cost more.
//! Non-goals: writing, syncing, choosing what goes into a group.

use bytes::Bytes;

use super::byte_codec::ByteWriter;
use super::checksum::{Checksum, DiskAddress, RunningChecksum, SegmentContext};
use super::footer::FOOTER_ENTRY_OVERHEAD_BYTES;
use super::group::{
    FRAME_HEADER_BYTES, FrameHeader, GROUP_HEADER_BYTES, GROUP_TRAILER_BYTES, GroupHeader,
};
use super::record::{Record, RecordOp};
use super::segment_id::SegmentId;

/// Maximum size of a body piece that is copied next to its head: one write instead of three.
pub const COPY_BYTES_MAX: usize = 4_096;

/// Location and LSN assigned to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// LSN of the record.
    pub lsn: u64,
    /// Id of the segment.
    pub segment: SegmentId,
    /// Offset of the record head in the file.
    pub offset: u64,
    /// Length of the head; the body follows it.
    pub head_bytes: u32,
}

/// Group that is ready to be written.
#[derive(Clone, Debug)]
pub struct BuiltGroup {
    /// Bytes of the group, to be written consecutively.
    pub pieces: Vec<Bytes>,
    /// Offset of the group in the file.
    pub offset: u64,
    /// Total length of all pieces.
    pub bytes: u64,
    /// Number of records.
    pub records: u32,
    /// Length of the records' footer entries before compression.
    pub footer_bytes: u64,
    /// LSN of the last record in or before the group.
    pub last_lsn: u64,
    /// Checksum of the header, which the next group refers to as its predecessor.
    pub header_checksum: Checksum,
}

/// Builder of a commit group from batches.
#[derive(Debug)]
pub struct GroupBuilder {
    context: SegmentContext,
    offset: u64,
    number: u64,
    first_lsn: u64,
    next_lsn: u64,
    durable_lsn: u64,
    previous: Checksum,
    frames: u32,
    records: u32,
    bytes: u64,
    running: RunningChecksum,
    pieces: Vec<Piece>,
    footer_bytes: u64,
}

/// Piece of a group under construction: collected bytes, or a referenced body.
#[derive(Debug)]
enum Piece {
    Collected(Vec<u8>),
    Shared(Bytes),
}

impl GroupBuilder {
    /// Begins the group with this number at `offset` of the segment.
    pub fn new(
        context: SegmentContext,
        offset: u64,
        number: u64,
        first_lsn: u64,
        durable_lsn: u64,
        previous: Checksum,
    ) -> Self {
        // The header contains the length of the group, so its space is reserved until the end.
        let header = vec![0; GROUP_HEADER_BYTES];
        Self {
            context,
            offset,
            number,
            first_lsn,
            next_lsn: first_lsn,
            durable_lsn,
            previous,
            frames: 0,
            records: 0,
            bytes: GROUP_HEADER_BYTES as u64,
            running: RunningChecksum::new(),
            pieces: vec![Piece::Collected(header)],
            footer_bytes: 0,
        }
    }

    /// Collects the bytes that are not referenced in the buffer of an earlier group. Call before the first frame.
    pub fn reusing(self, mut buffer: Vec<u8>) -> Self {
        buffer.clear();
        buffer.resize(GROUP_HEADER_BYTES, 0);
        Self { pieces: vec![Piece::Collected(buffer)], ..self }
    }

    /// Returns the length of a frame with these records.
    pub fn frame_bytes(records: &[(RecordOp, Vec<Bytes>)]) -> u64 {
        let of_record =
            |what: &RecordOp| (what.head_bytes() as u64).saturating_add(what.body_bytes());
        records
            .iter()
            .map(|(what, _)| of_record(what))
            .fold(FRAME_HEADER_BYTES as u64, u64::saturating_add)
    }

    /// Returns the length of the group if it ended here.
    pub fn bytes(&self) -> u64 {
        self.bytes.saturating_add(GROUP_TRAILER_BYTES as u64)
    }

    /// Adds one batch as one frame and returns the location of each record, in order. A batch without records adds
    /// nothing.
    ///
    /// Each record comes with its body, in pieces of any size. Its block checksums are [`Checksum::of`] the blocks,
    /// unbound; they are bound to their disk addresses here.
    ///
    /// # Panics
    ///
    /// If a record violates a bound ([`RecordOp::check`]), if a body does not have the length that its record states,
    /// or if the frame length overflows a `u32`: such bytes must never reach a disk.
    pub fn frame(&mut self, records: &[(RecordOp, Vec<Bytes>)]) -> Vec<Placed> {
        if records.is_empty() {
            return Vec::new();
        }
        for (what, body) in records {
            assert_eq!(what.check(), Ok(()), "a record violates no bound");
            let given = body.iter().map(|piece| piece.len() as u64).sum::<u64>();
            assert_eq!(given, what.body_bytes(), "a body has the length that its record states");
        }
        let header = FrameHeader {
            frame_bytes: u32::try_from(Self::frame_bytes(records)).unwrap_or(u32::MAX),
            record_count: u32::try_from(records.len()).unwrap_or(u32::MAX),
        };
        assert!(header.frame_bytes < u32::MAX, "a batch is bounded");
        let mut encoded = Vec::with_capacity(FRAME_HEADER_BYTES);
        header.encode(self.here(), &mut encoded);
        self.running.update(&encoded);
        self.collect(&encoded);
        self.frames = self.frames.saturating_add(1);
        records.iter().map(|(what, body)| self.record(what.clone(), body)).collect()
    }

    /// Sets the LSN of the next record, which may skip numbers: records of compacted segments retain their LSNs.
    ///
    /// # Panics
    ///
    /// If the number is not above that of the previous record, or if the first number of the group is not the one
    /// that the group was created with.
    pub fn skip_to(&mut self, lsn: u64) {
        assert!(lsn >= self.next_lsn && (self.records > 0 || lsn == self.first_lsn), "LSNs ascend");
        self.next_lsn = lsn;
    }

    /// Finishes the group.
    ///
    /// # Panics
    ///
    /// If the group length overflows a `u32`.
    pub fn finish(mut self) -> BuiltGroup {
        let trailer = std::mem::take(&mut self.running).finish().bind(self.here());
        let mut encoded = Vec::with_capacity(GROUP_TRAILER_BYTES);
        ByteWriter::new(&mut encoded).u32(trailer.0);
        self.collect(&encoded);

        let header = GroupHeader {
            number: self.number,
            first_lsn: self.first_lsn,
            durable_lsn: self.durable_lsn,
            group_bytes: u32::try_from(self.bytes).unwrap_or(u32::MAX),
            record_count: self.records,
            frame_count: self.frames,
            previous: self.previous,
        };
        assert_eq!(u64::from(header.group_bytes), self.bytes, "a group is bounded");
        debug_assert_eq!(header.check(), Ok(()));
        let place = self.context.at(self.offset);
        if let Some(Piece::Collected(first)) = self.pieces.first_mut()
            && let Some(reserved) = first.first_chunk_mut()
        {
            *reserved = header.encode(place);
        }
        BuiltGroup {
            pieces: self.pieces.into_iter().map(Piece::into_bytes).collect(),
            offset: self.offset,
            bytes: self.bytes,
            records: self.records,
            footer_bytes: self.footer_bytes,
            last_lsn: self.next_lsn.saturating_sub(1),
            header_checksum: header.checksum(place),
        }
    }

    fn record(&mut self, mut what: RecordOp, body: &[Bytes]) -> Placed {
        let place = self.here();
        let head_bytes = what.head_bytes();
        what.bind(place.plus(head_bytes as u64));
        let lsn = self.next_lsn;
        self.next_lsn = lsn.saturating_add(1);
        let mut head = Vec::with_capacity(head_bytes);
        Record { lsn, op: what }.encode(place, &mut head);
        self.running.update(&head);
        self.collect(&head);
        self.records = self.records.saturating_add(1);
        let entry_bytes = head.len().saturating_add(FOOTER_ENTRY_OVERHEAD_BYTES);
        self.footer_bytes = self.footer_bytes.saturating_add(entry_bytes as u64);
        for piece in body {
            if piece.len() <= COPY_BYTES_MAX {
                self.collect(piece);
            } else {
                self.bytes = self.bytes.saturating_add(piece.len() as u64);
                self.pieces.push(Piece::Shared(piece.clone()));
            }
        }
        let head_bytes = u32::try_from(head_bytes).unwrap_or(u32::MAX);
        Placed { lsn, segment: place.segment, offset: place.offset, head_bytes }
    }

    /// Appends to the collected bytes.
    fn collect(&mut self, bytes: &[u8]) {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        if let Some(Piece::Collected(collected)) = self.pieces.last_mut() {
            collected.extend_from_slice(bytes);
        } else {
            self.pieces.push(Piece::Collected(bytes.to_vec()));
        }
    }

    fn here(&self) -> DiskAddress {
        self.context.at(self.offset).plus(self.bytes)
    }
}

impl BuiltGroup {
    /// Returns the buffer of the first piece, for a later group.
    pub fn into_buffer(self) -> Vec<u8> {
        self.pieces.into_iter().next().map(Vec::from).unwrap_or_default()
    }
}

impl Piece {
    fn into_bytes(self) -> Bytes {
        match self {
            Self::Collected(bytes) => bytes.into(),
            Self::Shared(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::group::GROUP_OVERHEAD_BYTES;
    use crate::format::testing::{context, test_address};
    use crate::name::FactName;

    fn fact(name: &str, value: &'static [u8]) -> (RecordOp, Vec<Bytes>) {
        let name = FactName::parse(name).unwrap();
        let bytes = u32::try_from(value.len()).unwrap();
        let what = RecordOp::PutFact { name, bytes, check: Checksum::of(value) };
        (what, vec![Bytes::from_static(value)])
    }

    #[test]
    fn empty_group_is_a_watermark() {
        let built = GroupBuilder::new(context(), 4_096, 1, 6, 5, Checksum(7)).finish();
        assert_eq!((built.bytes, built.records, built.last_lsn), (56, 0, 5));
        let bytes = built.pieces.concat();
        assert_eq!(bytes.len(), GROUP_OVERHEAD_BYTES);
        let (header, checksum) = GroupHeader::decode(&bytes, test_address(4_096)).unwrap();
        assert!(header.is_watermark());
        assert_eq!(checksum, built.header_checksum);
        assert_eq!(header.previous, Checksum(7));
    }

    #[test]
    fn large_bodies_are_not_copied_into_the_group() {
        static LARGE: [u8; COPY_BYTES_MAX + 1] = [5; COPY_BYTES_MAX + 1];
        let frame = vec![fact("a", b"small"), fact("b", &LARGE), fact("c", b"")];
        let mut builder = GroupBuilder::new(context(), 4_096, 1, 1, 0, Checksum(0));
        let expected = GroupBuilder::frame_bytes(&frame) + GROUP_OVERHEAD_BYTES as u64;
        let placed = builder.frame(&frame);
        assert_eq!(builder.bytes(), expected);
        assert_eq!(placed.iter().map(|p| p.lsn).collect::<Vec<_>>(), [1, 2, 3]);

        let built = builder.finish();
        assert_eq!(built.bytes, expected);
        assert_eq!(built.pieces.len(), 3, "heads and small bodies, the large body, the rest");
        assert_eq!(built.pieces[1].as_ptr(), LARGE.as_ptr(), "not copied");
        let bytes = built.pieces.concat();
        let mut footer_bytes = 0;
        for placed in placed {
            let start = usize::try_from(placed.offset - built.offset).unwrap();
            let (record, head_bytes) =
                Record::decode(&bytes[start..], test_address(placed.offset)).unwrap();
            assert_eq!((record.lsn, head_bytes), (placed.lsn, placed.head_bytes as usize));
            let body = &bytes[start + head_bytes..][..record.body_bytes() as usize];
            assert_eq!(record.verify_body(test_address(placed.offset), body), Ok(()));
            footer_bytes += (head_bytes + FOOTER_ENTRY_OVERHEAD_BYTES) as u64;
        }
        assert_eq!(built.footer_bytes, footer_bytes);
    }

    #[test]
    fn empty_frame_adds_nothing() {
        let mut builder = GroupBuilder::new(context(), 4_096, 1, 1, 0, Checksum(0));
        assert_eq!(builder.frame(&[]), []);
        assert_eq!(builder.finish().bytes, GROUP_OVERHEAD_BYTES as u64);
    }

    #[test]
    #[should_panic(expected = "a body has the length that its record states")]
    fn group_builder_panics_on_body_length_mismatch() {
        let mut wrong = fact("a", b"value");
        wrong.1.clear();
        GroupBuilder::new(context(), 0, 1, 1, 0, Checksum(0)).frame(&[wrong]);
    }
}
