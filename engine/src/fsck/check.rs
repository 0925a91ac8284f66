//! Runs all checks of a stopped store and builds the report.
//!
//! 1. STORE file and segment headers.
//! 2. The index, opened over a copy-on-write view: its position determines what the log must contain.
//! 3. The log, segment by segment, and the compacted segments in effect.
//! 4. Names: the newest record of each against the index, whose entries are verified at the same time, and the
//!    content of each object. If entries cannot be read, all checks run once more without the index.
//! 5. Orphans.
//!
//! Guarantees: the disk is not changed, because the view cannot change it.
//! Non-goals: the checks themselves.

use std::sync::Arc;

use super::check_report::Report;
use super::check_state::{Check, Root};
use super::finding::{Remedy, Severity};
use super::walked_names::WalkedNames;
use crate::disk::{CopyOnWriteDisk, Disk};
use crate::error::{Error, Result};
use crate::format::{BIG_FOLDER, COMPACTED_FOLDER, LOG_FOLDER, STORE_FILE};
use crate::index::INDEX_FILE;
use crate::limits;
use crate::name::BucketName;
use crate::progress::ProgressCallback;
use crate::store::Environment;
use crate::tier::TieredDisk;

/// Options of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckOptions {
    /// Whether every group and body is read, not only headers, footers and record heads.
    pub deep: bool,
    /// Bucket whose objects the application regenerates if they are missing: their loss is not a loss of data.
    pub derived_bucket: Option<BucketName>,
    /// Number of segments checked in parallel, at most [`limits::FSCK_WORKERS_MAX`].
    pub workers: usize,
    /// Approximate number of names in memory at once, of 128 bytes each. The heads of a store with more names are read
    /// several times.
    pub names_max: u64,
}

impl Default for CheckOptions {
    /// Returns the options of a quick check by all processors, with [`limits::FSCK_NAMES_MAX`] names in memory.
    fn default() -> Self {
        let (workers, names_max) = (Self::workers_here(), limits::FSCK_NAMES_MAX);
        Self { deep: false, derived_bucket: None, workers, names_max }
    }
}

impl CheckOptions {
    /// Returns the default number of workers: the number of processors.
    pub fn workers_here() -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }
}

/// Checks a store that is not open, and changes nothing. Waits for the disk, and for the remote store
/// ([`Environment::remote`]) if segments are only there: what is read of them is cached on the disk during the check.
///
/// Damage is not an error: it is in the report. Fails with [`Error::InUse`] if the store is open, with
/// [`Error::NotAStore`] if there is none, with [`Error::Io`] if the folder cannot be listed, with
/// [`Error::RemoteUnavailable`] if a segment cannot be fetched, and with [`Error::Cancelled`].
pub fn check(
    surroundings: &Environment,
    options: CheckOptions,
    watch: &mut ProgressCallback<'_>,
) -> Result<Report> {
    let disk = &surroundings.disk;
    require_store(disk.as_ref())?;
    let lock = lock(disk.as_ref())?;
    let started_ms = surroundings.clock.monotonic_ms();
    // A segment that cannot be fetched is an error, not a missing segment.
    let Environment { clock, remote, .. } = surroundings;
    let tier = TieredDisk::unreplicated(Arc::clone(disk), remote.clone(), Arc::clone(clock));
    let tier = Arc::new(tier);
    let checked = check_disk(Arc::clone(&tier) as _, surroundings, options, watch);
    let emptied = tier.empty_cache();
    drop(lock);
    // What could not be fetched looks like damage in the report, and a repair would record it as lost.
    if let Some(why) = tier.failure() {
        return Err(Error::RemoteUnavailable(why.into()));
    }
    let mut report = checked?;
    emptied.map_err(|source| Error::io("emptying the cache", source))?;
    report.took_ms = surroundings.clock.monotonic_ms().saturating_sub(started_ms);
    Ok(report)
}

/// Checks the store on a disk that is not written to.
fn check_disk(
    disk: Arc<dyn Disk>,
    surroundings: &Environment,
    options: CheckOptions,
    watch: &mut ProgressCallback<'_>,
) -> Result<Report> {
    let private: Arc<dyn Disk> = Arc::new(CopyOnWriteDisk::new(disk));
    let view = Environment { disk: Arc::clone(&private), ..surroundings.clone() };
    let mut run = |unusable: Option<&Error>| {
        let names = Arc::new(WalkedNames::new(options.names_max.max(1)));
        let (disk, deep) = (Arc::clone(&private), options.deep);
        let mut check = Root { disk, deep, index: None, applied_lsn: 0, names }.check(watch);
        check.derived_bucket.clone_from(&options.derived_bucket);
        check.workers = options.workers.clamp(1, limits::FSCK_WORKERS_MAX);
        let checked = check.run(&view, unusable);
        (checked.map(|()| check.report), check.index_error)
    };
    match run(None) {
        // The segments were checked on the assumption that the index is intact.
        (_, Some(error)) => run(Some(&error)).0,
        (checked, None) => checked,
    }
}

/// Acquires the lock of the folder.
pub(super) fn lock(disk: &dyn Disk) -> Result<Box<dyn crate::disk::Lock>> {
    disk.lock().map_err(|source| Error::locking(disk, source))
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

impl Check<'_, '_> {
    /// Runs all checks; without the index if it is known to be unusable.
    fn run(&mut self, view: &Environment, unusable: Option<&Error>) -> Result<()> {
        let Some(mut ground) = self.survey()? else { return Ok(()) };
        self.progress.total_items = ground.segments.len() as u64;
        self.progress.total_bytes = ground.segments.values().map(|held| held.file_bytes).sum();
        match unusable {
            None => self.open_index(&ground, view)?,
            Some(error) => self.report_unusable_index(&ground, error),
        }
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
}
