//! The log as one: each segment goes on where the one before it ended, and the index knows no more than there is.
//!
//! What is missing is bad as far as nobody knows what it said. Up to where the index stands, the index knows: the
//! objects that were in the missing stretch are found when names are compared.
//! Never here: what lies in a segment.

use super::check::Check;
use super::finding::{Remedy, Severity};
use super::ground::Ground;
use crate::error::{Error, Result};
use crate::format::{SegmentClass, SegmentHeader};
use crate::index::INDEX_FILE;
use crate::recovery::follows;
use crate::segment::LogPosition;

impl Check<'_, '_> {
    /// Walks through the log.
    pub(super) fn check_log(&mut self, ground: &mut Ground) -> Result<()> {
        let headers: Vec<SegmentHeader> = ground
            .held
            .values()
            .filter(|held| held.class == SegmentClass::Log && held.counts())
            .filter_map(|held| held.header)
            .collect();
        let mut position = LogPosition::START;
        for (number, header) in headers.iter().enumerate() {
            let later = headers.get(number + 1..).unwrap_or_default();
            self.check_link(ground, header, &position);
            let Some(held) = ground.held.get_mut(&header.segment) else { continue };
            held.end = header.end_named_by(later);
            position = match self.check_groups(ground, header, later, position) {
                Err(Error::Io { source, .. }) => {
                    self.unreadable(ground, header, &source);
                    position
                }
                other => other?,
            };
            self.segment_done()?;
        }
        if self.applied_lsn > position.lsn {
            let what = "the log ends before the index does";
            self.gap(INDEX_FILE, 0, what, position.lsn + 1, self.applied_lsn);
        }
        let last = headers.last().map(|header| header.segment);
        if let Some(id) = ground.unreadable.iter().find(|id| Some(**id) > last) {
            let path = id.path(SegmentClass::Log);
            let what = "this is the last segment of the log: nobody knows what was written to it";
            self.found(Severity::Loss, &path, 0, what, Remedy::GoOn);
        }
        Ok(())
    }

    /// The compacted segments that count.
    pub(super) fn check_compacted(&mut self, ground: &mut Ground) -> Result<()> {
        let ids: Vec<_> = ground.compacted().collect();
        for id in ids {
            let is_in_use = self.is_in_use(ground, id);
            let Some(held) = ground.held.get_mut(&id) else { continue };
            match held.header {
                _ if !is_in_use => held.is_superseded = true,
                None => {
                    let path = held.path.clone();
                    let what = "both copies of the header are damaged: nothing in it can be read";
                    self.found(Severity::Note, &path, 0, what, Remedy::None);
                }
                Some(header) => {
                    if held.is_page_torn {
                        let path = held.path.clone();
                        let what = "one of the two copies of the header is damaged";
                        let remedy = Remedy::RewriteHeader { segment: id, class: held.class };
                        self.found(Severity::Repairable, &path, 0, what, remedy);
                    }
                    match self.check_groups(ground, &header, &[], LogPosition::START) {
                        Err(Error::Io { source, .. }) => self.unreadable(ground, &header, &source),
                        other => {
                            other?;
                        }
                    }
                }
            }
            self.segment_done()?;
        }
        Ok(())
    }

    fn check_link(&mut self, ground: &Ground, header: &SegmentHeader, position: &LogPosition) {
        if follows(header, position, &ground.covers) {
            return;
        }
        let path = header.segment.path(SegmentClass::Log);
        if header.base_lsn > position.lsn + 1 {
            let what = "something of the log before this segment is missing";
            self.gap(&path, 0, what, position.lsn + 1, header.base_lsn - 1);
        } else if header.base_lsn <= position.lsn {
            let what = format!(
                "it begins with record {}, but the segment before it ends with {}",
                header.base_lsn, position.lsn
            );
            self.found(Severity::Loss, &path, 0, what, Remedy::None);
        } else {
            let what =
                "it does not go on exactly where the segment before it ends; no record is missing";
            self.found(Severity::Note, &path, 0, what, Remedy::None);
        }
    }

    /// A stretch of the log cannot be read.
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
            let what = format!("{what}: {which}. The index knows what they said");
            self.found(Severity::Note, file, offset, what, Remedy::None);
        } else {
            self.is_ignorant = true;
            let what = format!("{what}: {which}. Nobody knows what they put or deleted");
            self.found(Severity::Loss, file, offset, what, Remedy::GoOn);
        }
    }

    fn unreadable(&mut self, ground: &mut Ground, header: &SegmentHeader, why: &std::io::Error) {
        if let Some(held) = ground.held.get_mut(&header.segment) {
            held.add_fault(0..held.file_bytes);
            let what = format!("the disk cannot read it: {why}");
            let path = held.path.clone();
            self.found(Severity::Loss, &path, 0, what, Remedy::None);
        }
    }
}
