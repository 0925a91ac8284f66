//! Why bytes are not what they claim to be.
//!
//! Promises: small, copyable, and a fragment that completes the sentence "log/0000000001.seg at offset 4096: ...".
//! Never here: which file, whose object, what to do about it; `error.rs` puts those around it.

use std::fmt;

use crate::name::NameError;

/// The rule of the format that some bytes break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Nothing but zeros: space that was never written.
    Blank,
    /// The whole file is missing.
    Missing,
    /// The bytes end before the structure does.
    Short,
    /// The structure ends before the bytes do.
    Trailing,
    /// Another magic number than the structure's.
    Magic,
    /// A format version that this code does not read.
    Version(u32),
    /// Feature bits that this code does not know; all bits of the field are given.
    Features(u32),
    /// The checksum does not match: changed bytes, or bytes that belong elsewhere.
    Checksum,
    /// Reserved bytes or bits that are not zero.
    Reserved,
    /// A kind, class or tag that does not exist.
    Kind(u8),
    /// A length beyond its bound, or one that contradicts another.
    Length,
    /// A count that contradicts what is there.
    Count,
    /// A name that breaks its rule.
    Name(NameError),
    /// Text that is not UTF-8.
    Text,
    /// Numbers that should ascend and do not.
    Order,
    /// An offset or id that contradicts where the bytes lie.
    Place,
    /// Content that was found to be damaged before, and given up.
    Lost,
    /// A group or segment that does not go on where the one before it ended.
    Chain,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blank => write!(f, "nothing was ever written here"),
            Self::Missing => write!(f, "the file is missing"),
            Self::Short => write!(f, "the bytes end too early"),
            Self::Trailing => write!(f, "bytes are left over"),
            Self::Magic => write!(f, "the magic number is wrong"),
            Self::Version(found) => {
                write!(f, "format version {found} is not one that is read here")
            }
            Self::Features(bits) => write!(f, "feature bits {bits:#010x} are not all known here"),
            Self::Checksum => write!(f, "the checksum does not match"),
            Self::Reserved => write!(f, "reserved bytes are not zero"),
            Self::Kind(found) => write!(f, "kind {found} does not exist"),
            Self::Length => write!(f, "a length is impossible"),
            Self::Count => write!(f, "a count is impossible"),
            Self::Name(why) => write!(f, "a name is not allowed: {why}"),
            Self::Text => write!(f, "text is not UTF-8"),
            Self::Order => write!(f, "numbers are out of order"),
            Self::Place => write!(f, "the bytes belong to another place"),
            Self::Lost => write!(f, "the content was damaged and could not be repaired"),
            Self::Chain => write!(f, "it does not follow what comes before it"),
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
