//! The entry: the index's value for an object: where it is and what is known about it.
//!
//! | offset | size | field              | meaning                                               |
//! | ------ | ---- | ------------------ | ----------------------------------------------------- |
//! | 0      | 8    | lsn                | of the record                                         |
//! | 8      | 8    | segment            | that the record is in                                 |
//! | 16     | 8    | offset             | of the record's head                                  |
//! | 24     | 4    | head_bytes         | length of the head                                    |
//! | 28     | 1    | content            | 1 inline, 2 big, 7 lost                               |
//! | 29     | 1    | flags              | as in the record                                      |
//! | 30     | 2    | attributes_bytes   |                                                       |
//! | 32     | 8    | bytes              | length of the content                                 |
//! | 40     | 8    | big_segment        | id of the content's segment, zero when inline         |
//! | 48     | 8    | created_ms         |                                                       |
//! | 56     | 8    | modified_ms        |                                                       |
//! | 64     | 32   | hash               | BLAKE3 of the content                                 |
//! | 96     | 1    | content_type_bytes |                                                       |
//! | 97     | 3    | reserved           | zero                                                  |
//! | 100    |      |                    | content type, attributes                              |
//! | -4     | 4    | check              | CRC-32 of the index key and of everything before this |
//!
//! Promises: a value under a wrong key, or changed by the index's own storage, is noticed. Never here: the key's form
//! (`entry_key.rs`), reading the object.

use super::bytes::{Put, Take};
use super::checksum::{CheckClass, Checksum, compare};
use super::malformed::Malformed;
use super::object_meta::{ObjectFlags, ObjectMeta};
use super::record::Content;
use super::record_kind::RecordKind;
use super::segment_header::SegmentId;
use crate::limits;

/// The fixed part of an entry.
pub const ENTRY_FIXED_BYTES: usize = 100;
/// The check at the end of every index value.
pub const ENTRY_CHECK_BYTES: usize = 4;

/// An object as the index knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The LSN of its record.
    pub lsn: u64,
    /// Where its record is.
    pub record: Location,
    /// What is known about it.
    pub meta: ObjectMeta,
    /// Where its bytes are.
    pub content: EntryContent,
}

/// Where a record lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// In which segment.
    pub segment: SegmentId,
    /// Where its head begins.
    pub offset: u64,
    /// Length of the head; the body follows.
    pub head_bytes: u32,
}

/// Where an object's bytes are, as the index knows it: without block checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryContent {
    /// After the record's head.
    Inline {
        /// How many.
        bytes: u64,
    },
    /// In a big segment of their own.
    Big {
        /// How many.
        bytes: u64,
        /// Which segment.
        segment: SegmentId,
    },
    /// Nowhere: they were damaged.
    Lost {
        /// How many there were.
        bytes: u64,
    },
}

impl Entry {
    /// How many bytes the object has.
    pub fn body_bytes(&self) -> u64 {
        match self.content {
            EntryContent::Inline { bytes }
            | EntryContent::Big { bytes, .. }
            | EntryContent::Lost { bytes } => bytes,
        }
    }

    /// The value under the encoded index key `key`.
    pub fn encode(&self, key: &[u8]) -> Vec<u8> {
        debug_assert_eq!(self.meta.check(), Ok(()));
        let (kind, bytes, big_segment) = match self.content {
            EntryContent::Inline { bytes } => (RecordKind::Object, bytes, 0),
            EntryContent::Big { bytes, segment } => (RecordKind::BigObject, bytes, segment.get()),
            EntryContent::Lost { bytes } => (RecordKind::LostObject, bytes, 0),
        };
        let meta = &self.meta;
        let variable = meta.content_type.len().saturating_add(meta.attributes.len());
        let capacity = ENTRY_FIXED_BYTES.saturating_add(variable).saturating_add(ENTRY_CHECK_BYTES);
        let mut out = Vec::with_capacity(capacity);
        Put::new(&mut out).u64(self.lsn);
        self.record.encode(&mut out);
        // Lengths beyond their bounds are cut here and refused by `decode`: they contradict what follows.
        Put::new(&mut out)
            .u8(kind.to_byte())
            .u8(meta.flags.to_byte())
            .u16(u16::try_from(meta.attributes.len()).unwrap_or(u16::MAX))
            .u64(bytes)
            .u64(big_segment)
            .u64(meta.created_ms)
            .u64(meta.modified_ms)
            .bytes(&meta.hash)
            .u8(u8::try_from(meta.content_type.len()).unwrap_or(u8::MAX))
            .zeros(3)
            .bytes(meta.content_type.as_bytes())
            .bytes(&meta.attributes);
        seal(key, out)
    }

    /// Reads the value that was found under `key`.
    pub fn decode(key: &[u8], bytes: &[u8]) -> Result<Self, Malformed> {
        let mut take = Take::new(open(key, bytes)?);
        let lsn = take.u64()?;
        let record = Location::decode(&mut take)?;
        let kind = take.u8()?;
        let flags = ObjectFlags::from_byte(take.u8()?)?;
        let attributes_bytes = usize::from(take.u16()?);
        let bytes = take.u64()?;
        let big_segment = take.u64()?;
        let created_ms = take.u64()?;
        let modified_ms = take.u64()?;
        let hash = take.array()?;
        let content_type_bytes = usize::from(take.u8()?);
        take.zeros(3)?;
        let content_type = take.text(content_type_bytes)?.to_owned();
        let attributes = take.bytes(attributes_bytes)?.to_vec();
        take.end()?;
        let content = match RecordKind::from_byte(kind)? {
            RecordKind::Object | RecordKind::LostObject if big_segment != 0 => {
                return Err(Malformed::Reserved);
            }
            RecordKind::Object => EntryContent::Inline { bytes },
            RecordKind::LostObject => EntryContent::Lost { bytes },
            RecordKind::BigObject => {
                let segment = SegmentId::new(big_segment).ok_or(Malformed::Place)?;
                EntryContent::Big { bytes, segment }
            }
            _ => return Err(Malformed::Kind(kind)),
        };
        let bound = match content {
            EntryContent::Inline { .. } => limits::INLINE_BYTES_CEILING as u64,
            EntryContent::Big { .. } | EntryContent::Lost { .. } => limits::OBJECT_BYTES_MAX,
        };
        if bytes > bound {
            return Err(Malformed::Length);
        }
        let meta = ObjectMeta { content_type, hash, created_ms, modified_ms, flags, attributes };
        meta.check()?;
        Ok(Self { lsn, record, meta, content })
    }
}

impl EntryContent {
    /// What the index keeps of a record's content.
    pub fn of(content: &Content) -> Self {
        match content {
            Content::Inline { bytes, .. } => Self::Inline { bytes: *bytes },
            Content::Big { bytes, segment } => Self::Big { bytes: *bytes, segment: *segment },
            Content::Lost { bytes } => Self::Lost { bytes: *bytes },
        }
    }
}

impl Location {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        Put::new(out).u64(self.segment.get()).u64(self.offset).u32(self.head_bytes);
    }

    pub(super) fn decode(take: &mut Take<'_>) -> Result<Self, Malformed> {
        let segment = SegmentId::new(take.u64()?).ok_or(Malformed::Place)?;
        Ok(Self { segment, offset: take.u64()?, head_bytes: take.u32()? })
    }
}

/// Ends an index value with its check.
pub(super) fn seal(key: &[u8], mut value: Vec<u8>) -> Vec<u8> {
    let check = Checksum::of_parts(&[key, &value]);
    Put::new(&mut value).u32(check.0);
    value
}

/// Checks an index value and gives it back without its check.
pub(super) fn open<'a>(key: &[u8], bytes: &'a [u8]) -> Result<&'a [u8], Malformed> {
    let length = bytes.len().checked_sub(ENTRY_CHECK_BYTES).ok_or(Malformed::Short)?;
    let mut take = Take::new(bytes);
    let value = take.bytes(length)?;
    compare(CheckClass::Entry, Checksum(take.u32()?), Checksum::of_parts(&[key, value]))?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::every_byte_counts;

    fn entry(content: EntryContent) -> Entry {
        Entry {
            lsn: 99,
            record: Location {
                segment: SegmentId::new(4).unwrap(),
                offset: 123_456,
                head_bytes: 140,
            },
            meta: ObjectMeta {
                content_type: "image/webp".to_owned(),
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
    fn an_entry_survives_its_bytes_and_every_byte_counts() {
        let big = EntryContent::Big { bytes: 1 << 30, segment: SegmentId::new(5).unwrap() };
        for content in [EntryContent::Inline { bytes: 7 }, big] {
            let entry = entry(content);
            let bytes = entry.encode(b"key");
            assert_eq!(bytes.len(), ENTRY_FIXED_BYTES + 10 + 6 + ENTRY_CHECK_BYTES);
            assert_eq!(Entry::decode(b"key", &bytes), Ok(entry));
            every_byte_counts(&bytes, |bytes| Entry::decode(b"key", bytes).is_ok());
            assert_eq!(Entry::decode(b"kex", &bytes), Err(Malformed::Checksum));
        }
    }

    #[test]
    fn entries_that_break_a_rule_are_refused_for_that_rule() {
        let forged = |forge: fn(&mut Vec<u8>)| {
            let mut bytes = entry(EntryContent::Inline { bytes: 7 }).encode(b"key");
            bytes.truncate(bytes.len() - ENTRY_CHECK_BYTES);
            forge(&mut bytes);
            Entry::decode(b"key", &seal(b"key", bytes)).map(|entry| entry.lsn)
        };
        assert_eq!(forged(|_| {}), Ok(99));
        assert_eq!(forged(|b| b[8] = 0), Err(Malformed::Place));
        assert_eq!(forged(|b| b[28] = 3), Err(Malformed::Kind(3)));
        assert_eq!(forged(|b| b[28] = 2), Err(Malformed::Place));
        assert_eq!(forged(|b| b[29] = 2), Err(Malformed::Reserved));
        assert_eq!(forged(|b| b[35] = 1), Err(Malformed::Length));
        assert_eq!(forged(|b| b[40] = 1), Err(Malformed::Reserved));
        assert_eq!(forged(|b| b[97] = 1), Err(Malformed::Reserved));
        assert_eq!(forged(|b| b[100] = 0xff), Err(Malformed::Text));
        assert_eq!(forged(|b| b.push(0)), Err(Malformed::Trailing));
        assert_eq!(forged(|b| b.truncate(50)), Err(Malformed::Short));
        assert_eq!(Entry::decode(b"key", &[]), Err(Malformed::Short));
    }
}
