//! Applies the remedies of findings in a safe order, so that no remedy destroys what another needs.
//!
//! 1. Rewrite what can be restored from a copy: STORE file, headers, footers. Remove an unusable index.
//! 2. Open the store. Mark losses, and rewrite data that only the index still has.
//! 3. Remove an index that contradicts the segments, so that the next open rebuilds it.
//! 4. Remove orphans, once nothing else is left to do.
//!
//! Then everything is checked again, until a pass changes nothing.
//!
//! Guarantees: each step is atomic or repeatable; power can be cut at any time.
//! Non-goals: finding damage.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::check::{CheckOptions, check, lock};
use super::check_report::Report;
use super::finding::{Finding, Remedy, Severity};
use super::survey::{page_of, read_up_to};
use crate::commit::{Batch, Etag, Precondition, PutOptions};
use crate::disk::{Disk, DiskFile};
use crate::error::{Error, Result};
use crate::format::{
    Origin, SEGMENT_HEADER_BYTES, SEGMENT_HEADER_COPY_BYTES, STORE_FILE, STORE_FILE_BYTES,
    SegmentClass, SegmentHeader, SegmentId, StoreFile,
};
use crate::history::UndeleteRequest;
use crate::index::Index;
use crate::limits;
use crate::name::{FactName, ObjectName};
use crate::progress::ProgressCallback;
use crate::recovery::Create;
use crate::segment::seal;
use crate::store::{Background, Environment, OpenOptions, Store};
use crate::tier::TieredDisk;

/// Options of a repair.
#[derive(Clone, Debug)]
pub struct RepairOptions {
    /// Options of the checks before and after.
    pub check: CheckOptions,
    /// Options for opening the store to write to it. `create` and `background` are ignored: the store is never created,
    /// and runs without threads.
    pub open: OpenOptions,
}

/// Report of a repair.
#[derive(Clone, Debug)]
pub struct RepairReport {
    /// Report before the repair.
    pub before: Report,
    /// Report after the repair.
    pub after: Report,
}

impl RepairReport {
    /// Returns whether data is lost: the first check found a loss, or damage remains after the repair.
    pub fn has_lost(&self) -> bool {
        self.before.worst() == Some(Severity::Loss) || !self.after.is_clean()
    }
}

/// Checks a store that is not open, applies the remedies of the findings, and checks again until nothing changes.
///
/// `say` is called with a description of each action. Fails like [`check`].
pub fn repair(
    surroundings: &Environment,
    options: &RepairOptions,
    watch: &mut ProgressCallback<'_>,
    say: &mut dyn FnMut(&str),
) -> Result<RepairReport> {
    let before = check(surroundings, options.check.clone(), watch)?;
    let mut after = before.clone();
    for _ in 0..REPAIR_PASSES_MAX {
        if !after.findings.iter().any(|finding| finding.remedy.is_applicable()) {
            break;
        }
        let Environment { disk, clock, .. } = surroundings;
        let disk = TieredDisk::unreplicated(Arc::clone(disk), None, Arc::clone(clock));
        let mut round = RepairPass { surroundings, disk, options, report: &after, say };
        round.run()?;
        let next = check(surroundings, options.check.clone(), watch)?;
        if next.findings == after.findings {
            break;
        }
        after = next;
    }
    Ok(RepairReport { before, after })
}

struct RepairPass<'a, 's> {
    surroundings: &'a Environment,
    /// Removes references with their segments.
    disk: TieredDisk,
    options: &'a RepairOptions,
    report: &'a Report,
    say: &'a mut (dyn FnMut(&str) + 's),
}

impl RepairPass<'_, '_> {
    fn run(&mut self) -> Result<()> {
        let report = self.report;
        let is_rebuild = |finding: &Finding| finding.remedy == Remedy::RebuildIndex;
        let wants_rebuild = report.findings.iter().any(is_rebuild);
        let is_orphan = |finding: &Finding| finding.remedy == Remedy::RemoveOrphan;
        if report.findings.iter().all(|f| is_orphan(f) || !f.remedy.is_applicable()) {
            return self.locked(|round| round.remove_orphans());
        }
        self.locked(|round| {
            round.rewrite_copies()?;
            if wants_rebuild && !report.has_index { round.remove_index() } else { Ok(()) }
        })?;
        if report.findings.iter().any(needs_open_store) || wants_rebuild && !report.has_index {
            self.write_to_store()?;
        }
        if wants_rebuild && report.has_index {
            self.locked(|round| round.remove_index())?;
            self.open()?.close()?;
            (self.say)("index.redb: rebuilt");
        }
        Ok(())
    }

    /// Runs work while holding the lock of the store.
    fn locked(&mut self, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let lock = lock(&self.disk)?;
        work(self)?;
        drop(lock);
        Ok(())
    }

    fn rewrite_copies(&mut self) -> Result<()> {
        for finding in &self.report.findings {
            let (file, disk) = (&finding.file, &self.disk);
            let is_local =
                || disk.is_local(file).map_err(|source| Error::io("listing references", source));
            let done = match &finding.remedy {
                Remedy::RewriteStoreFile { store, created_ms } => {
                    let store = StoreFile { store: *store, created_ms: *created_ms };
                    rewrite_store_file(disk, &store)
                }
                Remedy::RewriteHeader { .. } | Remedy::Reseal { .. } if !is_local()? => {
                    (self.say)(&format!("{file}: not rewritten: it is only in the remote store"));
                    continue;
                }
                Remedy::RewriteHeader { segment, class } => rewrite_header(disk, *segment, *class),
                Remedy::Reseal { segment, class, end } => reseal(disk, *segment, *class, *end),
                _ => continue,
            };
            match done {
                Ok(()) => (self.say)(&format!("{file}: {}", finding.remedy)),
                // Its source was damaged since; the next check reports it.
                Err(Error::Corrupt(corruption)) => {
                    (self.say)(&format!("{file}: not done: {corruption}"))
                }
                Err(other) => return Err(other),
            }
        }
        Ok(())
    }

    fn remove_index(&mut self) -> Result<()> {
        Index::remove(&self.disk)?;
        (self.say)("index.redb: deleted, to be rebuilt");
        Ok(())
    }

    fn remove_orphans(&mut self) -> Result<()> {
        for finding in &self.report.findings {
            if finding.remedy != Remedy::RemoveOrphan {
                continue;
            }
            let file = &finding.file;
            let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
            let removed = match self.disk.remove(file) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
                other => other,
            };
            removed
                .and_then(|()| self.disk.sync_folder(folder))
                .map_err(|source| Error::io(format!("removing {file}"), source))?;
            (self.say)(&format!("{file}: removed"));
        }
        Ok(())
    }

    fn open(&self) -> Result<Store> {
        let mut options = self.options.open.clone();
        options.create = Create::Never;
        options.background = Background::Manual;
        Ok(Store::open(self.surroundings.clone(), options)?.0)
    }

    /// Opens the store and writes to its log.
    fn write_to_store(&mut self) -> Result<()> {
        let store = self.open()?;
        let mut has_written = false;
        let mut goes_on = false;
        for finding in &self.report.findings {
            match &finding.remedy {
                Remedy::MarkLost(objects) => {
                    for (name, lsn) in objects {
                        store.commit(Batch::new().mark_lost(name.clone(), *lsn))?;
                        has_written = true;
                        (self.say)(&format!("{name}: recorded as lost"));
                    }
                }
                Remedy::RemoveDerived(objects) => {
                    for (name, lsn) in objects {
                        remove(&store, name, *lsn)?;
                        has_written = true;
                        (self.say)(&format!("{name}: deleted, to be regenerated"));
                    }
                }
                Remedy::RewriteObjects(objects) => {
                    for (name, lsn) in objects {
                        let is_done = rewrite_objects(&store, name, *lsn)?;
                        has_written |= is_done;
                        let how = if is_done { "put again" } else { "not rewritten" };
                        (self.say)(&format!("{name}: {how}"));
                    }
                }
                Remedy::RewriteFacts(names) => {
                    for name in names {
                        if let Some(value) = store.fact(name)? {
                            store.commit(Batch::new().put_fact(name.clone(), value))?;
                            has_written = true;
                            (self.say)(&format!("fact {name}: rewritten"));
                        }
                    }
                }
                Remedy::SkipDamage => goes_on |= finding.severity == Severity::Loss,
                _ => {}
            }
        }
        if goes_on && !has_written {
            // A record after the damage confirms from now on that the log continues there.
            if let Ok(name) = FactName::parse(SKIPPED_DAMAGE_FACT) {
                store.commit(Batch::new().delete_fact(name))?;
            }
        }
        if goes_on {
            (self.say)("the log continues after the corruption");
        }
        store.close()
    }
}

fn needs_open_store(finding: &Finding) -> bool {
    matches!(
        finding.remedy,
        Remedy::MarkLost(_)
            | Remedy::RemoveDerived(_)
            | Remedy::RewriteObjects(_)
            | Remedy::RewriteFacts(_)
            | Remedy::SkipDamage
    )
}

fn rewrite_store_file(disk: &dyn Disk, store: &StoreFile) -> Result<()> {
    let write = || {
        let file = match disk.open(STORE_FILE) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                disk.create(STORE_FILE)?
            }
            other => other?,
        };
        if file.bytes_len()? > STORE_FILE_BYTES as u64 {
            file.set_len(STORE_FILE_BYTES as u64)?;
        }
        file.write_at(0, &[&store.encode()])?;
        file.sync_data()?;
        disk.sync_folder("")
    };
    write().map_err(|source| Error::io("writing STORE", source))
}

/// Returns the header page of a segment, as found and as expected.
fn pages(
    file: &dyn DiskFile,
    path: &str,
    segment: SegmentId,
    class: SegmentClass,
) -> Result<(Vec<u8>, Vec<u8>, SegmentHeader)> {
    let found = read_up_to(file, 0, SEGMENT_HEADER_BYTES)
        .map_err(|source| Error::io(format!("reading {path}"), source))?;
    let damaged = |reason| Error::corrupt(path, 0, reason);
    let header = SegmentHeader::decode_page(&found).map_err(damaged)?;
    if (header.segment, header.class) != (segment, class) {
        return Err(damaged(crate::format::Malformed::Misplaced));
    }
    let origin = match class {
        SegmentClass::Compacted => Origin::decode_page(&found, &header).map_err(damaged)?,
        SegmentClass::Log | SegmentClass::Big => Origin::default(),
    };
    let whole = page_of(&header, &origin);
    Ok((found, whole, header))
}

fn rewrite_header(disk: &dyn Disk, segment: SegmentId, class: SegmentClass) -> Result<()> {
    let path = segment.path(class);
    let io = |source| Error::io(format!("writing {path}"), source);
    let file = disk.open(&path).map_err(io)?;
    let (found, whole, _) = pages(file.as_ref(), &path, segment, class)?;
    let copies =
        found.chunks(SEGMENT_HEADER_COPY_BYTES).zip(whole.chunks(SEGMENT_HEADER_COPY_BYTES));
    // One copy at a time: the intact copy is never overwritten.
    for (copy, (found, whole)) in (0..).zip(copies) {
        if found != whole {
            let offset = copy * SEGMENT_HEADER_COPY_BYTES as u64;
            file.write_at(offset, &[whole]).and_then(|()| file.sync_data()).map_err(io)?;
        }
    }
    Ok(())
}

fn reseal(disk: &dyn Disk, segment: SegmentId, class: SegmentClass, end: u64) -> Result<()> {
    let path = segment.path(class);
    let file = disk.open(&path);
    let file = file.map_err(|source| Error::io(format!("opening {path}"), source))?;
    let (_, _, header) = pages(file.as_ref(), &path, segment, class)?;
    seal(disk, &header, end)
}

/// Removes a damaged object unless there is a newer one. It may be missing in the index: it is marked as lost first,
/// so that it can be deleted.
fn remove(store: &Store, name: &ObjectName, lsn: u64) -> Result<()> {
    store.commit(Batch::new().mark_lost(name.clone(), lsn))?;
    match store.get(name)?.map(|object| store.body(&object)) {
        Some(Err(Error::Corrupt(_))) => store.commit(Batch::new().delete(name.clone())).map(drop),
        _ => Ok(()),
    }
}

/// Puts an object with a damaged record again. Returns false if it changed, or if its content is unreadable.
fn rewrite_objects(store: &Store, name: &ObjectName, lsn: u64) -> Result<bool> {
    let Some(object) = store.get(name)?.filter(|object| object.lsn() == lsn) else {
        return Ok(false);
    };
    let mut upload = store.upload();
    let body = match store.body(&object) {
        Err(Error::Corrupt(_)) => return rewrite_from_footer(store, name, lsn),
        other => other?,
    };
    let mut at = 0;
    while at < body.bytes() {
        let piece = match body.read(at..at + limits::READ_BYTES_MAX as u64) {
            Err(Error::Corrupt(_)) => return Ok(false),
            other => other?,
        };
        at += piece.len() as u64;
        upload.push(&piece)?;
    }
    let options = PutOptions {
        content_type: object.content_type().to_owned(),
        attributes: object.attributes().to_vec(),
        derived: object.is_derived(),
        created_ms: Some(object.created_ms()),
    };
    let etag: Etag = object.etag();
    let batch = Batch::new()
        .put(name.clone(), upload.finish()?, options)
        .require(Precondition::KeyHasEtag(name.clone(), etag));
    store.commit(batch).map(|_| true)
}

/// Puts an object with a damaged record head again, from the copy of the head in a footer.
fn rewrite_from_footer(store: &Store, name: &ObjectName, lsn: u64) -> Result<bool> {
    let request = UndeleteRequest::Version { name: name.clone(), lsn };
    let undeleted = store.undelete(&request, &mut |_| ControlFlow::Continue(()))?;
    Ok(!undeleted.restored.is_empty())
}

/// Name of the fact that is deleted to append a record after the damage.
const SKIPPED_DAMAGE_FACT: &str = "fsck/went-on";
/// Maximum number of rounds. Each marks at most as many losses as a report lists; this suffices for any store.
const REPAIR_PASSES_MAX: usize = 10_000;
