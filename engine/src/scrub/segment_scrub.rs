//! Scrubs one segment: header page, then its content by class.

use std::io;
use std::sync::Arc;

use super::log::LogScrub;
use super::scrub_big::BigScrub;
use super::{DamageCollector, ScrubContext, damage_owners, fault};
use crate::disk::DiskFile;
use crate::error::{Error, Result};
use crate::format::{
    Malformed, Origin, SEGMENT_HEADER_BYTES, SegmentClass, SegmentHeader, SegmentId,
};
use crate::segment::read_header;

/// Scrub of one segment.
pub(super) struct SegmentScrub {
    id: SegmentId,
    class: SegmentClass,
    /// Whether it is read up to its end; false for the active segment.
    is_whole: bool,
    file: Option<SegmentFile>,
    reading: ScrubPhase,
    findings: DamageCollector,
}

/// Open file with its identity.
pub(super) struct SegmentFile {
    pub(super) file: Arc<dyn DiskFile>,
    pub(super) path: String,
    pub(super) header: SegmentHeader,
}

enum ScrubPhase {
    Log(Box<LogScrub>),
    Big(Box<BigScrub>),
    Done,
}

/// Result of the scrub of a segment.
pub(super) struct SegmentScrubResult {
    pub(super) id: SegmentId,
    pub(super) is_whole: bool,
    pub(super) findings: DamageCollector,
}

impl SegmentScrub {
    /// Opens a segment and reads its header page. `end` is the end of the groups of the active segment. `None` if it
    /// was removed and is not missed.
    pub(super) fn begin(
        store: &ScrubContext,
        id: SegmentId,
        class: SegmentClass,
        end: Option<u64>,
    ) -> Result<Option<Self>> {
        let path = id.path(class);
        let findings = DamageCollector::new(id, class, store.clock.unix_ms());
        let is_whole = end.is_none();
        let mut scrub =
            Self { id, class, is_whole, file: None, reading: ScrubPhase::Done, findings };
        let file = match store.segments.disk().open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if store.read_checked(|view| view.segment_usage(id))?.is_none() {
                    return Ok(None);
                }
                scrub.report_unreadable(0, Malformed::Missing);
                return Ok(Some(scrub));
            }
            Err(source) => return Err(Error::io(format!("opening {path}"), source)),
        };
        // Verified blocks are verified again when they are next read.
        store.segments.forget_verified(id);
        match read_header(file.as_ref(), &path, id, class, store.segments.store()) {
            Ok(header) => {
                let file = SegmentFile { file, path, header };
                scrub.check_header_page(&file);
                scrub.file = Some(file);
            }
            Err(error) => {
                let (offset, reason) = fault(error, 0)?;
                scrub.report_unreadable(offset, reason);
                return Ok(Some(scrub));
            }
        }
        if let Some(file) = &scrub.file {
            scrub.reading = match class {
                SegmentClass::Big => match BigScrub::begin(file, &mut scrub.findings)? {
                    Some(big) => ScrubPhase::Big(Box::new(big)),
                    None => ScrubPhase::Done,
                },
                SegmentClass::Log | SegmentClass::Compacted => {
                    let is_growing = store.segments.is_unsealed(id);
                    let log = LogScrub::begin(file, is_growing, end, &mut scrub.findings)?;
                    log.map_or(ScrubPhase::Done, |log| ScrubPhase::Log(Box::new(log)))
                }
            };
        }
        Ok(Some(scrub))
    }

    /// Reads one piece and returns its length; `None` at the end. A search that `stopped` ends fails with
    /// [`Error::Cancelled`].
    pub(super) fn step(
        &mut self,
        store: &ScrubContext,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Option<u64>> {
        let Some(file) = &self.file else { return Ok(None) };
        match &mut self.reading {
            ScrubPhase::Log(log) => log.step(store, file, &mut self.findings, stopped),
            ScrubPhase::Big(big) => big.step(file, &mut self.findings),
            ScrubPhase::Done => Ok(None),
        }
    }

    /// Resolves the owners of the damage; `None` if the segment was retired during the scrub.
    pub(super) fn end(
        mut self,
        store: &ScrubContext,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Option<SegmentScrubResult>> {
        if self.class == SegmentClass::Big {
            damage_owners::resolve_big_owner(store, self.id, &mut self.findings, stopped)?;
        } else {
            let unclear = std::mem::take(&mut self.findings.unclear);
            let file = self.file.as_ref();
            damage_owners::resolve_record_owners(
                store,
                self.id,
                file,
                &unclear,
                &mut self.findings,
                stopped,
            )?;
        }
        if stopped() || store.read_checked(|view| view.segment_usage(self.id))?.is_none() {
            return Ok(None);
        }
        let Self { id, is_whole, findings, .. } = self;
        Ok(Some(SegmentScrubResult { id, is_whole, findings }))
    }

    /// Marks the whole segment as unreadable.
    fn report_unreadable(&mut self, offset: u64, reason: Malformed) {
        self.findings.structure(offset, None, reason);
        self.findings.unclear.push(0..u64::MAX);
    }

    /// Verifies both copies in the header page, although one suffices to read the segment.
    fn check_header_page(&mut self, of: &SegmentFile) {
        let mut page = [0; SEGMENT_HEADER_BYTES];
        if of.file.read_at(0, &mut page).is_err() {
            return self.findings.structure(0, None, Malformed::Unreadable);
        }
        let expected = match of.header.class {
            SegmentClass::Compacted => match Origin::decode_page(&page, &of.header) {
                Ok(origin) => origin.encode_page(&of.header),
                Err(reason) => return self.findings.structure(0, None, reason),
            },
            SegmentClass::Log | SegmentClass::Big => of.header.encode_page(),
        };
        if let Some(at) = page.iter().zip(&expected).position(|(found, wanted)| found != wanted) {
            self.findings.structure(at as u64, None, Malformed::Checksum);
        }
    }
}

impl SegmentFile {
    /// Reads a piece of the file. The outer error does not concern its bytes.
    pub(super) fn read(
        &self,
        offset: u64,
        length: u64,
    ) -> Result<Result<Vec<u8>, (u64, Malformed)>> {
        let Ok(length) = usize::try_from(length) else {
            return Ok(Err((offset, Malformed::Length)));
        };
        let mut bytes = vec![0; length];
        match self.file.read_at(offset, &mut bytes) {
            Ok(()) => Ok(Ok(bytes)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Ok(Err((offset, Malformed::Short)))
            }
            Err(source) => {
                fault(Error::io(format!("reading {}", self.path), source), offset).map(Err)
            }
        }
    }
}
