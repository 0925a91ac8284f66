//! Files that other machines have: asked for some at a time, and taken in their order.
//!
//! What is there already is not fetched: where the other machine says that its file has as many bytes as the object,
//! and was last changed a second or more before the object was. `Last-Modified` counts in whole seconds.
//! Never here: how files are asked for.

use std::collections::VecDeque;
use std::path::Path;

use engine::{ObjectName, Store, Watch};

use super::{ArchiveError, Candidate, End, Importer, Records, Work, commits};
use crate::archive::address_list::{AddressList, Listed};
use crate::archive::arrivals::{Arriving, Fetches, Head, Look, Need, Piece, Remote};
use crate::archive::files::Input;
use crate::archive::{OnConflict, Reach, place_error};
use crate::limits;

/// The least time between the last change of a file elsewhere and that of the object that it is taken to be.
const OLDER_BY_MS: u64 = 1_000;

impl Importer<'_> {
    /// What lies at the addresses of a list.
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
        let mut coming = VecDeque::new();
        let mut has_ended = false;
        let mut stop = None;
        while !(has_ended || stop.is_some()) || !coming.is_empty() {
            work.tell()?;
            while !has_ended && stop.is_none() && coming.len() < limits::IMPORT_FETCHES_MAX {
                let listed = list.next().map_err(|why| End::Failed(place_error("read", path)(why)));
                match listed? {
                    Listed::Address { name, address, key } => {
                        let file = match self.admit(name, &key, 0, Records::default()) {
                            Ok(Some(file)) => file,
                            Ok(None) => {
                                work.add_item()?;
                                continue;
                            }
                            // What is on its way is taken before.
                            Err(end) => {
                                stop = Some(end);
                                continue;
                            }
                        };
                        let remote = Remote::Address { outbound: outbound.clone(), address };
                        let look = self.look(&file);
                        coming.extend(fetches.begin(remote, look).map(|it| (file, it)));
                    }
                    Listed::Refused { name, why } => {
                        self.report.refused.add(&name, why);
                        work.add_item()?;
                    }
                    Listed::Later => break,
                    Listed::End => has_ended = true,
                }
            }
            if let Some((file, arriving)) = coming.pop_front() {
                self.take_arriving(file, arriving, &fetches, &mut work)?;
                work.add_item()?;
            }
        }
        stop.map_or(Ok(()), Err)
    }

    /// Stores a file as it comes, or finds that there is nothing to store.
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
                    match need {
                        Need::Refuse(why) => self.report.refused.add(&file.name, why),
                        Need::Skip => self.report.skipped.add(&file.name, commits::SKIPPED),
                        Need::Fetch | Need::Unchanged => self.report.unchanged_count += 1,
                    }
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

    /// Decides whether a file is wanted, by its head.
    fn look(&self, file: &Candidate) -> Look {
        let name = ObjectName::new(self.job.bucket.name.clone(), file.key.clone());
        let (store, on_conflict) = (self.job.store.clone(), self.rules.on_conflict);
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
