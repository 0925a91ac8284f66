//! Runs all checks of a stopped store and builds the report.
//!
//! 1. STORE file and segment headers.
//! 2. The index, opened over a copy-on-write view: its position determines what the log must contain.
//! 3. The log, segment by segment, and the compacted segments in effect.
//! 4. Names: the newest record of each against the index, and the content of each object.
//! 5. Orphans.
//!
//! Guarantees: the disk is not changed, because the view cannot change it.
//! Non-goals: the checks themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::check_report::Report;
use super::finding::{Finding, Remedy, Severity};
use super::groups::Suspect;
use super::index_check::IndexFaults;
use super::name_state::Gaps;
use super::survey::StoreSurvey;
use crate::disk::{CopyOnWriteDisk, Disk};
use crate::error::{Error, Result};
use crate::format::{SegmentId, SegmentUsage};
use crate::index::{INDEX_FILE, Index};
use crate::limits;
use crate::name::BucketName;
use crate::progress::{ProgressCallback, WorkProgress};
use crate::recovery::STORE_FILE;
use crate::segment::{BIG_FOLDER, COMPACTED_FOLDER, LOG_FOLDER};
use crate::store::Environment;

/// Options of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckOptions {
    /// Whether every group and body is read, not only headers, footers and record heads.
    pub deep: bool,
    /// Bucket whose objects the application regenerates if they are missing: their loss is not a loss of data.
    pub derived_bucket: Option<BucketName>,
    /// Number of segments checked in parallel, at most [`limits::FSCK_WORKERS_MAX`].
    pub workers: usize,
}

impl CheckOptions {
    /// Returns the default number of workers: the number of processors.
    pub fn workers_here() -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }
}

/// Checks a store that is not open, and changes nothing. Waits for the disk.
///
/// Damage is not an error: it is in the report. Fails with [`Error::InUse`] if the store is open, with
/// [`Error::NotAStore`] if there is none, with [`Error::Io`] if the folder cannot be listed, and with
/// [`Error::Cancelled`].
pub fn check(
    surroundings: &Environment,
    options: CheckOptions,
    watch: &mut ProgressCallback<'_>,
) -> Result<Report> {
    let disk = &surroundings.disk;
    require_store(disk.as_ref())?;
    let lock = lock(disk.as_ref())?;
    let started_ms = surroundings.clock.monotonic_ms();
    let private: Arc<dyn Disk> = Arc::new(CopyOnWriteDisk::new(Arc::clone(disk)));
    let view = Environment { disk: Arc::clone(&private), ..surroundings.clone() };
    let root = Root { disk: private, deep: options.deep, index: None, applied_lsn: 0 };
    let mut check = Check {
        derived_bucket: options.derived_bucket,
        workers: options.workers.clamp(1, limits::FSCK_WORKERS_MAX),
        ..root.check(watch)
    };
    check.run(&view)?;
    check.report.took_ms = surroundings.clock.monotonic_ms().saturating_sub(started_ms);
    let report = check.report;
    drop(lock);
    Ok(report)
}

/// Acquires the lock of the folder.
pub(super) fn lock(disk: &dyn Disk) -> Result<Box<dyn crate::disk::Lock>> {
    disk.lock().map_err(|source| match source.kind() {
        std::io::ErrorKind::WouldBlock => Error::InUse(disk.lock_holder()),
        _ => Error::io("locking the data folder", source),
    })
}

/// Fails for a folder without any part of a store.
fn require_store(disk: &dyn Disk) -> Result<()> {
    let names = disk.list("").map_err(|source| Error::io("listing the data folder", source))?;
    let ours = [STORE_FILE, INDEX_FILE, LOG_FOLDER, BIG_FOLDER, COMPACTED_FOLDER];
    if names.iter().any(|name| ours.contains(&name.as_str())) {
        return Ok(());
    }
    Err(Error::NotAStore("the folder contains no store".to_owned()))
}

/// State of a running check.
pub(super) struct Check<'a, 'w> {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) deep: bool,
    pub(super) derived_bucket: Option<BucketName>,
    pub(super) workers: usize,
    watch: &'a mut ProgressCallback<'w>,
    progress: WorkProgress,
    pub(super) report: Report,
    /// Index, if it is usable.
    pub(super) index: Option<Arc<Index>>,
    /// Faults of the index so far.
    pub(super) index_faults: IndexFaults,
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
}

/// Shared state for checks of single segments.
pub(super) struct Root {
    disk: Arc<dyn Disk>,
    deep: bool,
    index: Option<Arc<Index>>,
    applied_lsn: u64,
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
            index_faults: IndexFaults::default(),
            applied_lsn: self.applied_lsn,
            gaps: Gaps::default(),
            is_ignorant: false,
            suspects: BTreeMap::new(),
            suspects_unlisted: 0,
            big_named: BTreeSet::new(),
            retained: BTreeSet::new(),
            punched: BTreeMap::new(),
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
        }
    }

    /// Converts the check into its result.
    pub(super) fn into_part(self) -> CheckPart {
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

    fn run(&mut self, view: &Environment) -> Result<()> {
        let Some(mut ground) = self.survey()? else { return Ok(()) };
        self.progress.total_items = ground.segments.len() as u64;
        self.progress.total_bytes = ground.segments.values().map(|held| held.file_bytes).sum();
        self.open_index(&ground, view)?;
        self.settle_superseded(&mut ground);
        self.check_log(&mut ground)?;
        self.check_compacted(&mut ground)?;
        self.cross_check_names(&mut ground)?;
        self.look_for_orphans(&ground)?;
        if self.suspects_unlisted > 0 {
            let what =
                format!("{} more corrupt bodies are not listed one by one", self.suspects_unlisted);
            self.found(Severity::Loss, LOG_FOLDER, 0, what, Remedy::None);
        }
        if let Some(index) = &self.index {
            index.close();
        }
        Ok(())
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

    /// Returns whether compacted segment `id` is in use.
    pub(super) fn is_in_use(&self, ground: &StoreSurvey, id: SegmentId) -> bool {
        match &self.index {
            Some(_) => self.counted(id).is_some() || ground.committed_later.contains(&id),
            None => !ground.redundant.contains(&id),
        }
    }
}
