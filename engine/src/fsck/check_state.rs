//! State of a running check: findings, progress, and what one check passes to the next.
//!
//! Guarantees: bounded memory. Non-goals: the checks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::check_report::Report;
use super::finding::{Finding, Remedy, Severity};
use super::name_state::Gaps;
use super::suspect::Suspect;
use super::walked_names::{NameBatch, WalkedNames};
use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::format::{SegmentId, SegmentUsage};
use crate::index::Index;
use crate::limits;
use crate::name::BucketName;
use crate::progress::{ProgressCallback, WorkProgress};

/// Faults of the index, found by comparison with the segments.
#[derive(Default)]
pub(super) struct IndexFaults {
    pub(super) first: Option<String>,
    pub(super) count: u64,
}

impl IndexFaults {
    /// Adds a fault; only the first is reported.
    pub(super) fn add(&mut self, what: impl FnOnce() -> String) {
        self.count += 1;
        self.first.get_or_insert_with(what);
    }

    /// Adds all faults of another set.
    pub(super) fn append(&mut self, other: Self) {
        self.count += other.count;
        self.first = self.first.take().or(other.first);
    }
}

/// State of a running check.
pub(super) struct Check<'a, 'w> {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) deep: bool,
    pub(super) derived_bucket: Option<BucketName>,
    pub(super) workers: usize,
    watch: &'a mut ProgressCallback<'w>,
    pub(super) progress: WorkProgress,
    pub(super) report: Report,
    /// Index, if it is usable.
    pub(super) index: Option<Arc<Index>>,
    /// Why its entries cannot be read.
    pub(super) index_error: Option<Error>,
    /// LSN up to which records are in the index.
    pub(super) applied_lsn: u64,
    /// Unreadable ranges of the log.
    pub(super) gaps: Gaps,
    /// Whether the content of some of them is unknown.
    pub(super) is_ignorant: bool,
    /// Records with corrupt bodies; whether they are live is decided later.
    pub(super) suspects: BTreeMap<(SegmentId, u64), Suspect>,
    pub(super) suspects_unlisted: u64,
    /// Big segments that the index does not count and the newest records refer to.
    pub(super) big_named: BTreeSet<SegmentId>,
    /// Retained big segments, whose objects were deleted.
    pub(super) retained: BTreeSet<SegmentId>,
    /// Punched bytes of each segment, by the LSN of the record.
    pub(super) punched: BTreeMap<SegmentId, BTreeMap<u64, u64>>,
    /// Names of the records of the checked segments.
    pub(super) names: Arc<WalkedNames>,
    /// Names that are not added to them yet.
    pub(super) name_batch: NameBatch,
}

/// Shared state for checks of single segments.
pub(super) struct Root {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) deep: bool,
    pub(super) index: Option<Arc<Index>>,
    pub(super) applied_lsn: u64,
    pub(super) names: Arc<WalkedNames>,
}

/// Result of the check of one segment.
pub(super) struct CheckPart {
    report: Report,
    gaps: Gaps,
    is_ignorant: bool,
    suspects: BTreeMap<(SegmentId, u64), Suspect>,
    suspects_unlisted: u64,
    punched: BTreeMap<SegmentId, BTreeMap<u64, u64>>,
}

impl Root {
    /// Creates an empty check for one segment.
    pub(super) fn check<'a, 'w>(&self, watch: &'a mut ProgressCallback<'w>) -> Check<'a, 'w> {
        Check {
            disk: Arc::clone(&self.disk),
            deep: self.deep,
            derived_bucket: None,
            workers: 1,
            watch,
            progress: WorkProgress::default(),
            report: Report::new(self.deep),
            index: self.index.clone(),
            index_error: None,
            applied_lsn: self.applied_lsn,
            gaps: Gaps::default(),
            is_ignorant: false,
            suspects: BTreeMap::new(),
            suspects_unlisted: 0,
            big_named: BTreeSet::new(),
            retained: BTreeSet::new(),
            punched: BTreeMap::new(),
            names: Arc::clone(&self.names),
            name_batch: Some(Vec::new()),
        }
    }
}

impl Check<'_, '_> {
    /// Returns the shared state for checks of single segments, once the index is open.
    pub(super) fn root(&self) -> Root {
        Root {
            disk: Arc::clone(&self.disk),
            deep: self.deep,
            index: self.index.clone(),
            applied_lsn: self.applied_lsn,
            names: Arc::clone(&self.names),
        }
    }

    /// Converts the check into its result.
    pub(super) fn into_part(mut self) -> CheckPart {
        self.names.add(&mut self.name_batch, self.applied_lsn);
        CheckPart {
            report: self.report,
            gaps: self.gaps,
            is_ignorant: self.is_ignorant,
            suspects: self.suspects,
            suspects_unlisted: self.suspects_unlisted,
            punched: self.punched,
        }
    }

    /// Merges the result of one segment.
    pub(super) fn merge(&mut self, part: CheckPart) {
        self.report.append(part.report);
        self.gaps.append(part.gaps);
        self.is_ignorant |= part.is_ignorant;
        self.suspects_unlisted += part.suspects_unlisted;
        for (at, suspect) in part.suspects {
            self.add_suspect(at, suspect);
        }
        for (segment, records) in part.punched {
            self.punched.entry(segment).or_default().extend(records);
        }
    }

    /// Reports bytes read by workers, which are counted in their results.
    pub(super) fn advance_progress(&mut self, bytes: u64) -> Result<()> {
        self.progress.done_bytes += bytes;
        self.progress.total_bytes = self.progress.total_bytes.max(self.progress.done_bytes);
        self.tell()
    }

    /// Adds a damaged record, or only counts it beyond a limit.
    pub(super) fn add_suspect(&mut self, at: (SegmentId, u64), suspect: Suspect) {
        if self.suspects.len() < limits::FSCK_SUSPECTS_MAX {
            self.suspects.insert(at, suspect);
        } else {
            self.suspects_unlisted += 1;
        }
    }

    /// Adds a finding.
    pub(super) fn found(
        &mut self,
        severity: Severity,
        file: &str,
        offset: u64,
        what: impl Into<String>,
        remedy: Remedy,
    ) {
        self.report.add(Finding::new(severity, file, offset, what, remedy));
    }

    /// Counts bytes read.
    pub(super) fn read_on(&mut self, bytes: u64) -> Result<()> {
        self.report.bytes += bytes;
        self.advance_progress(bytes)
    }

    /// Counts a checked segment.
    pub(super) fn segment_done(&mut self) -> Result<()> {
        self.report.segments += 1;
        self.progress.done_items += 1;
        self.progress.total_items = self.progress.total_items.max(self.progress.done_items);
        self.tell()
    }

    fn tell(&mut self) -> Result<()> {
        match (self.watch)(self.progress) {
            std::ops::ControlFlow::Continue(()) => Ok(()),
            std::ops::ControlFlow::Break(()) => Err(Error::Cancelled),
        }
    }

    /// Returns the usage of a segment in the index.
    pub(super) fn counted(&self, id: SegmentId) -> Option<SegmentUsage> {
        let index = self.index.as_ref()?;
        Index::guard(|| index.view().segment_usage(id)).ok().flatten()
    }
}
