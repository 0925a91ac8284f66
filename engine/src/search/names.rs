//! Where the names come from that a search looks through.
//!
//! At present from a walk over the index, which costs about as much for each name as matching it. This file is the only
//! one that knows: names kept in memory, with their letters as a first sieve, would take its place.
//! Promises: every object below the folder once, and every folder once, be it implied by keys or marked; all of one
//! moment. Never here: what matches.

use std::ops::{Bound, ControlFlow};

use super::fold::{fold_onto, letters};
use crate::error::Result;
use crate::format::entry_key;
use crate::index::{View, damaged};
use crate::name::{BucketName, FolderKey};

/// A name to be judged.
pub(super) struct Candidate<'a> {
    /// The whole key; that of a folder ends in `/`.
    pub(super) key: &'a str,
    /// Its folded form.
    pub(super) folded: &'a str,
    /// The letters of that.
    pub(super) letters: u64,
}

impl<'a> Candidate<'a> {
    /// A key as a candidate; `folded` is room for its folded form.
    pub(super) fn new(key: &'a str, folded: &'a mut String) -> Self {
        folded.clear();
        fold_onto(folded, key);
        Self { key, folded, letters: letters(folded) }
    }
}

/// Shows every name below a folder, at any depth.
pub(super) fn each(
    view: &View,
    bucket: &BucketName,
    folder: &FolderKey,
    mut visit: impl FnMut(&Candidate<'_>) -> Result<ControlFlow<()>>,
) -> Result<ControlFlow<()>> {
    let range = entry_key::folder_range(bucket, folder);
    let mut folded = String::new();
    let mut last = folder.clone();
    for key in view.entry_keys(Bound::Included(&range.start), &range.end)? {
        let key = entry_key::decode(&key?).map_err(damaged)?.key;
        let inside = key.folder();
        // What lies in a folder lies together: where one begins that the last key was not in, it is met first.
        if inside != last {
            let begin = folder.as_str().len();
            for (slash, _) in inside.as_str().match_indices('/').filter(|(at, _)| *at >= begin) {
                let path = inside.as_str().get(..=slash).unwrap_or_default();
                if !last.as_str().starts_with(path)
                    && visit(&Candidate::new(path, &mut folded))?.is_break()
                {
                    return Ok(ControlFlow::Break(()));
                }
            }
            last = inside;
        }
        if !key.is_folder_marker() && visit(&Candidate::new(key.as_str(), &mut folded))?.is_break()
        {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}
