//! What is known about an object besides its bytes: the part that record and index entry share.
//!
//! The fields have no layout of their own: `record.rs` and `entry.rs` place them. The flags are one byte in both:
//!
//! | bit | flag    | meaning                                  |
//! | --- | ------- | ---------------------------------------- |
//! | 0   | derived | made from another object, counted apart  |
//!
//! Promises: a flag without a meaning is refused. Never here: what attributes mean, where the object is.

use super::malformed::Malformed;
use crate::limits;

/// The bit of [`ObjectFlags::derived`].
pub const FLAG_DERIVED: u8 = 1;

/// What is known about an object besides its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectMeta {
    /// The media type, as it was given.
    pub content_type: String,
    /// BLAKE3 of the content.
    pub hash: [u8; 32],
    /// When the object was first made.
    pub created_ms: u64,
    /// When this version of it was made.
    pub modified_ms: u64,
    /// Yes-or-no properties.
    pub flags: ObjectFlags,
    /// Bytes of the caller's own.
    pub attributes: Vec<u8>,
}

/// Yes-or-no properties of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectFlags {
    /// Made from another object, and counted apart.
    pub derived: bool,
}

impl ObjectMeta {
    /// Whether content type and attributes are within their bounds.
    pub fn check(&self) -> Result<(), Malformed> {
        let fits = self.content_type.len() <= limits::CONTENT_TYPE_BYTES_MAX
            && self.attributes.len() <= limits::ATTRIBUTES_BYTES_MAX;
        if fits { Ok(()) } else { Err(Malformed::Length) }
    }
}

impl ObjectFlags {
    /// The flags as they stand on disk.
    pub fn to_byte(self) -> u8 {
        if self.derived { FLAG_DERIVED } else { 0 }
    }

    /// The flags that a byte on disk means; bits without a meaning are refused.
    pub fn from_byte(byte: u8) -> Result<Self, Malformed> {
        match byte {
            0 => Ok(Self { derived: false }),
            FLAG_DERIVED => Ok(Self { derived: true }),
            _ => Err(Malformed::Reserved),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_one_byte_and_unknown_ones_are_refused() {
        for byte in 0..=255 {
            let flags = ObjectFlags::from_byte(byte);
            assert_eq!(flags.map(ObjectFlags::to_byte).is_ok(), byte <= FLAG_DERIVED);
            assert!(flags.is_err() || flags.map(ObjectFlags::to_byte) == Ok(byte));
        }
    }

    #[test]
    fn metadata_keeps_its_bounds() {
        let meta = |content_type, attributes| ObjectMeta {
            content_type: "t".repeat(content_type),
            hash: [0; 32],
            created_ms: 0,
            modified_ms: 0,
            flags: ObjectFlags::default(),
            attributes: vec![0; attributes],
        };
        assert_eq!(meta(255, 6_144).check(), Ok(()));
        assert_eq!(meta(256, 0).check(), Err(Malformed::Length));
        assert_eq!(meta(0, 6_145).check(), Err(Malformed::Length));
    }
}
