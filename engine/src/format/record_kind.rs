//! Record kind: the type byte of a record head.
//!
//! | byte | kind          | operation                              | body that follows |
//! | ---- | ------------- | -------------------------------------- | ----------------- |
//! | 1    | object        | put of an object                       | its content       |
//! | 2    | big object    | put of an object in a big segment      | none              |
//! | 3    | tombstone     | deletion of an object                  | none              |
//! | 4    | fact          | put of a fact                          | its value         |
//! | 5    | fact deletion | deletion of a fact                     | none              |
//! | 6    | compaction    | segments were replaced by others       | none              |
//! | 7    | lost object   | content was lost to corruption         | none              |
//! | 8    | hole punch    | dead bodies of a segment read as zeros | none              |
//!
//! Guarantees: an unknown byte is rejected and reported with its value.
//! Non-goals: the layout of the heads (`record.rs`).

use super::malformed::Malformed;

/// Kind of a record, with its byte on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// Object whose content follows the head.
    Object = 1,
    /// Object whose content is in a big segment.
    BigObject = 2,
    /// Deletion of an object.
    Tombstone = 3,
    /// Fact whose value follows the head.
    Fact = 4,
    /// Deletion of a fact.
    FactTombstone = 5,
    /// Replacement of segments by compaction.
    Compaction = 6,
    /// Object whose content was lost to corruption.
    LostObject = 7,
    /// Hole punch: dead bodies of a segment read as zeros.
    HolePunch = 8,
}

impl RecordKind {
    /// Returns the byte on disk.
    pub fn to_byte(self) -> u8 {
        match self {
            Self::Object => 1,
            Self::BigObject => 2,
            Self::Tombstone => 3,
            Self::Fact => 4,
            Self::FactTombstone => 5,
            Self::Compaction => 6,
            Self::LostObject => 7,
            Self::HolePunch => 8,
        }
    }

    /// Returns the kind of a byte on disk.
    pub fn from_byte(byte: u8) -> Result<Self, Malformed> {
        match byte {
            1 => Ok(Self::Object),
            2 => Ok(Self::BigObject),
            3 => Ok(Self::Tombstone),
            4 => Ok(Self::Fact),
            5 => Ok(Self::FactTombstone),
            6 => Ok(Self::Compaction),
            7 => Ok(Self::LostObject),
            8 => Ok(Self::HolePunch),
            other => Err(Malformed::Kind(other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_record_kinds_are_rejected() {
        for byte in 0..=255 {
            let kind = RecordKind::from_byte(byte).map(RecordKind::to_byte);
            let expected =
                if (1..=8).contains(&byte) { Ok(byte) } else { Err(Malformed::Kind(byte)) };
            assert_eq!(kind, expected);
        }
    }
}
