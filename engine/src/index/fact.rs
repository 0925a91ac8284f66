//! Fact in the index.

use bytes::Bytes;

use crate::format::Location;

/// Fact: a small opaque record of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fact {
    /// LSN of the record that set the fact.
    pub(crate) lsn: u64,
    /// Location of that record.
    pub(crate) record: Location,
    /// Value of the fact.
    pub(crate) value: Bytes,
}
