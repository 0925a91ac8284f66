//! Object metadata shared by record and index entry.
//!
//! `record.rs` and `entry.rs` define where the fields are stored. The flags are one byte in both:
//!
//! | bit | flag    | meaning                                         |
//! | --- | ------- | ----------------------------------------------- |
//! | 0   | derived | derived from another object, counted separately |
//!
//! Guarantees: undefined flags are rejected.
//! Non-goals: the meaning of attributes, the location of the object.

use super::malformed::Malformed;
use crate::limits;

/// Bit of [`ObjectFlags::derived`].
pub const FLAG_DERIVED: u8 = 1;

/// Metadata of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectMeta {
    /// Content type, as given by the caller.
    pub content_type: String,
    /// BLAKE3 hash of the content.
    pub hash: [u8; 32],
    /// Creation time of the object, in milliseconds since 1970.
    pub created_ms: u64,
    /// Creation time of this version, in milliseconds since 1970.
    pub modified_ms: u64,
    /// Flags of the object.
    pub flags: ObjectFlags,
    /// Opaque bytes of the caller.
    pub attributes: Vec<u8>,
}

/// Flags of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectFlags {
    /// Derived from another object; counted separately.
    pub derived: bool,
}

impl ObjectMeta {
    /// Checks the length bounds of content type and attributes.
    pub fn check(&self) -> Result<(), Malformed> {
        let fits = self.content_type.len() <= limits::CONTENT_TYPE_BYTES_MAX
            && self.attributes.len() <= limits::ATTRIBUTES_BYTES_MAX;
        if fits { Ok(()) } else { Err(Malformed::Length) }
    }
}

impl ObjectFlags {
    /// Encodes the flags.
    pub fn to_byte(self) -> u8 {
        if self.derived { FLAG_DERIVED } else { 0 }
    }

    /// Decodes the flags; undefined bits are rejected.
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
    fn unknown_object_flags_are_rejected() {
        for byte in 0..=255 {
            let flags = ObjectFlags::from_byte(byte);
            assert_eq!(flags.map(ObjectFlags::to_byte).is_ok(), byte <= FLAG_DERIVED);
            assert!(flags.is_err() || flags.map(ObjectFlags::to_byte) == Ok(byte));
        }
    }

    #[test]
    fn object_metadata_bounds_are_enforced() {
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
