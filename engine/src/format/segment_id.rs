//! Ids, classes and file names of segments.
//!
//! Non-goals: opening, creating or selecting segments.

use std::fmt;

use super::malformed::Malformed;

/// Maximum segment id: ten digits, so that file names sort like ids.
pub const SEGMENT_ID_MAX: u64 = 9_999_999_999;
/// Number of segment ids per folder of big segments.
pub const BIG_FOLDER_SEGMENTS: u64 = 4_096;
/// Folder of log segments.
pub const LOG_FOLDER: &str = "log";
/// Root folder of big segments.
pub const BIG_FOLDER: &str = "big";
/// Folder of compacted segments.
pub const COMPACTED_FOLDER: &str = "compacted";
/// Suffix of every segment file name.
pub const SEGMENT_SUFFIX: &str = ".seg";

/// Segment id. Never zero, never reused in a store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentId(u64);

/// Class of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SegmentClass {
    /// Groups of records, including small bodies.
    Log = 1,
    /// Body of one large object.
    Big = 2,
    /// Live records of replaced segments, in groups, with their original LSNs.
    Compacted = 3,
}

impl SegmentClass {
    /// Returns the byte on disk.
    pub fn to_byte(self) -> u8 {
        match self {
            Self::Log => 1,
            Self::Big => 2,
            Self::Compacted => 3,
        }
    }

    /// Returns the class of a byte on disk.
    pub fn from_byte(byte: u8) -> Result<Self, Malformed> {
        match byte {
            1 => Ok(Self::Log),
            2 => Ok(Self::Big),
            3 => Ok(Self::Compacted),
            other => Err(Malformed::Kind(other)),
        }
    }
}

impl SegmentId {
    /// Greatest id.
    pub const MAX: Self = Self(SEGMENT_ID_MAX);

    /// Creates a segment id; `None` for zero and above [`SEGMENT_ID_MAX`].
    pub fn new(number: u64) -> Option<Self> {
        (1..=SEGMENT_ID_MAX).contains(&number).then_some(Self(number))
    }

    /// Returns the id as a number.
    pub fn get(self) -> u64 {
        self.0
    }

    /// Returns the next id. The maximum is its own successor; no store creates 10 billion segments.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1).min(SEGMENT_ID_MAX))
    }

    /// Returns the file path, relative to the data folder: `log/0000000001.seg`, `big/00/0000000002.seg` or
    /// `compacted/0000000003.seg`.
    pub fn path(self, class: SegmentClass) -> String {
        format!("{}/{self}{SEGMENT_SUFFIX}", self.folder(class))
    }

    /// Returns the folder of the file, relative to the data folder: `log`, `big/00` or `compacted`.
    pub fn folder(self, class: SegmentClass) -> String {
        match class {
            SegmentClass::Log => LOG_FOLDER.to_owned(),
            SegmentClass::Big => format!("{BIG_FOLDER}/{:02}", self.0 / BIG_FOLDER_SEGMENTS),
            SegmentClass::Compacted => COMPACTED_FOLDER.to_owned(),
        }
    }

    /// Parses a file name; `None` unless [`path`](Self::path) produces exactly this name.
    pub fn from_file_name(name: &str) -> Option<Self> {
        let digits = name.strip_suffix(SEGMENT_SUFFIX)?;
        let segment = Self::new(digits.parse().ok()?)?;
        (segment.to_string() == digits).then_some(segment)
    }
}

/// Parses the number of a folder of big segments; `None` unless [`SegmentId::folder`] produces exactly this name.
pub fn big_folder_number(name: &str) -> Option<u64> {
    let number = name.parse().ok()?;
    let last = SEGMENT_ID_MAX / BIG_FOLDER_SEGMENTS;
    (number <= last && format!("{number:02}") == name).then_some(number)
}

impl fmt::Display for SegmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:010}", self.0)
    }
}

impl fmt::Debug for SegmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segment_ids_and_file_names_are_one_to_one() {
        for number in [1, 4_095, 4_096, 409_600, SEGMENT_ID_MAX] {
            let id = SegmentId::new(number).unwrap();
            let path = id.path(SegmentClass::Big);
            let (folder, name) = path.rsplit_once('/').unwrap();
            assert_eq!(SegmentId::from_file_name(name), Some(id));
            assert_eq!(folder, id.folder(SegmentClass::Big));
            let number = folder.strip_prefix("big/").unwrap();
            assert_eq!(big_folder_number(number), Some(id.get() / 4_096));
        }
        let id = SegmentId::new(1).unwrap();
        assert_eq!(id.path(SegmentClass::Log), "log/0000000001.seg");
        assert_eq!(id.next().path(SegmentClass::Big), "big/00/0000000002.seg");
        assert_eq!(SegmentId::new(0), None);
        assert_eq!(SegmentId::new(SEGMENT_ID_MAX + 1), None);
        for name in [
            "1.seg",
            "+000000001.seg",
            "0000000000.seg",
            "00000000001.seg",
            "0000000001",
            "0000000001.seg.seg",
            "0000000001.SEG",
            " 000000001.seg",
        ] {
            assert_eq!(SegmentId::from_file_name(name), None, "{name}");
        }
        for name in ["0", "000", "+1", "", "x0", "99999999"] {
            assert_eq!(big_folder_number(name), None, "{name}");
        }
    }
}
