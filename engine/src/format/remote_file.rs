//! `remote` object: which store a remote store belongs to.
//!
//! | offset | size | field    | meaning                          |
//! | ------ | ---- | -------- | -------------------------------- |
//! | 0      | 8    | magic    | `TRUGRMTE`                       |
//! | 8      | 4    | version  | format version                   |
//! | 12     | 4    | features | feature bits                     |
//! | 16     | 512  | store    | the `STORE` file, byte for byte  |
//! | 528    | 4    | checksum | of 0..528, not address-bound     |
//!
//! Guarantees: created once, when the store is attached; a change of any byte is detected.
//! Non-goals: the other objects of a remote store.

use super::byte_codec::{ByteReader, ByteWriter};
use super::checksum::{CheckClass, Checksum, compare};
use super::malformed::Malformed;
use super::store_file::{STORE_FILE_BYTES, StoreFile};
use super::{FEATURES_KNOWN, FORMAT_VERSION, check_features, check_version};

/// Name of the object.
pub const REMOTE_FILE: &str = "remote";
/// Magic number at the start of the object.
pub const REMOTE_MAGIC: [u8; 8] = *b"TRUGRMTE";
/// Size of the object in bytes.
pub const REMOTE_FILE_BYTES: usize = 532;

const _: () = assert!(REMOTE_FILE_BYTES == 16 + STORE_FILE_BYTES + 4);

/// Encodes the object for a store.
pub fn encode_remote_file(store: &StoreFile) -> Vec<u8> {
    let mut out = Vec::with_capacity(REMOTE_FILE_BYTES);
    ByteWriter::new(&mut out)
        .bytes(&REMOTE_MAGIC)
        .u32(FORMAT_VERSION)
        .u32(FEATURES_KNOWN)
        .bytes(&store.encode());
    let checksum = Checksum::of(&out);
    ByteWriter::new(&mut out).u32(checksum.0);
    out
}

/// Decodes the whole object.
pub fn decode_remote_file(bytes: &[u8]) -> Result<StoreFile, Malformed> {
    let mut take = ByteReader::new(bytes);
    let checked = take.clone().bytes(REMOTE_FILE_BYTES - 4)?;
    if take.array()? != REMOTE_MAGIC {
        return Err(Malformed::Magic);
    }
    check_version(take.u32()?)?;
    let features = take.u32()?;
    let store = take.bytes(STORE_FILE_BYTES)?;
    compare(CheckClass::Header, Checksum(take.u32()?), Checksum::of(checked))?;
    take.end()?;
    check_features(features)?;
    StoreFile::decode(store)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::assert_every_byte_is_checked;

    #[test]
    fn remote_file_round_trips_and_detects_any_byte_change() {
        let store = StoreFile { store: uuid::Uuid::from_u128(42), created_ms: 7 };
        let bytes = encode_remote_file(&store);
        assert_eq!(bytes.len(), REMOTE_FILE_BYTES);
        assert_eq!(decode_remote_file(&bytes), Ok(store));
        assert_every_byte_is_checked(&bytes, |bytes| decode_remote_file(bytes).is_ok());
    }
}
