//! Replays one log segment and tells a torn tail from damage.
//!
//! A group that is broken at LSN x was never acknowledged unless something durable confirms x: a later group header
//! in the file, a later segment (begun only after all before it is durable), or a footer. With a confirmation it is
//! damage: the scan continues after it and nothing is truncated. Otherwise it is a torn tail, and the log ends
//! before x.
//!
//! If only bodies of a group are corrupt, all its records are replayed; which of these bodies are damage is decided
//! at the end of the log.

use std::sync::Arc;

use super::report::{LogDamage, RecoveryReport};
use crate::disk::DiskFile;
use crate::error::{Error, Result};
use crate::format::{
    BodyFault, FooterEntries, FooterReader, FooterTrailer, GroupView, LsnRanges, Malformed,
    RecordOp, ScannedRecord, SegmentClass, SegmentContext, SegmentHeader, salvage,
};
use crate::replay::{Replay, location};
use crate::segment::{
    CursorFault, GroupCursor, GroupStep, LogPosition, ReadGroup, SegmentSet, read_footer,
};

/// Replay of one segment.
pub(super) struct SegmentReplay<'a> {
    pub(super) segments: &'a SegmentSet,
    pub(super) header: &'a SegmentHeader,
    /// Later log segments.
    pub(super) successors: &'a [SegmentHeader],
    /// LSN ranges that compacted segments replace.
    pub(super) lsn_ranges: &'a LsnRanges,
}

impl SegmentReplay<'_> {
    /// Replays the segment from the position of `replay`, and seals it if needed.
    pub(super) fn run(self, replay: &mut Replay<'_>, report: &mut RecoveryReport) -> Result<()> {
        let path = self.header.segment.path(SegmentClass::Log);
        let file = self
            .segments
            .disk()
            .open(&path)
            .map_err(|source| Error::io(format!("opening {path}"), source))?;
        let footer = read_footer(file.as_ref(), self.header)?;
        let is_first_seen = replay.position().segment != Some(self.header.segment);
        if is_first_seen {
            self.join(replay, report);
        }
        if let Some(footer) = &footer
            && is_first_seen
            && self.replay_footer(file.as_ref(), footer, replay)?
        {
            return Ok(());
        }
        let length = file.bytes_len();
        let length = length.map_err(|source| Error::io(format!("reading {path}"), source))?;
        let end = match (&footer, self.header.end_from_successors(self.successors)) {
            (Some(footer), _) => footer.footer_offset,
            (None, Some(end)) => end.min(length),
            (None, None) => length,
        };
        let walk = GroupCursor::new(Arc::clone(&file), path, self.header, end)?;
        let at = replay.position();
        if !is_first_seen && at.offset > end {
            self.report(report, end, at.lsn, Malformed::Short);
            return leave_unsealed(self.segments, self.header);
        }
        let walk = if is_first_seen {
            walk
        } else {
            walk.starting_at(at.offset, at.next_group, at.lsn + 1, at.previous_group)
        };
        let damage_before = report.damage_count();
        let last = self.walk(walk, footer.as_ref(), replay, report)?;
        if footer.is_some() {
            return Ok(());
        }
        if let Some(last) = last {
            // The sync of these bytes may have failed, and then they are only in the page cache, without a later
            // error. Writing them again makes them durable.
            let written =
                file.write_at(last.start, &[last.bytes()]).and_then(|()| file.sync_data());
            let path = self.header.segment.path(SegmentClass::Log);
            written.map_err(|source| Error::io(format!("writing {path}"), source))?;
        }
        if report.damage_count() > damage_before {
            return leave_unsealed(self.segments, self.header);
        }
        if replay.position().segment == Some(self.header.segment) {
            return super::seal_at(self.segments, self.header, replay.position().offset, report);
        }
        // No group of this segment was completed.
        self.segments.retire(self.header.segment, SegmentClass::Log);
        report.orphans_removed += 1;
        Ok(())
    }

    /// Checks that the segment continues the log; otherwise records before it are missing.
    fn join(&self, replay: &mut Replay<'_>, report: &mut RecoveryReport) {
        let position = replay.position();
        if !follows(self.header, &position, self.lsn_ranges) {
            report.add_damage(LogDamage {
                segment: self.header.segment,
                offset: 0,
                first_lsn: Some(position.lsn + 1),
                reason: Malformed::Chain,
            });
        }
    }

    /// Applies the entries of the footer. Returns false, with nothing applied, if the footer is damaged, which is
    /// reported: then the groups are scanned.
    fn replay_footer(
        &self,
        file: &dyn DiskFile,
        footer: &FooterTrailer,
        replay: &mut Replay<'_>,
    ) -> Result<bool> {
        let context = self.header.context();
        let path = self.header.segment.path(SegmentClass::Log);
        let bytes = match read_entries(file, &path, footer, context)? {
            Ok(bytes) => bytes,
            Err(reason) => {
                let error = Error::corrupt(path, footer.footer_offset, reason);
                self.segments.reported_corruption().add(&error);
                return Ok(false);
            }
        };
        let io = |source| Error::io(format!("reading {path}"), source);
        for entry in FooterEntries::new(&bytes, context).flatten() {
            let place = location(self.header.segment, entry.offset, entry.head_bytes as usize)?;
            let mut value = Vec::new();
            if let RecordOp::PutFact { bytes, .. } = entry.record.op {
                value = vec![0; bytes as usize];
                let value_at = entry.offset + u64::from(entry.head_bytes);
                file.read_at(value_at, &mut value).map_err(io)?;
                if let Err(fault) = entry.record.verify_body(context.at(entry.offset), &value) {
                    replay.apply_damaged(entry.record, place, damaged(fault))?;
                    continue;
                }
            }
            replay.apply(entry.record, place, &value)?;
        }
        replay.reach(self.end_of(footer))?;
        Ok(true)
    }

    fn end_of(&self, footer: &FooterTrailer) -> LogPosition {
        LogPosition {
            lsn: footer.last_lsn,
            segment: Some(self.header.segment),
            offset: footer.footer_offset,
            next_group: footer.next_group,
            previous_group: footer.previous_group,
        }
    }

    fn walk(
        &self,
        mut walk: GroupCursor,
        footer: Option<&FooterTrailer>,
        replay: &mut Replay<'_>,
        report: &mut RecoveryReport,
    ) -> Result<Option<ReadGroup>> {
        let mut last = None;
        loop {
            let start = walk.offset();
            let first_lsn = walk.next_lsn();
            match walk.step()? {
                GroupStep::End => return Ok(last),
                GroupStep::Group(group) => {
                    let view = group.view().map_err(|reason| {
                        let path = self.header.segment.path(SegmentClass::Log);
                        Error::corrupt(path, start, reason)
                    })?;
                    let is_whole = view.verify_bodies().is_ok();
                    if !is_whole && !self.is_known_durable(&walk, footer, first_lsn)? {
                        report.torn_tail = Some((self.header.segment, start));
                        return Ok(last);
                    }
                    self.apply(&group, view, is_whole, replay)?;
                    last = Some(group);
                }
                GroupStep::Broken(reason) => {
                    if !self.is_known_durable(&walk, footer, first_lsn)? {
                        let blank = matches!(reason, Malformed::Magic) && walk.is_blank_here()?;
                        if !blank {
                            report.torn_tail = Some((self.header.segment, start));
                        }
                        return Ok(last);
                    }
                    self.report(report, start, first_lsn, reason);
                    let next = walk.skip_to_next_header()?;
                    self.apply_salvaged(&walk, start, first_lsn, replay)?;
                    if next.is_none() {
                        if let Some(footer) = footer {
                            replay.reach(self.end_of(footer))?;
                        }
                        return Ok(last);
                    }
                }
            }
        }
    }

    /// Applies a group, with or without corrupt bodies.
    fn apply(
        &self,
        group: &ReadGroup,
        view: GroupView<'_>,
        is_whole: bool,
        replay: &mut Replay<'_>,
    ) -> Result<()> {
        let header = group.header;
        for scanned in view.into_records() {
            let place = location(self.header.segment, scanned.address.offset, scanned.head_bytes)?;
            let verified = if is_whole { Ok(()) } else { scanned.verify_body() };
            match verified {
                Ok(()) => replay.apply(scanned.record, place, scanned.body)?,
                Err(fault) => replay.apply_damaged(scanned.record, place, damaged(fault))?,
            }
        }
        replay.reach(LogPosition {
            lsn: header.last_lsn(),
            segment: Some(self.header.segment),
            offset: group.end,
            next_group: header.number + 1,
            previous_group: group.header_checksum,
        })
    }

    /// Applies the salvaged records of a damaged group, which are served; reads verify their bodies.
    fn apply_salvaged(
        &self,
        walk: &GroupCursor,
        start: u64,
        first_lsn: u64,
        replay: &mut Replay<'_>,
    ) -> Result<()> {
        let (bytes, place) = walk.skipped(start)?;
        for scanned in salvage(&bytes, place) {
            if scanned.record.lsn >= first_lsn && !is_lost(&scanned) {
                let place =
                    location(self.header.segment, scanned.address.offset, scanned.head_bytes)?;
                replay.apply(scanned.record, place, scanned.body)?;
            }
        }
        Ok(())
    }

    /// Returns whether something durable confirms that the record with this LSN was durable.
    fn is_known_durable(
        &self,
        walk: &GroupCursor,
        footer: Option<&FooterTrailer>,
        lsn: u64,
    ) -> Result<bool> {
        // If a compacted segment replaces everything in between, the segment may end here.
        let by_successor = self.successors.iter().find(|later| later.base_lsn > lsn);
        let by_successor =
            by_successor.is_some_and(|later| !self.lsn_ranges.contains(lsn, later.base_lsn - 1));
        let by_footer = footer.is_some_and(|footer| footer.last_lsn >= lsn);
        Ok(by_successor || by_footer || walk.is_durable_later(lsn)?)
    }

    fn report(&self, report: &mut RecoveryReport, offset: u64, first_lsn: u64, reason: Malformed) {
        let segment = self.header.segment;
        report.add_damage(LogDamage { segment, offset, first_lsn: Some(first_lsn), reason });
    }
}

/// Returns the entries of a footer if all of them are intact. Fails if the remote store does.
fn read_entries(
    file: &dyn DiskFile,
    path: &str,
    footer: &FooterTrailer,
    context: SegmentContext,
) -> Result<Result<Vec<u8>, Malformed>> {
    let mut reader = FooterReader::new(footer, context);
    let mut bytes = Vec::new();
    while let Some((offset, wanted)) = reader.next_range() {
        let mut piece = vec![0; wanted];
        if let Err(source) = file.read_at(offset, &mut piece) {
            return match Error::io(format!("reading {path}"), source) {
                error @ Error::RemoteUnavailable(_) => Err(error),
                _ => Ok(Err(Malformed::Unreadable)),
            };
        }
        match reader.feed(&piece) {
            Ok(entries) => bytes.extend(entries),
            Err(reason) => return Ok(Err(reason)),
        }
    }
    Ok(count_entries(&bytes, footer, context).map(|()| bytes))
}

fn count_entries(
    bytes: &[u8],
    footer: &FooterTrailer,
    context: SegmentContext,
) -> Result<(), Malformed> {
    let mut count = 0;
    for entry in FooterEntries::new(bytes, context) {
        entry?;
        count += 1;
    }
    if count == footer.entry_count { Ok(()) } else { Err(Malformed::Count) }
}

/// Returns whether a segment continues the log position, directly or after a range that compacted segments replace.
pub(crate) fn follows(header: &SegmentHeader, position: &LogPosition, covers: &LsnRanges) -> bool {
    let follows = header.base_lsn == position.lsn + 1
        && header.first_group == position.next_group
        && header.previous_group == position.previous_group
        && header.predecessor.map(|before| (before.segment, before.end))
            == position.segment.map(|segment| (segment, position.offset));
    let is_compacted_before = header.base_lsn > position.lsn + 1
        && covers.contains(position.lsn + 1, header.base_lsn - 1);
    follows || is_compacted_before
}

fn damaged(body: BodyFault) -> CursorFault {
    CursorFault { offset: body.offset, first_lsn: body.lsn, reason: Malformed::Checksum }
}

/// Returns whether the record is lost: a fact with a corrupt value is; an object is not, because reads of its key
/// return a corruption error.
fn is_lost(scanned: &ScannedRecord<'_>) -> bool {
    matches!(scanned.record.op, RecordOp::PutFact { .. }) && scanned.verify_body().is_err()
}

/// Seals a segment whose records are all in the index, if a crash prevented its footer.
pub(super) fn seal_if_needed(
    segments: &SegmentSet,
    header: &SegmentHeader,
    successors: &[SegmentHeader],
    report: &mut RecoveryReport,
) -> Result<()> {
    let path = header.segment.path(SegmentClass::Log);
    let file = segments.disk().open(&path);
    let file = file.map_err(|source| Error::io(format!("opening {path}"), source))?;
    if read_footer(file.as_ref(), header)?.is_some() {
        return Ok(());
    }
    match header.end_from_successors(successors) {
        Some(end) => super::seal_at(segments, header, end, report),
        None => leave_unsealed(segments, header),
    }
}

/// Registers a segment as readable without a footer.
pub(super) fn leave_unsealed(segments: &SegmentSet, header: &SegmentHeader) -> Result<()> {
    let path = header.segment.path(SegmentClass::Log);
    let file = segments.disk().open(&path);
    let file = file.map_err(|source| Error::io(format!("opening {path}"), source))?;
    segments.register_unsealed(*header, file);
    Ok(())
}
