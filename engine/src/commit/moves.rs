//! What a move leaves in the log: an object put under another name, and right behind it, in the same moment, the end of
//! the one that it was.
//!
//! Promises: nothing is written for it, so it is told of stores of any age; an upload and a deletion that have nothing
//! to do with each other are no move: what is moved keeps its time of creation, and what is uploaded has its own.
//! Never here: moving.

use crate::format::ObjectMeta;
use crate::name::ObjectName;

/// Whether two objects are the same to whoever reads them: content, type and attributes.
pub(crate) fn is_same_file(one: &ObjectMeta, other: &ObjectMeta) -> bool {
    one.hash == other.hash
        && one.content_type == other.content_type
        && one.attributes == other.attributes
        && one.flags == other.flags
}

/// Whether the record right before a deletion may have put what it deleted under another name.
pub(crate) fn may_be_move(to: (&ObjectName, &ObjectMeta), from: &ObjectName, at_ms: u64) -> bool {
    let (to, put) = to;
    to.bucket == from.bucket && to.key != from.key && put.modified_ms == at_ms
}

/// Whether it did: what was put is what was deleted.
pub(crate) fn is_what_moved(put: &ObjectMeta, deleted: &ObjectMeta) -> bool {
    is_same_file(put, deleted) && put.created_ms == deleted.created_ms
}
