//! `REMOTE` file: marks a data folder whose store is replicated, with the last epoch of which it was the origin.
//!
//! | offset | size | field         | meaning                                                             |
//! | ------ | ---- | ------------- | ------------------------------------------------------------------- |
//! | 0      | 8    | magic         | `TRUGRMRK`                                                          |
//! | 8      | 4    | version       | format version                                                      |
//! | 12     | 4    | features      | feature bits                                                        |
//! | 16     | 16   | store         | uuid of the store                                                   |
//! | 32     | 8    | epoch         | last epoch whose primary had this folder; 0 for none                |
//! | 40     | 16   | primary       | uuid of the last process that tried to become the primary from here |
//! | 56     | 4    | checksum      | of 0..56, not address-bound                                         |
//!
//! Guarantees: a change of any byte is detected.
//! Non-goals: other epochs.

use uuid::Uuid;

use super::byte_codec::{ByteReader, ByteWriter};
use super::checksum::{CheckClass, Checksum, compare};
use super::malformed::Malformed;
use super::{FEATURES_KNOWN, FORMAT_VERSION, check_features, check_version};

/// File name, in the root of the folder.
pub const REMOTE_MARK: &str = "REMOTE";
/// Magic number at the start of the file.
pub const REMOTE_MARK_MAGIC: [u8; 8] = *b"TRUGRMRK";
/// Size of the file in bytes.
pub const REMOTE_MARK_BYTES: usize = 60;

const CHECKED_BYTES: usize = REMOTE_MARK_BYTES - 4;

/// Mark of a replicated store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteMark {
    /// Store.
    pub store: Uuid,
    /// Last epoch whose primary had this folder; 0 for none.
    pub epoch: u64,
    /// Last process that tried to become the primary from here.
    pub primary: Uuid,
}

impl RemoteMark {
    /// Encodes the file.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(REMOTE_MARK_BYTES);
        ByteWriter::new(&mut out)
            .bytes(&REMOTE_MARK_MAGIC)
            .u32(FORMAT_VERSION)
            .u32(FEATURES_KNOWN)
            .bytes(self.store.as_bytes())
            .u64(self.epoch)
            .bytes(self.primary.as_bytes());
        let checksum = Checksum::of(&out);
        ByteWriter::new(&mut out).u32(checksum.0);
        out
    }

    /// Decodes the whole file.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut take = ByteReader::new(bytes);
        let checked = take.clone().bytes(CHECKED_BYTES)?;
        if take.array()? != REMOTE_MARK_MAGIC {
            return Err(Malformed::Magic);
        }
        check_version(take.u32()?)?;
        let features = take.u32()?;
        let store = Uuid::from_bytes(take.array()?);
        let epoch = take.u64()?;
        let primary = Uuid::from_bytes(take.array()?);
        compare(CheckClass::Header, Checksum(take.u32()?), Checksum::of(checked))?;
        take.end()?;
        check_features(features)?;
        Ok(Self { store, epoch, primary })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::assert_every_byte_is_checked;

    #[test]
    fn remote_mark_round_trips_and_detects_any_byte_change() {
        let (store, primary) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let mark = RemoteMark { store, epoch: 3, primary };
        let bytes = mark.encode();
        assert_eq!(bytes.len(), REMOTE_MARK_BYTES);
        assert_eq!(RemoteMark::decode(&bytes), Ok(mark));
        assert_every_byte_is_checked(&bytes, |bytes| RemoteMark::decode(bytes).is_ok());
    }
}
