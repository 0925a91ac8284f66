//! Move detection: a put directly followed by the deletion of its source at the same time.
//!
//! Guarantees: moves need no log format of their own, so they are detected in stores of any age; an upload and an
//! unrelated deletion are not a move, because a moved object retains its creation time.
//! Non-goals: moving objects.

use crate::format::ObjectMeta;
use crate::name::ObjectName;

/// Returns whether two objects are equal to a reader: content, type and attributes.
pub(crate) fn is_same_file(one: &ObjectMeta, other: &ObjectMeta) -> bool {
    one.hash == other.hash
        && one.content_type == other.content_type
        && one.attributes == other.attributes
        && one.flags == other.flags
}

/// Returns whether the record directly before a deletion may have put the deleted object under another name.
pub(crate) fn may_be_move(to: (&ObjectName, &ObjectMeta), from: &ObjectName, at_ms: u64) -> bool {
    let (to, put) = to;
    to.bucket == from.bucket && to.key != from.key && put.modified_ms == at_ms
}

/// Returns whether the object that was put is the deleted one.
pub(crate) fn is_move(put: &ObjectMeta, deleted: &ObjectMeta) -> bool {
    is_same_file(put, deleted) && put.created_ms == deleted.created_ms
}
