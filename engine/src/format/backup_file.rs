//! `BACKUP` file: manifest of a backup folder, with the segments that the image consists of.
//!
//! | offset | size | field         | meaning                                          |
//! | ------ | ---- | ------------- | ------------------------------------------------ |
//! | 0      | 8    | magic         | `TRUGBKUP`                                       |
//! | 8      | 4    | version       | format version                                   |
//! | 12     | 4    | features      | feature bits                                     |
//! | 16     | 16   | store         | uuid of the store                                |
//! | 32     | 8    | last_lsn      | of the last record in the image                  |
//! | 40     | 8    | finished_ms   | milliseconds since 1970                          |
//! | 48     | 8    | last_segment  | last log segment; 0 for none                     |
//! | 56     | 8    | last_end      | end of its groups                                |
//! | 64     | 4    | segment_count |                                                  |
//! | 68     | 4    | reserved      | zero                                             |
//! | 72     | 8 n  | segments      | ids of the log and compacted segments, ascending |
//! | -4     | 4    | checksum      | of everything before, not address-bound          |
//!
//! Guarantees: what decodes encodes to the same bytes.
//! Non-goals: the removal of other segments (`recovery/restore_backup.rs`).

use uuid::Uuid;

use super::byte_codec::{ByteReader, ByteWriter};
use super::checksum::{CheckClass, Checksum, compare};
use super::malformed::Malformed;
use super::segment_header::Predecessor;
use super::segment_id::SegmentId;
use super::{FEATURES_KNOWN, FORMAT_VERSION, check_features, check_version};

/// File name, in the root of the folder.
pub const BACKUP_FILE: &str = "BACKUP";
/// Magic number at the start of the file.
pub const BACKUP_MAGIC: [u8; 8] = *b"TRUGBKUP";
/// Size of the fixed part, before the segment ids.
pub const BACKUP_FIXED_BYTES: usize = 72;

/// Manifest of a store image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupFile {
    /// Store that the image was taken from.
    pub store: Uuid,
    /// LSN of the last record in the image.
    pub last_lsn: u64,
    /// Completion time, in milliseconds since 1970.
    pub finished_ms: u64,
    /// Last log segment and the end of its groups; `None` if the log is empty.
    pub end: Option<Predecessor>,
    /// Log and compacted segments in the image, ascending.
    pub segments: Vec<SegmentId>,
}

impl BackupFile {
    /// Encodes the file.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        ByteWriter::new(&mut out)
            .bytes(&BACKUP_MAGIC)
            .u32(FORMAT_VERSION)
            .u32(FEATURES_KNOWN)
            .bytes(self.store.as_bytes())
            .u64(self.last_lsn)
            .u64(self.finished_ms)
            .u64(self.end.map_or(0, |end| end.segment.get()))
            .u64(self.end.map_or(0, |end| end.end))
            .u32(u32::try_from(self.segments.len()).unwrap_or(u32::MAX))
            .zeros(4);
        for segment in &self.segments {
            ByteWriter::new(&mut out).u64(segment.get());
        }
        let checksum = Checksum::of(&out);
        ByteWriter::new(&mut out).u32(checksum.0);
        out
    }

    /// Decodes the whole file.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let checked = bytes.len().checked_sub(4).ok_or(Malformed::Short)?;
        let mut take = ByteReader::new(bytes);
        let checked = take.clone().bytes(checked)?;
        if take.array()? != BACKUP_MAGIC {
            return Err(Malformed::Magic);
        }
        check_version(take.u32()?)?;
        let features = take.u32()?;
        let store = Uuid::from_bytes(take.array()?);
        let last_lsn = take.u64()?;
        let finished_ms = take.u64()?;
        let (last_segment, last_end) = (take.u64()?, take.u64()?);
        let count = take.u32()?;
        let reserved = take.zeros(4);
        let mut segments = Vec::new();
        for _ in 0..count {
            segments.push(SegmentId::new(take.u64()?).ok_or(Malformed::Misplaced)?);
        }
        compare(CheckClass::Header, Checksum(take.u32()?), Checksum::of(checked))?;
        take.end()?;
        check_features(features)?;
        reserved?;
        if !segments.is_sorted_by(|one, next| one < next) {
            return Err(Malformed::Order);
        }
        let end = match (SegmentId::new(last_segment), last_end) {
            (None, 0) if last_segment == 0 => None,
            (Some(segment), end) => Some(Predecessor { segment, end }),
            _ => return Err(Malformed::Misplaced),
        };
        Ok(Self { store, last_lsn, finished_ms, end, segments })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::assert_every_byte_is_checked;

    fn file(ids: &[u64]) -> BackupFile {
        let segments: Vec<_> = ids.iter().map(|id| SegmentId::new(*id).unwrap()).collect();
        let end = segments.last().map(|segment| Predecessor { segment: *segment, end: 5_000 });
        BackupFile { store: Uuid::from_u128(7), last_lsn: 9, finished_ms: 8, end, segments }
    }

    #[test]
    fn backup_file_round_trips_and_detects_any_byte_change() {
        for ids in [&[][..], &[1], &[3, 5, 9_999_999_999]] {
            let bytes = file(ids).encode();
            assert_eq!(bytes.len(), BACKUP_FIXED_BYTES + 8 * ids.len() + 4);
            assert_eq!(BackupFile::decode(&bytes), Ok(file(ids)));
        }
        assert_every_byte_is_checked(&file(&[3, 5]).encode(), |bytes| {
            BackupFile::decode(bytes).is_ok()
        });
    }

    #[test]
    fn unsorted_backup_segments_are_rejected() {
        assert_eq!(BackupFile::decode(&file(&[5, 3]).encode()), Err(Malformed::Order));
        assert_eq!(BackupFile::decode(&file(&[5, 5]).encode()), Err(Malformed::Order));
    }
}
