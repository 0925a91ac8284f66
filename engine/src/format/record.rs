//! Log record: head and optional body of an object, deletion, fact or segment change.
//!
//! All heads share the first fields:
//!
//! | offset | size | field      | meaning                                             |
//! | ------ | ---- | ---------- | --------------------------------------------------- |
//! | 0      | 4    | checksum   | of bytes 4..head_bytes at the offset of the head    |
//! | 4      | 1    | kind       | 1 to 8 (`record_kind.rs`)                           |
//! | 5      | 1    | flags      | bit 0: derived (kinds 1, 2 and 7 only); others zero |
//! | 6      | 2    | head_bytes | length of the head                                  |
//! | 8      | 8    | lsn        | log sequence number                                 |
//!
//! 1 object, 2 big object and 7 lost object:
//!
//! | offset | size | field              | meaning                                                          |
//! | ------ | ---- | ------------------ | ---------------------------------------------------------------- |
//! | 16     | 8    | bytes              | length of the content                                            |
//! | 24     | 8    | segment            | of a big object, the id of its segment; else zero                |
//! | 32     | 8    | created_ms         | milliseconds since 1970                                          |
//! | 40     | 8    | modified_ms        | milliseconds since 1970                                          |
//! | 48     | 32   | hash               | BLAKE3 of the content                                            |
//! | 80     | 2    | key_bytes          |                                                                  |
//! | 82     | 2    | attributes_bytes   |                                                                  |
//! | 84     | 1    | bucket_bytes       |                                                                  |
//! | 85     | 1    | content_type_bytes |                                                                  |
//! | 86     | 2    | reserved           | zero                                                             |
//! | 88     |      |                    | bucket, key, content type, attributes                            |
//! |        | 4 n  | blocks             | kind 1: checksum of each 64 KiB block of the body, at its offset |
//!
//! - 3 tombstone: 16 deleted_ms u64, 24 key_bytes u16, 26 bucket_bytes u8, 27 zero u8, 28 bucket, key.
//! - 4 fact: 16 bytes u32, 20 check u32 (of the value at its offset), 24 name_bytes u16, 26 zero u16, 28 name.
//! - 5 fact deletion: 16 name_bytes u16, 18 zero u16, 20 name.
//! - 6 compaction: 16 output_count u16, 18 input_count u16, 20 zero u32, 24 outputs u64 each, inputs u64 each.
//! - 8 hole punch: 16 segment u64, 24 bytes u64.
//!
//! The body (the content of an object or the value of a fact) follows its head directly; the other kinds have none.
//!
//! Guarantees: the checksum of a whole head, bound to its disk address, is verified before any field is trusted;
//! what decodes encodes to the same bytes.
//! Non-goals: groups, files, precedence between records.

use super::byte_codec::{ByteReader, ByteWriter, overwrite_u32};
use super::checksum::{CheckClass, Checksum, DiskAddress};
use super::malformed::Malformed;
use super::object_meta::{ObjectFlags, ObjectMeta};
use super::record_kind::RecordKind;
use super::segment_id::SegmentId;
use crate::limits;
use crate::name::{BucketName, FactName, ObjectKey, ObjectName};

/// Size of the common part of every head.
pub const HEAD_COMMON_BYTES: usize = 16;
/// Size of the fixed part of an object head.
pub const OBJECT_FIXED_BYTES: usize = 88;
/// Size of the fixed part of a tombstone head.
pub const TOMBSTONE_FIXED_BYTES: usize = 28;
/// Size of the fixed part of a fact head.
pub const FACT_FIXED_BYTES: usize = 28;
/// Size of the fixed part of a fact deletion head.
pub const FACT_TOMBSTONE_FIXED_BYTES: usize = 20;
/// Size of the fixed part of a compaction head.
pub const COMPACTION_FIXED_BYTES: usize = 24;
/// Size of a hole punch head.
pub const HOLE_PUNCH_BYTES: usize = 32;
/// Maximum length of a head.
pub const HEAD_BYTES_MAX: usize = OBJECT_FIXED_BYTES
    + limits::BUCKET_NAME_BYTES_MAX
    + limits::KEY_BYTES_MAX
    + limits::CONTENT_TYPE_BYTES_MAX
    + limits::ATTRIBUTES_BYTES_MAX
    + limits::INLINE_BYTES_SETTING_MAX / limits::BLOCK_BYTES * 4;

const _: () = assert!(HEAD_BYTES_MAX <= u16::MAX as usize, "head_bytes is a u16");
const _: () = assert!(limits::ATTRIBUTES_BYTES_MAX <= u16::MAX as usize, "so is attributes_bytes");
const _: () = assert!(limits::FACT_NAME_BYTES_MAX <= u16::MAX as usize, "and name_bytes");
const _: () = assert!(limits::FACT_BYTES_MAX <= limits::BLOCK_BYTES, "a fact is one block");
const _: () = assert!(FACT_FIXED_BYTES + limits::FACT_NAME_BYTES_MAX <= HEAD_BYTES_MAX);
const _: () =
    assert!(COMPACTION_FIXED_BYTES + 2 * 8 * limits::COMPACTION_SEGMENTS_MAX <= HEAD_BYTES_MAX);

/// Log record: an operation and its LSN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Log sequence number: from 1, ascending without gaps through the whole log.
    pub lsn: u64,
    /// Operation of the record.
    pub op: RecordOp,
}

/// Operation of a log record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordOp {
    /// Put of an object, which replaces any earlier object of this name.
    Put {
        /// Name of the object.
        name: ObjectName,
        /// Metadata of the object.
        meta: ObjectMeta,
        /// Location of the content.
        content: RecordContent,
    },
    /// Tombstone: deletion of an object.
    Delete {
        /// Name of the object.
        name: ObjectName,
        /// Deletion time, in milliseconds since 1970.
        deleted_ms: u64,
    },
    /// Put of a fact. The value is the body that follows, in one block.
    PutFact {
        /// Name of the fact.
        name: FactName,
        /// Length of the value.
        bytes: u32,
        /// Checksum of the value, bound to its disk address.
        check: Checksum,
    },
    /// Deletion of a fact.
    DeleteFact {
        /// Name of the fact.
        name: FactName,
    },
    /// Commit point of a compaction: the live records of some segments are now in others.
    Compaction {
        /// Segments that contain the live records from now on.
        outputs: Vec<SegmentId>,
        /// Segments that were replaced.
        inputs: Vec<SegmentId>,
    },
    /// Hole punch: unreachable bodies of a segment read as zeros; their space was reclaimed.
    HolePunch {
        /// Id of the segment.
        segment: SegmentId,
        /// Number of bytes punched, in addition to those of earlier hole punches of the segment.
        bytes: u64,
    },
}

/// Location of an object's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordContent {
    /// Content in the body that follows the head.
    Inline {
        /// Length in bytes.
        bytes: u64,
        /// Checksum of each 64 KiB block of the body, bound to the block's disk address.
        blocks: Vec<Checksum>,
    },
    /// Content in a separate big segment.
    Big {
        /// Length in bytes.
        bytes: u64,
        /// Id of the big segment.
        segment: SegmentId,
    },
    /// Content lost to corruption; only the metadata is left.
    Lost {
        /// Length of the lost content in bytes.
        bytes: u64,
    },
}

impl Record {
    /// Returns the length of the head.
    pub fn head_bytes(&self) -> usize {
        self.op.head_bytes()
    }

    /// Returns the length of the body that follows the head in the segment.
    pub fn body_bytes(&self) -> u64 {
        self.op.body_bytes()
    }

    /// Appends the head, encoded for `place`. Block checksums are written as they are: already bound.
    ///
    /// Names are within their bounds by type; [`RecordOp::check`] checks the other fields. A head that violates a bound
    /// is encoded to bytes that [`decode`](Self::decode) rejects.
    pub fn encode(&self, place: DiskAddress, out: &mut Vec<u8>) {
        debug_assert_eq!(self.op.check(), Ok(()));
        let start = out.len();
        let flags = match &self.op {
            RecordOp::Put { meta, .. } => meta.flags.to_byte(),
            _ => 0,
        };
        ByteWriter::new(out)
            .u32(0)
            .u8(self.op.kind().to_byte())
            .u8(flags)
            .u16(u16_of(self.head_bytes()))
            .u64(self.lsn);
        self.op.encode_fields(&mut ByteWriter::new(out));
        debug_assert_eq!(out.len(), start.saturating_add(self.head_bytes()));
        let head = out.get_mut(start..).unwrap_or_default();
        let checksum = Checksum::of(head.get(4..).unwrap_or_default()).bind(place);
        overwrite_u32(head, 0, checksum.0);
    }

    /// Decodes the head at the start of `bytes` and returns it with its length; the bytes after it are ignored.
    pub fn decode(bytes: &[u8], place: DiskAddress) -> Result<(Self, usize), Malformed> {
        let mut take = ByteReader::new(bytes);
        let checksum = Checksum(take.u32()?);
        let kind = take.u8()?;
        let flags = take.u8()?;
        let head_bytes = usize::from(take.u16()?);
        if !(HEAD_COMMON_BYTES..=HEAD_BYTES_MAX).contains(&head_bytes) {
            return Err(Malformed::Length);
        }
        let head = ByteReader::new(bytes).bytes(head_bytes)?;
        let mut take = ByteReader::new(head);
        take.bytes(4)?;
        checksum.verify(CheckClass::Head, take.clone().rest(), place)?;
        take.bytes(4)?;
        let lsn = take.u64()?;
        let kind = RecordKind::from_byte(kind)?;
        let what = match kind {
            RecordKind::Object | RecordKind::BigObject | RecordKind::LostObject => {
                RecordOp::decode_object(kind, ObjectFlags::from_byte(flags)?, &mut take)?
            }
            _ if flags != 0 => return Err(Malformed::Reserved),
            RecordKind::Tombstone => RecordOp::decode_tombstone(&mut take)?,
            RecordKind::Fact => RecordOp::decode_fact(&mut take)?,
            RecordKind::FactTombstone => RecordOp::decode_fact_tombstone(&mut take)?,
            RecordKind::Compaction => RecordOp::decode_compaction(&mut take)?,
            RecordKind::HolePunch => RecordOp::decode_hole_punch(&mut take)?,
        };
        take.end()?;
        Ok((Self { lsn, op: what }, head_bytes))
    }
}

impl RecordOp {
    /// Returns the record kind.
    pub fn kind(&self) -> RecordKind {
        match self {
            Self::Put { content: RecordContent::Inline { .. }, .. } => RecordKind::Object,
            Self::Put { content: RecordContent::Big { .. }, .. } => RecordKind::BigObject,
            Self::Put { content: RecordContent::Lost { .. }, .. } => RecordKind::LostObject,
            Self::Delete { .. } => RecordKind::Tombstone,
            Self::PutFact { .. } => RecordKind::Fact,
            Self::DeleteFact { .. } => RecordKind::FactTombstone,
            Self::Compaction { .. } => RecordKind::Compaction,
            Self::HolePunch { .. } => RecordKind::HolePunch,
        }
    }

    /// Returns whether the record is a deletion of an object or a fact.
    pub fn is_tombstone(&self) -> bool {
        matches!(self, Self::Delete { .. } | Self::DeleteFact { .. })
    }

    /// Returns the length of the record head.
    pub fn head_bytes(&self) -> usize {
        match self {
            Self::Put { name, meta, content } => {
                let blocks = match content {
                    RecordContent::Inline { blocks, .. } => blocks.len() * 4,
                    RecordContent::Big { .. } | RecordContent::Lost { .. } => 0,
                };
                OBJECT_FIXED_BYTES
                    + name.bucket.as_str().len()
                    + name.key.as_str().len()
                    + meta.content_type.len()
                    + meta.attributes.len()
                    + blocks
            }
            Self::Delete { name, .. } => {
                TOMBSTONE_FIXED_BYTES + name.bucket.as_str().len() + name.key.as_str().len()
            }
            Self::PutFact { name, .. } => FACT_FIXED_BYTES + name.as_str().len(),
            Self::DeleteFact { name } => FACT_TOMBSTONE_FIXED_BYTES + name.as_str().len(),
            Self::Compaction { outputs, inputs } => {
                COMPACTION_FIXED_BYTES + 8 * (outputs.len() + inputs.len())
            }
            Self::HolePunch { .. } => HOLE_PUNCH_BYTES,
        }
    }

    /// Returns the length of the body that follows the head in the segment.
    pub fn body_bytes(&self) -> u64 {
        match self {
            Self::Put { content: RecordContent::Inline { bytes, .. }, .. } => *bytes,
            Self::PutFact { bytes, .. } => u64::from(*bytes),
            _ => 0,
        }
    }

    /// Checks the bounds that the types do not enforce; must be called before anything is written.
    pub fn check(&self) -> Result<(), Malformed> {
        match self {
            Self::Put { meta, content, .. } => meta.check().and(content.check()),
            Self::PutFact { bytes, .. } if *bytes as usize > limits::FACT_BYTES_MAX => {
                Err(Malformed::Length)
            }
            Self::Compaction { outputs, inputs } => {
                let most = outputs.len().max(inputs.len());
                let fits = most <= limits::COMPACTION_SEGMENTS_MAX && !inputs.is_empty();
                if fits { Ok(()) } else { Err(Malformed::Count) }
            }
            _ => Ok(()),
        }
    }

    fn encode_fields(&self, put: &mut ByteWriter<'_>) {
        match self {
            Self::Put { name, meta, content } => {
                let (bytes, segment) = match content {
                    RecordContent::Inline { bytes, .. } => (*bytes, 0),
                    RecordContent::Big { bytes, segment } => (*bytes, segment.get()),
                    RecordContent::Lost { bytes } => (*bytes, 0),
                };
                put.u64(bytes)
                    .u64(segment)
                    .u64(meta.created_ms)
                    .u64(meta.modified_ms)
                    .bytes(&meta.hash)
                    .u16(u16_of(name.key.as_str().len()))
                    .u16(u16_of(meta.attributes.len()))
                    .u8(u8_of(name.bucket.as_str().len()))
                    .u8(u8_of(meta.content_type.len()))
                    .zeros(2)
                    .bytes(name.bucket.as_str().as_bytes())
                    .bytes(name.key.as_str().as_bytes())
                    .bytes(meta.content_type.as_bytes())
                    .bytes(&meta.attributes);
                if let RecordContent::Inline { blocks, .. } = content {
                    for check in blocks {
                        put.u32(check.0);
                    }
                }
            }
            Self::Delete { name, deleted_ms } => {
                put.u64(*deleted_ms)
                    .u16(u16_of(name.key.as_str().len()))
                    .u8(u8_of(name.bucket.as_str().len()))
                    .zeros(1)
                    .bytes(name.bucket.as_str().as_bytes())
                    .bytes(name.key.as_str().as_bytes());
            }
            Self::PutFact { name, bytes, check } => {
                put.u32(*bytes)
                    .u32(check.0)
                    .u16(u16_of(name.as_str().len()))
                    .zeros(2)
                    .bytes(name.as_str().as_bytes());
            }
            Self::DeleteFact { name } => {
                put.u16(u16_of(name.as_str().len())).zeros(2).bytes(name.as_str().as_bytes());
            }
            Self::Compaction { outputs, inputs } => {
                put.u16(u16_of(outputs.len())).u16(u16_of(inputs.len())).zeros(4);
                for segment in outputs.iter().chain(inputs) {
                    put.u64(segment.get());
                }
            }
            Self::HolePunch { segment, bytes } => {
                put.u64(segment.get()).u64(*bytes);
            }
        }
    }

    fn decode_object(
        kind: RecordKind,
        flags: ObjectFlags,
        take: &mut ByteReader<'_>,
    ) -> Result<Self, Malformed> {
        let bytes = take.u64()?;
        let segment = take.u64()?;
        let created_ms = take.u64()?;
        let modified_ms = take.u64()?;
        let hash = take.array()?;
        let key_bytes = usize::from(take.u16()?);
        let attributes_bytes = usize::from(take.u16()?);
        let bucket_bytes = usize::from(take.u8()?);
        let content_type_bytes = usize::from(take.u8()?);
        take.zeros(2)?;
        let name = take_name(take, bucket_bytes, key_bytes)?;
        let content_type = take.text(content_type_bytes)?.to_owned();
        let attributes = take.bytes(attributes_bytes)?.to_vec();
        if kind != RecordKind::BigObject && segment != 0 {
            return Err(Malformed::Reserved);
        }
        let content = if kind == RecordKind::LostObject {
            RecordContent::Lost { bytes }
        } else if kind == RecordKind::Object {
            // The table is the rest of the head, which is in memory, so the capacity is bounded.
            let mut blocks = Vec::with_capacity(take.remaining() / 4);
            while take.remaining() >= 4 {
                blocks.push(Checksum(take.u32()?));
            }
            RecordContent::Inline { bytes, blocks }
        } else {
            RecordContent::Big {
                bytes,
                segment: SegmentId::new(segment).ok_or(Malformed::Misplaced)?,
            }
        };
        let meta = ObjectMeta { content_type, hash, created_ms, modified_ms, flags, attributes };
        let what = Self::Put { name, meta, content };
        what.check()?;
        Ok(what)
    }

    fn decode_tombstone(take: &mut ByteReader<'_>) -> Result<Self, Malformed> {
        let deleted_ms = take.u64()?;
        let key_bytes = usize::from(take.u16()?);
        let bucket_bytes = usize::from(take.u8()?);
        take.zeros(1)?;
        Ok(Self::Delete { name: take_name(take, bucket_bytes, key_bytes)?, deleted_ms })
    }

    fn decode_fact(take: &mut ByteReader<'_>) -> Result<Self, Malformed> {
        let bytes = take.u32()?;
        let check = Checksum(take.u32()?);
        let name_bytes = usize::from(take.u16()?);
        take.zeros(2)?;
        let what = Self::PutFact { name: FactName::parse(take.text(name_bytes)?)?, bytes, check };
        what.check()?;
        Ok(what)
    }

    fn decode_fact_tombstone(take: &mut ByteReader<'_>) -> Result<Self, Malformed> {
        let name_bytes = usize::from(take.u16()?);
        take.zeros(2)?;
        Ok(Self::DeleteFact { name: FactName::parse(take.text(name_bytes)?)? })
    }

    fn decode_compaction(take: &mut ByteReader<'_>) -> Result<Self, Malformed> {
        let output_count = take.u16()?;
        let input_count = take.u16()?;
        take.zeros(4)?;
        let outputs = take_segments(take, output_count)?;
        let what = Self::Compaction { outputs, inputs: take_segments(take, input_count)? };
        what.check()?;
        Ok(what)
    }

    fn decode_hole_punch(take: &mut ByteReader<'_>) -> Result<Self, Malformed> {
        let segment = SegmentId::new(take.u64()?).ok_or(Malformed::Misplaced)?;
        Ok(Self::HolePunch { segment, bytes: take.u64()? })
    }
}

impl RecordContent {
    /// Returns the length of the content in bytes.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Inline { bytes, .. } | Self::Big { bytes, .. } | Self::Lost { bytes } => *bytes,
        }
    }

    fn check(&self) -> Result<(), Malformed> {
        match self {
            Self::Inline { bytes, .. } if *bytes > limits::INLINE_BYTES_SETTING_MAX as u64 => {
                Err(Malformed::Length)
            }
            Self::Inline { bytes, blocks } if blocks.len() as u64 != block_count(*bytes) => {
                Err(Malformed::Count)
            }
            Self::Big { bytes, .. } | Self::Lost { bytes } if *bytes > limits::OBJECT_BYTES_MAX => {
                Err(Malformed::Length)
            }
            _ => Ok(()),
        }
    }
}

fn take_name(
    take: &mut ByteReader<'_>,
    bucket: usize,
    key: usize,
) -> Result<ObjectName, Malformed> {
    let bucket = BucketName::parse(take.text(bucket)?)?;
    let key = ObjectKey::parse(take.text(key)?)?;
    Ok(ObjectName::new(bucket, key))
}

/// Reads `count` segment ids; the capacity is bounded by the bytes that are present.
pub(super) fn take_segments(
    take: &mut ByteReader<'_>,
    count: u16,
) -> Result<Vec<SegmentId>, Malformed> {
    (0..count).map(|_| SegmentId::new(take.u64()?).ok_or(Malformed::Misplaced)).collect()
}

// The constants above keep valid lengths within the width of the field. An out-of-range length is clamped to the
// maximum, which contradicts the rest of the head, so that decoding rejects it.
fn u16_of(length: usize) -> u16 {
    u16::try_from(length).unwrap_or(u16::MAX)
}

fn u8_of(length: usize) -> u8 {
    u8::try_from(length).unwrap_or(u8::MAX)
}

/// Returns the number of blocks of a body of `bytes`.
pub fn block_count(bytes: u64) -> u64 {
    bytes.div_ceil(limits::BLOCK_BYTES as u64)
}

#[cfg(test)]
mod tests;
