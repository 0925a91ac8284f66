//! Index entry of an object: record location and metadata.
//!
//! | size | field              | meaning                                               |
//! | ---- | ------------------ | ----------------------------------------------------- |
//! | 1    | content            | 1 inline, 2 big, 7 lost                               |
//! | 1    | flags              | as in the record                                      |
//! | v    | lsn                | of the record                                         |
//! | v    | segment            | that the record is in                                 |
//! | v    | offset             | of the record's head                                  |
//! | v    | head_bytes         | length of the head                                    |
//! | v    | bytes              | length of the content                                 |
//! | v    | big_segment        | big only: id of the content's segment                 |
//! | v    | created_ms         |                                                       |
//! | v    | aged_ms            | modified_ms less created_ms, modulo 2^64              |
//! | 32   | hash               | BLAKE3 of the content                                 |
//! | 1    | known_type         | number of the content type (`content_type_code.rs`), or 0    |
//! | 1    | content_type_bytes | where known_type is 0                                 |
//! |      | content type       | where known_type is 0                                 |
//! | v    | attributes_bytes   |                                                       |
//! |      | attributes         |                                                       |
//! | 4    | check              | CRC-32 of the index key and of everything before this |
//!
//! Fields are packed without padding; v is a varint of one to ten bytes ([`super::byte_codec::ByteWriter::varint`]).
//!
//! Guarantees: a value under a wrong key, or corrupted by the index storage, is detected.
//! Non-goals: the key encoding (`entry_key.rs`), reading the object.

use super::byte_codec::{ByteReader, ByteWriter};
use super::checksum::{CheckClass, Checksum, compare};
use super::content_type_code;
use super::malformed::Malformed;
use super::object_meta::{ObjectFlags, ObjectMeta};
use super::record::RecordContent;
use super::record_kind::RecordKind;
use super::segment_id::SegmentId;
use crate::limits;

/// Size of the checksum at the end of every index value.
pub const ENTRY_CHECK_BYTES: usize = 4;

/// Index entry of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// LSN of the record.
    pub lsn: u64,
    /// Location of the record.
    pub record: Location,
    /// Metadata of the object.
    pub meta: ObjectMeta,
    /// Location of the content.
    pub content: EntryContent,
}

/// Location of a record in a log or compacted segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// Id of the segment.
    pub segment: SegmentId,
    /// Offset of the record head.
    pub offset: u64,
    /// Length of the record head; the body follows it.
    pub head_bytes: u32,
}

/// Location of an object's content, without block checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryContent {
    /// Content in the body that follows the record head.
    Inline {
        /// Length of the content in bytes.
        bytes: u64,
    },
    /// Content in a separate big segment.
    Big {
        /// Length of the content in bytes.
        bytes: u64,
        /// Id of the big segment.
        segment: SegmentId,
    },
    /// Content that was lost to corruption.
    Lost {
        /// Length of the lost content in bytes.
        bytes: u64,
    },
}

impl Entry {
    /// Returns the length of the content in bytes.
    pub fn body_bytes(&self) -> u64 {
        match self.content {
            EntryContent::Inline { bytes }
            | EntryContent::Big { bytes, .. }
            | EntryContent::Lost { bytes } => bytes,
        }
    }

    /// Encodes the index value for the encoded index key `key`.
    pub fn encode(&self, key: &[u8]) -> Vec<u8> {
        debug_assert_eq!(self.meta.check(), Ok(()));
        let (kind, bytes, big_segment) = match self.content {
            EntryContent::Inline { bytes } => (RecordKind::Object, bytes, None),
            EntryContent::Big { bytes, segment } => (RecordKind::BigObject, bytes, Some(segment)),
            EntryContent::Lost { bytes } => (RecordKind::LostObject, bytes, None),
        };
        let meta = &self.meta;
        let known_type = content_type_code::encode(&meta.content_type);
        let variable = meta.content_type.len().saturating_add(meta.attributes.len());
        let mut out = Vec::with_capacity(variable.saturating_add(FIXED_BYTES_MAX));
        ByteWriter::new(&mut out).u8(kind.to_byte()).u8(meta.flags.to_byte()).varint(self.lsn);
        self.record.encode(&mut out);
        ByteWriter::new(&mut out).varint(bytes);
        if let Some(segment) = big_segment {
            ByteWriter::new(&mut out).varint(segment.get());
        }
        ByteWriter::new(&mut out)
            .varint(meta.created_ms)
            .varint(meta.modified_ms.wrapping_sub(meta.created_ms))
            .bytes(&meta.hash)
            .u8(known_type);
        if known_type == 0 {
            // An out-of-range length is clamped here; `decode` rejects it because it contradicts the following
            // bytes.
            ByteWriter::new(&mut out)
                .u8(u8::try_from(meta.content_type.len()).unwrap_or(u8::MAX))
                .bytes(meta.content_type.as_bytes());
        }
        ByteWriter::new(&mut out).varint(meta.attributes.len() as u64).bytes(&meta.attributes);
        append_checksum(key, out)
    }

    /// Decodes the index value of `key`.
    pub fn decode(key: &[u8], bytes: &[u8]) -> Result<Self, Malformed> {
        let mut take = ByteReader::new(verify_checksum(key, bytes)?);
        let kind = take.u8()?;
        let flags = ObjectFlags::from_byte(take.u8()?)?;
        let lsn = take.varint()?;
        let record = Location::decode(&mut take)?;
        let bytes = take.varint()?;
        let content = match RecordKind::from_byte(kind)? {
            RecordKind::Object => EntryContent::Inline { bytes },
            RecordKind::LostObject => EntryContent::Lost { bytes },
            RecordKind::BigObject => {
                let segment = SegmentId::new(take.varint()?).ok_or(Malformed::Misplaced)?;
                EntryContent::Big { bytes, segment }
            }
            _ => return Err(Malformed::Kind(kind)),
        };
        let bound = match content {
            EntryContent::Inline { .. } => limits::INLINE_BYTES_SETTING_MAX as u64,
            EntryContent::Big { .. } | EntryContent::Lost { .. } => limits::OBJECT_BYTES_MAX,
        };
        if bytes > bound {
            return Err(Malformed::Length);
        }
        let created_ms = take.varint()?;
        let modified_ms = created_ms.wrapping_add(take.varint()?);
        let hash = take.array()?;
        let content_type = match take.u8()? {
            0 => {
                let content_type_bytes = usize::from(take.u8()?);
                let content_type = take.text(content_type_bytes)?;
                if content_type_code::encode(content_type) != 0 {
                    return Err(Malformed::Reserved);
                }
                content_type
            }
            known => content_type_code::decode(known)?,
        };
        let content_type = content_type.to_owned();
        let attributes_bytes = usize::try_from(take.varint()?).map_err(|_| Malformed::Length)?;
        let attributes = take.bytes(attributes_bytes)?.to_vec();
        take.end()?;
        let meta = ObjectMeta { content_type, hash, created_ms, modified_ms, flags, attributes };
        meta.check()?;
        Ok(Self { lsn, record, meta, content })
    }
}

impl EntryContent {
    /// Returns the index form of a record's content.
    pub fn of(content: &RecordContent) -> Self {
        match content {
            RecordContent::Inline { bytes, .. } => Self::Inline { bytes: *bytes },
            RecordContent::Big { bytes, segment } => Self::Big { bytes: *bytes, segment: *segment },
            RecordContent::Lost { bytes } => Self::Lost { bytes: *bytes },
        }
    }
}

impl Location {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        ByteWriter::new(out)
            .varint(self.segment.get())
            .varint(self.offset)
            .varint(u64::from(self.head_bytes));
    }

    pub(super) fn decode(take: &mut ByteReader<'_>) -> Result<Self, Malformed> {
        let segment = SegmentId::new(take.varint()?).ok_or(Malformed::Misplaced)?;
        let offset = take.varint()?;
        let head_bytes = u32::try_from(take.varint()?).map_err(|_| Malformed::Length)?;
        Ok(Self { segment, offset, head_bytes })
    }
}

/// Appends the checksum to an index value.
pub(super) fn append_checksum(key: &[u8], mut value: Vec<u8>) -> Vec<u8> {
    let check = Checksum::of_parts(&[key, &value]);
    ByteWriter::new(&mut value).u32(check.0);
    value
}

/// Verifies the checksum of an index value and returns the value without it.
pub(super) fn verify_checksum<'a>(key: &[u8], bytes: &'a [u8]) -> Result<&'a [u8], Malformed> {
    let length = bytes.len().checked_sub(ENTRY_CHECK_BYTES).ok_or(Malformed::Short)?;
    let mut take = ByteReader::new(bytes);
    let value = take.bytes(length)?;
    compare(CheckClass::Entry, Checksum(take.u32()?), Checksum::of_parts(&[key, value]))?;
    Ok(value)
}

/// Maximum size of an entry without content type and attributes: five numbers of up to ten bytes, three of up
/// to five, and two bytes for the length of the attributes.
const FIXED_BYTES_MAX: usize = 2 + 5 * 10 + 3 * 5 + 2 + 32 + 2 + ENTRY_CHECK_BYTES;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::format::segment_id::SEGMENT_ID_MAX;
    use crate::format::testing::assert_every_byte_is_checked;

    fn entry(content: EntryContent) -> Entry {
        Entry {
            lsn: 99,
            record: Location {
                segment: SegmentId::new(4).unwrap(),
                offset: 123_456,
                head_bytes: 140,
            },
            meta: ObjectMeta {
                content_type: "image/x-me".to_owned(),
                hash: [0x5c; 32],
                created_ms: 1,
                modified_ms: 2,
                flags: ObjectFlags { derived: true },
                attributes: b"opaque".to_vec(),
            },
            content,
        }
    }

    #[test]
    fn entry_round_trips_and_detects_any_byte_change() {
        let segment = SegmentId::new(5).unwrap();
        for (content, content_bytes) in [
            (EntryContent::Inline { bytes: 7 }, 1),
            (EntryContent::Lost { bytes: 300 }, 2),
            (EntryContent::Big { bytes: 1 << 30, segment }, 5 + 1),
        ] {
            let entry = entry(content);
            let bytes = entry.encode(b"key");
            assert!(bytes.len() <= FIXED_BYTES_MAX + 10 + 6);
            assert_eq!(
                bytes.len(),
                9 + content_bytes + 2 + 32 + 2 + 10 + 1 + 6 + ENTRY_CHECK_BYTES
            );
            assert_eq!(Entry::decode(b"key", &bytes), Ok(entry));
            assert_every_byte_is_checked(&bytes, |bytes| Entry::decode(b"key", bytes).is_ok());
            assert_eq!(Entry::decode(b"kex", &bytes), Err(Malformed::Checksum));
        }
    }

    #[test]
    fn invalid_entries_are_rejected_with_their_reason() {
        let forged = |forge: fn(&mut Vec<u8>)| {
            let mut bytes = entry(EntryContent::Inline { bytes: 7 }).encode(b"key");
            bytes.truncate(bytes.len() - ENTRY_CHECK_BYTES);
            forge(&mut bytes);
            Entry::decode(b"key", &append_checksum(b"key", bytes)).map(|entry| entry.lsn)
        };
        assert_eq!(forged(|_| {}), Ok(99));
        assert_eq!(forged(|b| b[0] = 3), Err(Malformed::Kind(3)));
        assert_eq!(forged(|b| b[1] = 2), Err(Malformed::Reserved));
        // A varint that is longer than necessary.
        assert_eq!(forged(|b| drop(b.splice(2..3, [0xe3, 0]))), Err(Malformed::Length));
        assert_eq!(forged(|b| b[3] = 0), Err(Malformed::Misplaced));
        let head_of_4_gib = |b: &mut Vec<u8>| drop(b.splice(7..9, [0x80, 0x80, 0x80, 0x80, 0x10]));
        assert_eq!(forged(head_of_4_gib), Err(Malformed::Length));
        assert_eq!(
            forged(|b| drop(b.splice(9..10, [0x80, 0x80, 0x80, 4]))),
            Ok(99),
            "the longest body in the log"
        );
        assert_eq!(
            forged(|b| drop(b.splice(9..10, [0x81, 0x80, 0x80, 4]))),
            Err(Malformed::Length)
        );
        let big_nowhere = |b: &mut Vec<u8>| {
            b[0] = 2;
            b.insert(10, 0);
        };
        assert_eq!(forged(big_nowhere), Err(Malformed::Misplaced));
        assert_eq!(forged(|b| b[46] = 0xff), Err(Malformed::Text));
        assert_eq!(forged(|b| b.truncate(50)), Err(Malformed::Short));
        assert_eq!(forged(|b| b.push(0)), Err(Malformed::Trailing));
        assert_eq!(forged(|b| b[44] = 27), Err(Malformed::Kind(27)), "an unknown type");
        let known_in_text = |b: &mut Vec<u8>| drop(b.splice(46..56, *b"image/jpeg"));
        assert_eq!(forged(known_in_text), Err(Malformed::Reserved));
        let attributes = |b: &mut Vec<u8>| {
            b.splice(56..57, [0x81, 0x30]);
            b.resize(58 + 6_145, 0);
        };
        assert_eq!(forged(attributes), Err(Malformed::Length), "more than 6 KiB of them");
        assert_eq!(Entry::decode(b"key", &[]), Err(Malformed::Short));
    }

    #[test]
    fn known_content_type_is_stored_as_one_byte() {
        let mut entry = entry(EntryContent::Inline { bytes: 7 });
        let other = entry.encode(b"key").len();
        entry.meta.content_type = "image/jpeg".to_owned();
        let bytes = entry.encode(b"key");
        assert_eq!(other - bytes.len(), 1 + 10);
        assert_eq!(Entry::decode(b"key", &bytes), Ok(entry));
        assert_every_byte_is_checked(&bytes, |bytes| Entry::decode(b"key", bytes).is_ok());
    }

    #[test]
    fn entry_decode_then_encode_is_identity() {
        let segment = SegmentId::new(300).unwrap();
        for content in
            [EntryContent::Inline { bytes: 7 }, EntryContent::Big { bytes: 1 << 30, segment }]
        {
            let bytes = entry(content).encode(b"key");
            for at in 0..bytes.len() - ENTRY_CHECK_BYTES {
                for value in 0..=255 {
                    let mut changed = bytes[..bytes.len() - ENTRY_CHECK_BYTES].to_vec();
                    changed[at] = value;
                    let changed = append_checksum(b"key", changed);
                    if let Ok(entry) = Entry::decode(b"key", &changed) {
                        assert_eq!(entry.encode(b"key"), changed, "{at} {value}");
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn any_entry_round_trips(
            numbers in any::<[u64; 4]>(),
            shifts in any::<[u8; 4]>(),
            head_bytes in any::<u32>(),
            segments in (1..=SEGMENT_ID_MAX, 1..=SEGMENT_ID_MAX),
            kind in 0..3,
            derived in any::<bool>(),
            hash in any::<[u8; 32]>(),
            content_type in "[a-zé/+]{0,40}|image/png|text/css",
            attributes in proptest::collection::vec(any::<u8>(), 0..60),
        ) {
            // Numbers of every length.
            let mut shifted = numbers.iter().zip(shifts).map(|(number, by)| number >> (by % 64));
            let mut number = || shifted.next().unwrap();
            let bytes = number();
            let entry = Entry {
                lsn: number(),
                record: Location {
                    segment: SegmentId::new(segments.0).unwrap(),
                    offset: u64::MAX - number(),
                    head_bytes,
                },
                content: match kind {
                    0 => EntryContent::Inline { bytes: bytes % (8 << 20) },
                    1 => EntryContent::Lost { bytes: bytes % (64 << 30) },
                    _ => EntryContent::Big {
                        bytes: bytes % (64 << 30),
                        segment: SegmentId::new(segments.1).unwrap(),
                    },
                },
                meta: ObjectMeta {
                    content_type,
                    hash,
                    created_ms: number(),
                    modified_ms: numbers[0],
                    flags: ObjectFlags { derived },
                    attributes,
                },
            };
            let encoded = entry.encode(b"key");
            let variable = entry.meta.content_type.len() + entry.meta.attributes.len();
            prop_assert!(encoded.len() <= FIXED_BYTES_MAX + variable);
            prop_assert_eq!(Entry::decode(b"key", &encoded), Ok(entry));
        }
    }
}
