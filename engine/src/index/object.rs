//! Object in the index.

use std::sync::Arc;

use crate::format::Entry;
use crate::name::ObjectName;

/// Object as of one snapshot: name, metadata, and location of the body.
#[derive(Clone, Debug)]
pub struct Object {
    pub(crate) name: ObjectName,
    pub(crate) entry: Arc<Entry>,
}
