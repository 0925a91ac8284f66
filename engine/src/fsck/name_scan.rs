//! Scans record heads for the newest record of each name, in bounded passes.
//!
//! Guarantees: memory is bounded by the names of a pass; in broken groups, records known only from the footer are
//! distinguished from readable ones.
//! Non-goals: the index.

use std::sync::Arc;

use super::check_state::Check;
use super::name_state::{ByName, NameHash, NameState, NewestRecord, add_newest, newest_of};
use super::pipeline::{CHUNK_ITEMS, pipeline};
use super::survey::{SegmentSurvey, StoreSurvey, open};
use super::suspect::RecordDamage;
use crate::error::{Error, Result};
use crate::format::SegmentId;
use crate::segment::{CursorRecord, RecordCursor};

/// Part of the names that a pass covers.
#[derive(Clone, Copy)]
pub(super) struct PassPart {
    pub(super) number: u64,
    pub(super) of: u64,
}

/// Names of one pass.
pub(super) struct Pass {
    pub(super) part: PassPart,
    pub(super) known: ByName<NameState>,
}

/// Result of reading the heads of a segment.
enum Heads {
    /// Names and their states.
    Said(Vec<(NameHash, NewestRecord)>),
    /// Segment that could not be read to its end.
    Damaged(SegmentId),
    /// End of a segment.
    End,
}

impl PassPart {
    /// Returns whether it is the first pass.
    pub(super) fn is_first(self) -> bool {
        self.number == 0
    }

    /// Returns whether the pass covers the name with this hash.
    pub(super) fn has(self, hash: &NameHash) -> bool {
        let (first, _) = hash.split_at(8);
        let number = first.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        number % self.of == self.number
    }
}

/// Returns the name state of a record, if the pass covers its name.
fn said_in(
    part: PassPart,
    id: SegmentId,
    found: &CursorRecord,
) -> Option<(NameHash, NewestRecord)> {
    newest_of(&found.record, (id, found.place.offset)).filter(|(hash, _)| part.has(hash))
}

impl Check<'_, '_> {
    /// Collects the newest record of each name of the pass.
    pub(super) fn scan(&mut self, ground: &mut StoreSurvey, pass: &mut Pass) -> Result<()> {
        if ground.is_whole() {
            return self.scan_whole(ground, pass);
        }
        let ids: Vec<_> = ground.segments.keys().copied().collect();
        for id in ids {
            let Some(held) = ground.segments.get_mut(&id).filter(|held| held.is_in_effect()) else {
                continue;
            };
            match self.scan_segment(id, held, pass) {
                // Reported when the segment was checked.
                Err(Error::Io { .. } | Error::Corrupt(_)) => held.is_damaged = true,
                other => other?,
            }
            self.read_on(0)?;
        }
        Ok(())
    }

    /// Collects the newest records if no group is broken, so that the heads suffice.
    fn scan_whole(&mut self, ground: &mut StoreSurvey, pass: &mut Pass) -> Result<()> {
        let counting = ground.segments.iter().filter(|(_, held)| held.is_in_effect());
        let segments: Vec<_> = counting
            .filter_map(|(id, held)| Some((*id, held.path.clone(), held.header?, held.end)))
            .collect();
        let part = pass.part;
        let disk = Arc::clone(&self.disk);
        let read = |give: &mut dyn FnMut(Heads) -> Result<()>| {
            for (id, path, header, end) in segments {
                let cursor = open(disk.as_ref(), &path)
                    .and_then(|file| RecordCursor::open(file, path, header, end));
                let mut newest = Vec::with_capacity(CHUNK_ITEMS);
                let ended = cursor.and_then(|mut cursor| {
                    while let Some(found) = cursor.step()? {
                        newest.extend(said_in(part, id, &found));
                        if newest.len() == CHUNK_ITEMS {
                            let next = Vec::with_capacity(CHUNK_ITEMS);
                            give(Heads::Said(std::mem::replace(&mut newest, next)))?;
                        }
                    }
                    Ok(())
                });
                give(Heads::Said(newest))?;
                match ended {
                    Err(Error::Io { .. } | Error::Corrupt(_)) => give(Heads::Damaged(id))?,
                    other => other?,
                }
                give(Heads::End)?;
            }
            Ok(())
        };
        pipeline(self.workers, read, |heads| {
            match heads {
                Heads::Said(newest) => {
                    for (hash, newest) in newest {
                        add_newest(&mut pass.known, hash, newest, self.applied_lsn);
                    }
                }
                // Reported when the segment was checked.
                Heads::Damaged(id) => {
                    if let Some(held) = ground.segments.get_mut(&id) {
                        held.is_damaged = true;
                    }
                }
                Heads::End => self.read_on(0)?,
            }
            Ok(())
        })
    }

    fn scan_segment(&mut self, id: SegmentId, held: &SegmentSurvey, pass: &mut Pass) -> Result<()> {
        let Some(header) = held.header else { return Ok(()) };
        let file = self.open(&held.path)?;
        let mut cursor = RecordCursor::open(file, held.path.clone(), header, held.end)?;
        while let Some(found) = cursor.step()? {
            let Some((hash, newest)) = said_in(pass.part, id, &found) else { continue };
            let place = newest.at;
            if held.is_faulty_at(place.1) {
                match self.head_in(held, place.1) {
                    Some(record) => self.check_skipped(held, id, place.1, &record),
                    None => {
                        let is_whole = cursor.read_body(&found).is_ok();
                        let what = if is_whole { RecordDamage::Head } else { RecordDamage::All };
                        self.suspect(place, &found.record, place.1, what);
                    }
                }
            }
            add_newest(&mut pass.known, hash, newest, self.applied_lsn);
        }
        Ok(())
    }
}
