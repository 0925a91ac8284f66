//! Reads the record heads of a group without the bodies, as input for a footer.
//!
//! Guarantees: bytes that are read have their offset in the group; decoding the group verifies everything except the
//! bodies, which are skipped. Undecodable bytes are ignored.
//! Non-goals: the meaning of a group that does not decode.

use crate::error::Result;
use crate::format::{
    DiskAddress, FRAME_HEADER_BYTES, FrameHeader, GROUP_HEADER_BYTES, GROUP_TRAILER_BYTES,
    GroupHeader, HEAD_BYTES_MAX, Record,
};

/// Bytes per read: a head with its frame header or, if bodies are small, several of them.
const READ_BYTES: usize = 8 * 1_024;

const _: () = assert!(READ_BYTES >= FRAME_HEADER_BYTES + HEAD_BYTES_MAX);

/// Reads the heads of the group with this header, at `place`, into a buffer of its length. `spare` is the buffer of
/// another group; bytes that are not read remain as they were in it, or zeros: bodies, and everything after an
/// undecodable head. `read` fills a buffer from an offset in the group.
pub(super) fn read_heads(
    header: &GroupHeader,
    place: DiskAddress,
    spare: Vec<u8>,
    read: impl FnMut(usize, &mut [u8]) -> Result<()>,
) -> Result<Vec<u8>> {
    let mut group = Unread { bytes: spare, read_to: 0, read };
    group.bytes.resize(header.group_bytes as usize, 0);
    group.have(0, GROUP_HEADER_BYTES)?;
    let mut at = GROUP_HEADER_BYTES;
    for _ in 0..header.frame_count {
        group.have(at, FRAME_HEADER_BYTES)?;
        let here = place.plus(at as u64);
        let Ok(frame) = FrameHeader::decode(group.rest(at), here) else { return Ok(group.bytes) };
        at += FRAME_HEADER_BYTES;
        for _ in 0..frame.record_count {
            group.have(at, HEAD_BYTES_MAX)?;
            let head = Record::decode(group.rest(at), place.plus(at as u64));
            let Ok((record, head_bytes)) = head else { return Ok(group.bytes) };
            let body_bytes = usize::try_from(record.body_bytes()).unwrap_or(usize::MAX);
            at = at.saturating_add(head_bytes).saturating_add(body_bytes);
        }
    }
    group.have(at, GROUP_TRAILER_BYTES)?;
    Ok(group.bytes)
}

/// Group that is read on demand, from front to back.
struct Unread<R> {
    bytes: Vec<u8>,
    read_to: usize,
    read: R,
}

impl<R: FnMut(usize, &mut [u8]) -> Result<()>> Unread<R> {
    /// Ensures that `count` bytes from `at` on are read, or all up to the end of the group.
    fn have(&mut self, at: usize, count: usize) -> Result<()> {
        let group_bytes = self.bytes.len();
        let wanted_to = at.saturating_add(count).min(group_bytes);
        if wanted_to > self.read_to {
            let from = at.max(self.read_to);
            let to = at.saturating_add(READ_BYTES).min(group_bytes);
            (self.read)(from, &mut self.bytes[from..to])?;
            self.read_to = to;
        }
        Ok(())
    }

    fn rest(&self, at: usize) -> &[u8] {
        self.bytes.get(at..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::format::{Checksum, GroupBuilder, GroupView, RecordOp, SegmentContext, SegmentId};
    use crate::limits;
    use crate::name::FactName;

    const OFFSET: u64 = 8_192;

    fn place() -> DiskAddress {
        let segment = SegmentId::new(3).unwrap();
        SegmentContext { salt: 7, segment }.at(OFFSET)
    }

    fn fact(name: &str, bytes: usize) -> (RecordOp, Vec<Bytes>) {
        let value = Bytes::from(vec![name.len() as u8; bytes]);
        let name = FactName::parse(name).unwrap();
        let what = RecordOp::PutFact { name, bytes: bytes as u32, check: Checksum::of(&value) };
        (what, vec![value])
    }

    /// Builds a group with bodies of these lengths, each in a separate frame, and one frame of several.
    fn group(lengths: &[usize]) -> Vec<u8> {
        let mut builder = GroupBuilder::new(place().context(), OFFSET, 1, 1, 0, Checksum(0));
        for bytes in lengths {
            builder.frame(&[fact("alone", *bytes)]);
        }
        let gone = (RecordOp::DeleteFact { name: FactName::parse("gone").unwrap() }, Vec::new());
        builder.frame(&[fact("first", 9_000), gone, fact("last", 1)]);
        builder.finish().pieces.concat()
    }

    /// Returns the result of [`read_heads`] for a group, and the number of bytes read for it.
    fn heads_of(group: &[u8]) -> (Vec<u8>, usize) {
        let (header, _) = GroupHeader::decode(group, place()).unwrap();
        let mut bytes_read = 0;
        let spare = vec![0xff; group.len() / 2];
        let heads = read_heads(&header, place(), spare, |at, piece| {
            piece.copy_from_slice(&group[at..at + piece.len()]);
            bytes_read += piece.len();
            Ok(())
        });
        (heads.unwrap(), bytes_read)
    }

    #[test]
    fn head_reader_skips_large_bodies() {
        for lengths in [&[][..], &[0, 1, 100, 5_000, 7_000], &[60_000; 40], &[READ_BYTES; 3]] {
            let group = group(lengths);
            let (heads, bytes_read) = heads_of(&group);
            assert_eq!(heads.len(), group.len());
            let seen = |bytes| {
                let view = GroupView::decode(bytes, place()).unwrap();
                let records = view.into_records().into_iter();
                records.map(|it| (it.address, it.head.to_vec(), it.frame)).collect::<Vec<_>>()
            };
            assert_eq!(seen(&heads), seen(&group), "{lengths:?}");
            assert!(bytes_read <= group.len(), "nothing is read twice: {lengths:?}");
            if lengths.len() == 40 {
                assert!(bytes_read < group.len() / 4, "{bytes_read} of {}", group.len());
            }
        }
    }

    #[test]
    fn damaged_head_or_header_does_not_decode() {
        let whole = group(&[limits::FACT_BYTES_MAX, 20_000]);
        let view = GroupView::decode(&whole, place()).unwrap();
        let bodies: Vec<_> = view
            .records()
            .map(|it| {
                let start = (it.address.offset - OFFSET) as usize + it.head_bytes;
                start..start + it.body.len()
            })
            .collect();
        for at in GROUP_HEADER_BYTES..whole.len() {
            if bodies.iter().any(|body| body.contains(&at)) {
                continue;
            }
            let mut broken = whole.clone();
            broken[at] ^= 4;
            let (heads, _) = heads_of(&broken);
            assert!(GroupView::decode(&heads, place()).is_err(), "byte {at}");
        }
    }

    #[test]
    fn unreadable_range_is_an_io_error() {
        let group = group(&[20_000]);
        let (header, _) = GroupHeader::decode(&group, place()).unwrap();
        let fails_after = |reads: usize| {
            let mut left = reads;
            read_heads(&header, place(), Vec::new(), |at, piece| {
                left = left.checked_sub(1).ok_or(crate::error::Error::Closed)?;
                piece.copy_from_slice(&group[at..at + piece.len()]);
                Ok(())
            })
        };
        assert!(fails_after(0).is_err() && fails_after(1).is_err());
        assert!(fails_after(100).is_ok());
    }
}
