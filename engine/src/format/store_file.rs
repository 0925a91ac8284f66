//! `STORE` file: identity of a store, in one sector.
//!
//! | offset | size | field      | meaning                           |
//! | ------ | ---- | ---------- | --------------------------------- |
//! | 0      | 8    | magic      | `TRUGSTOR`                        |
//! | 8      | 4    | version    | format version                    |
//! | 12     | 4    | features   | feature bits                      |
//! | 16     | 16   | store      | random uuid, never changed        |
//! | 32     | 8    | created_ms | milliseconds since 1970           |
//! | 40     | 4    | checksum   | of bytes 0..40, not address-bound |
//! | 44     | 468  | reserved   | zero                              |
//!
//! Guarantees: written once, when the store is created; a change of any byte is detected.
//! Non-goals: mutable state.

use uuid::Uuid;

use super::byte_codec::{ByteReader, ByteWriter, is_zero};
use super::checksum::{CheckClass, Checksum, compare};
use super::malformed::Malformed;
use super::{FEATURES_KNOWN, FORMAT_VERSION, check_features, check_version};

/// File name, in the root of the folder.
pub const STORE_FILE: &str = "STORE";
/// Magic number at the start of the file.
pub const STORE_MAGIC: [u8; 8] = *b"TRUGSTOR";
/// Size of the file in bytes.
pub const STORE_FILE_BYTES: usize = 512;

const CHECKED_BYTES: usize = 40;
const RESERVED_BYTES: usize = STORE_FILE_BYTES - CHECKED_BYTES - 4;

const _: () = assert!(RESERVED_BYTES == 468);

/// Identity of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreFile {
    /// Store id, repeated in each segment header.
    pub store: Uuid,
    /// Creation time of the store, in milliseconds since 1970.
    pub created_ms: u64,
}

impl StoreFile {
    /// Encodes the file.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(STORE_FILE_BYTES);
        ByteWriter::new(&mut out)
            .bytes(&STORE_MAGIC)
            .u32(FORMAT_VERSION)
            .u32(FEATURES_KNOWN)
            .bytes(self.store.as_bytes())
            .u64(self.created_ms);
        let checksum = Checksum::of(&out);
        ByteWriter::new(&mut out).u32(checksum.0).zeros(RESERVED_BYTES);
        out
    }

    /// Decodes the whole file.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut take = ByteReader::new(bytes);
        let checked = take.clone().bytes(CHECKED_BYTES)?;
        if is_zero(bytes) {
            return Err(Malformed::Blank);
        }
        if take.array()? != STORE_MAGIC {
            return Err(Malformed::Magic);
        }
        // Another version may have another layout, so its checksum cannot be verified first.
        check_version(take.u32()?)?;
        let features = take.u32()?;
        let store = Uuid::from_bytes(take.array()?);
        let created_ms = take.u64()?;
        compare(CheckClass::Header, Checksum(take.u32()?), Checksum::of(checked))?;
        check_features(features)?;
        take.zeros(RESERVED_BYTES)?;
        take.end()?;
        Ok(Self { store, created_ms })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::assert_every_byte_is_checked;

    fn file() -> StoreFile {
        StoreFile { store: Uuid::from_u128(42), created_ms: 1_760_000_000_000 }
    }

    #[test]
    fn store_file_round_trips_and_detects_any_byte_change() {
        let bytes = file().encode();
        assert_eq!(bytes.len(), STORE_FILE_BYTES);
        assert_eq!(StoreFile::decode(&bytes), Ok(file()));
        assert_every_byte_is_checked(&bytes, |bytes| StoreFile::decode(bytes).is_ok());
    }

    #[test]
    fn invalid_store_files_are_rejected_with_their_reason() {
        assert_eq!(StoreFile::decode(&[0; STORE_FILE_BYTES]), Err(Malformed::Blank));
        assert_eq!(StoreFile::decode(&[1; STORE_FILE_BYTES]), Err(Malformed::Magic));
        let mut newer = file().encode();
        newer[8] = 9;
        assert_eq!(StoreFile::decode(&newer), Err(Malformed::Version(9)));
        let mut feature = file().encode();
        feature[15] = 0x80;
        let checksum = Checksum::of(&feature[..40]);
        feature[40..44].copy_from_slice(&checksum.0.to_le_bytes());
        assert_eq!(StoreFile::decode(&feature), Err(Malformed::Features(0x8000_0000)));
        let mut longer = file().encode();
        longer.push(0);
        assert_eq!(StoreFile::decode(&longer), Err(Malformed::Trailing));
    }
}
