//! Manifest: the segments of which a store consists as of a chunk, as an object of the remote store.
//!
//! | offset | size | field              | meaning                                                     |
//! | ------ | ---- | ------------------ | ----------------------------------------------------------- |
//! | 0      | 8    | magic              | `TRUGMNFT`                                                  |
//! | 8      | 4    | version            | format version                                              |
//! | 12     | 4    | features           | feature bits                                                |
//! | 16     | 16   | store              | uuid of the store                                           |
//! | 32     | 8    | chunk              | number of the chunk; the name repeats it                    |
//! | 40     | 4    | chunk_checksum     | checksum field of that chunk                                |
//! | 44     | 4    | previous_group     | checksum field of the last group header                     |
//! | 48     | 8    | created_ms         | milliseconds since 1970, by the clock of the primary        |
//! | 56     | 8    | last_lsn           | LSN of the last record                                      |
//! | 64     | 8    | last_segment       | last log segment; 0 for none                                |
//! | 72     | 8    | last_end           | end of its groups                                           |
//! | 80     | 8    | next_group         | number of the next group                                    |
//! | 88     | 8    | epoch              | epoch of the chunk                                          |
//! | 96     | 4    | segment_count      |                                                             |
//! | 100    | 4    | unreferenced_count |                                                             |
//! | 104    | 40 n | segments           | id, salt, bytes, first_chunk, class in 1 byte, 7 reserved; ascending by id |
//! |        | 16 n | unreferenced       | id and salt of segments in `seg/` that are not needed from here on; ascending |
//! | -4     | 4    | checksum           | of everything before, not address-bound                     |
//!
//! Segments are log and compacted segments. `first_chunk` is 0 if the segment is in `seg/`; otherwise the chunks from
//! there on contain its bytes.
//!
//! Guarantees: what decodes encodes to the same bytes.
//! Non-goals: big segments, which follow from the records.

use uuid::Uuid;

use super::byte_codec::{ByteReader, ByteWriter};
use super::checksum::{CheckClass, Checksum, compare};
use super::malformed::Malformed;
use super::segment_header::Predecessor;
use super::segment_id::{SegmentClass, SegmentId};
use super::{FEATURES_KNOWN, FORMAT_VERSION, check_features, check_version};

/// Prefix of the names of manifests.
pub const MANIFEST_PREFIX: &str = "manifest/";
/// Prefix of the names of segments in the remote store.
pub const REMOTE_SEGMENT_PREFIX: &str = "seg/";
/// Magic number at the start of a manifest.
pub const MANIFEST_MAGIC: [u8; 8] = *b"TRUGMNFT";
/// Size of the fixed part of a manifest in bytes.
pub const MANIFEST_FIXED_BYTES: usize = 104;

/// Log or compacted segment of a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManifestSegment {
    /// Name of its object in `seg/`.
    pub object: RemoteSegment,
    /// Class: log or compacted.
    pub class: SegmentClass,
    /// Length of the file; of a segment that is not in `seg/`, the end of its groups.
    pub bytes: u64,
    /// First chunk with bytes of the segment; `None` if it is in `seg/`.
    pub first_chunk: Option<u64>,
}

/// Name of a segment in the remote store: id and salt of its header. The salt is random, so segments to which several
/// processes assign one id have different names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RemoteSegment {
    /// Id.
    pub id: SegmentId,
    /// Salt.
    pub salt: u64,
}

/// Manifest of a store as of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Store.
    pub store: Uuid,
    /// Number of the chunk.
    pub chunk: u64,
    /// Checksum field of the chunk.
    pub chunk_checksum: Checksum,
    /// Creation time by the clock of the primary, in milliseconds since 1970.
    pub created_ms: u64,
    /// LSN of the last record.
    pub last_lsn: u64,
    /// Last log segment and the end of its groups; `None` if the log is empty.
    pub end: Option<Predecessor>,
    /// Number of the next group.
    pub next_group: u64,
    /// Checksum field of the last group header.
    pub previous_group: Checksum,
    /// Epoch of the chunk.
    pub epoch: u64,
    /// Log and compacted segments, ascending by id.
    pub segments: Vec<ManifestSegment>,
    /// Segments in `seg/` that neither this manifest nor a later one needs, ascending.
    pub unreferenced: Vec<RemoteSegment>,
}

impl RemoteSegment {
    /// Returns the name of the object.
    pub fn object_name(self) -> String {
        format!("{REMOTE_SEGMENT_PREFIX}{}-{:016x}", self.id, self.salt)
    }

    /// Parses a name; `None` unless [`RemoteSegment::object_name`] produces exactly this name.
    pub fn from_object_name(name: &str) -> Option<Self> {
        let (id, salt) = name.strip_prefix(REMOTE_SEGMENT_PREFIX)?.split_once('-')?;
        let id = SegmentId::new(id.parse().ok()?)?;
        let segment = Self { id, salt: u64::from_str_radix(salt, 16).ok()? };
        (segment.object_name() == name).then_some(segment)
    }
}

impl Manifest {
    /// Returns the name of the manifest as of this chunk.
    pub fn object_name(chunk: u64) -> String {
        format!("{MANIFEST_PREFIX}{chunk:020}")
    }

    /// Parses the name of a manifest; `None` unless [`Manifest::object_name`] produces exactly this name.
    pub fn chunk_of(name: &str) -> Option<u64> {
        let chunk = name.strip_prefix(MANIFEST_PREFIX)?.parse().ok()?;
        (Self::object_name(chunk) == name).then_some(chunk)
    }

    /// Encodes the object.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        ByteWriter::new(&mut out)
            .bytes(&MANIFEST_MAGIC)
            .u32(FORMAT_VERSION)
            .u32(FEATURES_KNOWN)
            .bytes(self.store.as_bytes())
            .u64(self.chunk)
            .u32(self.chunk_checksum.0)
            .u32(self.previous_group.0)
            .u64(self.created_ms)
            .u64(self.last_lsn)
            .u64(self.end.map_or(0, |end| end.segment.get()))
            .u64(self.end.map_or(0, |end| end.end))
            .u64(self.next_group)
            .u64(self.epoch)
            .u32(count(self.segments.len()))
            .u32(count(self.unreferenced.len()));
        for ManifestSegment { object, class, bytes, first_chunk } in &self.segments {
            let mut writer = ByteWriter::new(&mut out);
            writer.u64(object.id.get()).u64(object.salt).u64(*bytes).u64(first_chunk.unwrap_or(0));
            writer.u8(class.to_byte()).zeros(7);
        }
        for RemoteSegment { id, salt } in &self.unreferenced {
            ByteWriter::new(&mut out).u64(id.get()).u64(*salt);
        }
        let checksum = Checksum::of(&out);
        ByteWriter::new(&mut out).u32(checksum.0);
        out
    }

    /// Decodes the whole object.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let checked = bytes.len().checked_sub(4).ok_or(Malformed::Short)?;
        let mut take = ByteReader::new(bytes);
        let checked = take.clone().bytes(checked)?;
        if take.array()? != MANIFEST_MAGIC {
            return Err(Malformed::Magic);
        }
        check_version(take.u32()?)?;
        let features = take.u32()?;
        let store = Uuid::from_bytes(take.array()?);
        let chunk = take.u64()?;
        let (chunk_checksum, previous_group) = (Checksum(take.u32()?), Checksum(take.u32()?));
        let (created_ms, last_lsn) = (take.u64()?, take.u64()?);
        let (last_segment, last_end, next_group) = (take.u64()?, take.u64()?, take.u64()?);
        let epoch = take.u64()?;
        let (segments, unreferenced) = (take.u32()?, take.u32()?);
        let segments = repeat(segments, || manifest_segment(&mut take))?;
        let unreferenced = repeat(unreferenced, || remote_segment(&mut take))?;
        compare(CheckClass::Header, Checksum(take.u32()?), Checksum::of(checked))?;
        take.end()?;
        check_features(features)?;
        let ascends = segments.is_sorted_by(|one, next| one.object.id < next.object.id)
            && unreferenced.is_sorted_by(|one, next| one < next);
        if !ascends {
            return Err(Malformed::Order);
        }
        let end = match (SegmentId::new(last_segment), last_end) {
            (None, 0) if last_segment == 0 => None,
            (Some(segment), end) => Some(Predecessor { segment, end }),
            _ => return Err(Malformed::Misplaced),
        };
        Ok(Self {
            store,
            chunk,
            chunk_checksum,
            created_ms,
            last_lsn,
            end,
            next_group,
            previous_group,
            epoch,
            segments,
            unreferenced,
        })
    }
}

fn repeat<T>(
    count: u32,
    mut one: impl FnMut() -> Result<T, Malformed>,
) -> Result<Vec<T>, Malformed> {
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(one()?);
    }
    Ok(all)
}

fn remote_segment(take: &mut ByteReader<'_>) -> Result<RemoteSegment, Malformed> {
    let id = SegmentId::new(take.u64()?).ok_or(Malformed::Misplaced)?;
    Ok(RemoteSegment { id, salt: take.u64()? })
}

fn manifest_segment(take: &mut ByteReader<'_>) -> Result<ManifestSegment, Malformed> {
    let object = remote_segment(take)?;
    let (bytes, first_chunk) = (take.u64()?, take.u64()?);
    let class = SegmentClass::from_byte(take.u8()?)?;
    take.zeros(7)?;
    if class == SegmentClass::Big {
        return Err(Malformed::Kind(class.to_byte()));
    }
    let first_chunk = (first_chunk > 0).then_some(first_chunk);
    Ok(ManifestSegment { object, class, bytes, first_chunk })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::assert_every_byte_is_checked;

    fn id(number: u64) -> SegmentId {
        SegmentId::new(number).unwrap()
    }

    fn object(number: u64, salt: u64) -> RemoteSegment {
        RemoteSegment { id: id(number), salt }
    }

    fn manifest() -> Manifest {
        let segment = |number, class, first_chunk| ManifestSegment {
            object: object(number, 11),
            class,
            bytes: 100 * number,
            first_chunk,
        };
        Manifest {
            store: Uuid::from_u128(7),
            chunk: 9,
            chunk_checksum: Checksum(1),
            created_ms: 2,
            last_lsn: 3,
            end: Some(Predecessor { segment: id(8), end: 5_000 }),
            next_group: 4,
            previous_group: Checksum(5),
            epoch: 6,
            segments: vec![
                segment(2, SegmentClass::Compacted, None),
                segment(8, SegmentClass::Log, Some(7)),
            ],
            unreferenced: vec![object(3, 1), object(3, 2)],
        }
    }

    #[test]
    fn manifest_round_trips_and_detects_any_byte_change() {
        let bytes = manifest().encode();
        assert_eq!(bytes.len(), MANIFEST_FIXED_BYTES + 2 * 40 + 2 * 16 + 4);
        assert_eq!(Manifest::decode(&bytes), Ok(manifest()));
        assert_every_byte_is_checked(&bytes, |bytes| Manifest::decode(bytes).is_ok());
    }

    #[test]
    fn unsorted_manifest_lists_are_rejected() {
        let mut unsorted = manifest();
        unsorted.segments.reverse();
        assert_eq!(Manifest::decode(&unsorted.encode()), Err(Malformed::Order));
        let mut repeated = manifest();
        repeated.unreferenced.push(object(3, 2));
        assert_eq!(Manifest::decode(&repeated.encode()), Err(Malformed::Order));
    }

    #[test]
    fn remote_segment_names_have_id_and_salt() {
        let name = "seg/0000000006-000000000000beef";
        assert_eq!(object(6, 0xbeef).object_name(), name);
        assert_eq!(RemoteSegment::from_object_name(name), Some(object(6, 0xbeef)));
        for other in
            ["6-000000000000beef", "0000000006-beef", "0000000006-000000000000BEEF", "0000000006"]
        {
            assert_eq!(RemoteSegment::from_object_name(&format!("seg/{other}")), None, "{other}");
        }
    }
}
