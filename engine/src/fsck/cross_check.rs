//! Cross-checks the index against the newest record of every name, and the content of each object.
//!
//! A store with more names than fit in memory is checked in several passes, by name hash, each with at most
//! [`CheckOptions::names_max`](super::CheckOptions::names_max) names.
//!
//! Guarantees: an object is reported as lost only after its record was looked up at its location.
//! Non-goals: reading records.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::mem;

use super::check_big::BigContentState;
use super::check_state::{Check, IndexFaults};
use super::finding::{Finding, Remedy, Severity};
use super::index_check::Pointed;
use super::name_scan::{Pass, PassPart};
use super::name_state::{
    ByName, NameHash, NameState, NameStatus, SegmentOffset, hash_of, hash_of_fact, hash_of_key,
    segment_offset,
};
use super::pipeline::{CHUNK_ITEMS, pipeline};
use super::survey::{SegmentSurvey, StoreSurvey, read_up_to};
use super::suspect::{RecordDamage, RecordSubject, Suspect};
use crate::error::Result;
use crate::format::{
    Entry, EntryContent, HEAD_BYTES_MAX, Record, RecordContent, RecordOp, SEGMENT_HEADER_BYTES,
    SegmentClass, SegmentId,
};
use crate::index::{Fact, INDEX_FILE, Index};
use crate::limits;
use crate::name::{FactName, ObjectName};

/// Outcome for an object that is not fully readable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DamageOutcome {
    /// Not readable at all.
    Lost,
    /// The disk fails to read it now. It may recover, or the data may be copied by other means.
    Unreadable,
    /// Partially readable.
    PartlyReadable,
    /// The content is readable, its record is not.
    RecordLost,
    /// Damaged, and regenerated when it is missing.
    Derived,
}

/// Keys and encoded entries of the index.
#[derive(Default)]
struct EntryChunk {
    bytes: Vec<u8>,
    /// Ends of each key and of its entry.
    ends: Vec<(usize, usize)>,
}

impl EntryChunk {
    fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((key_end, self.bytes.len()));
    }

    fn is_full(&self) -> bool {
        self.ends.len() >= CHUNK_ITEMS
    }

    fn entries(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut start = 0;
        self.ends.iter().filter_map(move |(key_end, end)| {
            let key = self.bytes.get(mem::replace(&mut start, *end)..*key_end)?;
            Some((key, self.bytes.get(*key_end..*end)?))
        })
    }
}

impl Check<'_, '_> {
    /// Checks all names.
    pub(super) fn cross_check_names(&mut self, ground: &mut StoreSurvey) -> Result<()> {
        let records: u64 = ground.segments.values().map(|held| held.records).sum();
        self.names.add(&mut self.name_batch, self.applied_lsn);
        let mut walked = self.names.take().filter(|_| ground.is_whole());
        let passes = if walked.is_some() { 1 } else { self.names.passes(records) };
        let mut faults = IndexFaults::default();
        let mut pointed = Pointed::default();
        let mut dead = BTreeMap::new();
        let earlier = self.report.findings.len();
        for number in 0..passes {
            let part = PassPart { number, of: passes };
            let mut pass = Pass { part, known: ByName::default() };
            match walked.take() {
                Some(known) => pass.known = known,
                None => self.scan(ground, &mut pass)?,
            }
            self.match_entries(ground, &mut pass, &mut pointed, &mut faults)?;
            self.match_facts(ground, &mut pass, &mut pointed, &mut faults)?;
            self.match_known(ground, &pass, &mut faults)?;
            self.classify_suspects(ground, &pass, &mut dead);
        }
        // The order does not depend on the number of passes.
        let order = |it: &Finding| (Reverse(it.severity), it.file.clone(), it.what.clone());
        self.report.findings.get_mut(earlier..).unwrap_or_default().sort_by_cached_key(order);
        self.check_usage(ground, &pointed, &mut faults)?;
        self.report_index_faults(faults);
        for (path, (count, offset)) in dead {
            let what = format!("{count} corrupt records are dead already");
            self.found(Severity::Note, &path, offset, what, Remedy::None);
        }
        if self.report.known_losses > 0 {
            let what = format!(
                "{} objects were recorded as lost earlier: reading their keys fails as \
                \"damaged\"",
                self.report.known_losses
            );
            self.found(Severity::Note, INDEX_FILE, 0, what, Remedy::None);
        }
        Ok(())
    }

    fn match_entries(
        &mut self,
        ground: &StoreSurvey,
        pass: &mut Pass,
        pointed: &mut Pointed,
        faults: &mut IndexFaults,
    ) -> Result<()> {
        let Some(index) = self.index.clone() else { return Ok(()) };
        let part = pass.part;
        let view = index.view();
        let (mut miscounts, mut read_error, mut entry_error) = (IndexFaults::default(), None, None);
        let read = |give: &mut dyn FnMut(EntryChunk) -> Result<()>| {
            let (mut chunk, mut is_stopped) = (EntryChunk::default(), false);
            let each = |key: &[u8], value: &[u8]| {
                chunk.push(key, value);
                let given = if chunk.is_full() { give(mem::take(&mut chunk)) } else { Ok(()) };
                given.inspect_err(|_| is_stopped = true)
            };
            let read = match part.is_first() {
                true => view.verify_entries(|it| miscounts.add(|| it.to_string()), each),
                false => index.each_entry(each),
            };
            read_error = read.as_ref().err().filter(|_| !is_stopped).cloned();
            read.and_then(|()| give(chunk))
        };
        let compared = pipeline(self.workers, read, |chunk| {
            for (key, value) in chunk.entries() {
                let is_found =
                    if part.is_first() { view.verify_lookup(key, value) } else { Ok(()) };
                let entry = is_found.and_then(|()| Index::entry_of(key, value));
                let entry = &entry.inspect_err(|error| entry_error = Some(error.clone()))?;
                if part.is_first() {
                    pointed.add_entry(entry);
                    if let EntryContent::Big { bytes, segment } = entry.content
                        && let usage = view.segment_usage(segment)?
                        && usage.is_none_or(|usage| usage.live_bytes != bytes)
                    {
                        let name = Index::name_of(key)?;
                        faults.add(|| format!("wrong usage of big segment {segment} of {name}"));
                    }
                }
                let hash = hash_of_key(key);
                if part.has(&hash) {
                    let known = pass.known.get_mut(&hash);
                    self.match_entry(ground, known, (key, hash), entry, faults)?;
                }
            }
            Ok(())
        });
        faults.append(miscounts);
        self.index_error = read_error.or(entry_error);
        compared
    }

    fn match_entry(
        &mut self,
        ground: &StoreSurvey,
        mut known: Option<&mut NameState>,
        (key, hash): (&[u8], NameHash),
        entry: &Entry,
        faults: &mut IndexFaults,
    ) -> Result<()> {
        let place = segment_offset(&entry.record);
        if let Some(known) = &mut known {
            known.pointed = Some((entry.lsn, place));
            if known.agrees_with(entry) {
                return Ok(());
            }
        }
        let name = &Index::name_of(key)?;
        let is_current = known.as_ref().is_none_or(|known| known.now.lsn <= entry.lsn);
        let newest = known.as_ref().and_then(|known| known.at_index());
        let is_there = match newest {
            Some(newest) if newest.lsn > entry.lsn => {
                faults.add(|| format!("a newer record of {name} is missing"));
                return Ok(());
            }
            Some(newest) if newest.lsn == entry.lsn => {
                let is_same = matches!(
                    (newest.status, entry.content),
                    (NameStatus::Inline, EntryContent::Inline { .. })
                        | (NameStatus::Lost, EntryContent::Lost { .. })
                ) || matches!((newest.status, entry.content),
                    (NameStatus::Big(one), EntryContent::Big { segment, .. }) if one == segment);
                if !is_same {
                    faults.add(|| format!("the entry of {name} contradicts its record"));
                }
                newest.is_at(place)
            }
            _ => false,
        };
        let is_there = is_there || {
            let found = self.is_at(ground, place, hash, entry.lsn);
            if let (Some(record), Some(held)) = (&found, ground.segments.get(&place.0)) {
                self.check_skipped(held, place.0, place.1, record);
            }
            found.is_some()
        };
        if !is_there {
            if !self.may_be_lost(ground, place.0, entry.lsn) {
                faults.add(|| format!("the entry of {name} points to a wrong location"));
                return Ok(());
            }
            if known.is_none() {
                self.report.objects += 1;
            }
        }
        if !is_current {
            return Ok(());
        }
        let path = ground.segments.get(&place.0).map(|held| held.path.clone());
        let path = path.unwrap_or_else(|| place.0.path(SegmentClass::Log));
        let mut is_readable = true;
        if let EntryContent::Big { bytes, segment } = entry.content {
            let hash = entry.meta.hash;
            is_readable = self.classify_big(ground, segment, bytes, &hash, name, entry.lsn)?;
        }
        match entry.content {
            _ if is_there => {}
            EntryContent::Big { .. } if is_readable => {
                self.judged(DamageOutcome::RecordLost, &path, place.1, name, entry.lsn);
            }
            EntryContent::Big { .. } => {}
            EntryContent::Inline { .. } | EntryContent::Lost { .. } => {
                self.judged(DamageOutcome::Lost, &path, place.1, name, entry.lsn);
            }
        }
        Ok(())
    }

    fn match_facts(
        &mut self,
        ground: &StoreSurvey,
        pass: &mut Pass,
        pointed: &mut Pointed,
        faults: &mut IndexFaults,
    ) -> Result<()> {
        let Some(index) = self.index.clone() else { return Ok(()) };
        index.each_fact(|name, fact| {
            if pass.part.is_first() {
                pointed.add_fact(&fact);
            }
            let hash = hash_of_fact(&name);
            if pass.part.has(&hash) {
                let known = pass.known.get_mut(&hash);
                self.match_fact(ground, known, name, &fact, faults);
            }
            Ok(())
        })
    }

    fn match_fact(
        &mut self,
        ground: &StoreSurvey,
        mut known: Option<&mut NameState>,
        name: FactName,
        fact: &Fact,
        faults: &mut IndexFaults,
    ) {
        let place = segment_offset(&fact.record);
        if let Some(known) = &mut known {
            known.pointed = Some((fact.lsn, place));
        }
        let is_current = known.as_ref().is_none_or(|known| known.now.lsn <= fact.lsn);
        let newest = known.as_ref().and_then(|known| known.at_index());
        if newest.is_some_and(|newest| newest.lsn > fact.lsn) {
            faults.add(|| format!("a newer record of the fact {name} is missing"));
            return;
        }
        let is_there = newest.is_some_and(|newest| newest.lsn == fact.lsn && newest.is_at(place));
        if is_there || self.is_at(ground, place, hash_of_fact(&name), fact.lsn).is_some() {
            return;
        }
        if !self.may_be_lost(ground, place.0, fact.lsn) {
            faults.add(|| format!("the entry of the fact {name} points to a wrong location"));
        } else if is_current {
            let path =
                ground.segments.get(&place.0).map_or("log".to_owned(), |held| held.path.clone());
            self.fact_hurt(&path, place.1, name);
        }
    }

    /// Checks records that the index should contain but does not, and the content of records after the index
    /// position.
    fn match_known(
        &mut self,
        ground: &StoreSurvey,
        pass: &Pass,
        faults: &mut IndexFaults,
    ) -> Result<()> {
        for known in pass.known.values() {
            match known.now.status {
                NameStatus::Inline | NameStatus::Big(_) => self.report.objects += 1,
                NameStatus::Lost => {
                    self.report.objects += 1;
                    self.report.known_losses += 1;
                }
                NameStatus::Fact => self.report.facts += 1,
                NameStatus::Deleted | NameStatus::FactDeleted => {}
            }
            if self.index.is_some()
                && known.pointed.is_none()
                && let Some(newest) = known.at_index().filter(|newest| newest.status.exists())
                // A missing record may be the one that deleted it.
                && !self.gaps.touch(newest.lsn.saturating_add(1), self.applied_lsn)
            {
                let name = self.head_at(ground, newest.at).map(|record| record.op);
                faults.add(|| match name {
                    Some(RecordOp::Put { name, .. }) => format!("{name} is missing"),
                    Some(RecordOp::PutFact { name, .. }) => format!("the fact {name} is missing"),
                    _ => format!("the change of record {} is missing", newest.lsn),
                });
            }
            let is_in_index = known.pointed.is_some_and(|(lsn, _)| lsn >= known.now.lsn);
            if let NameStatus::Big(segment) = known.now.status
                && !is_in_index
            {
                if self.big_named.len() < limits::FSCK_BIG_REFERENCES_MAX {
                    self.big_named.insert(segment);
                }
                let Some(record) = self.head_at(ground, known.now.at) else { continue };
                if let RecordOp::Put { name, meta, content: RecordContent::Big { bytes, .. } } =
                    record.op
                {
                    self.classify_big(ground, segment, bytes, &meta.hash, &name, record.lsn)?;
                }
            }
        }
        Ok(())
    }

    /// Reports the damaged records that are live.
    fn classify_suspects(
        &mut self,
        ground: &StoreSurvey,
        pass: &Pass,
        dead: &mut BTreeMap<String, (u64, u64)>,
    ) {
        let of_pass = |suspect: &Suspect| pass.part.has(&suspect.hash);
        let all = mem::take(&mut self.suspects);
        let (judged, rest) = all.into_iter().partition(|(_, suspect)| of_pass(suspect));
        self.suspects = rest;
        let judged: BTreeMap<SegmentOffset, Suspect> = judged;
        for (place, suspect) in judged {
            let Some(held) = ground.segments.get(&place.0) else { continue };
            let known = pass.known.get(&suspect.hash);
            let is_live = match known {
                Some(known) => known.now.lsn == suspect.lsn && known.live_at() == place,
                None => true,
            };
            if !is_live || held.is_superseded {
                dead.entry(held.path.clone()).or_insert((0, suspect.offset)).0 += 1;
                continue;
            }
            let is_big = known.is_some_and(|known| matches!(known.now.status, NameStatus::Big(_)));
            let is_lost = known.is_some_and(|known| known.now.status == NameStatus::Lost);
            let fate = match suspect.what {
                RecordDamage::Blocks => DamageOutcome::PartlyReadable,
                RecordDamage::Head if !is_big || self.index.is_some() => DamageOutcome::RecordLost,
                RecordDamage::Head | RecordDamage::All | RecordDamage::Hash => DamageOutcome::Lost,
            };
            match suspect.of {
                RecordSubject::Object(_) if is_lost => {}
                RecordSubject::Object(name) => {
                    self.judged(fate, &held.path, suspect.offset, &name, suspect.lsn);
                }
                RecordSubject::Fact(name) => self.fact_hurt(&held.path, suspect.offset, name),
            }
        }
    }

    /// Checks the content of an object in a big segment. Returns false if nothing of it is readable.
    fn classify_big(
        &mut self,
        ground: &StoreSurvey,
        segment: SegmentId,
        bytes: u64,
        hash: &[u8; 32],
        name: &ObjectName,
        lsn: u64,
    ) -> Result<bool> {
        let path = segment.path(SegmentClass::Big);
        match self.check_big(ground.store, segment, bytes, hash)? {
            BigContentState::Whole => Ok(true),
            BigContentState::Damaged { offset, .. } | BigContentState::Gone { offset, .. }
                if self.is_derived(name) =>
            {
                self.judged(DamageOutcome::Derived, &path, offset, name, lsn);
                Ok(false)
            }
            BigContentState::Damaged { blocks, offset } => {
                let what = format!("{blocks} blocks of 64 KiB are corrupt; the others are served");
                let mut finding = Finding::new(Severity::Loss, path, offset, what, Remedy::None);
                finding.name(name.clone());
                self.report.add(finding);
                Ok(true)
            }
            BigContentState::Gone { offset, why } => {
                let what = format!("the object is unreadable: {why}");
                let remedy = match self.disk_reads(&path, offset) {
                    true => Remedy::MarkLost(vec![(name.clone(), lsn)]),
                    false => Remedy::CopyToHealthyDisk,
                };
                let mut finding = Finding::new(Severity::Loss, path, offset, what, remedy);
                finding.name(name.clone());
                self.report.add(finding);
                Ok(false)
            }
        }
    }

    /// Adds an object to the finding of its segment and outcome.
    fn judged(
        &mut self,
        fate: DamageOutcome,
        path: &str,
        offset: u64,
        name: &ObjectName,
        lsn: u64,
    ) {
        let fate = match fate {
            DamageOutcome::Lost | DamageOutcome::PartlyReadable if self.is_derived(name) => {
                DamageOutcome::Derived
            }
            DamageOutcome::Lost if !self.disk_reads(path, offset) => DamageOutcome::Unreadable,
            fate => fate,
        };
        let is_it = |finding: &&mut Finding| {
            finding.file == path
                && match (&finding.remedy, fate) {
                    (Remedy::MarkLost(_), DamageOutcome::Lost)
                    | (Remedy::RewriteObjects(_), DamageOutcome::RecordLost) => true,
                    (Remedy::CopyToHealthyDisk, DamageOutcome::Unreadable) => true,
                    (Remedy::RemoveDerived(_), DamageOutcome::Derived) => true,
                    (Remedy::None, DamageOutcome::PartlyReadable) => {
                        finding.severity == Severity::Loss
                    }
                    _ => false,
                }
        };
        if let Some(finding) = self.report.findings.iter_mut().find(is_it) {
            if finding.objects.len() < limits::FINDING_OBJECTS_MAX
                && let Remedy::MarkLost(objects)
                | Remedy::RewriteObjects(objects)
                | Remedy::RemoveDerived(objects) = &mut finding.remedy
            {
                objects.push((name.clone(), lsn));
            }
            finding.name(name.clone());
            return;
        }
        let these = vec![(name.clone(), lsn)];
        let (severity, what, remedy) = match fate {
            DamageOutcome::Lost => {
                (Severity::Loss, "objects are unreadable", Remedy::MarkLost(these))
            }
            DamageOutcome::Unreadable => {
                (Severity::Loss, "I/O errors while reading objects", Remedy::CopyToHealthyDisk)
            }
            DamageOutcome::PartlyReadable => (
                Severity::Loss,
                "objects have corrupt content; intact ranges are served; upload the objects again",
                Remedy::None,
            ),
            DamageOutcome::RecordLost => (
                Severity::Repairable,
                "records of objects are corrupt; their content is reachable through a copy of the \
                records only",
                Remedy::RewriteObjects(these),
            ),
            DamageOutcome::Derived => (
                Severity::Repairable,
                "corrupt derived objects, which are regenerated on request",
                Remedy::RemoveDerived(these),
            ),
        };
        let mut finding = Finding::new(severity, path, offset, what, remedy);
        finding.name(name.clone());
        self.report.add(finding);
    }

    /// Returns whether the object is regenerated when it is missing.
    fn is_derived(&self, name: &ObjectName) -> bool {
        self.derived_bucket.as_ref() == Some(&name.bucket)
    }

    /// Returns whether the disk returns any bytes, or reports the file as missing.
    fn disk_reads(&self, path: &str, offset: u64) -> bool {
        let places = [(0, SEGMENT_HEADER_BYTES), (offset, HEAD_BYTES_MAX)];
        match self.disk.open(path) {
            Err(error) => error.kind() == ErrorKind::NotFound,
            Ok(file) => places.iter().all(|&(at, bytes)| read_up_to(&*file, at, bytes).is_ok()),
        }
    }

    /// Reports a damaged record of a fact, whose value the index may still have.
    fn fact_hurt(&mut self, path: &str, offset: u64, name: FactName) {
        if self.index.is_none() {
            let what = format!("the fact {name} is lost");
            self.found(Severity::Loss, path, offset, what, Remedy::SkipDamage);
            return;
        }
        let is_it = |finding: &&mut Finding| {
            finding.file == path && matches!(finding.remedy, Remedy::RewriteFacts(_))
        };
        if let Some(finding) = self.report.findings.iter_mut().find(is_it) {
            if let Remedy::RewriteFacts(names) = &mut finding.remedy
                && names.len() < limits::FINDING_OBJECTS_MAX
            {
                names.push(name);
            }
            return;
        }
        let what = "corrupt records of the server; the index has their values";
        let remedy = Remedy::RewriteFacts(vec![name]);
        self.found(Severity::Repairable, path, offset, what, remedy);
    }

    /// Returns whether the record may have existed, and be damaged or missing now.
    fn may_be_lost(&self, ground: &StoreSurvey, segment: SegmentId, lsn: u64) -> bool {
        let is_damaged = ground
            .segments
            .get(&segment)
            .is_none_or(|held| held.header.is_none() || !held.broken_ranges.is_empty());
        lsn <= self.applied_lsn && (is_damaged || self.gaps.touch(lsn, lsn))
    }

    /// Returns the record of this name and LSN, if it is at the location.
    fn is_at(
        &self,
        ground: &StoreSurvey,
        place: SegmentOffset,
        hash: NameHash,
        lsn: u64,
    ) -> Option<Record> {
        let found = self.head_at(ground, place)?;
        (found.lsn == lsn && hash_of(&found) == Some(hash)).then_some(found)
    }

    fn head_at(&self, ground: &StoreSurvey, (segment, offset): SegmentOffset) -> Option<Record> {
        self.head_in(ground.segments.get(&segment)?, offset)
    }

    /// Returns the record head at the offset, if there is one and its body ends within the file.
    pub(super) fn head_in(&self, held: &SegmentSurvey, offset: u64) -> Option<Record> {
        let context = held.header?.context();
        let file = self.disk.open(&held.path).ok()?;
        let bytes = read_up_to(file.as_ref(), offset, HEAD_BYTES_MAX).ok()?;
        let (record, head_bytes) = Record::decode(&bytes, context.at(offset)).ok()?;
        let end = offset + head_bytes as u64 + record.body_bytes();
        (end <= held.file_bytes).then_some(record)
    }

    /// Checks the body of a record in a broken group, which the scan may have skipped.
    pub(super) fn check_skipped(
        &mut self,
        held: &SegmentSurvey,
        id: SegmentId,
        offset: u64,
        record: &Record,
    ) {
        let Some(context) = held.header.map(|header| header.context()) else { return };
        let start = offset + record.head_bytes() as u64;
        let bytes = usize::try_from(record.body_bytes()).unwrap_or(0);
        let body =
            self.disk.open(&held.path).and_then(|file| read_up_to(file.as_ref(), start, bytes));
        if let Err(fault) = record.verify_body(context.at(offset), &body.unwrap_or_default()) {
            self.suspect((id, offset), record, fault.offset, RecordDamage::Blocks);
        }
    }
}
