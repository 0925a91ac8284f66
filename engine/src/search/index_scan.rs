//! Scans names from the index when they are not cached.
//!
//! The cost per name is about that of matching it.
//!
//! Guarantees: visits every object below the folder once, and every folder once, implied by keys or marked; all from
//! one snapshot.
//! Non-goals: matching.

use std::ops::{Bound, ControlFlow};

use super::candidate::{Candidate, Folders};
use crate::error::Result;
use crate::format::entry_key;
use crate::index::{View, damaged};
use crate::name::{BucketName, FolderKey};

/// Visits every name below a folder, at any depth.
pub(super) fn each(
    view: &View,
    bucket: &BucketName,
    folder: &FolderKey,
    mut visit: impl FnMut(&Candidate<'_>) -> Result<ControlFlow<()>>,
) -> Result<ControlFlow<()>> {
    let range = entry_key::folder_range(bucket, folder);
    let mut folded = String::new();
    let mut folders = Folders::new(folder.as_str(), folder.as_str());
    for key in view.entry_keys(Bound::Included(&range.start), &range.end)? {
        let key = entry_key::decode(&key?).map_err(damaged)?.key;
        if folders.show(&Candidate::new(key.as_str(), &mut folded), &mut visit)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}
