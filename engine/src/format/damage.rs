//! Damage entry: a corrupt location, stored in the index by segment and offset.
//!
//! | offset | size | field        | meaning                                         |
//! | ------ | ---- | ------------ | ----------------------------------------------- |
//! | 0      | 8    | lsn          | of the first affected record; zero if unknown   |
//! | 8      | 8    | found_ms     | time of the first detection                     |
//! | 16     | 4    | detail       | number that belongs to the reason, or zero      |
//! | 20     | 1    | reason       | code of `malformed.rs`                          |
//! | 21     | 1    | class        | of the segment: 1 log, 2 big, 3 compacted       |
//! | 22     | 1    | whose        | owner: 0 unknown or none, 1 object, 2 fact      |
//! | 23     | 1    | bucket_bytes | zero unless the owner is an object              |
//! | 24     | 2    | name_bytes   | of the key, or of the fact's name               |
//! | 26     | 2    | reserved     | zero                                            |
//! | 28     |      | names        | bucket and key, or the fact's name              |
//! | -4     | 4    | check        | CRC-32 of the key and of everything before this |
//!
//! Guarantees: what decodes encodes to the same bytes.
//! Non-goals: detection and repair of damage.

use std::fmt;

use super::byte_codec::{ByteReader, ByteWriter};
use super::entry::{ENTRY_CHECK_BYTES, append_checksum, verify_checksum};
use super::malformed::Malformed;
use super::record::{Record, RecordOp};
use super::segment_id::{SegmentClass, SegmentId};
use crate::limits;
use crate::name::{BucketName, FactName, ObjectKey, ObjectName};

/// Size of the fixed part, before the names.
pub const DAMAGE_FIXED_BYTES: usize = 28;

const OWNER_UNKNOWN: u8 = 0;
const OWNER_OBJECT: u8 = 1;
const OWNER_FACT: u8 = 2;

const _: () = assert!(limits::KEY_BYTES_MAX <= u16::MAX as usize, "name_bytes is a u16");

/// Corrupt location in a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Id of the segment.
    pub segment: SegmentId,
    /// Class of the segment.
    pub class: SegmentClass,
    /// Offset of the damage in the segment.
    pub offset: u64,
    /// LSN of the first affected record, if known.
    pub lsn: Option<u64>,
    /// Reason why the bytes were rejected.
    pub reason: Malformed,
    /// Object or fact that the bytes belong to, if known.
    pub name: Option<RecordName>,
    /// Time of the first detection, in milliseconds since 1970.
    pub found_ms: u64,
}

/// Object or fact that a record refers to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordName {
    /// Object.
    Object(ObjectName),
    /// Fact.
    Fact(FactName),
}

impl RecordName {
    /// Returns the object or fact that the record refers to; `None` for records about segments.
    pub(crate) fn of(record: &Record) -> Option<Self> {
        match &record.op {
            RecordOp::Put { name, .. } | RecordOp::Delete { name, .. } => {
                Some(Self::Object(name.clone()))
            }
            RecordOp::PutFact { name, .. } | RecordOp::DeleteFact { name } => {
                Some(Self::Fact(name.clone()))
            }
            RecordOp::Compaction { .. } | RecordOp::HolePunch { .. } => None,
        }
    }
}

impl Damage {
    /// Returns the path of the file, relative to the data folder.
    pub fn file(&self) -> String {
        self.segment.path(self.class)
    }

    /// Encodes the index value.
    pub fn encode(&self) -> Vec<u8> {
        let (whose, bucket, name) = match &self.name {
            None => (OWNER_UNKNOWN, "", ""),
            Some(RecordName::Object(name)) => {
                (OWNER_OBJECT, name.bucket.as_str(), name.key.as_str())
            }
            Some(RecordName::Fact(name)) => (OWNER_FACT, "", name.as_str()),
        };
        let (reason, detail) = self.reason.to_code();
        let mut out = Vec::with_capacity(DAMAGE_FIXED_BYTES + ENTRY_CHECK_BYTES);
        ByteWriter::new(&mut out)
            .u64(self.lsn.unwrap_or(0))
            .u64(self.found_ms)
            .u32(detail)
            .u8(reason)
            .u8(self.class.to_byte())
            .u8(whose)
            .u8(u8::try_from(bucket.len()).unwrap_or(u8::MAX))
            .u16(u16::try_from(name.len()).unwrap_or(u16::MAX))
            .zeros(2)
            .bytes(bucket.as_bytes())
            .bytes(name.as_bytes());
        append_checksum(&key(self.segment, self.offset), out)
    }

    /// Decodes the index value of this segment and offset.
    pub fn decode(segment: SegmentId, offset: u64, bytes: &[u8]) -> Result<Self, Malformed> {
        let mut take = ByteReader::new(verify_checksum(&key(segment, offset), bytes)?);
        let lsn = take.u64()?;
        let found_ms = take.u64()?;
        let detail = take.u32()?;
        let reason = Malformed::from_code(take.u8()?, detail)?;
        let class = SegmentClass::from_byte(take.u8()?)?;
        let whose = take.u8()?;
        let bucket_bytes = usize::from(take.u8()?);
        let name_bytes = usize::from(take.u16()?);
        take.zeros(2)?;
        let bucket = take.text(bucket_bytes)?;
        let name = take.text(name_bytes)?;
        take.end()?;
        let name = match whose {
            OWNER_UNKNOWN if bucket.is_empty() && name.is_empty() => None,
            OWNER_OBJECT => {
                let bucket = BucketName::parse(bucket)?;
                Some(RecordName::Object(ObjectName::new(bucket, ObjectKey::parse(name)?)))
            }
            OWNER_FACT if bucket.is_empty() => Some(RecordName::Fact(FactName::parse(name)?)),
            OWNER_UNKNOWN | OWNER_FACT => return Err(Malformed::Length),
            other => return Err(Malformed::Kind(other)),
        };
        let lsn = (lsn != 0).then_some(lsn);
        Ok(Self { segment, class, offset, lsn, reason, name, found_ms })
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.name {
            write!(f, "{name} is corrupt: ")?;
        }
        write!(f, "{} at offset {}: {}", self.file(), self.offset, self.reason)
    }
}

impl fmt::Display for RecordName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object(name) => name.fmt(f),
            Self::Fact(name) => write!(f, "the fact {name}"),
        }
    }
}

fn key(segment: SegmentId, offset: u64) -> Vec<u8> {
    let mut key = Vec::with_capacity(16);
    ByteWriter::new(&mut key).u64(segment.get()).u64(offset);
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::assert_every_byte_is_checked;
    use crate::name::NameError;

    fn damage(reason: Malformed, name: Option<RecordName>) -> Damage {
        let segment = SegmentId::new(9).unwrap();
        let class = SegmentClass::Compacted;
        Damage { segment, class, offset: 4_096, lsn: Some(7), reason, name, found_ms: 5 }
    }

    #[test]
    fn damage_round_trips_and_detects_any_byte_change() {
        let bucket = BucketName::parse("pets").unwrap();
        let object = ObjectName::new(bucket, ObjectKey::parse("cats/tom").unwrap());
        let fact = FactName::parse("token").unwrap();
        for name in [None, Some(RecordName::Object(object)), Some(RecordName::Fact(fact))] {
            let damage = damage(Malformed::Checksum, name);
            let bytes = damage.encode();
            let decode = |bytes: &[u8]| Damage::decode(damage.segment, damage.offset, bytes);
            assert_eq!(decode(&bytes), Ok(damage.clone()));
            assert_every_byte_is_checked(&bytes, |bytes| decode(bytes).is_ok());
            let elsewhere = Damage::decode(damage.segment, damage.offset + 1, &bytes);
            assert_eq!(elsewhere, Err(Malformed::Checksum));
        }
    }

    #[test]
    fn invalid_damage_entries_are_rejected_with_their_reason() {
        let forged = |forge: fn(&mut Vec<u8>)| {
            let damage = damage(Malformed::Checksum, None);
            let mut bytes = damage.encode();
            bytes.truncate(bytes.len() - ENTRY_CHECK_BYTES);
            forge(&mut bytes);
            let bytes = append_checksum(&key(damage.segment, damage.offset), bytes);
            Damage::decode(damage.segment, damage.offset, &bytes).map(|damage| damage.found_ms)
        };
        assert_eq!(forged(|_| {}), Ok(5));
        assert_eq!(forged(|b| b[16] = 1), Err(Malformed::Reserved));
        assert_eq!(forged(|b| b[20] = 0), Err(Malformed::Kind(0)));
        assert_eq!(forged(|b| b[21] = 4), Err(Malformed::Kind(4)));
        assert_eq!(forged(|b| b[22] = 3), Err(Malformed::Kind(3)));
        assert_eq!(forged(|b| b[26] = 1), Err(Malformed::Reserved));
        assert_eq!(forged(|b| b.push(0)), Err(Malformed::Trailing));
        assert_eq!(forged(|b| b[22] = 2), Err(Malformed::Name(NameError::Empty)));
    }
}
