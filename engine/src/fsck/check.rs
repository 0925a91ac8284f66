//! The check, from the first step to the report.
//!
//! 1. STORE, and what each segment says of itself.
//! 2. The index, opened over a copy of what redb writes: where it stands tells what the log must hold.
//! 3. The log, segment by segment, and the compacted segments that count.
//! 4. Names: what the newest record of each says, against what the index says; the content of each object.
//! 5. What nothing names.
//!
//! Promises: the disk is not changed, because what it is seen through cannot. Never here: the steps themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::finding::{Finding, Remedy, Severity};
use super::ground::Ground;
use super::groups::Suspect;
use super::index::IndexFaults;
use super::known::Gaps;
use super::report::Report;
use crate::disk::{Disk, PrivateDisk};
use crate::error::{Error, Result};
use crate::format::{SegmentId, SegmentUsage};
use crate::index::{INDEX_FILE, Index};
use crate::limits;
use crate::name::BucketName;
use crate::progress::{Watch, WorkProgress};
use crate::recovery::STORE_FILE;
use crate::segment::{BIG_FOLDER, COMPACTED_FOLDER, LOG_FOLDER};
use crate::store::Surroundings;

/// What a check looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckOptions {
    /// Whether every group and every body is read, not only what describes them.
    pub deep: bool,
    /// The bucket of objects that whoever uses the store makes again when they are missing.
    pub remade: Option<BucketName>,
    /// How many segments are looked at beside one another, at most [`limits::FSCK_WORKERS_MAX`].
    pub workers: usize,
}

impl CheckOptions {
    /// As many workers as there are processors.
    pub fn workers_here() -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }
}

/// Checks the store, which must not be open anywhere. Changes nothing.
///
/// Damage is no error: it is in the report. Errors are a store that is in use, a folder that is none, a disk that
/// cannot even be listed, and [`Error::Cancelled`].
pub fn check(
    surroundings: &Surroundings,
    options: CheckOptions,
    watch: &mut Watch<'_>,
) -> Result<Report> {
    let disk = &surroundings.disk;
    require_store(disk.as_ref())?;
    let lock = lock(disk.as_ref())?;
    let started_ms = surroundings.clock.monotonic_ms();
    let private: Arc<dyn Disk> = Arc::new(PrivateDisk::new(Arc::clone(disk)));
    let view = Surroundings { disk: Arc::clone(&private), ..surroundings.clone() };
    let root = Root { disk: private, deep: options.deep, index: None, applied_lsn: 0 };
    let mut check = Check {
        remade: options.remade,
        workers: options.workers.clamp(1, limits::FSCK_WORKERS_MAX),
        ..root.check(watch)
    };
    check.run(&view)?;
    check.report.took_ms = surroundings.clock.monotonic_ms().saturating_sub(started_ms);
    let report = check.report;
    drop(lock);
    Ok(report)
}

/// Takes the lock of the folder.
pub(super) fn lock(disk: &dyn Disk) -> Result<Box<dyn crate::disk::Lock>> {
    disk.lock().map_err(|source| match source.kind() {
        std::io::ErrorKind::WouldBlock => Error::InUse(disk.lock_holder()),
        _ => Error::io("locking the data folder", source),
    })
}

/// Refuses a folder in which nothing of a store is.
fn require_store(disk: &dyn Disk) -> Result<()> {
    let names = disk.list("").map_err(|source| Error::io("listing the data folder", source))?;
    let ours = [STORE_FILE, INDEX_FILE, LOG_FOLDER, BIG_FOLDER, COMPACTED_FOLDER];
    if names.iter().any(|name| ours.contains(&name.as_str())) {
        return Ok(());
    }
    Err(Error::NotAStore("the folder contains no store".to_owned()))
}

/// A check under way.
pub(super) struct Check<'a, 'w> {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) deep: bool,
    pub(super) remade: Option<BucketName>,
    pub(super) workers: usize,
    watch: &'a mut Watch<'w>,
    progress: WorkProgress,
    pub(super) report: Report,
    /// The index, if it can be used.
    pub(super) index: Option<Arc<Index>>,
    /// What is wrong with it so far.
    pub(super) index_faults: IndexFaults,
    /// Records up to this one are in the index.
    pub(super) applied_lsn: u64,
    /// Stretches of the log that cannot be read.
    pub(super) gaps: Gaps,
    /// Whether nobody knows what some of them said.
    pub(super) is_ignorant: bool,
    /// Records whose bodies are damaged; whether somebody can ask for them is decided later.
    pub(super) suspects: BTreeMap<(SegmentId, u64), Suspect>,
    pub(super) suspects_unlisted: u64,
    /// Big segments that the index does not count and the newest records name.
    pub(super) big_named: BTreeSet<SegmentId>,
    /// Big segments that stay for a while although their objects are gone.
    pub(super) retained: BTreeSet<SegmentId>,
    /// For each segment, which records say how much of it was given back.
    pub(super) punched: BTreeMap<SegmentId, BTreeMap<u64, u64>>,
}

/// What checks of single segments go by.
pub(super) struct Root {
    disk: Arc<dyn Disk>,
    deep: bool,
    index: Option<Arc<Index>>,
    applied_lsn: u64,
}

/// What a check of one segment found.
pub(super) struct CheckPart {
    report: Report,
    gaps: Gaps,
    is_ignorant: bool,
    suspects: BTreeMap<(SegmentId, u64), Suspect>,
    suspects_unlisted: u64,
    punched: BTreeMap<SegmentId, BTreeMap<u64, u64>>,
}

impl Root {
    /// A check that has found nothing yet, for one segment.
    pub(super) fn check<'a, 'w>(&self, watch: &'a mut Watch<'w>) -> Check<'a, 'w> {
        Check {
            disk: Arc::clone(&self.disk),
            deep: self.deep,
            remade: None,
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
    /// What checks of single segments go by, once the index is open.
    pub(super) fn root(&self) -> Root {
        Root {
            disk: Arc::clone(&self.disk),
            deep: self.deep,
            index: self.index.clone(),
            applied_lsn: self.applied_lsn,
        }
    }

    /// What it found.
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

    /// Takes over what the check of one segment found.
    pub(super) fn take_over(&mut self, part: CheckPart) {
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

    /// So many more bytes were read by workers, whose parts count them.
    pub(super) fn read_beside(&mut self, bytes: u64) -> Result<()> {
        self.progress.done_bytes += bytes;
        self.progress.total_bytes = self.progress.total_bytes.max(self.progress.done_bytes);
        self.tell()
    }

    /// Remembers a damaged record, or counts it where there are too many.
    pub(super) fn add_suspect(&mut self, at: (SegmentId, u64), suspect: Suspect) {
        if self.suspects.len() < limits::FSCK_SUSPECTS_MAX {
            self.suspects.insert(at, suspect);
        } else {
            self.suspects_unlisted += 1;
        }
    }

    fn run(&mut self, view: &Surroundings) -> Result<()> {
        let Some(mut ground) = self.read_ground()? else { return Ok(()) };
        self.progress.total_items = ground.held.len() as u64;
        self.progress.total_bytes = ground.held.values().map(|held| held.file_bytes).sum();
        self.open_index(&ground, view)?;
        self.settle_superseded(&mut ground);
        self.check_log(&mut ground)?;
        self.check_compacted(&mut ground)?;
        self.match_names(&mut ground)?;
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

    /// So many more bytes were read.
    pub(super) fn read_on(&mut self, bytes: u64) -> Result<()> {
        self.report.bytes += bytes;
        self.read_beside(bytes)
    }

    /// One more segment was looked at.
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

    /// What the index counts for a segment.
    pub(super) fn counted(&self, id: SegmentId) -> Option<SegmentUsage> {
        let index = self.index.as_ref()?;
        Index::guard(|| index.view().segment_usage(id)).ok().flatten()
    }

    /// Whether compacted segment `id` is in use.
    pub(super) fn is_in_use(&self, ground: &Ground, id: SegmentId) -> bool {
        match &self.index {
            Some(_) => self.counted(id).is_some() || ground.committed_later.contains(&id),
            None => !ground.redundant.contains(&id),
        }
    }
}
