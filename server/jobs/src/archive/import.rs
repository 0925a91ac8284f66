//! Import: files of an archive or a folder, or from remote hosts, validated like uploads, and stored.
//!
//! 1. The name is converted to a key, or rejected.
//! 2. A file whose validator matches the existing object is skipped.
//! 3. The body is streamed into the store's staging, and compared with its claimed validator and with the existing
//!    object.
//! 4. A batch for each file is submitted to the committer; several wait together, so that one sync covers them.
//!
//! Guarantees: a file is stored whole or not at all; existing objects are replaced only if the rules say so; a repeated
//! import stores what is missing. Rejected files are reported, and the import continues; an unreadable archive ends the
//! import, with the files up to there imported. Non-goals: timestamps; an imported file has the time of its import.

mod committer;
mod from_urls;

use std::collections::HashSet;
use std::io::{ErrorKind, Read};
use std::path::Path;

use catalog::object_attributes::StoredAttributes;
use engine::progress::ProgressCallback;
use engine::{Error, Etag, ObjectKey, ObjectName, PutOptions, StagedBody};
use protocol::content_type::detect;
use protocol::object_path::{check_writable, normalize};
use sha2::{Digest, Sha256};

use self::committer::ImportCommitter;
use super::local_files::{Input, Walk, WalkEntry, is_folder};
use super::progress::ProgressReporter;
use super::tar_entry::PaxRecords;
use super::tar_reader::{TarEntryContent, TarError, TarReader};
use super::{
    ArchiveError, ArchiveLocation, ArchiveScope, ImportConflictRule, ImportReport, ImportRules,
    ImportSource, absolute, location_error,
};
use crate::archive::limits;

/// Reason for an import to end early.
enum ImportAbort {
    /// The imported files remain, and the report contains this sentence.
    Stopped(String),
    Failed(ArchiveError),
}

/// Imports into a bucket or a folder of it.
pub fn import<'w>(
    job: &ArchiveScope<'_>,
    source: &ImportSource,
    rules: ImportRules,
    watch: &'w mut ProgressCallback<'w>,
) -> Result<ImportReport, ArchiveError> {
    let bucket_name = job.bucket.name.to_string();
    let fact = job.bucket.fact().map_err(|why| ArchiveError::Location(why.to_string()))?;
    let mut importer = Importer {
        job,
        rules,
        admitted_count: 0,
        seen: HashSet::new(),
        lists_once: matches!(source, ImportSource::Bucket(_)),
        taken_bytes: 0,
        commits: ImportCommitter::new(job.store, job.catalog, fact, rules.on_conflict),
        report: ImportReport { bucket_name, ..ImportReport::default() },
        buffer: vec![0; limits::PIECE_BYTES],
    };
    let imported = match source {
        ImportSource::Files(place) => match folder_or_file(place)? {
            (path, true) => importer.folder(path, watch),
            (path, false) => {
                let input = Input::open(path).map_err(location_error("read", path))?;
                importer.archive(input, watch)
            }
        },
        ImportSource::File { place, bytes, path, content_type } => match folder_or_file(place)? {
            (folder, true) => {
                return Err(ArchiveError::Location(format!("{} is a folder", folder.display())));
            }
            (file, false) => {
                let input = Input::open(file).map_err(location_error("read", file))?;
                importer.file(input, *bytes, path, content_type.clone(), watch)
            }
        },
        ImportSource::Addresses { list, reach } => match folder_or_file(list)? {
            (path, true) => {
                return Err(ArchiveError::Location(format!("{} is a folder", path.display())));
            }
            (path, false) => importer.import_urls(path, reach, watch),
        },
        ImportSource::Bucket(source) => importer.bucket(source, watch),
    };
    // Pending files are stored in any case.
    let Importer { mut commits, mut report, .. } = importer;
    let settled = commits.flush(&mut report);
    match imported.and(settled) {
        Ok(()) => {}
        Err(ImportAbort::Stopped(why)) => report.stopped = Some(why),
        Err(ImportAbort::Failed(error)) => return Err(error),
    }
    Ok(report)
}

/// Returns the path to read, and whether it is a folder.
fn folder_or_file(place: &ArchiveLocation) -> Result<(&Path, bool), ArchiveError> {
    match place {
        ArchiveLocation::Stream(path) => Ok((path, false)),
        ArchiveLocation::Path(path) => {
            match is_folder(absolute(path)?).map_err(location_error("read", path))? {
                None => Err(ArchiveError::Location(format!("{} does not exist", path.display()))),
                Some(is_folder) => Ok((path, is_folder)),
            }
        }
    }
}

struct Importer<'a> {
    job: &'a ArchiveScope<'a>,
    rules: ImportRules,
    admitted_count: u64,
    /// Hashes of imported keys, to reject duplicate names.
    seen: HashSet<[u8; 16]>,
    /// Whether the source has unique names. Then only keys that Unicode normalization changed are remembered.
    lists_once: bool,
    taken_bytes: u64,
    commits: ImportCommitter<'a>,
    report: ImportReport,
    buffer: Vec<u8>,
}

/// File that may be imported.
struct Candidate {
    /// Name in the source.
    name: Vec<u8>,
    key: ObjectKey,
    /// Whether normalization changed the name: the object with the key may then be another file.
    is_respelled: bool,
    records: PaxRecords,
}

impl Importer<'_> {
    fn archive<'w>(
        &mut self,
        input: Input,
        watch: &'w mut ProgressCallback<'w>,
    ) -> Result<(), ImportAbort> {
        let mut work = ProgressReporter::new(watch, input.size(), 0);
        let mut reader = TarReader::new(input);
        while let Some(entry) = reader.next(&mut work)? {
            match entry.content {
                TarEntryContent::Folder => {}
                TarEntryContent::Refused(why) => self.report.refused.add(&entry.name, why),
                TarEntryContent::File => {
                    let name = entry.name.strip_prefix(b"./").unwrap_or(&entry.name).to_vec();
                    let path = name.clone();
                    if let Some(file) = self.admit(name, &path, entry.bytes, entry.records)? {
                        let read = |buffer: &mut [u8], work: &mut ProgressReporter<'_>| {
                            reader.read(buffer, work).map_err(ImportAbort::from)
                        };
                        self.take(file, entry.bytes, read, &mut work)?;
                    }
                }
            }
            work.add_item()?;
        }
        Ok(())
    }

    fn file<'w>(
        &mut self,
        mut input: Input,
        bytes: u64,
        path: &str,
        content_type: Option<String>,
        watch: &'w mut ProgressCallback<'w>,
    ) -> Result<(), ImportAbort> {
        let mut work = ProgressReporter::new(watch, bytes.max(input.size()), 1);
        let name = path.as_bytes();
        let records = PaxRecords { content_type, ..PaxRecords::default() };
        if let Some(file) = self.admit(name.to_vec(), name, bytes, records)? {
            let read = |buffer: &mut [u8], work: &mut ProgressReporter<'_>| {
                read_file(&mut input, name, buffer, work)
            };
            self.take(file, bytes, read, &mut work)?;
        }
        Ok(work.add_item()?)
    }

    fn folder<'w>(
        &mut self,
        path: &Path,
        watch: &'w mut ProgressCallback<'w>,
    ) -> Result<(), ImportAbort> {
        let failed = |error| ImportAbort::Failed(location_error("read", path)(error));
        let mut work = ProgressReporter::new(watch, 0, 0);
        let mut walk = Walk::open(path).map_err(failed)?;
        while let Some(found) = walk.next().map_err(failed)? {
            match found {
                WalkEntry::Refused { path, why } => self.report.refused.add(&path, why),
                WalkEntry::File { path: name, mut input } => {
                    let bytes = input.size();
                    let records = PaxRecords::default();
                    if let Some(file) = self.admit(name.clone(), &name, bytes, records)? {
                        let read = |buffer: &mut [u8], work: &mut ProgressReporter<'_>| {
                            read_file(&mut input, &name, buffer, work)
                        };
                        self.take(file, bytes, read, &mut work)?;
                    }
                }
            }
            work.add_item()?;
        }
        Ok(())
    }

    /// Decides whether a file is imported, and under which key: that of its path. The name is for the report.
    fn admit(
        &mut self,
        name: Vec<u8>,
        path: &[u8],
        bytes: u64,
        records: PaxRecords,
    ) -> Result<Option<Candidate>, ImportAbort> {
        let key = match self.key_of(path) {
            Ok(key) => key,
            Err(why) => {
                self.report.refused.add(&name, why);
                return Ok(None);
            }
        };
        if records.attributes.as_ref().is_some_and(|it| !are_attributes(it)) {
            self.report.refused.add(&name, "its pax attributes are not trug attributes");
            return Ok(None);
        }
        if self.admitted_count >= self.rules.files_max {
            let max = self.rules.files_max;
            return Err(ImportAbort::Stopped(format!("more than {max} files: raise --files-max")));
        }
        let is_respelled = str::from_utf8(path).is_ok_and(|it| normalize(it) != it);
        if let Some(why) = self.remember(&key, is_respelled) {
            self.report.refused.add(&name, why);
            return Ok(None);
        }
        self.admitted_count += 1;
        if !self.check_limits(&name, bytes)? {
            return Ok(None);
        }
        self.taken_bytes = self.taken_bytes.saturating_add(bytes);
        Ok(Some(Candidate { name, key, is_respelled, records }))
    }

    /// Remembers an imported key; returns an error message for a duplicate.
    fn remember(&mut self, key: &ObjectKey, is_respelled: bool) -> Option<&'static str> {
        let mut hash = [0; 16];
        hash.copy_from_slice(Sha256::digest(key.as_str()).split_at(16).0);
        if self.seen.contains(&hash) {
            return Some("duplicate file name in the archive");
        }
        if !self.lists_once || is_respelled {
            if self.lists_once && self.seen.len() >= limits::IMPORT_RESPELLED_MAX {
                return Some("too many names are changed by Unicode normalization");
            }
            self.seen.insert(hash);
        }
        None
    }

    /// Checks the limits for a file of this size.
    fn check_limits(&mut self, name: &[u8], bytes: u64) -> Result<bool, ImportAbort> {
        if bytes > engine::limits::OBJECT_BYTES_MAX {
            self.report.refused.add(name, "it exceeds the maximum object size");
            return Ok(false);
        }
        let all = self.taken_bytes.saturating_add(bytes);
        match self.rules.bytes_max.filter(|max| all > *max) {
            Some(max) => {
                Err(ImportAbort::Stopped(format!("more than {max} bytes: raise --bytes-max")))
            }
            None => Ok(true),
        }
    }

    fn key_of(&self, name: &[u8]) -> Result<ObjectKey, String> {
        let name = str::from_utf8(name).map_err(|_| "its name is not UTF-8")?;
        if name.starts_with('/') {
            return Err("its path is absolute".to_owned());
        }
        let begins_with_drive = match name.as_bytes() {
            [letter, b':', rest @ ..] => {
                letter.is_ascii_alphabetic() && matches!(rest.first(), None | Some(b'/' | b'\\'))
            }
            _ => false,
        };
        if begins_with_drive {
            return Err("its path begins with a drive letter".to_owned());
        }
        let refused = |rule| format!("its name is not a valid key: {rule}");
        let key = self.job.folder.key(&normalize(name)).map_err(refused)?;
        if key.is_folder_marker() {
            return Err("its name is a folder name".to_owned());
        }
        check_writable(&key).map_err(|refusal| refusal.message().to_owned())?;
        Ok(key)
    }

    /// Stores a file, unless its content already exists.
    fn take(
        &mut self,
        file: Candidate,
        bytes: u64,
        mut read: impl FnMut(&mut [u8], &mut ProgressReporter<'_>) -> Result<usize, ImportAbort>,
        work: &mut ProgressReporter<'_>,
    ) -> Result<(), ImportAbort> {
        let name = ObjectName::new(self.job.bucket.name.clone(), file.key.clone());
        if let Some(there) = self.job.store.get(&name)? {
            let claims_same = file.records.etag.as_deref() == Some(&there.etag().to_string());
            if claims_same && there.bytes() == bytes {
                self.report.unchanged_count += 1;
                return Ok(());
            }
            if self.rules.on_conflict == ImportConflictRule::Skip && there.bytes() != bytes {
                self.report.skipped.add(&file.name, committer::SKIPPED);
                return Ok(());
            }
        }
        let mut upload = self.job.store.upload();
        loop {
            let count = read(&mut self.buffer, work)?;
            if count == 0 {
                break;
            }
            upload.push(self.buffer.get(..count).unwrap_or_default())?;
        }
        self.keep(file, upload.finish()?, work)
    }

    /// Stores a staged file, if it matches its claimed validator.
    fn keep(
        &mut self,
        file: Candidate,
        staged: StagedBody,
        work: &mut ProgressReporter<'_>,
    ) -> Result<(), ImportAbort> {
        let etag = Etag::of_hash(staged.hash()).to_string();
        if file.records.etag.as_ref().is_some_and(|claimed| *claimed != etag) {
            self.report.refused.add(&file.name, "its checksum does not match the exported one");
            return Ok(());
        }
        if self.lists_once
            && file.is_respelled
            && self.rules.on_conflict == ImportConflictRule::Replace
        {
            // A pending file might be the one with exactly this name, which must not be replaced by this one.
            self.commits.flush(&mut self.report)?;
            let name = ObjectName::new(self.job.bucket.name.clone(), file.key.clone());
            let there = self.job.store.get(&name)?;
            if there.is_some_and(|it| it.etag().to_string() != etag) {
                self.report.skipped.add(&file.name, committer::SKIPPED);
                return Ok(());
            }
        }
        let options = options_of(&file, &staged);
        let name = ObjectName::new(self.job.bucket.name.clone(), file.key);
        self.commits.add(file.name, name, staged, options, &mut self.report, work)
    }
}

fn read_file(
    input: &mut Input,
    name: &[u8],
    buffer: &mut [u8],
    work: &mut ProgressReporter<'_>,
) -> Result<usize, ImportAbort> {
    loop {
        match input.read(buffer) {
            Ok(count) => {
                work.add_bytes(count as u64)?;
                return Ok(count);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => {
                let name = super::display_name(name);
                return Err(ImportAbort::Stopped(format!("cannot read {name}: {error}")));
            }
        }
    }
}

fn options_of(file: &Candidate, staged: &StagedBody) -> PutOptions {
    let declared = file.records.content_type.as_deref();
    let attributes = file.records.attributes.clone().unwrap_or_default();
    // The first bytes of encoded content prove nothing.
    let is_encoded = StoredAttributes::parse(&attributes).headers.content_encoding.is_some();
    let head = if is_encoded { &[] } else { staged.head() };
    PutOptions {
        content_type: detect(file.key.file_name(), head, declared).into_owned(),
        attributes,
        created_ms: file.records.created_ms,
        derived: false,
    }
}

/// Returns whether bytes may be the attributes of an object: a JSON object within the size limit.
fn are_attributes(bytes: &[u8]) -> bool {
    bytes.len() <= engine::limits::ATTRIBUTES_BYTES_MAX
        && serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(bytes).is_ok()
}

impl From<Error> for ImportAbort {
    fn from(error: Error) -> Self {
        Self::Failed(error.into())
    }
}

impl From<TarError> for ImportAbort {
    fn from(broken: TarError) -> Self {
        match broken {
            TarError::Stopped(error) => Self::Failed(error.into()),
            TarError::Malformed(why) => Self::Stopped(why),
        }
    }
}
