//! Version mark in the attributes of an object.
//!
//! The current version of a key needs no mark while its record implies everything: its id is the number of that record.
//! Objects that are stored again (tagged, or current once more) carry their original number.
//!
//! Guarantees: the id of a version never changes. Non-goals: the attributes of S3 clients.

use engine::Object;

use super::names;
use super::{Versioning, VersioningState};
use crate::object_attributes::{StoredAttributes, VersionMark, last_modified_ms};

/// Id of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionId {
    /// Stored while versioning was not enabled, or suspended.
    Null,
    Number(u64),
}

/// Version properties of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) number: u64,
    pub(super) is_null: bool,
    pub(super) modified_ms: u64,
}

impl VersionId {
    /// Parses the id that a client sent.
    pub fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        match text {
            "null" => Some(Self::Null),
            _ if text.len() == 16 && text.bytes().all(is_digit) => {
                u64::from_str_radix(text, 16).ok().map(Self::Number)
            }
            _ => None,
        }
    }
}

impl std::fmt::Display for VersionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Number(number) => write!(f, "{number:016x}"),
        }
    }
}

impl Versioning {
    /// Returns the mark of an object that is stored now.
    pub(super) fn new_mark(&self) -> Option<VersionMark> {
        match self.state {
            VersioningState::Enabled => None,
            VersioningState::Suspended => {
                Some(VersionMark { is_null: true, ..VersionMark::default() })
            }
        }
    }

    /// Returns the version properties of the current version.
    pub(super) fn known(&self, object: &Object, mark: Option<VersionMark>) -> Known {
        let is_older = object.lsn() <= self.after_lsn;
        Known {
            number: mark.and_then(|mark| mark.number).unwrap_or(object.lsn()),
            is_null: mark.map_or(is_older, |mark| mark.is_null),
            modified_ms: mark.and_then(|it| it.modified_ms).unwrap_or(last_modified_ms(object)),
        }
    }

    /// Returns the mark that preserves the id of a current version which is stored again.
    pub fn preserved_mark(&self, object: &Object, mark: Option<VersionMark>) -> VersionMark {
        self.known(object, mark).mark()
    }
}

impl Known {
    pub(super) fn id(&self) -> VersionId {
        match self.is_null {
            true => VersionId::Null,
            false => VersionId::Number(self.number),
        }
    }

    pub(super) fn mark(&self) -> VersionMark {
        VersionMark {
            number: Some(self.number),
            is_null: self.is_null,
            is_delete_marker: false,
            modified_ms: Some(self.modified_ms),
        }
    }
}

/// Returns the version id of an object, current or not; `None` in a bucket that was never versioned.
pub fn id_of(versioning: Option<Versioning>, object: &Object) -> Option<VersionId> {
    let versioning = versioning?;
    if let Some((_, number, is_null)) = noncurrent(object) {
        return Some(if is_null { VersionId::Null } else { VersionId::Number(number) });
    }
    Some(versioning.known(object, StoredAttributes::of(object).version).id())
}

/// Returns the key, number and null flag of a noncurrent version; `None` for a current one.
pub(super) fn noncurrent(object: &Object) -> Option<(engine::ObjectKey, u64, bool)> {
    let is_internal = object.name().bucket.as_str() == protocol::reserved_paths::VERSIONS;
    is_internal.then(|| names::parse(object.name())).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_ids_round_trip() {
        for id in [VersionId::Null, VersionId::Number(0), VersionId::Number(u64::MAX)] {
            assert_eq!(VersionId::parse(&id.to_string()), Some(id));
        }
        for wrong in ["", "Null", "1", "00000000000000001", "000000000000000G", "+000000000000001"]
        {
            assert_eq!(VersionId::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn longest_version_mark_fits() {
        let mark = VersionMark {
            number: Some(u64::MAX),
            is_null: true,
            is_delete_marker: true,
            modified_ms: Some(u64::MAX),
        };
        let bytes = serde_json::to_vec(&mark).unwrap().len();
        assert!(bytes <= crate::object_attributes::MARK_BYTES_MAX, "{bytes}");
    }
}
