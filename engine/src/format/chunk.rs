//! Chunk: the next bytes of the log, as an object of the remote store.
//!
//! | offset | size | field          | meaning                                                            |
//! | ------ | ---- | -------------- | ------------------------------------------------------------------ |
//! | 0      | 8    | magic          | `TRUGCHNK`                                                         |
//! | 8      | 4    | version        | format version                                                     |
//! | 12     | 4    | features       | feature bits                                                       |
//! | 16     | 16   | store          | uuid of the store                                                  |
//! | 32     | 8    | number         | number of the chunk, from 1; its name repeats it                   |
//! | 40     | 8    | epoch          | epoch of the primary                                               |
//! | 48     | 16   | primary        | uuid of the process that created the chunk                         |
//! | 64     | 8    | segment        | log segment of the bytes; 0 while the log is empty                 |
//! | 72     | 8    | from           | offset of the bytes in the segment; 0: they begin with its header  |
//! | 80     | 8    | bytes          | length of the body; 0 except in kind 1                             |
//! | 88     | 8    | last_lsn       | LSN of the last record up to the end of the chunk                  |
//! | 96     | 8    | next_group     | number of the group after the chunk                                |
//! | 104    | 4    | previous_group | checksum field of the last group header up to the end of the chunk |
//! | 108    | 4    | previous       | checksum field of the chunk before; 0 in the first                 |
//! | 112    | 8    | sent_ms        | milliseconds since 1970, by the clock of the primary               |
//! | 120    | 8    | salt           | kind 1: salt of the segment; others: zero                          |
//! | 128    | 1    | kind           | 1 log, 2 heartbeat, 3 fence, 4 release                             |
//! | 129    | 1    | reserved       | zero                                                               |
//! | 130    | 2    | lease_seconds  | 0: none                                                            |
//! | 132    | 4    | body           | checksum of the body, not address-bound                            |
//! | 136    | 20   | reserved       | zero                                                               |
//! | 156    | 4    | checksum       | of 0..156, not address-bound                                       |
//! | 160    |      |                | body: whole groups of one segment, after its header page if from is 0 |
//!
//! Guarantees: what decodes encodes to the same bytes; the checksum covers the body, and the chunk before.
//! Non-goals: the order of chunks, epochs.

use uuid::Uuid;

use super::byte_codec::{ByteReader, ByteWriter};
use super::checksum::{CheckClass, Checksum, compare};
use super::malformed::Malformed;
use super::segment_id::SegmentId;
use super::{FEATURES_KNOWN, FORMAT_VERSION, check_features, check_version};

/// Prefix of the names of chunks.
pub const CHUNK_PREFIX: &str = "log/";
/// Magic number at the start of a chunk.
pub const CHUNK_MAGIC: [u8; 8] = *b"TRUGCHNK";
/// Size of the header of a chunk in bytes.
pub const CHUNK_HEADER_BYTES: usize = 160;

const CHECKED_BYTES: usize = CHUNK_HEADER_BYTES - 4;

/// Kind of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkKind {
    /// Bytes of the log.
    Log = 1,
    /// Sign of life of an idle primary.
    Heartbeat = 2,
    /// Begin of an epoch: the process that created it is the only primary from here on.
    Fence = 3,
    /// End of an epoch, in which everything was shipped.
    Release = 4,
}

/// Header of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Store of the log.
    pub store: Uuid,
    /// Number, from 1 without gaps.
    pub number: u64,
    /// Epoch of the primary.
    pub epoch: u64,
    /// Process that created the chunk.
    pub primary: Uuid,
    /// Log segment of the bytes; `None` while the log is empty.
    pub segment: Option<SegmentId>,
    /// Offset of the bytes in the segment.
    pub from: u64,
    /// Length of the body.
    pub bytes: u64,
    /// LSN of the last record up to the end of the chunk.
    pub last_lsn: u64,
    /// Number of the group after the chunk.
    pub next_group: u64,
    /// Checksum field of the last group header up to the end of the chunk.
    pub previous_group: Checksum,
    /// Checksum field of the chunk before; zero in the first.
    pub previous: Checksum,
    /// Creation time by the clock of the primary, in milliseconds since 1970.
    pub sent_ms: u64,
    /// Salt of the segment, in a log chunk; 0 in others.
    pub salt: u64,
    /// Kind.
    pub kind: ChunkKind,
    /// Seconds after which the primary stops acknowledging if it cannot create chunks; 0: it does not.
    pub lease_seconds: u16,
    /// Checksum of the body.
    pub body: Checksum,
}

impl ChunkKind {
    fn from_byte(byte: u8) -> Result<Self, Malformed> {
        match byte {
            1 => Ok(Self::Log),
            2 => Ok(Self::Heartbeat),
            3 => Ok(Self::Fence),
            4 => Ok(Self::Release),
            other => Err(Malformed::Kind(other)),
        }
    }
}

impl Chunk {
    /// Returns the name of the chunk with this number.
    pub fn object_name(number: u64) -> String {
        format!("{CHUNK_PREFIX}{number:020}")
    }

    /// Parses the name of a chunk; `None` unless [`Chunk::object_name`] produces exactly this name.
    pub fn number_of(name: &str) -> Option<u64> {
        let number = name.strip_prefix(CHUNK_PREFIX)?.parse().ok()?;
        (Self::object_name(number) == name).then_some(number)
    }

    /// Encodes the header.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(CHUNK_HEADER_BYTES);
        ByteWriter::new(&mut out)
            .bytes(&CHUNK_MAGIC)
            .u32(FORMAT_VERSION)
            .u32(FEATURES_KNOWN)
            .bytes(self.store.as_bytes())
            .u64(self.number)
            .u64(self.epoch)
            .bytes(self.primary.as_bytes())
            .u64(self.segment.map_or(0, SegmentId::get))
            .u64(self.from)
            .u64(self.bytes)
            .u64(self.last_lsn)
            .u64(self.next_group)
            .u32(self.previous_group.0)
            .u32(self.previous.0)
            .u64(self.sent_ms)
            .u64(self.salt)
            .u8(self.kind as u8)
            .zeros(1)
            .u16(self.lease_seconds)
            .u32(self.body.0)
            .zeros(20);
        let checksum = Checksum::of(&out);
        ByteWriter::new(&mut out).u32(checksum.0);
        out
    }

    /// Returns the checksum field of the header, which the next chunk repeats.
    pub fn checksum(&self) -> Checksum {
        let encoded = self.encode();
        Checksum::of(encoded.get(..CHECKED_BYTES).unwrap_or_default())
    }

    /// Decodes the header at the start of `bytes`; a body may follow.
    pub fn decode_header(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut take = ByteReader::new(bytes);
        let checked = take.clone().bytes(CHECKED_BYTES)?;
        if take.array()? != CHUNK_MAGIC {
            return Err(Malformed::Magic);
        }
        check_version(take.u32()?)?;
        let features = take.u32()?;
        let store = Uuid::from_bytes(take.array()?);
        let (number, epoch) = (take.u64()?, take.u64()?);
        let primary = Uuid::from_bytes(take.array()?);
        let segment = take.u64()?;
        let (from, bytes, last_lsn, next_group) =
            (take.u64()?, take.u64()?, take.u64()?, take.u64()?);
        let (previous_group, previous) = (Checksum(take.u32()?), Checksum(take.u32()?));
        let (sent_ms, salt) = (take.u64()?, take.u64()?);
        let kind = take.u8()?;
        let reserved = take.zeros(1);
        let lease_seconds = take.u16()?;
        let body = Checksum(take.u32()?);
        let reserved = reserved.and(take.zeros(20));
        compare(CheckClass::Header, Checksum(take.u32()?), Checksum::of(checked))?;
        check_features(features)?;
        reserved?;
        let kind = ChunkKind::from_byte(kind)?;
        let segment = match segment {
            0 => None,
            id => Some(SegmentId::new(id).ok_or(Malformed::Misplaced)?),
        };
        let is_log = kind == ChunkKind::Log;
        if is_log != (bytes > 0) || is_log && segment.is_none() {
            return Err(Malformed::Length);
        }
        Ok(Self {
            store,
            number,
            epoch,
            primary,
            segment,
            from,
            bytes,
            last_lsn,
            next_group,
            previous_group,
            previous,
            sent_ms,
            salt,
            kind,
            lease_seconds,
            body,
        })
    }

    /// Decodes a whole chunk and verifies its body, which is returned.
    pub fn decode(bytes: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let chunk = Self::decode_header(bytes)?;
        let body = bytes.get(CHUNK_HEADER_BYTES..).unwrap_or_default();
        match (body.len() as u64).cmp(&chunk.bytes) {
            std::cmp::Ordering::Less => return Err(Malformed::Short),
            std::cmp::Ordering::Greater => return Err(Malformed::Trailing),
            std::cmp::Ordering::Equal => {}
        }
        compare(CheckClass::Block, chunk.body, Checksum::of(body))?;
        Ok((chunk, body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::assert_every_byte_is_checked;

    fn chunk(body: &[u8]) -> Chunk {
        Chunk {
            store: Uuid::from_u128(7),
            number: 4_711,
            epoch: 3,
            primary: Uuid::from_u128(8),
            segment: SegmentId::new(42),
            from: 4_096,
            bytes: body.len() as u64,
            last_lsn: 99,
            next_group: 12,
            previous_group: Checksum(5),
            previous: Checksum(6),
            sent_ms: 1_760_000_000_000,
            salt: 13,
            kind: ChunkKind::Log,
            lease_seconds: 15,
            body: Checksum::of(body),
        }
    }

    #[test]
    fn chunk_round_trips_and_detects_any_byte_change() {
        let body = b"groups";
        let bytes = [&chunk(body).encode()[..], body].concat();
        assert_eq!(bytes.len(), CHUNK_HEADER_BYTES + body.len());
        assert_eq!(Chunk::decode(&bytes), Ok((chunk(body), &body[..])));
        assert_every_byte_is_checked(&bytes, |bytes| Chunk::decode(bytes).is_ok());
        let longer = [&bytes[..], b"x"].concat();
        assert_eq!(Chunk::decode(&longer), Err(Malformed::Trailing));
    }

    #[test]
    fn chunk_kinds_and_lengths_must_agree() {
        let fence =
            Chunk { kind: ChunkKind::Fence, bytes: 0, body: Checksum::of(b""), ..chunk(b"") };
        assert_eq!(Chunk::decode_header(&fence.encode()), Ok(fence));
        let without_bytes = Chunk { kind: ChunkKind::Log, ..fence };
        assert_eq!(Chunk::decode_header(&without_bytes.encode()), Err(Malformed::Length));
        let heavy_fence = Chunk { bytes: 5, ..fence };
        assert_eq!(Chunk::decode_header(&heavy_fence.encode()), Err(Malformed::Length));
    }

    #[test]
    fn chunk_names_sort_like_their_numbers() {
        assert_eq!(Chunk::object_name(4_711), "log/00000000000000004711");
        assert_eq!(Chunk::number_of("log/00000000000000004711"), Some(4_711));
        for name in ["log/4711", "log/+0000000000000004711", "seg/00000000000000004711", "log/"] {
            assert_eq!(Chunk::number_of(name), None, "{name}");
        }
    }
}
