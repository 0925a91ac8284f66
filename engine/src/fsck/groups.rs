//! Checks the footer, groups and bodies of one log or compacted segment.
//!
//! Torn tails and damage are distinguished as in recovery: something durable must confirm that the group was intact.
//! Here the position of the index is a confirmation too.
//!
//! Non-goals: whether a damaged record is live.

use std::sync::Arc;

use super::check_state::Check;
use super::finding::{Remedy, Severity};
use super::name_state::{SegmentOffset, hash_of};
use super::survey::{SegmentSurvey, read_up_to};
use super::suspect::{RecordDamage, RecordSubject, Suspect};
use crate::disk::DiskFile;
use crate::error::{Error, Result};
use crate::format::{
    BodyFault, Checksum, FooterDigest, FooterReader, FooterTrailer, Malformed, Record,
    RecordContent, RecordOp, ScannedRecord, SegmentClass, SegmentHeader, SegmentId, SegmentUsage,
    salvage,
};
use crate::segment::{
    GroupCursor, GroupStep, LogPosition, ReadGroup, RecordCursor, is_zero, read_footer,
};

/// Result of checking one segment, for the checks of the others.
pub(super) struct GroupsSummary {
    /// Log position after the segment; `None` if it has no complete group, so that the position is unchanged.
    pub(super) position: Option<LogPosition>,
    /// Compacted segments that it commits after the position of the index.
    pub(super) committed: Vec<SegmentId>,
}

/// Segment being checked.
struct GroupsCheck<'a> {
    id: SegmentId,
    header: &'a SegmentHeader,
    later: &'a [SegmentHeader],
    file: Arc<dyn DiskFile>,
    trailer: Option<FooterTrailer>,
}

impl GroupsCheck<'_> {
    /// Returns the log position after a group of this segment.
    fn after(&self, group: &ReadGroup, last_lsn: u64) -> LogPosition {
        LogPosition {
            lsn: last_lsn,
            segment: Some(self.id),
            offset: group.end,
            next_group: group.header.number + 1,
            previous_group: group.header_checksum,
        }
    }
}

impl Check<'_, '_> {
    /// Checks one segment.
    pub(super) fn check_groups(
        &mut self,
        held: &mut SegmentSurvey,
        header: &SegmentHeader,
        later: &[SegmentHeader],
    ) -> Result<GroupsSummary> {
        let id = header.segment;
        let file = self.open(&held.path)?;
        let trailer = read_footer(file.as_ref(), header)?;
        held.end = trailer.map(|trailer| trailer.footer_offset).or(held.end);
        let walking = GroupsCheck { id, header, later, file, trailer };
        let mut committed = Vec::new();
        let position = match walking.trailer {
            Some(trailer) if !self.deep && self.read_heads(held, &walking, &mut committed)? => {
                Some(end_of(id, &trailer))
            }
            _ => self.walk(held, &walking, &mut committed)?,
        };
        Ok(GroupsSummary { position, committed })
    }

    /// Reads an intact footer, and the values of facts. Returns false if the groups must be scanned instead.
    fn read_heads(
        &mut self,
        held: &mut SegmentSurvey,
        walking: &GroupsCheck<'_>,
        committed: &mut Vec<SegmentId>,
    ) -> Result<bool> {
        let file = Arc::clone(&walking.file);
        let mut cursor = RecordCursor::open(file, held.path.clone(), *walking.header, held.end)?;
        if !cursor.has_whole_footer() {
            return Ok(false);
        }
        while let Some(found) = cursor.step()? {
            if !cursor.has_whole_footer() {
                return Ok(false);
            }
            self.count(held, (walking.id, found.place.offset), &found.record, committed);
            if let RecordOp::PutFact { .. } = found.record.op
                && let Err(error) = cursor.read_body(&found)
            {
                let Error::Corrupt(corruption) = error else { return Err(error) };
                let at = (walking.id, found.place.offset);
                held.is_damaged = true;
                self.suspect(at, &found.record, corruption.offset, RecordDamage::Blocks);
            }
        }
        let footer = walking.trailer.map_or(0, |trailer| held.file_bytes - trailer.footer_offset);
        self.read_on(footer)?;
        Ok(true)
    }

    fn walk(
        &mut self,
        held: &mut SegmentSurvey,
        walking: &GroupsCheck<'_>,
        committed: &mut Vec<SegmentId>,
    ) -> Result<Option<LogPosition>> {
        let path = held.path.clone();
        (held.records, held.usage) = (0, SegmentUsage::empty(held.class));
        let end = held.end.unwrap_or(held.file_bytes).min(held.file_bytes);
        let file = Arc::clone(&walking.file);
        let mut walk = GroupCursor::new(file, path.clone(), walking.header, end)?.reading_ahead();
        let mut footer =
            walking.trailer.map(|trailer| FooterMatch { trailer, sum: FooterDigest::default() });
        let base_lsn = walking.header.base_lsn.saturating_sub(1);
        let mut position = LogPosition { lsn: base_lsn, ..LogPosition::START };
        let is_compacted = walking.header.class == SegmentClass::Compacted;
        let mut last_group = (walking.header.first_group, walking.header.previous_group);
        loop {
            let (start, first_lsn) = (walk.offset(), walk.next_lsn());
            let looked = walk.peek()?;
            let decoded = match &looked {
                GroupStep::Group(group) => group.view().map(|view| Some((group, view))),
                GroupStep::End => Ok(None),
                GroupStep::Broken(reason) => Err(*reason),
            };
            match decoded {
                Ok(None) => {
                    if let Some(known) = held.end.filter(|known| *known > start) {
                        held.add_fault(start..known);
                        let what = "the file ends inside its last group";
                        self.damaged_group(held, walking, start, what, first_lsn, None);
                    }
                    break;
                }
                Ok(Some((group, view))) => {
                    walk.advance(group, view.last_lsn());
                    let is_whole = view.verify_bodies().is_ok();
                    let is_vouched =
                        is_whole || self.is_known_durable(held, walking, &walk, first_lsn)?;
                    if !is_vouched {
                        self.torn(&path, start);
                        break;
                    }
                    for scanned in view.records() {
                        let at = (walking.id, scanned.address.offset);
                        self.count(held, at, &scanned.record, committed);
                        let verified = if is_whole { Ok(()) } else { scanned.verify_body() };
                        self.check_body(held, walking.id, scanned, verified);
                        if let Some(footer) = &mut footer {
                            footer.sum.push(scanned.address.offset, scanned.head);
                        }
                    }
                    self.read_on(group.end - group.start)?;
                    last_group = (group.header.number + 1, group.header_checksum);
                    position = walking.after(group, view.last_lsn());
                }
                Err(reason) => {
                    if !self.is_known_durable(held, walking, &walk, first_lsn)? {
                        if !(reason == Malformed::Magic && walk.is_blank_here()?) {
                            self.torn(&path, start);
                        }
                        break;
                    }
                    let next = walk.skip_to_next_header()?;
                    held.add_fault(start..walk.offset());
                    let what = format!("corrupt group: {reason}");
                    let next_lsn = next.map(|next| next.first_lsn);
                    self.damaged_group(held, walking, start, &what, first_lsn, next_lsn);
                    let (bytes, place) = walk.skipped(start)?;
                    for scanned in salvage(&bytes, place) {
                        if scanned.record.lsn >= first_lsn {
                            position.lsn = position.lsn.max(scanned.record.lsn);
                            let at = (walking.id, scanned.address.offset);
                            self.count(held, at, &scanned.record, committed);
                            self.check_body(held, walking.id, &scanned, scanned.verify_body());
                        }
                    }
                    self.read_on(walk.offset() - start)?;
                    if next.is_none() {
                        break;
                    }
                }
            }
            walk.recycle_buffer(looked);
        }
        if is_compacted {
            position.segment = None;
        }
        self.check_footer(held, walking, footer, &position, last_group)?;
        Ok(match walking.trailer {
            Some(trailer) => Some(end_of(walking.id, &trailer)),
            None if position.segment != Some(walking.id) => None,
            None => Some(position),
        })
    }

    fn check_footer(
        &mut self,
        held: &SegmentSurvey,
        walking: &GroupsCheck<'_>,
        footer: Option<FooterMatch>,
        position: &LogPosition,
        (next_group, previous_group): (u64, Checksum),
    ) -> Result<()> {
        let Some(footer) = footer else {
            return self.check_unsealed(held, walking);
        };
        let offset = footer.trailer.footer_offset;
        if !held.broken_ranges.is_empty() {
            let cursor = RecordCursor::open(
                Arc::clone(&walking.file),
                held.path.clone(),
                *walking.header,
                held.end,
            )?;
            if !cursor.has_whole_footer() {
                let what = "the footer is corrupt too, so its record heads are unavailable";
                self.found(Severity::Note, &held.path, offset, what, Remedy::None);
            }
            return Ok(());
        }
        if !footer.is_right(walking, position.lsn, next_group, previous_group)? {
            let what = "the footer contradicts the groups";
            let remedy = Remedy::Reseal { segment: walking.id, class: held.class, end: offset };
            // If power is cut while a footer is written, its end may become durable before its start.
            self.found(Severity::Note, &held.path, offset, what, remedy);
        }
        self.read_on(held.file_bytes.saturating_sub(offset))
    }

    /// Checks the end of a segment without footer, which is valid. A partial footer is an interrupted sealing, or
    /// damage.
    fn check_unsealed(&mut self, held: &SegmentSurvey, walking: &GroupsCheck<'_>) -> Result<()> {
        let Some(end) = held.end.filter(|_| held.broken_ranges.is_empty()) else { return Ok(()) };
        let io = |source| Error::io(format!("reading {}", held.path), source);
        if !is_zero(walking.file.as_ref(), end).map_err(io)? {
            let what = "the footer is incomplete; the groups are read instead";
            let remedy = Remedy::Reseal { segment: walking.id, class: held.class, end };
            self.found(Severity::Note, &held.path, end, what, remedy);
        }
        Ok(())
    }

    /// Returns whether something durable confirms that the record with this LSN was durable.
    fn is_known_durable(
        &self,
        held: &SegmentSurvey,
        walking: &GroupsCheck<'_>,
        walk: &GroupCursor,
        lsn: u64,
    ) -> Result<bool> {
        let by_later = walking.later.iter().any(|later| later.base_lsn > lsn);
        let by_index = self.index.is_some() && lsn <= self.applied_lsn;
        let is_known = held.end.is_some() || by_later || by_index;
        Ok(is_known || walk.is_durable_later(lsn)?)
    }

    fn torn(&mut self, path: &str, offset: u64) {
        let what = "a torn write at the end, never acknowledged; opening the store truncates it";
        self.found(Severity::Note, path, offset, what, Remedy::None);
    }

    /// Reports a broken group that was acknowledged. With an intact footer its heads are still readable.
    fn damaged_group(
        &mut self,
        held: &SegmentSurvey,
        walking: &GroupsCheck<'_>,
        offset: u64,
        what: &str,
        first_lsn: u64,
        next_lsn: Option<u64>,
    ) {
        let is_repeated = walking.trailer.is_some()
            && RecordCursor::open(
                Arc::clone(&walking.file),
                held.path.clone(),
                *walking.header,
                held.end,
            )
            .is_ok_and(|cursor| cursor.has_whole_footer());
        let is_compacted = held.class == SegmentClass::Compacted;
        if is_repeated || is_compacted && self.index.is_some() {
            self.found(Severity::Note, &held.path, offset, what, Remedy::None);
            return;
        }
        let by_later = walking.later.first().map(|later| later.base_lsn);
        let by_footer = walking.trailer.map(|trailer| trailer.last_lsn + 1);
        let behind = next_lsn.or(by_footer).or(by_later).unwrap_or(first_lsn + 1);
        self.gap(&held.path, offset, what, first_lsn, behind.saturating_sub(1).max(first_lsn));
    }

    fn count(
        &mut self,
        held: &mut SegmentSurvey,
        at: SegmentOffset,
        record: &Record,
        committed: &mut Vec<SegmentId>,
    ) {
        held.records += 1;
        self.names.collect(&mut self.name_batch, record, at, self.applied_lsn);
        if record.lsn <= self.applied_lsn {
            held.usage.add(record);
            if let RecordOp::HolePunch { segment, bytes } = record.op {
                self.punched.entry(segment).or_default().insert(record.lsn, bytes);
            }
        } else if let RecordOp::Compaction { outputs, .. } = &record.op {
            committed.extend(outputs);
        }
    }

    fn check_body(
        &mut self,
        held: &mut SegmentSurvey,
        id: SegmentId,
        scanned: &ScannedRecord<'_>,
        verified: Result<(), BodyFault>,
    ) {
        let at = (id, scanned.address.offset);
        match (verified, &scanned.record.op) {
            (Err(fault), what) => {
                // A fact without its value is lost, and is not counted.
                held.is_damaged |= matches!(what, RecordOp::PutFact { .. });
                self.suspect(at, &scanned.record, fault.offset, RecordDamage::Blocks);
            }
            (Ok(()), RecordOp::Put { meta, content: RecordContent::Inline { .. }, .. })
                if self.deep && *blake3::hash(scanned.body).as_bytes() != meta.hash =>
            {
                self.suspect(at, &scanned.record, scanned.address.offset, RecordDamage::Hash);
            }
            _ => {}
        }
    }

    /// Adds a damaged record.
    pub(super) fn suspect(
        &mut self,
        at: SegmentOffset,
        record: &Record,
        offset: u64,
        what: RecordDamage,
    ) {
        let of = match &record.op {
            RecordOp::Put { name, .. } => RecordSubject::Object(name.clone()),
            RecordOp::PutFact { name, .. } => RecordSubject::Fact(name.clone()),
            _ => return,
        };
        let Some(hash) = hash_of(record) else { return };
        self.add_suspect(at, Suspect { of, hash, lsn: record.lsn, offset, what });
    }
}

fn end_of(segment: SegmentId, trailer: &FooterTrailer) -> LogPosition {
    LogPosition {
        lsn: trailer.last_lsn,
        segment: Some(segment),
        offset: trailer.footer_offset,
        next_group: trailer.next_group,
        previous_group: trailer.previous_group,
    }
}

/// Footer expected from the groups, and the footer found.
struct FooterMatch {
    trailer: FooterTrailer,
    sum: FooterDigest,
}

impl FooterMatch {
    /// Returns whether the footer matches the groups and its entries are intact.
    fn is_right(
        &self,
        walking: &GroupsCheck<'_>,
        last_lsn: u64,
        next_group: u64,
        previous_group: Checksum,
    ) -> Result<bool> {
        if !self.sum.matches(&self.trailer, last_lsn, next_group, previous_group) {
            return Ok(false);
        }
        let mut reader = FooterReader::new(&self.trailer, walking.header.context());
        while let Some((offset, bytes)) = reader.next_range() {
            let piece = read_up_to(walking.file.as_ref(), offset, bytes).map_err(|source| {
                let path = walking.id.path(walking.header.class);
                Error::io(format!("reading {path}"), source)
            })?;
            if piece.len() != bytes || reader.feed(&piece).is_err() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
