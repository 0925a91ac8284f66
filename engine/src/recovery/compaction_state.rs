//! Determines which compacted segments are in effect, and which segments they replaced.
//!
//! A compaction writes its outputs, commits them by a log record, and only then removes its inputs. An existing
//! index records the segments in use; without one, an output is in effect if any of its inputs is missing, and is
//! redundant while all exist.
//!
//! Guarantees: nothing is removed if anything is damaged.
//! Non-goals: the content of the segments.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::report::{LogDamage, RecoveryReport};
use crate::error::{Error, Result};
use crate::format::{
    COMPACTED_FOLDER, LOG_FOLDER, LsnRanges, Malformed, Origin, SegmentClass, SegmentHeader,
    SegmentId,
};
use crate::index::View;
use crate::replay::{Replay, SegmentMerge};
use crate::segment::{SegmentSet, read_origin};

/// Compacted segments on disk.
pub(crate) struct CompactionState {
    ids: Vec<SegmentId>,
    /// Segments with an intact header page. Others are damaged, or their compaction was interrupted.
    found: Vec<(SegmentHeader, Origin)>,
    /// Ids of all segments with records, by file name.
    present: BTreeSet<SegmentId>,
}

impl CompactionState {
    /// Reads the header pages of all compacted segments.
    pub(super) fn find(segments: &SegmentSet) -> Result<Self> {
        let ids = |folder: &str| -> Result<Vec<SegmentId>> {
            let names = segments.disk().list(folder);
            let names = names.map_err(|source| Error::io(format!("listing {folder}"), source))?;
            Ok(names.iter().filter_map(|name| SegmentId::from_file_name(name)).collect())
        };
        let compacted = ids(COMPACTED_FOLDER)?;
        segments.was_removed_from(COMPACTED_FOLDER.to_owned());
        let mut found = Vec::new();
        for id in &compacted {
            segments.skip_ids_through(id.get());
            match read_origin(segments.disk(), *id, segments.store()) {
                Ok(described) => found.push(described),
                Err(Error::Corrupt(_)) => {}
                Err(other) => return Err(other),
            }
        }
        let present = ids(LOG_FOLDER)?.into_iter().chain(compacted.iter().copied()).collect();
        Ok(Self { ids: compacted, found, present })
    }

    /// Creates the set from already read headers: the compacted segments with an intact header page, and the ids of
    /// all segments with records.
    pub(crate) fn of(found: Vec<(SegmentHeader, Origin)>, present: BTreeSet<SegmentId>) -> Self {
        let ids = found.iter().map(|(header, _)| header.segment).collect();
        Self { ids, found, present }
    }

    /// Returns the segments with an intact header page.
    pub(crate) fn ids_found(&self) -> impl Iterator<Item = SegmentId> {
        self.found.iter().map(|(header, _)| header.segment)
    }

    /// Retains only the segments in effect, for a rebuilt index, and returns those that they replaced.
    pub(crate) fn retain_effective(&mut self) -> BTreeSet<SegmentId> {
        let is_gone = |input: &SegmentId| !self.present.contains(input);
        let counts = |origin: &Origin| origin.inputs.iter().any(is_gone);
        let superseded: BTreeSet<_> = self
            .found
            .iter()
            .filter(|(_, origin)| counts(origin))
            .flat_map(|(_, origin)| origin.inputs.iter().copied())
            .collect();
        let redundant: BTreeSet<_> = self
            .found
            .iter()
            .filter(|(_, origin)| !counts(origin))
            .map(|(header, _)| header.segment)
            .collect();
        let is_out = |id| redundant.contains(&id) || superseded.contains(&id);
        self.found.retain(|(header, _)| !is_out(header.segment));
        superseded
    }

    /// Returns the LSN ranges that the segments replace.
    pub(crate) fn lsn_ranges(&self) -> LsnRanges {
        let mut covers = LsnRanges::default();
        for (_, origin) in &self.found {
            covers.add_all(&origin.lsn_ranges);
        }
        covers
    }

    /// Returns all their records in LSN order.
    pub(super) fn merge(&self, segments: &Arc<SegmentSet>) -> SegmentMerge {
        let headers = self.found.iter().map(|(header, _)| *header).collect();
        let segments = Arc::clone(segments);
        SegmentMerge::new(headers, move |id| segments.records(id))
    }

    /// Registers the segments that the index refers to, before anything is read.
    pub(super) fn make_known(&self, segments: &SegmentSet) {
        for (header, _) in &self.found {
            segments.add_compacted(header.segment);
        }
    }

    /// Finishes compactions that were committed, but not finished when an existing index was written.
    pub(super) fn resume_unfinished(&self, replay: &mut Replay<'_>) -> Result<()> {
        for (header, origin) in &self.found {
            replay.finish_compaction(header.segment, &origin.inputs)?;
        }
        Ok(())
    }

    /// Returns whether an existing segment was replaced according to the log, but not according to the index on
    /// disk.
    pub(super) fn were_replaced(&self, view: &View) -> Result<bool> {
        for id in &self.present {
            let is_in_use = view.segment_usage(*id)?.is_some();
            if !is_in_use && view.checkpointed_usage(*id)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Removes unreferenced and replaced segments, unless something is damaged: then they may be the only copy.
    /// Segments that the index on disk still refers to remain until a checkpoint.
    pub(super) fn remove_leftovers(
        &self,
        segments: &SegmentSet,
        view: &View,
        report: &mut RecoveryReport,
    ) -> Result<()> {
        let mut leftovers = Vec::new();
        for id in &self.ids {
            let is_readable = self.found.iter().any(|(header, _)| header.segment == *id);
            if view.segment_usage(*id)?.is_none() {
                leftovers.push((*id, SegmentClass::Compacted));
            } else if !is_readable {
                let reason = Malformed::Checksum;
                report.add_damage(LogDamage { segment: *id, offset: 0, first_lsn: None, reason });
            }
        }
        for (header, origin) in &self.found {
            if view.segment_usage(header.segment)?.is_none() {
                continue;
            }
            for input in &origin.inputs {
                let is_log = segments.class_of(*input) == SegmentClass::Log;
                let is_there = self.present.contains(input);
                if is_log && is_there && view.segment_usage(*input)?.is_none() {
                    leftovers.push((*input, SegmentClass::Log));
                }
            }
        }
        for (id, class) in leftovers {
            if report.damage_count() > 0 || view.checkpointed_usage(id)?.is_some() {
                continue;
            }
            segments.retire(id, class);
            report.orphans_removed += 1;
        }
        Ok(())
    }
}
