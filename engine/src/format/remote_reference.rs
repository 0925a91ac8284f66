//! Reference: a file in place of a segment that is only in the remote store.
//!
//! | offset | size | field    | meaning                          |
//! | ------ | ---- | -------- | -------------------------------- |
//! | 0      | 8    | magic    | `TRUGSREF`                       |
//! | 8      | 4    | version  | format version                   |
//! | 12     | 4    | features | feature bits                     |
//! | 16     | 16   | store    | uuid of the store                |
//! | 32     | 8    | segment  | id, the same as in the file name |
//! | 40     | 8    | salt     | salt of the segment              |
//! | 48     | 8    | bytes    | length of the segment            |
//! | 56     | 4    | page     | length of the header page: 4,096 for a log or compacted segment, otherwise 0 |
//! | 60     | 4    | checksum | of 0..60, not address-bound      |
//! | 64     |      | page     | header page of the segment       |
//!
//! Guarantees: a change of any byte before the page is detected; the page has checksums of its own.
//! Non-goals: the content of the segment.

use uuid::Uuid;

use super::byte_codec::{ByteReader, ByteWriter};
use super::checksum::{CheckClass, Checksum, compare};
use super::malformed::Malformed;
use super::manifest::RemoteSegment;
use super::segment_header::SEGMENT_HEADER_BYTES;
use super::segment_id::SegmentId;
use super::{FEATURES_KNOWN, FORMAT_VERSION, check_features, check_version};

/// Suffix of the file name, which replaces that of the segment.
pub const REFERENCE_SUFFIX: &str = ".ref";
/// Magic number at the start of the file.
pub const REFERENCE_MAGIC: [u8; 8] = *b"TRUGSREF";
/// Size of the file in bytes without the page.
pub const REFERENCE_BYTES: usize = 64;

const CHECKED_BYTES: usize = REFERENCE_BYTES - 4;

/// Reference to a segment in the remote store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteReference {
    /// Store.
    pub store: Uuid,
    /// Object in the remote store.
    pub object: RemoteSegment,
    /// Length of the segment.
    pub bytes: u64,
}

impl RemoteReference {
    /// Encodes the file with this header page, which may be empty.
    pub fn encode(&self, page: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(REFERENCE_BYTES);
        ByteWriter::new(&mut out)
            .bytes(&REFERENCE_MAGIC)
            .u32(FORMAT_VERSION)
            .u32(FEATURES_KNOWN)
            .bytes(self.store.as_bytes())
            .u64(self.object.id.get())
            .u64(self.object.salt)
            .u64(self.bytes)
            .u32(u32::try_from(page.len()).unwrap_or(u32::MAX));
        let checksum = Checksum::of(&out);
        ByteWriter::new(&mut out).u32(checksum.0).bytes(page);
        out
    }

    /// Decodes the whole file. Returns the reference and the header page.
    pub fn decode(bytes: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let mut take = ByteReader::new(bytes);
        let checked = take.clone().bytes(CHECKED_BYTES)?;
        if take.array()? != REFERENCE_MAGIC {
            return Err(Malformed::Magic);
        }
        check_version(take.u32()?)?;
        let features = take.u32()?;
        let store = Uuid::from_bytes(take.array()?);
        let (id, salt, bytes) = (take.u64()?, take.u64()?, take.u64()?);
        let page_bytes = take.u32()? as usize;
        compare(CheckClass::Header, Checksum(take.u32()?), Checksum::of(checked))?;
        check_features(features)?;
        let page = take.bytes(page_bytes)?;
        take.end()?;
        if ![0, SEGMENT_HEADER_BYTES].contains(&page_bytes) {
            return Err(Malformed::Length);
        }
        let id = SegmentId::new(id).ok_or(Malformed::Misplaced)?;
        Ok((Self { store, object: RemoteSegment { id, salt }, bytes }, page))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::assert_every_byte_is_checked;

    #[test]
    fn reference_round_trips_and_detects_any_byte_change() {
        let object = RemoteSegment { id: SegmentId::new(42).unwrap(), salt: 7 };
        let reference = RemoteReference { store: Uuid::from_u128(1), object, bytes: 99 };
        let bytes = reference.encode(&[]);
        assert_eq!(bytes.len(), REFERENCE_BYTES);
        assert_eq!(RemoteReference::decode(&bytes), Ok((reference, &[][..])));
        assert_every_byte_is_checked(&bytes, |bytes| RemoteReference::decode(bytes).is_ok());
        let page = [7; SEGMENT_HEADER_BYTES];
        let with_page = reference.encode(&page);
        assert_eq!(RemoteReference::decode(&with_page), Ok((reference, &page[..])));
        assert_eq!(RemoteReference::decode(&with_page[..99]), Err(Malformed::Short));
        let shorter = reference.encode(&page[..99]);
        assert_eq!(RemoteReference::decode(&shorter), Err(Malformed::Length));
    }
}
