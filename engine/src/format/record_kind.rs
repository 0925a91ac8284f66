//! The kind of a record: the byte in its head that says what the rest of the head means.
//!
//! | byte | kind       | says                                     | body that follows  |
//! | ---- | ---------- | ---------------------------------------- | ------------------ |
//! | 1    | object     | an object is there                       | its content        |
//! | 2    | big object | an object is there, in a big segment     | none               |
//! | 3    | tombstone  | an object is gone                        | none               |
//! | 4    | fact       | a fact is there                          | its value          |
//! | 5    | fact gone  | a fact is gone                           | none               |
//! | 6    | compacted  | segments were replaced by others         | none               |
//! | 7    | lost object | an object was damaged beyond repair     | none               |
//! | 8    | punched    | dead bodies of a segment read as zeros   | none               |
//!
//! Promises: a byte without a kind is refused by name. Never here: what the heads look like (`record.rs`).

use super::malformed::Malformed;

/// The kind of a record as it stands on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// An object whose content follows.
    Object = 1,
    /// An object whose content is in a big segment.
    BigObject = 2,
    /// An object is gone.
    Tombstone = 3,
    /// A fact, whose value follows.
    Fact = 4,
    /// A fact is gone.
    FactGone = 5,
    /// Segments were replaced by others.
    Compacted = 6,
    /// An object whose content was damaged beyond repair.
    LostObject = 7,
    /// Dead bodies of a segment read as zeros.
    Punched = 8,
}

impl RecordKind {
    /// The kind as it stands on disk.
    pub fn to_byte(self) -> u8 {
        match self {
            Self::Object => 1,
            Self::BigObject => 2,
            Self::Tombstone => 3,
            Self::Fact => 4,
            Self::FactGone => 5,
            Self::Compacted => 6,
            Self::LostObject => 7,
            Self::Punched => 8,
        }
    }

    /// The kind that a byte on disk means.
    pub fn from_byte(byte: u8) -> Result<Self, Malformed> {
        match byte {
            1 => Ok(Self::Object),
            2 => Ok(Self::BigObject),
            3 => Ok(Self::Tombstone),
            4 => Ok(Self::Fact),
            5 => Ok(Self::FactGone),
            6 => Ok(Self::Compacted),
            7 => Ok(Self::LostObject),
            8 => Ok(Self::Punched),
            other => Err(Malformed::Kind(other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_one_byte_and_unknown_ones_are_refused() {
        for byte in 0..=255 {
            let kind = RecordKind::from_byte(byte).map(RecordKind::to_byte);
            let expected =
                if (1..=8).contains(&byte) { Ok(byte) } else { Err(Malformed::Kind(byte)) };
            assert_eq!(kind, expected);
        }
    }
}
