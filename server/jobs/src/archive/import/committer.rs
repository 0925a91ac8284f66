//! Commit queue of an import: several files wait together, each in a batch of its own.
//!
//! A key's availability is checked here and required by the batch; after a conflict it is checked again. Guarantees:
//! memory is bounded; when [`ImportCommitter::flush`] returns, every added file is durable or counted otherwise.
//! Non-goals: reading files.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use catalog::Catalog;
use catalog::expiry::schedule;
use catalog::versions::{Absent, retain_replaced_versions};
use engine::{
    Batch, Conflict, Error, Etag, FactName, ObjectName, Precondition, PutOptions, StagedBody, Store,
};
use protocol::file_name::ConflictRule;

use super::ImportAbort;
use crate::archive::limits;
use crate::archive::progress::ProgressReporter;
use crate::archive::{ArchiveError, ImportConflictRule, ImportReport};
use crate::thumbnail_object::delete_thumbnail;

/// Report text of a file whose key holds other content.
pub(super) const SKIPPED: &str = "an object with other content has its key";

/// Pause after the committer's queue was full.
const BUSY_WAIT: Duration = Duration::from_millis(50);

pub(super) struct ImportCommitter<'a> {
    store: &'a Store,
    /// Fact that requires the bucket to exist when a file is stored.
    bucket: FactName,
    /// Catalog, for the versioning rules of the bucket.
    catalog: &'a Catalog,
    on_conflict: ImportConflictRule,
    settled: Receiver<CommittedFile>,
    settle: Sender<CommittedFile>,
    in_flight: usize,
    in_flight_bytes: u64,
}

/// File to be stored.
struct File {
    /// Name in the source.
    source: Vec<u8>,
    name: ObjectName,
    staged: StagedBody,
    options: PutOptions,
}

/// Purpose of a batch.
#[derive(Clone, Copy)]
enum PendingAction {
    Importing,
    Replacing,
    Renaming,
}

struct CommittedFile {
    file: File,
    doing: PendingAction,
    outcome: engine::Result<()>,
}

/// Decision about a file, given the current object.
enum Decision {
    Put { name: ObjectName, require: Precondition, doing: PendingAction },
    Unchanged,
    Skip,
    Fail,
}

impl<'a> ImportCommitter<'a> {
    pub(super) fn new(
        store: &'a Store,
        catalog: &'a Catalog,
        bucket: FactName,
        on_conflict: ImportConflictRule,
    ) -> Self {
        let (settle, settled) = channel();
        let (in_flight, in_flight_bytes) = (0, 0);
        Self { store, catalog, bucket, on_conflict, settled, settle, in_flight, in_flight_bytes }
    }

    /// Stores a file. Waits while too many are pending.
    pub(super) fn add(
        &mut self,
        source: Vec<u8>,
        name: ObjectName,
        staged: StagedBody,
        options: PutOptions,
        report: &mut ImportReport,
        work: &mut ProgressReporter<'_>,
    ) -> Result<(), ImportAbort> {
        let bytes = staged.bytes();
        while self.in_flight >= limits::IMPORT_IN_FLIGHT_MAX
            || (self.in_flight > 0
                && self.in_flight_bytes + bytes > limits::IMPORT_IN_FLIGHT_BYTES_MAX)
        {
            work.check_cancelled()?;
            self.settle_one(report)?;
        }
        self.submit(File { source, name, staged, options }, report)
    }

    /// Waits for all added files.
    pub(super) fn flush(&mut self, report: &mut ImportReport) -> Result<(), ImportAbort> {
        let mut settled = Ok(());
        while self.in_flight > 0 {
            let one = self.settle_one(report);
            settled = settled.and(one);
        }
        settled
    }

    fn submit(&mut self, file: File, report: &mut ImportReport) -> Result<(), ImportAbort> {
        let (name, require, doing) = match self.decide(&file)? {
            Decision::Put { name, require, doing } => (name, require, doing),
            Decision::Unchanged => {
                report.unchanged_count += 1;
                return Ok(());
            }
            Decision::Skip => {
                report.skipped.add(&file.source, SKIPPED);
                return Ok(());
            }
            Decision::Fail => {
                let name = crate::archive::display_name(&file.source);
                let advice = "use --on-conflict to replace or rename";
                return Err(ImportAbort::Stopped(format!("{name}: {SKIPPED}; {advice}")));
            }
        };
        let batch = Batch::new()
            .require(Precondition::FactPresent(self.bucket.clone()))
            .require(require)
            .put(name.clone(), file.staged.clone(), file.options.clone());
        let mut batch = delete_thumbnail(batch, &name);
        if let Some(rules) = self.catalog.buckets().version_rules(&name.bucket) {
            let kept =
                retain_replaced_versions(self.store, &name.bucket, rules, Absent::Ignore, batch)?;
            batch = kept.batch;
        }
        self.in_flight += 1;
        self.in_flight_bytes += file.staged.bytes();
        let settle = self.settle.clone();
        self.store.submit(schedule(batch), move |outcome| {
            // The receiver is dropped only after all pending files are settled.
            let _ = settle.send(CommittedFile { file, doing, outcome: outcome.map(drop) });
        });
        Ok(())
    }

    fn settle_one(&mut self, report: &mut ImportReport) -> Result<(), ImportAbort> {
        let Ok(CommittedFile { file, doing, outcome }) = self.settled.recv() else {
            return Err(Error::Closed.into());
        };
        self.in_flight -= 1;
        self.in_flight_bytes -= file.staged.bytes();
        match outcome {
            Ok(()) => {
                report.imported_bytes += file.staged.bytes();
                *match doing {
                    PendingAction::Importing => &mut report.imported_count,
                    PendingAction::Replacing => &mut report.replaced_count,
                    PendingAction::Renaming => &mut report.renamed_count,
                } += 1;
                Ok(())
            }
            Err(Error::Conflict(Conflict::FactMissing(_))) => Err(ImportAbort::Failed(
                ArchiveError::Location("the bucket was deleted during the import".to_owned()),
            )),
            // A concurrent write changed the key.
            Err(Error::Conflict(_)) => self.submit(file, report),
            Err(Error::Busy) => {
                thread::sleep(BUSY_WAIT);
                self.submit(file, report)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn decide(&self, file: &File) -> engine::Result<Decision> {
        let new = Etag::of_hash(file.staged.hash());
        let holds_same = |name: &ObjectName| -> engine::Result<Option<bool>> {
            Ok(self
                .store
                .get(name)?
                .map(|it| it.etag() == new && it.bytes() == file.staged.bytes()))
        };
        let put = |name: ObjectName, doing| {
            let require = Precondition::KeyAbsent(name.clone());
            Decision::Put { name, require, doing }
        };
        let there = match self.store.get(&file.name)? {
            None => return Ok(put(file.name.clone(), PendingAction::Importing)),
            Some(there) if there.etag() == new => return Ok(Decision::Unchanged),
            Some(there) => there,
        };
        Ok(match self.on_conflict {
            ImportConflictRule::Skip => Decision::Skip,
            ImportConflictRule::Fail => Decision::Fail,
            ImportConflictRule::Replace => {
                let name = file.name.clone();
                let require = Precondition::KeyHasEtag(name.clone(), there.etag());
                Decision::Put { name, require, doing: PendingAction::Replacing }
            }
            ImportConflictRule::Rename => {
                let mut same_is_there = false;
                let at = |key: &engine::ObjectKey| {
                    ObjectName::new(file.name.bucket.clone(), key.clone())
                };
                // A repeated import recognizes files that were renamed the first time.
                let proposal = ConflictRule::Rename.proposal(&file.name.key, |key| {
                    let same = holds_same(&at(key))?;
                    same_is_there |= same == Some(true);
                    Ok::<_, Error>(same == Some(false))
                })?;
                match proposal {
                    _ if same_is_there => Decision::Unchanged,
                    Some(proposal) => put(at(&proposal.key), PendingAction::Renaming),
                    None => Decision::Skip,
                }
            }
        })
    }
}
