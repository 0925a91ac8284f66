//! Finds orphaned segments: unreferenced big segments, uncommitted compacted ones, and replaced segments.
//!
//! Each is a trace of a crash. While records are missing from the log, a missing record may refer to an orphan,
//! which is then not removed.
//!
//! Non-goals: removal.

use super::check_state::Check;
use super::finding::{Remedy, Severity};
use super::survey::StoreSurvey;
use crate::error::{Error, Result};
use crate::format::{BIG_FOLDER, SegmentClass, SegmentId, big_folder_number};
use crate::limits;

impl Check<'_, '_> {
    /// Searches the folders for orphans.
    pub(super) fn look_for_orphans(&mut self, ground: &StoreSurvey) -> Result<()> {
        for held in ground.segments.values().filter(|held| held.is_superseded) {
            let what = match held.class {
                SegmentClass::Log => "replaced by compacted segments; left over",
                _ => "unreferenced compacted segment",
            };
            self.orphan(&held.path, what);
        }
        let io = |source| Error::io("listing big segments", source);
        for folder in self.disk.list(BIG_FOLDER).map_err(io)? {
            let path = format!("{BIG_FOLDER}/{folder}");
            if big_folder_number(&folder).is_none() {
                let what = "a file or folder here does not belong to this store";
                self.found(Severity::Note, &path, 0, what, Remedy::None);
                continue;
            }
            for name in self.disk.list(&path).map_err(io)? {
                let path = format!("{path}/{name}");
                match SegmentId::from_file_name(&name) {
                    Some(id) if id.path(SegmentClass::Big) == path => self.check_named(id, &path),
                    _ => {
                        let what = "a file here is not a segment of this store";
                        self.found(Severity::Note, &path, 0, what, Remedy::None);
                    }
                }
            }
        }
        Ok(())
    }

    fn check_named(&mut self, id: SegmentId, path: &str) {
        let is_named = self.counted(id).is_some()
            || self.big_named.contains(&id)
            || self.retained.contains(&id);
        // Beyond the limit of remembered segments, orphans cannot be determined.
        if !is_named && self.big_named.len() < limits::FSCK_BIG_REFERENCES_MAX {
            self.orphan(path, "unreferenced big segment");
        }
    }

    fn orphan(&mut self, path: &str, what: &str) {
        let remedy = if self.is_ignorant { Remedy::None } else { Remedy::RemoveOrphan };
        self.found(Severity::Note, path, 0, what, remedy);
    }
}
