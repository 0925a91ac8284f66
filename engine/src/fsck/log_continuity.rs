//! Checks the continuity of the log across segments: each segment continues its predecessor, and the log reaches the
//! position of the index.
//!
//! A gap in the log is a loss only beyond the position of the index. Before it, the index knows the objects of the
//! gap, which are found when names are compared.
//!
//! Non-goals: the content of the segments.

use std::collections::BTreeSet;

use super::check_state::Check;
use super::finding::{Remedy, Severity};
use super::parallel_check::CheckTask;
use super::survey::{SegmentSurvey, StoreSurvey};
use crate::error::{Error, Result};
use crate::format::{SegmentClass, SegmentHeader, SegmentId};
use crate::index::INDEX_FILE;
use crate::recovery::follows;
use crate::segment::LogPosition;

impl Check<'_, '_> {
    /// Returns whether compacted segment `id` is in use.
    fn is_in_use(&self, ground: &StoreSurvey, id: SegmentId) -> bool {
        match &self.index {
            Some(_) => self.counted(id).is_some() || ground.committed_later.contains(&id),
            None => !ground.redundant.contains(&id),
        }
    }

    /// Checks the log segments in order.
    pub(super) fn check_log(&mut self, ground: &mut StoreSurvey) -> Result<()> {
        let headers: Vec<SegmentHeader> = ground
            .segments
            .values()
            .filter(|held| held.class == SegmentClass::Log && held.is_in_effect())
            .filter_map(|held| held.header)
            .collect();
        let mut all = std::mem::take(&mut ground.segments);
        let segments = all.iter_mut().filter_map(|(id, held)| {
            let number = headers.binary_search_by_key(id, |header| header.segment).ok()?;
            let (header, later) = (*headers.get(number)?, headers.get(number + 1..)?);
            held.end = header.end_from_successors(later);
            Some(CheckTask { held, header, later })
        });
        let segments = segments.collect();
        let mut position = LogPosition::START;
        self.check_in_order(segments, |check, turns| {
            for header in &headers {
                check.check_link(ground, header, &position);
                match turns.next(check)? {
                    (held, Err(Error::Io { source, .. })) => check.unreadable(held, &source),
                    (_, checked) => {
                        let checked = checked?;
                        position = checked.position.unwrap_or(position);
                        ground.committed_later.extend(checked.committed);
                    }
                }
                check.segment_done()?;
            }
            Ok(())
        })?;
        ground.segments = all;
        if self.applied_lsn > position.lsn {
            let what = "the log ends before the position that the index has applied";
            self.gap(INDEX_FILE, 0, what, position.lsn + 1, self.applied_lsn);
        }
        let last = headers.last().map(|header| header.segment);
        if let Some(id) = ground.unreadable.iter().find(|id| Some(**id) > last) {
            let path = id.path(SegmentClass::Log);
            let what = "the last segment of the log is unreadable: its records are unknown";
            self.found(Severity::Loss, &path, 0, what, Remedy::SkipDamage);
        }
        Ok(())
    }

    /// Checks the compacted segments in effect.
    pub(super) fn check_compacted(&mut self, ground: &mut StoreSurvey) -> Result<()> {
        let ids: Vec<_> = ground.compacted().collect();
        let in_use: BTreeSet<_> =
            ids.iter().copied().filter(|id| self.is_in_use(ground, *id)).collect();
        let mut all = std::mem::take(&mut ground.segments);
        let mut pages = Vec::new();
        let mut segments = Vec::new();
        for (id, held) in all.iter_mut().filter(|(id, _)| ids.contains(id)) {
            held.is_superseded |= !in_use.contains(id);
            let header = held.header.filter(|_| in_use.contains(id));
            pages.push((
                *id,
                held.path.clone(),
                held.class,
                held.has_damaged_header_copy,
                header.is_some(),
            ));
            if let Some(header) = header {
                segments.push(CheckTask { held, header, later: &[] });
            }
        }
        self.check_in_order(segments, |check, turns| {
            for (id, path, class, is_page_torn, has_header) in pages {
                if !has_header && in_use.contains(&id) {
                    let what = "both header copies are corrupt: the segment is unreadable";
                    check.found(Severity::Note, &path, 0, what, Remedy::None);
                }
                if has_header {
                    if is_page_torn {
                        let what = "one of the two header copies is corrupt";
                        let remedy = Remedy::RewriteHeader { segment: id, class };
                        check.found(Severity::Repairable, &path, 0, what, remedy);
                    }
                    match turns.next(check)? {
                        (held, Err(Error::Io { source, .. })) => check.unreadable(held, &source),
                        (_, checked) => ground.committed_later.extend(checked?.committed),
                    }
                }
                check.segment_done()?;
            }
            Ok(())
        })?;
        ground.segments = all;
        Ok(())
    }

    fn check_link(&mut self, ground: &StoreSurvey, header: &SegmentHeader, position: &LogPosition) {
        if follows(header, position, &ground.lsn_ranges) {
            return;
        }
        let path = header.segment.path(SegmentClass::Log);
        if header.base_lsn > position.lsn + 1 {
            let what = "log records before this segment are missing";
            self.gap(&path, 0, what, position.lsn + 1, header.base_lsn - 1);
        } else if header.base_lsn <= position.lsn {
            let what = format!(
                "it begins with record {}, but the previous segment ends with {}",
                header.base_lsn, position.lsn
            );
            self.found(Severity::Loss, &path, 0, what, Remedy::None);
        } else {
            let what =
                "it does not begin exactly where the previous segment ends; no record is missing";
            self.found(Severity::Note, &path, 0, what, Remedy::None);
        }
    }

    /// Records that a range of the log is unreadable.
    pub(super) fn gap(&mut self, file: &str, offset: u64, what: &str, first: u64, last: u64) {
        if first > last {
            return;
        }
        self.gaps.add(first, last);
        let which = match first == last {
            true => format!("record {first}"),
            false => format!("records {first} to {last}"),
        };
        if self.index.is_some() && last <= self.applied_lsn {
            let what = format!("{what}: {which}. The index has their values");
            self.found(Severity::Note, file, offset, what, Remedy::None);
        } else {
            self.is_ignorant = true;
            let what = format!("{what}: {which}. What they changed is unknown");
            self.found(Severity::Loss, file, offset, what, Remedy::SkipDamage);
        }
    }

    fn unreadable(&mut self, held: &mut SegmentSurvey, why: &std::io::Error) {
        held.add_fault(0..held.file_bytes);
        let what = format!("I/O error while reading: {why}");
        self.found(Severity::Loss, &held.path, 0, what, Remedy::None);
    }
}
