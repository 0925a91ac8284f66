//! Scrubs a log or compacted segment: groups with their bodies, then the footer.

use std::sync::Arc;

use super::segment_scrub::SegmentFile;
use super::{DamageCollector, ScrubContext, fault};
use crate::error::{Error, Result};
use crate::format::{
    Checksum, FOOTER_TRAILER_BYTES, FooterDigest, FooterReader, FooterTrailer, Malformed,
    RecordContent, RecordName, RecordOp, SEGMENT_HEADER_BYTES, ScannedRecord,
};
use crate::index::View;
use crate::segment::{GroupCursor, GroupStep, ReadGroup};

/// Scrub of a log or compacted segment.
pub(super) struct LogScrub {
    walk: GroupCursor,
    /// Whether everything up to the end must be groups.
    end_is_known: bool,
    file_bytes: u64,
    footer: Option<FooterTrailer>,
    /// Expected footer, as long as all groups were intact.
    expected: Option<Expected>,
    phase: Phase,
}

enum Phase {
    Groups,
    Footer(Box<FooterReader>),
    Done,
}

struct Expected {
    footer: FooterDigest,
    last_lsn: u64,
    next_group: u64,
    previous_group: Checksum,
}

impl LogScrub {
    /// Reads the end of the segment; `None` if it is unreadable.
    pub(super) fn begin(
        of: &SegmentFile,
        is_growing: bool,
        end: Option<u64>,
        findings: &mut DamageCollector,
    ) -> Result<Option<Self>> {
        let io = |source| Error::io(format!("reading {}", of.path), source);
        let file_bytes = of.file.bytes_len().map_err(io)?;
        let footer = match end {
            Some(_) => None,
            None => Self::read_footer(of, file_bytes, is_growing, findings)?,
        };
        let walk_end = footer.map(|footer| footer.footer_offset).or(end);
        let walk = match GroupCursor::new(
            Arc::clone(&of.file),
            of.path.clone(),
            &of.header,
            walk_end.unwrap_or(file_bytes),
        ) {
            Ok(walk) => walk,
            Err(error) => {
                let (offset, reason) = fault(error, SEGMENT_HEADER_BYTES as u64)?;
                findings.structure(offset, None, reason);
                findings.unclear.push(0..u64::MAX);
                return Ok(None);
            }
        };
        let expected = footer.map(|_| Expected {
            footer: FooterDigest::default(),
            last_lsn: of.header.base_lsn.saturating_sub(1),
            next_group: of.header.first_group,
            previous_group: of.header.previous_group,
        });
        let end_is_known = walk_end.is_some();
        let phase = Phase::Groups;
        Ok(Some(Self { walk, end_is_known, file_bytes, footer, expected, phase }))
    }

    fn read_footer(
        of: &SegmentFile,
        file_bytes: u64,
        is_growing: bool,
        findings: &mut DamageCollector,
    ) -> Result<Option<FooterTrailer>> {
        let at = file_bytes.saturating_sub(FOOTER_TRAILER_BYTES as u64);
        let decoded = of.read(at, FOOTER_TRAILER_BYTES as u64)?.and_then(|bytes| {
            let place = of.header.context().at(at);
            FooterTrailer::decode(&bytes, place).map_err(|reason| (at, reason))
        });
        match decoded {
            Ok(footer) => Ok(Some(footer)),
            // A segment that could not be sealed has no footer.
            Err(_) if is_growing => Ok(None),
            Err((offset, reason)) => {
                findings.structure(offset, None, reason);
                Ok(None)
            }
        }
    }

    /// Reads one piece and returns its length; `None` at the end.
    pub(super) fn step(
        &mut self,
        store: &ScrubContext,
        of: &SegmentFile,
        findings: &mut DamageCollector,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Option<u64>> {
        match &mut self.phase {
            Phase::Groups => self.step_groups(store, of, findings, stopped).map(Some),
            Phase::Footer(_) => self.step_footer(of, findings),
            Phase::Done => Ok(None),
        }
    }

    fn step_groups(
        &mut self,
        store: &ScrubContext,
        of: &SegmentFile,
        findings: &mut DamageCollector,
        stopped: &dyn Fn() -> bool,
    ) -> Result<u64> {
        let start = self.walk.offset();
        let first_lsn = self.walk.next_lsn();
        match self.walk.step() {
            Ok(GroupStep::Broken(_)) | Err(Error::Corrupt(_)) if self.was_sealed(of) => {
                self.phase = Phase::Done;
            }
            Ok(GroupStep::End) => self.end_groups(findings),
            Ok(GroupStep::Group(group)) => self.check_group(store, &group, findings)?,
            Ok(GroupStep::Broken(reason)) => {
                match self.resume_after(start, first_lsn, reason, findings, stopped) {
                    Ok(()) => {}
                    // Sealed during the search for later groups.
                    Err(Error::Corrupt(_)) if self.was_sealed(of) => self.phase = Phase::Done,
                    Err(error) => self.give_up(error, start, findings)?,
                }
            }
            Err(error) => self.give_up(error, start, findings)?,
        }
        Ok(self.walk.offset().saturating_sub(start))
    }

    /// Returns whether the segment was sealed and truncated after its footer since the scrub began: then its groups
    /// ended at the current position.
    fn was_sealed(&self, of: &SegmentFile) -> bool {
        !self.end_is_known && of.file.bytes_len().is_ok_and(|bytes| bytes != self.file_bytes)
    }

    /// Handles a position without an intact group: damage, unless the groups may have ended here.
    fn resume_after(
        &mut self,
        start: u64,
        first_lsn: u64,
        reason: Malformed,
        findings: &mut DamageCollector,
        stopped: &dyn Fn() -> bool,
    ) -> Result<()> {
        if !self.end_is_known && !self.walk.is_durable_later_unless(first_lsn, stopped)? {
            // If the footer is damaged, so may be the groups before it.
            findings.unclear.push(start..self.file_bytes);
            self.phase = Phase::Done;
            return Ok(());
        }
        self.expected = None;
        findings.structure(start, Some(first_lsn), reason);
        self.walk.skip_to_next_header_unless(stopped)?;
        findings.unclear.push(start..self.walk.offset());
        Ok(())
    }

    /// Gives up on the rest of the groups, which cannot be read.
    fn give_up(&mut self, error: Error, start: u64, findings: &mut DamageCollector) -> Result<()> {
        let (offset, reason) = fault(error, start)?;
        findings.structure(offset, None, reason);
        findings.unclear.push(start..u64::MAX);
        self.phase = Phase::Done;
        Ok(())
    }

    fn check_group(
        &mut self,
        store: &ScrubContext,
        group: &ReadGroup,
        findings: &mut DamageCollector,
    ) -> Result<()> {
        let Ok(view) = group.view() else { return Ok(()) };
        let faulty = store.read_checked(|index| {
            let mut faulty = Vec::new();
            for scanned in view.records() {
                let fault = check_body(scanned);
                if let Some((offset, name)) = fault
                    && is_live(index, scanned)?
                {
                    faulty.push((offset, scanned.record.lsn, name));
                }
            }
            Ok(faulty)
        })?;
        for (offset, lsn, name) in faulty {
            findings.record(offset, lsn, Malformed::Checksum, name);
        }
        if let Some(expected) = &mut self.expected {
            for scanned in view.records() {
                expected.footer.push(scanned.address.offset, scanned.head);
            }
            expected.last_lsn = view.last_lsn();
            expected.next_group = group.header.number + 1;
            expected.previous_group = group.header_checksum;
        }
        Ok(())
    }

    fn end_groups(&mut self, findings: &mut DamageCollector) {
        let Some(footer) = &self.footer else {
            self.phase = Phase::Done;
            return;
        };
        if let Some(expected) = self.expected.take() {
            let Expected { footer: sum, last_lsn, next_group, previous_group } = expected;
            if !sum.matches(footer, last_lsn, next_group, previous_group) {
                findings.structure(footer.offset(), None, Malformed::Chain);
            }
        }
        self.phase = Phase::Footer(Box::new(FooterReader::new(footer, self.walk.context())));
    }

    fn step_footer(
        &mut self,
        of: &SegmentFile,
        findings: &mut DamageCollector,
    ) -> Result<Option<u64>> {
        let (Phase::Footer(reader), Some(footer)) = (&mut self.phase, &self.footer) else {
            return Ok(None);
        };
        let Some((offset, bytes)) = reader.next_range() else {
            self.phase = Phase::Done;
            return Ok(None);
        };
        let taken = match of.read(offset, bytes as u64)? {
            Ok(piece) => reader.feed(&piece).map_err(|reason| (footer.footer_offset, reason)),
            Err(unread) => Err(unread),
        };
        if let Err((offset, reason)) = taken {
            findings.structure(offset, None, reason);
            self.phase = Phase::Done;
        }
        Ok(Some(bytes as u64))
    }
}

/// Returns the first corrupt location of a record body, with its owner.
fn check_body(scanned: &ScannedRecord<'_>) -> Option<(u64, RecordName)> {
    let blocks = scanned.verify_body().err().map(|fault| fault.offset);
    match &scanned.record.op {
        RecordOp::Put { name, meta, content: RecordContent::Inline { .. } } => {
            let whole =
                || (blake3::hash(scanned.body) != meta.hash).then_some(scanned.address.offset);
            let offset = blocks.or_else(whole)?;
            Some((offset, RecordName::Object(name.clone())))
        }
        RecordOp::PutFact { name, .. } => Some((blocks?, RecordName::Fact(name.clone()))),
        _ => None,
    }
}

/// Returns whether the index refers to this record.
fn is_live(index: &View, scanned: &ScannedRecord<'_>) -> Result<bool> {
    let place = match &scanned.record.op {
        RecordOp::Put { name, .. } => index.entry(name)?.map(|entry| (entry.lsn, entry.record)),
        RecordOp::PutFact { name, .. } => index.fact(name)?.map(|fact| (fact.lsn, fact.record)),
        _ => None,
    };
    Ok(place.is_some_and(|(lsn, record)| {
        let is_here =
            (record.segment, record.offset) == (scanned.address.segment, scanned.address.offset);
        lsn == scanned.record.lsn && is_here
    }))
}
