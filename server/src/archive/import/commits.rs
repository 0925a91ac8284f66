//! Commit queue of an import: several files wait together, each in a batch of its own.
//!
//! A key's availability is checked here and required by the batch; after a conflict it is checked again. Guarantees:
//! memory is bounded; when [`Commits::settle_all`] returns, every added file is durable or counted otherwise.
//! Non-goals: reading files.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use engine::{
    Batch, Conflict, Error, Etag, FactName, ObjectName, Precondition, PutOptions, Staged, Store,
};

use super::End;
use crate::archive::work::Work;
use crate::archive::{ArchiveError, ImportReport, OnConflict};
use crate::catalog::Catalog;
use crate::limits;
use crate::object_name::NameRule;
use crate::thumbnails::delete_thumbnail;
use crate::versions::{Absent, keeping};

/// Report text of a file whose key holds other content.
pub(super) const SKIPPED: &str = "an object with other content has its key";

/// Pause after the committer's queue was full.
const BUSY_WAIT: Duration = Duration::from_millis(50);

pub(super) struct Commits<'a> {
    store: &'a Store,
    /// Fact that requires the bucket to exist when a file is stored.
    bucket: FactName,
    /// Catalog, for the versioning rules of the bucket.
    catalog: &'a Catalog,
    on_conflict: OnConflict,
    settled: Receiver<Settled>,
    settle: Sender<Settled>,
    in_flight: usize,
    in_flight_bytes: u64,
}

/// File to be stored.
struct File {
    /// Name in the source.
    source: Vec<u8>,
    name: ObjectName,
    staged: Staged,
    options: PutOptions,
}

/// Purpose of a batch.
#[derive(Clone, Copy)]
enum Doing {
    Importing,
    Replacing,
    Renaming,
}

struct Settled {
    file: File,
    doing: Doing,
    outcome: engine::Result<()>,
}

/// Decision about a file, given the current object.
enum Decision {
    Put { name: ObjectName, require: Precondition, doing: Doing },
    Unchanged,
    Skip,
    Fail,
}

impl<'a> Commits<'a> {
    pub(super) fn new(
        store: &'a Store,
        catalog: &'a Catalog,
        bucket: FactName,
        on_conflict: OnConflict,
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
        staged: Staged,
        options: PutOptions,
        report: &mut ImportReport,
        work: &mut Work<'_>,
    ) -> Result<(), End> {
        let bytes = staged.bytes();
        while self.in_flight >= limits::archives::IMPORT_IN_FLIGHT_MAX
            || (self.in_flight > 0
                && self.in_flight_bytes + bytes > limits::archives::IMPORT_IN_FLIGHT_BYTES_MAX)
        {
            work.tell()?;
            self.settle_one(report)?;
        }
        self.submit(File { source, name, staged, options }, report)
    }

    /// Waits for all added files.
    pub(super) fn settle_all(&mut self, report: &mut ImportReport) -> Result<(), End> {
        let mut settled = Ok(());
        while self.in_flight > 0 {
            let one = self.settle_one(report);
            settled = settled.and(one);
        }
        settled
    }

    fn submit(&mut self, file: File, report: &mut ImportReport) -> Result<(), End> {
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
                let name = crate::archive::shown(&file.source);
                let advice = "use --on-conflict to replace or rename";
                return Err(End::Stopped(format!("{name}: {SKIPPED}; {advice}")));
            }
        };
        let batch = Batch::new()
            .require(Precondition::FactPresent(self.bucket.clone()))
            .require(require)
            .put(name.clone(), file.staged.clone(), file.options.clone());
        let mut batch = delete_thumbnail(batch, &name);
        if let Some(rules) = self.catalog.version_rules(&name.bucket) {
            let kept = keeping(self.store, &name.bucket, rules, Absent::Ignore, batch)?;
            batch = kept.batch;
        }
        self.in_flight += 1;
        self.in_flight_bytes += file.staged.bytes();
        let settle = self.settle.clone();
        self.store.submit(batch, move |outcome| {
            // The receiver is dropped only after all pending files are settled.
            let _ = settle.send(Settled { file, doing, outcome: outcome.map(drop) });
        });
        Ok(())
    }

    fn settle_one(&mut self, report: &mut ImportReport) -> Result<(), End> {
        let Ok(Settled { file, doing, outcome }) = self.settled.recv() else {
            return Err(Error::Closed.into());
        };
        self.in_flight -= 1;
        self.in_flight_bytes -= file.staged.bytes();
        match outcome {
            Ok(()) => {
                report.imported_bytes += file.staged.bytes();
                *match doing {
                    Doing::Importing => &mut report.imported_count,
                    Doing::Replacing => &mut report.replaced_count,
                    Doing::Renaming => &mut report.renamed_count,
                } += 1;
                Ok(())
            }
            Err(Error::Conflict(Conflict::FactMissing(_))) => Err(End::Failed(
                ArchiveError::Place("the bucket was deleted during the import".to_owned()),
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
            None => return Ok(put(file.name.clone(), Doing::Importing)),
            Some(there) if there.etag() == new => return Ok(Decision::Unchanged),
            Some(there) => there,
        };
        Ok(match self.on_conflict {
            OnConflict::Skip => Decision::Skip,
            OnConflict::Fail => Decision::Fail,
            OnConflict::Replace => {
                let name = file.name.clone();
                let require = Precondition::KeyIs(name.clone(), there.etag());
                Decision::Put { name, require, doing: Doing::Replacing }
            }
            OnConflict::Rename => {
                let mut same_is_there = false;
                let at = |key: &engine::ObjectKey| {
                    ObjectName::new(file.name.bucket.clone(), key.clone())
                };
                // A repeated import recognizes files that were renamed the first time.
                let proposal = NameRule::Suffix.proposal(&file.name.key, |key| {
                    let same = holds_same(&at(key))?;
                    same_is_there |= same == Some(true);
                    Ok::<_, Error>(same == Some(false))
                })?;
                match proposal {
                    _ if same_is_there => Decision::Unchanged,
                    Some(proposal) => put(at(&proposal.key), Doing::Renaming),
                    None => Decision::Skip,
                }
            }
        })
    }
}
