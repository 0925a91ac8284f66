//! Import from remote hosts: files are downloaded concurrently, and stored in order.
//!
//! A file is skipped if the remote host reports the size of the existing object, and a last change at least a second
//! before that of the object, since `Last-Modified` has whole seconds. Non-goals: downloads.

use std::collections::VecDeque;
use std::path::Path;

use engine::progress::ProgressCallback;
use engine::{ObjectName, Store};

use super::{
    ArchiveError, Candidate, ImportAbort, Importer, PaxRecords, ProgressReporter, committer,
};
use crate::archive::downloads::{
    Download, DownloadDecision, DownloadEvent, DownloadHead, Downloader, HeadFilter, RemoteFile,
};
use crate::archive::limits::IMPORT_DOWNLOADS_MAX;
use crate::archive::local_files::Input;
use crate::archive::s3_source::{Bucket, BucketSource, ListedObject};
use crate::archive::url_list::{UrlList, UrlListEntry};
use crate::archive::{ImportConflictRule, ImportNetworkPolicy, location_error};

/// Minimum age difference between a remote file and the object that is taken to be its copy.
const OLDER_BY_MS: u64 = 1_000;

/// Next item of a source.
enum Next {
    File(Box<(Candidate, RemoteFile)>),
    /// Already reported; nothing to download.
    Done,
    /// No data available yet.
    Later,
    End,
}

impl Importer<'_> {
    /// Imports the files of a URL list.
    pub(super) fn import_urls<'w>(
        &mut self,
        path: &Path,
        reach: &ImportNetworkPolicy,
        watch: &'w mut ProgressCallback<'w>,
    ) -> Result<(), ImportAbort> {
        let failed = |why: String| ImportAbort::Failed(ArchiveError::Location(why));
        let input = Input::open(path)
            .map_err(|why| ImportAbort::Failed(location_error("read", path)(why)))?;
        let outbound = reach.outbound().map_err(failed)?;
        let mut work = ProgressReporter::new(watch, 0, 0);
        let fetches = Downloader::new().map_err(|why| failed(why.to_string()))?;
        let mut list = UrlList::new(input);
        let next = |importer: &mut Self, _: &mut ProgressReporter<'_>| {
            let listed = list
                .next()
                .map_err(|why| ImportAbort::Failed(location_error("read", path)(why)))?;
            Ok(match listed {
                UrlListEntry::Url { name, address, key } => {
                    match importer.admit(name, &key, 0, PaxRecords::default())? {
                        Some(file) => {
                            let outbound = outbound.clone();
                            let remote = RemoteFile::Url { outbound, address };
                            Next::File(Box::new((file, remote)))
                        }
                        None => Next::Done,
                    }
                }
                UrlListEntry::Refused { name, why } => {
                    importer.report.refused.add(&name, why);
                    Next::Done
                }
                UrlListEntry::Pending => Next::Later,
                UrlListEntry::End => Next::End,
            })
        };
        self.bring(&fetches, &mut work, next)
    }

    /// Imports a remote bucket.
    pub(super) fn bucket<'w>(
        &mut self,
        source: &BucketSource,
        watch: &'w mut ProgressCallback<'w>,
    ) -> Result<(), ImportAbort> {
        let failed = |why: String| ImportAbort::Failed(ArchiveError::Location(why));
        let bucket = source.open().map_err(failed)?;
        let mut work = ProgressReporter::new(watch, 0, 0);
        let fetches = Downloader::new().map_err(|why| failed(why.to_string()))?;
        let mut listing = bucket.listing();
        let mut page = VecDeque::new();
        let mut has_begun = false;
        let next = |importer: &mut Self, work: &mut ProgressReporter<'_>| {
            let Some(listed) = page.pop_front() else {
                return match fetches.wait_for(Box::pin(listing.next()), work)? {
                    Some(Ok(Some(objects))) => {
                        has_begun = true;
                        page.extend(objects);
                        Ok(Next::Later)
                    }
                    Some(Ok(None)) | None => Ok(Next::End),
                    Some(Err(why)) if has_begun => Err(ImportAbort::Stopped(why)),
                    Some(Err(why)) => Err(failed(why)),
                };
            };
            importer.listed(listed, &bucket)
        };
        self.bring(&fetches, &mut work, next)
    }

    /// Decides about a listed object.
    fn listed(&mut self, listed: ListedObject, bucket: &Bucket) -> Result<Next, ImportAbort> {
        let name = listed.key.clone();
        if listed.is_folder() {
            // Folders exist with their files.
            if listed.bytes > 0 {
                self.report.refused.add(&name, "its name is a folder name, but it has content");
            }
            return Ok(Next::Done);
        }
        let Some(file) = self.admit(name.clone(), &name, 0, PaxRecords::default())? else {
            return Ok(Next::Done);
        };
        // The listing may already show that no download is needed.
        let (bytes, modified_ms) = (Some(listed.bytes), listed.modified_ms);
        let head = DownloadHead { bytes, modified_ms, ..DownloadHead::default() };
        match self.decide(&file)(&head) {
            DownloadDecision::Fetch => {}
            other => {
                self.not_needed(&file, other);
                return Ok(Next::Done);
            }
        }
        if !self.check_limits(&name, listed.bytes)? {
            return Ok(Next::Done);
        }
        let remote = RemoteFile::Object { bucket: bucket.clone(), listed };
        Ok(Next::File(Box::new((file, remote))))
    }

    /// Imports the files of a source, several downloads at a time.
    fn bring(
        &mut self,
        fetches: &Downloader,
        work: &mut ProgressReporter<'_>,
        mut next: impl FnMut(&mut Self, &mut ProgressReporter<'_>) -> Result<Next, ImportAbort>,
    ) -> Result<(), ImportAbort> {
        let mut coming = VecDeque::new();
        let mut has_ended = false;
        let mut stop = None;
        while !(has_ended || stop.is_some()) || !coming.is_empty() {
            work.check_cancelled()?;
            while !has_ended && stop.is_none() && coming.len() < IMPORT_DOWNLOADS_MAX {
                match next(self, work) {
                    Ok(Next::File(found)) => {
                        let (file, remote) = *found;
                        let look = self.decide(&file);
                        coming.extend(fetches.start(remote, look).map(|it| (file, it)));
                    }
                    Ok(Next::Done) => work.add_item()?,
                    Ok(Next::Later) => break,
                    Ok(Next::End) => has_ended = true,
                    // Downloads in progress are stored first.
                    Err(ImportAbort::Stopped(why)) => stop = Some(ImportAbort::Stopped(why)),
                    Err(failed) => return Err(failed),
                }
            }
            if let Some((file, arriving)) = coming.pop_front() {
                self.store_download(file, arriving, fetches, work)?;
                work.add_item()?;
            }
        }
        stop.map_or(Ok(()), Err)
    }

    /// Counts a file that is not downloaded.
    fn not_needed(&mut self, file: &Candidate, need: DownloadDecision) {
        match need {
            DownloadDecision::Refuse(why) => self.report.refused.add(&file.name, why),
            DownloadDecision::Skip => self.report.skipped.add(&file.name, committer::SKIPPED),
            DownloadDecision::Fetch | DownloadDecision::Unchanged => {
                self.report.unchanged_count += 1
            }
        }
    }

    /// Stores a file as it arrives, unless its content already exists.
    fn store_download(
        &mut self,
        mut file: Candidate,
        mut arriving: Download,
        fetches: &Downloader,
        work: &mut ProgressReporter<'_>,
    ) -> Result<(), ImportAbort> {
        let mut upload = self.job.store.upload();
        loop {
            match fetches.next(&mut arriving, work)? {
                DownloadEvent::Head(head) => {
                    if !self.check_limits(&file.name, head.bytes.unwrap_or(0))? {
                        return Ok(());
                    }
                    file.records.content_type = head.content_type;
                    file.records.attributes = head.attributes;
                    file.records.created_ms = head.modified_ms;
                    upload = self.job.store.upload();
                }
                DownloadEvent::Bytes(bytes) => {
                    if !self.check_limits(&file.name, upload.bytes() + bytes.len() as u64)? {
                        return Ok(());
                    }
                    upload.push(&bytes)?;
                    work.add_bytes(bytes.len() as u64)?;
                }
                DownloadEvent::End => break,
                DownloadEvent::Skipped(need) => {
                    self.not_needed(&file, need);
                    return Ok(());
                }
                DownloadEvent::Failed(why) => {
                    self.report.refused.add(&file.name, why);
                    return Ok(());
                }
            }
        }
        self.taken_bytes = self.taken_bytes.saturating_add(upload.bytes());
        self.keep(file, upload.finish()?, work)
    }

    /// Returns the decision whether a file is needed, given its metadata.
    fn decide(&self, file: &Candidate) -> HeadFilter {
        let name = ObjectName::new(self.job.bucket.name.clone(), file.key.clone());
        let (store, on_conflict) = (self.job.store.clone(), self.rules.on_conflict);
        if self.lists_once && file.is_respelled {
            // The object may be another file, so only the content can tell.
            return Box::new(|_| DownloadDecision::Fetch);
        }
        Box::new(move |head| need(&store, &name, on_conflict, head))
    }
}

fn need(
    store: &Store,
    name: &ObjectName,
    on_conflict: ImportConflictRule,
    head: &DownloadHead,
) -> DownloadDecision {
    let there = match store.get(name) {
        Ok(Some(there)) => there,
        Ok(None) => return DownloadDecision::Fetch,
        Err(error) => return DownloadDecision::Refuse(error.to_string()),
    };
    let Some(bytes) = head.bytes else { return DownloadDecision::Fetch };
    let is_older = |at: u64| at.saturating_add(OLDER_BY_MS) <= there.modified_ms();
    match there.bytes() == bytes {
        true if head.modified_ms.is_some_and(is_older) => DownloadDecision::Unchanged,
        false if on_conflict == ImportConflictRule::Skip => DownloadDecision::Skip,
        _ => DownloadDecision::Fetch,
    }
}
