//! Export: objects in byte order of their keys, each read, verified and written.
//!
//! 1. A page of keys is listed; each object is looked up in its current version.
//! 2. Its body is read and verified before anything of it is written: a corrupt object is skipped and reported.
//! 3. It is appended to the archive, or written to a file of its own.
//!
//! Guarantees: each exported object is complete, in one version that it had during the export; every object that was
//! stored before the export and did not change during it is included. An archive appears under its name when it is
//! complete and durable. A folder is filled file by file, and a repeated export skips files that are up to date.
//! Non-goals: derived objects, which can be regenerated.

use std::io::{ErrorKind, Write};
use std::path::Path;

use bytes::Bytes;
use catalog::object_attributes::last_modified_ms;
use engine::progress::ProgressCallback;
use engine::{Body, Conflict, Error, Object, ObjectKey, ObjectName};

use super::local_files::{
    CreateOutcome, FolderWriter, Output, PARTIAL_DIR, is_folder, is_per_file_error,
};
use super::progress::ProgressReporter;
use super::tar_entry::{BLOCK_BYTES, EntryHeader, encode};
use super::{ArchiveError, ArchiveLocation, ArchiveScope, ExportReport, absolute, location_error};
use crate::archive::limits;

/// Destination of the objects.
enum Sink<'p> {
    Archive { output: Output, path: &'p Path },
    Folder { tree: FolderWriter, path: &'p Path },
}

/// Exports a bucket or a folder of it.
pub fn export<'w>(
    job: &ArchiveScope<'_>,
    place: &ArchiveLocation,
    watch: &'w mut ProgressCallback<'w>,
) -> Result<ExportReport, ArchiveError> {
    let usage = job.store.bucket_usage(&job.bucket.name)?;
    // The size of a single folder is unknown until it is listed.
    let (bytes, objects) = match job.folder.is_root() {
        true => (usage.bytes, usage.objects),
        false => (0, 0),
    };
    let mut work = ProgressReporter::new(watch, bytes, objects);
    let mut sink = Sink::open(place)?;
    let bucket_name = job.bucket.name.to_string();
    let mut report = ExportReport { bucket_name, ..ExportReport::default() };
    let mut after: Option<ObjectKey> = None;
    loop {
        let (prefix, from) = (job.folder.as_str(), after.as_ref().map(ObjectKey::as_str));
        let limit = engine::limits::LIST_PAGE_MAX;
        let page = job.store.list_keys(&job.bucket.name, prefix, from, limit)?;
        for object in &page.objects {
            if !object.is_derived() {
                sink.add(job, object.name(), &mut report, &mut work)?;
                work.add_item()?;
            }
        }
        after = page.objects.last().map(|object| object.name().key.clone());
        if !page.more || after.is_none() {
            break;
        }
    }
    sink.finish(&mut work)?;
    Ok(report)
}

impl<'p> Sink<'p> {
    fn open(place: &'p ArchiveLocation) -> Result<Self, ArchiveError> {
        let path = match place {
            ArchiveLocation::Stream(path) => {
                let output = Output::stream(path).map_err(location_error("write to", path))?;
                return Ok(Self::Archive { output, path });
            }
            ArchiveLocation::Path(path) => absolute(path)?,
        };
        let there = is_folder(path).map_err(location_error("look at", path))?;
        let has_ending =
            |ending: &str| path.as_os_str().as_encoded_bytes().ends_with(ending.as_bytes());
        if there == Some(true) || has_ending("/") {
            let tree = FolderWriter::open(path).map_err(location_error("make the folder", path))?;
            return Ok(Self::Folder { tree, path });
        }
        if !has_ending(".tar") {
            return Err(ArchiveError::Location(format!(
                "{} is neither a folder nor a .tar file: end the name of a new folder with \"/\"; \
                archives are not compressed, pipe `--to -` into a compressor",
                path.display()
            )));
        }
        let output = Output::create(path).map_err(location_error("make", path))?;
        Ok(Self::Archive { output, path })
    }

    fn add(
        &mut self,
        job: &ArchiveScope<'_>,
        name: &ObjectName,
        report: &mut ExportReport,
        work: &mut ProgressReporter<'_>,
    ) -> Result<(), ArchiveError> {
        let key = name.key.as_str();
        let relative = key.strip_prefix(job.folder.as_str()).unwrap_or(key);
        let Ok(relative) = ObjectKey::parse(relative) else {
            // A folder marker of the exported folder itself.
            return Ok(());
        };
        if relative.is_folder_marker() {
            report.not_written.add(key.as_bytes(), "it is a folder marker");
            return Ok(());
        }
        let mut output = match self {
            Self::Archive { .. } => None,
            Self::Folder { tree, path } => match begin_file(tree, path, job, name, &relative)? {
                BeginOutcome::New(output) => Some(output),
                BeginOutcome::Unchanged => {
                    report.unchanged_count += 1;
                    return Ok(());
                }
                BeginOutcome::Deleted => return Ok(()),
                BeginOutcome::Refused(why) => {
                    report.not_written.add(key.as_bytes(), why);
                    return Ok(());
                }
            },
        };
        let (object, body) = match read_verified(job, name, work) {
            Ok(Some(read)) => read,
            Ok(None) => return Ok(()),
            Err(Error::Corrupt(corruption)) => {
                report.damaged.add(key.as_bytes(), corruption.to_string());
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        match self {
            Self::Archive { output, path } => {
                let etag = object.etag().to_string();
                let head = encode(&EntryHeader {
                    name: relative.as_str(),
                    bytes: object.bytes(),
                    modified_ms: last_modified_ms(&object),
                    created_ms: object.created_ms(),
                    content_type: object.content_type(),
                    attributes: object.attributes(),
                    etag: &etag,
                });
                write_all(output, &head, path, work)?;
                body.write(output, path, work)?;
                let written = usize::try_from(object.bytes() % BLOCK_BYTES as u64).unwrap_or(0);
                let padding = [0; BLOCK_BYTES];
                let padding = padding.get(..(BLOCK_BYTES - written) % BLOCK_BYTES).unwrap_or(&[]);
                write_all(output, padding, path, work)?;
            }
            Self::Folder { path, .. } => {
                if let Some(mut output) = output.take() {
                    body.write(&mut output, path, work)?;
                    let done = output.finish_in_tree(last_modified_ms(&object));
                    done.map_err(location_error("write into", path))?;
                }
            }
        }
        report.exported_count += 1;
        report.exported_bytes += object.bytes();
        Ok(())
    }

    fn finish(self, work: &mut ProgressReporter<'_>) -> Result<(), ArchiveError> {
        match self {
            Self::Archive { mut output, path } => {
                write_all(&mut output, &[0; 2 * BLOCK_BYTES], path, work)?;
                output.finish().map_err(location_error("finish", path))
            }
            Self::Folder { tree, path } => tree.finish().map_err(location_error("finish", path)),
        }
    }
}

/// Result of creating the file of an object.
enum BeginOutcome {
    New(Output),
    Unchanged,
    /// The object was deleted in the meantime.
    Deleted,
    Refused(&'static str),
}

fn begin_file(
    tree: &mut FolderWriter,
    path: &Path,
    job: &ArchiveScope<'_>,
    name: &ObjectName,
    relative: &ObjectKey,
) -> Result<BeginOutcome, ArchiveError> {
    if relative.as_str() == PARTIAL_DIR {
        return Ok(BeginOutcome::Refused("its name is reserved for unfinished files"));
    }
    let Some(object) = job.store.get(name)? else { return Ok(BeginOutcome::Deleted) };
    match tree.create_file(relative, object.bytes(), last_modified_ms(&object)) {
        Ok(CreateOutcome::New(output)) => Ok(BeginOutcome::New(output)),
        Ok(CreateOutcome::Unchanged) => Ok(BeginOutcome::Unchanged),
        Err(error) => match is_per_file_error(&error) {
            Some(why) => Ok(BeginOutcome::Refused(why)),
            None => Err(location_error("write into", path)(error)),
        },
    }
}

/// Fully verified body.
enum VerifiedObjectBody {
    InMemory(Vec<Bytes>),
    OnDisk(Body),
}

/// Reads and verifies the current version of an object; `None` if it was deleted.
fn read_verified(
    job: &ArchiveScope<'_>,
    name: &ObjectName,
    work: &mut ProgressReporter<'_>,
) -> engine::Result<Option<(Object, VerifiedObjectBody)>> {
    loop {
        let Some(object) = job.store.get(name)? else { return Ok(None) };
        let body = match job.store.body(&object) {
            // Overwritten between lookup and opening: repeat the lookup.
            Err(Error::Conflict(Conflict::KeyChanged(_))) => continue,
            body => body?,
        };
        let is_small = object.bytes() <= limits::EXPORT_IN_MEMORY_BYTES_MAX;
        let mut pieces = Vec::new();
        for range in engine::Body::read_ranges(object.bytes()) {
            let piece = body.read(range)?;
            work.add_bytes(piece.len() as u64)?;
            if is_small {
                pieces.push(piece);
            }
        }
        let verified = if is_small {
            VerifiedObjectBody::InMemory(pieces)
        } else {
            VerifiedObjectBody::OnDisk(body)
        };
        return Ok(Some((object, verified)));
    }
}

impl VerifiedObjectBody {
    fn write(
        self,
        output: &mut Output,
        path: &Path,
        work: &mut ProgressReporter<'_>,
    ) -> Result<(), ArchiveError> {
        match self {
            Self::InMemory(pieces) => {
                pieces.iter().try_for_each(|piece| write_all(output, piece, path, work))
            }
            Self::OnDisk(body) => engine::Body::read_ranges(body.bytes()).try_for_each(|range| {
                let piece = body.read(range)?;
                write_all(output, &piece, path, work)
            }),
        }
    }
}

pub(super) fn write_all(
    output: &mut Output,
    mut bytes: &[u8],
    path: &Path,
    work: &mut ProgressReporter<'_>,
) -> Result<(), ArchiveError> {
    while !bytes.is_empty() {
        match output.write(bytes) {
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // A pipe whose reader is currently not reading.
            Err(error) if error.kind() == ErrorKind::WouldBlock => work.check_cancelled()?,
            Err(error) => return Err(location_error("write to", path)(error)),
        }
    }
    Ok(())
}
