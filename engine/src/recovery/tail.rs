//! Replaying one segment of the log, and deciding what its end means.
//!
//! A group that is broken at LSN x was never acknowledged unless something durable says that x was: a later group
//! header in the file, a later segment (one is begun only when all before it is durable), or a footer. Then it is
//! damage: the walk goes on behind it and nothing is cut. Else it is a torn tail, and the log ends before x.
//! Of a group whose bodies alone are broken, every record is replayed; which of these bodies are damage is seen at the
//! end of the log.

use std::sync::Arc;

use super::report::{LogDamage, RecoveryReport};
use crate::disk::DiskFile;
use crate::error::{Error, Result};
use crate::format::{
    BodyFault, Covers, FooterEntries, FooterReader, FooterTrailer, GroupView, Malformed, Scanned,
    SegmentClass, SegmentContext, SegmentHeader, What, salvage,
};
use crate::replay::{Replay, location};
use crate::segment::{
    CursorFault, GroupRead, LogPosition, LogWalk, SegmentSet, Walked, read_footer,
};

/// One segment to be replayed.
pub(super) struct SegmentReplay<'a> {
    pub(super) segments: &'a SegmentSet,
    pub(super) header: &'a SegmentHeader,
    /// The segments after it.
    pub(super) successors: &'a [SegmentHeader],
    /// The stretches of the log that compacted segments stand for.
    pub(super) covers: &'a Covers,
}

impl SegmentReplay<'_> {
    /// Replays the segment from where `replay` stands, and seals it where it needs that.
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
        let end = match (&footer, self.header.end_named_by(self.successors)) {
            (Some(footer), _) => footer.footer_offset,
            (None, Some(end)) => end.min(length),
            (None, None) => length,
        };
        let walk = LogWalk::new(Arc::clone(&file), path, self.header, end)?;
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
            // The sync that was to cover it may have failed, and then what is read here is in memory only, and no later
            // sync says so. Written again, it is durable.
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
        // It was begun, but no group in it was ever finished.
        self.segments.retire(self.header.segment, SegmentClass::Log);
        report.orphans_removed += 1;
        Ok(())
    }

    /// Checks that the segment goes on where the log stands; where it does not, something before it is missing.
    fn join(&self, replay: &mut Replay<'_>, report: &mut RecoveryReport) {
        let position = replay.position();
        if !follows(self.header, &position, self.covers) {
            report.add_damage(LogDamage {
                segment: self.header.segment,
                offset: 0,
                first_lsn: Some(position.lsn + 1),
                reason: Malformed::Chain,
            });
        }
    }

    /// Applies what a footer repeats. False, with nothing applied, when the footer is damaged, which is told of: then
    /// the groups are walked.
    fn replay_footer(
        &self,
        file: &dyn DiskFile,
        footer: &FooterTrailer,
        replay: &mut Replay<'_>,
    ) -> Result<bool> {
        let context = self.header.context();
        let path = self.header.segment.path(SegmentClass::Log);
        let bytes = match read_entries(file, footer, context) {
            Ok(bytes) => bytes,
            Err(reason) => {
                let error = Error::corrupt(path, footer.footer_offset, reason);
                self.segments.sightings().add(&error);
                return Ok(false);
            }
        };
        let io = |source| Error::io(format!("reading {path}"), source);
        for entry in FooterEntries::new(&bytes, context).flatten() {
            let place = location(self.header.segment, entry.offset, entry.head_bytes as usize)?;
            let mut value = Vec::new();
            if let What::Fact { bytes, .. } = entry.record.what {
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
        mut walk: LogWalk,
        footer: Option<&FooterTrailer>,
        replay: &mut Replay<'_>,
        report: &mut RecoveryReport,
    ) -> Result<Option<GroupRead>> {
        let mut last = None;
        loop {
            let start = walk.offset();
            let first_lsn = walk.next_lsn();
            match walk.step()? {
                Walked::End => return Ok(last),
                Walked::Group(group) => {
                    let view = group.view().map_err(|reason| {
                        let path = self.header.segment.path(SegmentClass::Log);
                        Error::corrupt(path, start, reason)
                    })?;
                    let is_whole = view.verify_bodies().is_ok();
                    if !is_whole && !self.is_vouched(&walk, footer, first_lsn)? {
                        report.torn_tail = Some((self.header.segment, start));
                        return Ok(last);
                    }
                    self.apply(&group, view, is_whole, replay)?;
                    last = Some(group);
                }
                Walked::Broken(reason) => {
                    if !self.is_vouched(&walk, footer, first_lsn)? {
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

    /// Applies a group, all bodies of which are what was written, or not all of them.
    fn apply(
        &self,
        group: &GroupRead,
        view: GroupView<'_>,
        is_whole: bool,
        replay: &mut Replay<'_>,
    ) -> Result<()> {
        let header = group.header;
        for scanned in view.into_records() {
            let place = location(self.header.segment, scanned.place.offset, scanned.head_bytes)?;
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

    /// What is left of a damaged group is served; what reads an object checks its body.
    fn apply_salvaged(
        &self,
        walk: &LogWalk,
        start: u64,
        first_lsn: u64,
        replay: &mut Replay<'_>,
    ) -> Result<()> {
        let (bytes, place) = walk.skipped(start)?;
        for scanned in salvage(&bytes, place) {
            if scanned.record.lsn >= first_lsn && !is_lost(&scanned) {
                let place =
                    location(self.header.segment, scanned.place.offset, scanned.head_bytes)?;
                replay.apply(scanned.record, place, scanned.body)?;
            }
        }
        Ok(())
    }

    /// Whether something durable says that the record with this LSN was.
    fn is_vouched(&self, walk: &LogWalk, footer: Option<&FooterTrailer>, lsn: u64) -> Result<bool> {
        // Where a compacted segment stands for all that lies between, the segment may well end here.
        let by_successor = self.successors.iter().find(|later| later.base_lsn > lsn);
        let by_successor =
            by_successor.is_some_and(|later| !self.covers.contain(lsn, later.base_lsn - 1));
        let by_footer = footer.is_some_and(|footer| footer.last_lsn >= lsn);
        Ok(by_successor || by_footer || walk.vouched_later(lsn)?)
    }

    fn report(&self, report: &mut RecoveryReport, offset: u64, first_lsn: u64, reason: Malformed) {
        let segment = self.header.segment;
        report.add_damage(LogDamage { segment, offset, first_lsn: Some(first_lsn), reason });
    }
}

/// The entries of a footer, if all of them are what was written.
fn read_entries(
    file: &dyn DiskFile,
    footer: &FooterTrailer,
    context: SegmentContext,
) -> Result<Vec<u8>, Malformed> {
    let mut reader = FooterReader::new(footer, context);
    let mut bytes = Vec::new();
    while let Some((offset, wanted)) = reader.wanted() {
        let mut piece = vec![0; wanted];
        file.read_at(offset, &mut piece).map_err(|_| Malformed::Unreadable)?;
        bytes.extend(reader.take(piece)?);
    }
    let mut count = 0;
    for entry in FooterEntries::new(&bytes, context) {
        entry?;
        count += 1;
    }
    if count == footer.entry_count { Ok(bytes) } else { Err(Malformed::Count) }
}

/// Whether a segment goes on where the log stands, or where compacted segments that stand for what is between end.
pub(crate) fn follows(header: &SegmentHeader, position: &LogPosition, covers: &Covers) -> bool {
    let follows = header.base_lsn == position.lsn + 1
        && header.first_group == position.next_group
        && header.previous_group == position.previous_group
        && header.predecessor.map(|before| (before.segment, before.end))
            == position.segment.map(|segment| (segment, position.offset));
    let is_compacted_before =
        header.base_lsn > position.lsn + 1 && covers.contain(position.lsn + 1, header.base_lsn - 1);
    follows || is_compacted_before
}

fn damaged(body: BodyFault) -> CursorFault {
    CursorFault { offset: body.offset, first_lsn: body.lsn, reason: Malformed::Checksum }
}

/// A fact whose value is damaged is lost; an object is not, because its key answers that it is damaged.
fn is_lost(scanned: &Scanned<'_>) -> bool {
    matches!(scanned.record.what, What::Fact { .. }) && scanned.verify_body().is_err()
}

/// Seals a segment whose records are all in the index, when a crash came before its footer.
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
    match header.end_named_by(successors) {
        Some(end) => super::seal_at(segments, header, end, report),
        None => leave_unsealed(segments, header),
    }
}

/// Keeps a segment readable without a footer.
pub(super) fn leave_unsealed(segments: &SegmentSet, header: &SegmentHeader) -> Result<()> {
    let path = header.segment.path(SegmentClass::Log);
    let file = segments.disk().open(&path);
    let file = file.map_err(|source| Error::io(format!("opening {path}"), source))?;
    segments.add_growing(*header, file);
    Ok(())
}
