//! Import from remote hosts: files are downloaded concurrently, and stored in order.
//!
//! A file is skipped if the remote host reports the size of the existing object, and a last change at least a second
//! before that of the object, since `Last-Modified` has whole seconds. Non-goals: downloads.

use std::collections::VecDeque;
use std::path::Path;

use engine::{ObjectName, Store, Watch};

use super::{ArchiveError, Candidate, End, Importer, Records, Work, commits};
use crate::archive::address_list::{AddressList, Listed};
use crate::archive::arrivals::{Arriving, Fetches, Head, Look, Need, Piece, Remote};
use crate::archive::bucket::{Bucket, BucketSource, ListedObject};
use crate::archive::files::Input;
use crate::archive::{OnConflict, Reach, place_error};
use crate::limits::archives::IMPORT_FETCHES_MAX;

/// Minimum age difference between a remote file and the object that is taken to be its copy.
const OLDER_BY_MS: u64 = 1_000;

/// Next item of a source.
enum Next {
    File(Box<(Candidate, Remote)>),
    /// Already reported; nothing to download.
    Done,
    /// No data available yet.
    Later,
    End,
}

impl Importer<'_> {
    /// Imports the files of a URL list.
    pub(super) fn addresses<'w>(
        &mut self,
        path: &Path,
        reach: &Reach,
        watch: &'w mut Watch<'w>,
    ) -> Result<(), End> {
        let failed = |why: String| End::Failed(ArchiveError::Place(why));
        let input = Input::open(path).map_err(|why| End::Failed(place_error("read", path)(why)))?;
        let outbound = reach.outbound().map_err(failed)?;
        let mut work = Work::new(watch, 0, 0);
        let fetches = Fetches::new().map_err(|why| failed(why.to_string()))?;
        let mut list = AddressList::new(input);
        let next = |importer: &mut Self, _: &mut Work<'_>| {
            let listed = list.next().map_err(|why| End::Failed(place_error("read", path)(why)))?;
            Ok(match listed {
                Listed::Address { name, address, key } => {
                    match importer.admit(name, &key, 0, Records::default())? {
                        Some(file) => {
                            let outbound = outbound.clone();
                            let remote = Remote::Address { outbound, address };
                            Next::File(Box::new((file, remote)))
                        }
                        None => Next::Done,
                    }
                }
                Listed::Refused { name, why } => {
                    importer.report.refused.add(&name, why);
                    Next::Done
                }
                Listed::Later => Next::Later,
                Listed::End => Next::End,
            })
        };
        self.bring(&fetches, &mut work, next)
    }

    /// Imports a remote bucket.
    pub(super) fn bucket<'w>(
        &mut self,
        source: &BucketSource,
        watch: &'w mut Watch<'w>,
    ) -> Result<(), End> {
        let failed = |why: String| End::Failed(ArchiveError::Place(why));
        let bucket = source.open().map_err(failed)?;
        let mut work = Work::new(watch, 0, 0);
        let fetches = Fetches::new().map_err(|why| failed(why.to_string()))?;
        let mut listing = bucket.listing();
        let mut page = VecDeque::new();
        let mut has_begun = false;
        let next = |importer: &mut Self, work: &mut Work<'_>| {
            let Some(listed) = page.pop_front() else {
                return match fetches.wait_for(Box::pin(listing.next()), work)? {
                    Some(Ok(Some(objects))) => {
                        has_begun = true;
                        page.extend(objects);
                        Ok(Next::Later)
                    }
                    Some(Ok(None)) | None => Ok(Next::End),
                    Some(Err(why)) if has_begun => Err(End::Stopped(why)),
                    Some(Err(why)) => Err(failed(why)),
                };
            };
            importer.listed(listed, &bucket)
        };
        self.bring(&fetches, &mut work, next)
    }

    /// Decides about a listed object.
    fn listed(&mut self, listed: ListedObject, bucket: &Bucket) -> Result<Next, End> {
        let name = listed.key.clone();
        if listed.is_folder() {
            // Folders exist with their files.
            if listed.bytes > 0 {
                self.report.refused.add(&name, "its name is a folder name, but it has content");
            }
            return Ok(Next::Done);
        }
        let Some(file) = self.admit(name.clone(), &name, 0, Records::default())? else {
            return Ok(Next::Done);
        };
        // The listing may already show that no download is needed.
        let (bytes, modified_ms) = (Some(listed.bytes), listed.modified_ms);
        let head = Head { bytes, modified_ms, ..Head::default() };
        match self.look(&file)(&head) {
            Need::Fetch => {}
            other => {
                self.not_needed(&file, other);
                return Ok(Next::Done);
            }
        }
        if !self.has_room(&name, listed.bytes)? {
            return Ok(Next::Done);
        }
        let remote = Remote::Object { bucket: bucket.clone(), listed };
        Ok(Next::File(Box::new((file, remote))))
    }

    /// Imports the files of a source, several downloads at a time.
    fn bring(
        &mut self,
        fetches: &Fetches,
        work: &mut Work<'_>,
        mut next: impl FnMut(&mut Self, &mut Work<'_>) -> Result<Next, End>,
    ) -> Result<(), End> {
        let mut coming = VecDeque::new();
        let mut has_ended = false;
        let mut stop = None;
        while !(has_ended || stop.is_some()) || !coming.is_empty() {
            work.tell()?;
            while !has_ended && stop.is_none() && coming.len() < IMPORT_FETCHES_MAX {
                match next(self, work) {
                    Ok(Next::File(found)) => {
                        let (file, remote) = *found;
                        let look = self.look(&file);
                        coming.extend(fetches.begin(remote, look).map(|it| (file, it)));
                    }
                    Ok(Next::Done) => work.add_item()?,
                    Ok(Next::Later) => break,
                    Ok(Next::End) => has_ended = true,
                    // Downloads in progress are stored first.
                    Err(End::Stopped(why)) => stop = Some(End::Stopped(why)),
                    Err(failed) => return Err(failed),
                }
            }
            if let Some((file, arriving)) = coming.pop_front() {
                self.take_arriving(file, arriving, fetches, work)?;
                work.add_item()?;
            }
        }
        stop.map_or(Ok(()), Err)
    }

    /// Counts a file that is not downloaded.
    fn not_needed(&mut self, file: &Candidate, need: Need) {
        match need {
            Need::Refuse(why) => self.report.refused.add(&file.name, why),
            Need::Skip => self.report.skipped.add(&file.name, commits::SKIPPED),
            Need::Fetch | Need::Unchanged => self.report.unchanged_count += 1,
        }
    }

    /// Stores a file as it arrives, unless its content already exists.
    fn take_arriving(
        &mut self,
        mut file: Candidate,
        mut arriving: Arriving,
        fetches: &Fetches,
        work: &mut Work<'_>,
    ) -> Result<(), End> {
        let mut upload = self.job.store.upload();
        loop {
            match fetches.next(&mut arriving, work)? {
                Piece::Head(head) => {
                    if !self.has_room(&file.name, head.bytes.unwrap_or(0))? {
                        return Ok(());
                    }
                    file.records.content_type = head.content_type;
                    file.records.attributes = head.attributes;
                    file.records.created_ms = head.modified_ms;
                    upload = self.job.store.upload();
                }
                Piece::Bytes(bytes) => {
                    if !self.has_room(&file.name, upload.bytes() + bytes.len() as u64)? {
                        return Ok(());
                    }
                    upload.push(&bytes)?;
                    work.add_bytes(bytes.len() as u64)?;
                }
                Piece::End => break,
                Piece::NotNeeded(need) => {
                    self.not_needed(&file, need);
                    return Ok(());
                }
                Piece::Failed(why) => {
                    self.report.refused.add(&file.name, why);
                    return Ok(());
                }
            }
        }
        self.taken_bytes = self.taken_bytes.saturating_add(upload.bytes());
        self.keep(file, upload.finish()?, work)
    }

    /// Returns the decision whether a file is needed, given its metadata.
    fn look(&self, file: &Candidate) -> Look {
        let name = ObjectName::new(self.job.bucket.name.clone(), file.key.clone());
        let (store, on_conflict) = (self.job.store.clone(), self.rules.on_conflict);
        if self.lists_once && file.is_respelled {
            // The object may be another file, so only the content can tell.
            return Box::new(|_| Need::Fetch);
        }
        Box::new(move |head| need(&store, &name, on_conflict, head))
    }
}

fn need(store: &Store, name: &ObjectName, on_conflict: OnConflict, head: &Head) -> Need {
    let there = match store.get(name) {
        Ok(Some(there)) => there,
        Ok(None) => return Need::Fetch,
        Err(error) => return Need::Refuse(error.to_string()),
    };
    let Some(bytes) = head.bytes else { return Need::Fetch };
    let is_older = |at: u64| at.saturating_add(OLDER_BY_MS) <= there.modified_ms();
    match there.bytes() == bytes {
        true if head.modified_ms.is_some_and(is_older) => Need::Unchanged,
        false if on_conflict == OnConflict::Skip => Need::Skip,
        _ => Need::Fetch,
    }
}
