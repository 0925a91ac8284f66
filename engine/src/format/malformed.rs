//! Reasons why stored bytes are rejected as malformed.
//!
//! Guarantees: a reason is small and copyable, and its text completes the sentence "log/0000000001.seg at offset
//! 4096: ...".
//! Non-goals: file, affected object and remedy, which `error.rs` adds.

use std::fmt;

use crate::name::NameError;

/// Format rule that stored bytes violate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Only zeros, as in space that was never written.
    Blank,
    /// File that is missing.
    Missing,
    /// Bytes that the disk fails to read.
    Unreadable,
    /// Bytes that end before the structure does.
    Short,
    /// Bytes after the end of the structure.
    Trailing,
    /// Wrong magic number.
    Magic,
    /// Unsupported format version.
    Version(u32),
    /// Unknown feature bits; the value is the whole field.
    Features(u32),
    /// Checksum mismatch: changed or misdirected bytes.
    Checksum,
    /// Reserved bytes or bits that are not zero.
    Reserved,
    /// Unknown kind, class or tag.
    Kind(u8),
    /// Length that is out of bounds, or contradicts another field.
    Length,
    /// Count that contradicts the content.
    Count,
    /// Name that violates its rules.
    Name(NameError),
    /// Text that is not UTF-8.
    Text,
    /// Numbers that should ascend and do not.
    Order,
    /// Offset or id that contradicts the disk address.
    Misplaced,
    /// Content that is already recorded as lost to corruption.
    Lost,
    /// Group or segment that does not continue its predecessor.
    Chain,
    /// Compressed bytes that do not decompress to the expected data.
    Decompression,
    /// Parts that contradict each other.
    Structure,
}

/// Reasons without a detail by their codes in the index, starting at 1. New ones are appended.
const PLAIN: [Malformed; 24] = [
    Malformed::Blank,
    Malformed::Missing,
    Malformed::Unreadable,
    Malformed::Short,
    Malformed::Trailing,
    Malformed::Magic,
    Malformed::Checksum,
    Malformed::Reserved,
    Malformed::Length,
    Malformed::Count,
    Malformed::Text,
    Malformed::Order,
    Malformed::Misplaced,
    Malformed::Lost,
    Malformed::Chain,
    Malformed::Name(NameError::Empty),
    Malformed::Name(NameError::BucketCharacter),
    Malformed::Name(NameError::Control),
    Malformed::Name(NameError::Backslash),
    Malformed::Name(NameError::EmptySegment),
    Malformed::Name(NameError::DotSegment),
    Malformed::Name(NameError::NotAFolder),
    Malformed::Decompression,
    Malformed::Structure,
];
// Codes of the reasons that have a numeric detail.
const CODE_VERSION: u8 = 128;
const CODE_FEATURES: u8 = 129;
const CODE_KIND: u8 = 130;
const CODE_NAME_TOO_LONG: u8 = 131;
const CODE_NAME_TOO_SHORT: u8 = 132;

impl Malformed {
    /// Returns the code and the detail that the index stores.
    pub(super) fn to_code(self) -> (u8, u32) {
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        match self {
            Self::Version(version) => (CODE_VERSION, version),
            Self::Features(bits) => (CODE_FEATURES, bits),
            Self::Kind(kind) => (CODE_KIND, u32::from(kind)),
            Self::Name(NameError::TooLong(bytes)) => (CODE_NAME_TOO_LONG, number(bytes)),
            Self::Name(NameError::TooShort(bytes)) => (CODE_NAME_TOO_SHORT, number(bytes)),
            plain => {
                let found = PLAIN.iter().zip(1..).find(|(known, _)| **known == plain);
                (found.map_or(0, |(_, code)| code), 0)
            }
        }
    }

    /// Returns the reason with this code and detail.
    pub(super) fn from_code(code: u8, detail: u32) -> Result<Self, Self> {
        let number = usize::try_from(detail).map_err(|_| Self::Length)?;
        let plain = usize::from(code).checked_sub(1).and_then(|at| PLAIN.get(at));
        match (code, plain) {
            (_, Some(plain)) if detail == 0 => Ok(*plain),
            (_, Some(_)) => Err(Self::Reserved),
            (CODE_VERSION, _) => Ok(Self::Version(detail)),
            (CODE_FEATURES, _) => Ok(Self::Features(detail)),
            (CODE_KIND, _) => u8::try_from(detail).map(Self::Kind).map_err(|_| Self::Reserved),
            (CODE_NAME_TOO_LONG, _) => Ok(Self::Name(NameError::TooLong(number))),
            (CODE_NAME_TOO_SHORT, _) => Ok(Self::Name(NameError::TooShort(number))),
            _ => Err(Self::Kind(code)),
        }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blank => write!(f, "never written"),
            Self::Missing => write!(f, "the file is missing"),
            Self::Unreadable => write!(f, "I/O error while reading"),
            Self::Short => write!(f, "unexpected end of data"),
            Self::Trailing => write!(f, "trailing bytes"),
            Self::Magic => write!(f, "wrong magic number"),
            Self::Version(found) => {
                write!(f, "format version {found} is not supported")
            }
            Self::Features(bits) => write!(f, "unknown feature bits in {bits:#010x}"),
            Self::Checksum => write!(f, "checksum mismatch"),
            Self::Reserved => write!(f, "reserved bytes are not zero"),
            Self::Kind(found) => write!(f, "unknown kind {found}"),
            Self::Length => write!(f, "invalid length"),
            Self::Count => write!(f, "invalid count"),
            Self::Name(why) => write!(f, "invalid name: {why}"),
            Self::Text => write!(f, "text is not UTF-8"),
            Self::Order => write!(f, "sequence numbers are out of order"),
            Self::Misplaced => write!(f, "misplaced block: written for another location"),
            Self::Lost => write!(f, "corrupt content that could not be repaired"),
            Self::Chain => write!(f, "it does not continue the previous record"),
            Self::Decompression => write!(f, "decompression failed"),
            Self::Structure => write!(f, "its parts contradict each other"),
        }
    }
}

impl std::error::Error for Malformed {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Name(why) => Some(why),
            _ => None,
        }
    }
}

impl From<NameError> for Malformed {
    fn from(why: NameError) -> Self {
        Self::Name(why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_codes_are_one_to_one() {
        for (code, plain) in (1..).zip(PLAIN) {
            assert_eq!(plain.to_code(), (code, 0));
            assert_eq!(Malformed::from_code(code, 0), Ok(plain));
            assert_eq!(Malformed::from_code(code, 1), Err(Malformed::Reserved));
        }
        for numbered in [
            Malformed::Version(u32::MAX),
            Malformed::Features(6),
            Malformed::Kind(9),
            Malformed::Name(NameError::TooLong(1_024)),
            Malformed::Name(NameError::TooShort(3)),
        ] {
            let (code, detail) = numbered.to_code();
            assert_eq!(Malformed::from_code(code, detail), Ok(numbered));
        }
        for code in [0, 127, 133, 255] {
            assert_eq!(Malformed::from_code(code, 0), Err(Malformed::Kind(code)));
        }
        assert_eq!(Malformed::from_code(CODE_KIND, 256), Err(Malformed::Reserved));
    }
}
