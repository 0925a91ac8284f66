//! View: consistent snapshot of the index, and how records change it.
//!
//! The committer and recovery change a private copy of a view through the same functions, so acknowledged and
//! replayed state cannot differ. Counters change together with the entry that they count.
//!
//! Non-goals: publishing, redb transactions.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::fact::Fact;
use super::overlay::Overlay;
use super::tables::Checkpointed;
use crate::error::Result;
use crate::format::{
    AppliedPosition, BigTrailer, Entry, EntryContent, Location, Record, RecordOp, RetainedSegment,
    SegmentClass, SegmentId, SegmentUsage, Usage, entry_key,
};
use crate::name::{FactName, ObjectName};

/// Consistent snapshot of the index.
#[derive(Clone)]
pub(crate) struct View {
    /// Newest changes.
    pub(crate) active: Overlay,
    /// Changes that a checkpoint is writing.
    pub(crate) frozen: Option<Arc<Overlay>>,
    /// Content of redb.
    pub(crate) checkpointed: Arc<Checkpointed>,
}

/// State that an applied record replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReplacedEntry {
    /// Replaced entry of the key.
    pub(crate) entry: Option<Arc<Entry>>,
    /// Big segment that no record refers to.
    pub(crate) big: Option<UnreferencedSegment>,
}

/// Big segment that no record refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnreferencedSegment {
    pub(crate) segment: SegmentId,
    /// Retention entry if its object can be restored; `None` if its file is removed immediately.
    pub(crate) retained: Option<RetainedSegment>,
}

/// Record that a compaction copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RelocatedRecord {
    /// Index row that refers to the record.
    pub(crate) of: RelocatedKey,
    /// LSN of the record.
    pub(crate) lsn: u64,
    /// Location of the original.
    pub(crate) from: Location,
    /// Location of the copy.
    pub(crate) to: Location,
}

/// Index row that refers to a copied record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RelocatedKey {
    /// Entry under this index key.
    Object(Arc<[u8]>),
    /// Fact of this name.
    Fact(FactName),
}

impl View {
    /// Returns the entry of an object.
    pub(crate) fn entry(&self, name: &ObjectName) -> Result<Option<Arc<Entry>>> {
        self.entry_at(&entry_key::encode(name))
    }

    fn entry_at(&self, key: &[u8]) -> Result<Option<Arc<Entry>>> {
        for overlay in self.overlays() {
            if let Some(changed) = overlay.entries.get(key) {
                return Ok(changed.clone());
            }
        }
        self.checkpointed.entry(key)
    }

    /// Returns a fact.
    pub(crate) fn fact(&self, name: &FactName) -> Result<Option<Arc<Fact>>> {
        for overlay in self.overlays() {
            if let Some(changed) = overlay.facts.get(name) {
                return Ok(changed.clone());
            }
        }
        self.checkpointed.fact(name)
    }

    /// Returns the counters under an encoded key; zeros if there are none.
    pub(super) fn usage_at(&self, key: &[u8]) -> Result<Usage> {
        for overlay in self.overlays() {
            if let Some(usage) = overlay.usage.get(key) {
                return Ok(*usage);
            }
        }
        Ok(self.checkpointed.usage(key)?.unwrap_or_default())
    }

    /// Returns the usage of a segment.
    pub(crate) fn segment_usage(&self, id: SegmentId) -> Result<Option<SegmentUsage>> {
        for overlay in self.overlays() {
            if let Some(usage) = overlay.segments.get(&id) {
                return Ok(*usage);
            }
        }
        self.checkpointed.segment_usage(id)
    }

    /// Returns whether the record at this location is the current one of its name.
    pub(crate) fn points_to(&self, record: &Record, at: Location) -> Result<bool> {
        Ok(match &record.op {
            RecordOp::Put { name, .. } => self.entry(name)?.is_some_and(|entry| entry.record == at),
            RecordOp::PutFact { name, .. } => {
                self.fact(name)?.is_some_and(|fact| fact.record == at)
            }
            _ => false,
        })
    }

    /// Returns whether the body of a record may have been punched at this location. A replaced segment, whose usage is
    /// unknown, counts as punched.
    pub(crate) fn may_be_punched(&self, record: &Record, at: Location) -> Result<bool> {
        let usage = self.segment_usage(at.segment)?;
        let was_punched = usage.is_none_or(|usage| usage.punched_bytes > 0);
        Ok(was_punched && !self.points_to(record, at)?)
    }

    /// Returns whether any of these segments has usage counters.
    pub(crate) fn contains_any_segment(&self, ids: &[SegmentId]) -> Result<bool> {
        for id in ids {
            if self.segment_usage(*id)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the log position of this view.
    pub(crate) fn position(&self) -> Option<AppliedPosition> {
        let in_memory = self.overlays().find_map(|overlay| overlay.position);
        in_memory.or(self.checkpointed.position())
    }

    /// Returns the log position of the index on disk.
    pub(crate) fn checkpointed_position(&self) -> Option<AppliedPosition> {
        self.checkpointed.position()
    }

    /// Returns the usage of a segment in the index on disk.
    pub(crate) fn checkpointed_usage(&self, id: SegmentId) -> Result<Option<SegmentUsage>> {
        self.checkpointed.segment_usage(id)
    }

    /// Returns all nonempty segments with their usage.
    pub(crate) fn segments(&self) -> Result<Vec<(SegmentId, SegmentUsage)>> {
        let found = self.checkpointed.segments()?;
        let mut all: BTreeMap<_, _> =
            found.into_iter().map(|(id, usage)| (id, Some(usage))).collect();
        for overlay in self.frozen.as_deref().into_iter().chain([&self.active]) {
            all.extend(overlay.segments.iter().map(|(id, usage)| (*id, *usage)));
        }
        Ok(all.into_iter().filter_map(|(id, usage)| Some((id, usage?))).collect())
    }

    /// Returns the big segments recorded as retained, including those whose file was removed since.
    pub(crate) fn retained(&self) -> Result<Vec<(SegmentId, RetainedSegment)>> {
        let found = self.checkpointed.retained()?;
        let mut all: BTreeMap<_, _> =
            found.into_iter().map(|(id, retained)| (id, Some(retained))).collect();
        for overlay in self.frozen.as_deref().into_iter().chain([&self.active]) {
            all.extend(overlay.retained.iter().map(|(id, retained)| (*id, *retained)));
        }
        Ok(all.into_iter().filter_map(|(id, retained)| Some((id, retained?))).collect())
    }

    /// Drops the retention entries of segments whose files were removed.
    pub(crate) fn forget_retained(&mut self, ids: Vec<SegmentId>) {
        self.active.retained.extend(ids.into_iter().map(|id| (id, None)));
    }

    /// Returns the overlays, newest first.
    pub(crate) fn overlays(&self) -> impl Iterator<Item = &Overlay> {
        std::iter::once(&self.active).chain(self.frozen.as_deref())
    }

    /// Applies the put of an object; returns what it replaced, and the entry.
    pub(crate) fn put(
        &mut self,
        name: &ObjectName,
        entry: Entry,
    ) -> Result<(ReplacedEntry, Arc<Entry>)> {
        let key: Arc<[u8]> = entry_key::encode(name).into();
        let mut replaced = self.replace(&key, Some(&entry))?;
        // A copy made while the original remains: both refer to the same content.
        let is_copy = replaced.entry.as_ref().is_some_and(|old| old.lsn == entry.lsn);
        replaced.big = replaced.big.filter(|_| !is_copy);
        // A lost object is damaged and cannot be restored.
        if !matches!(entry.content, EntryContent::Lost { .. }) {
            self.retain(&mut replaced, entry.meta.modified_ms);
        }
        self.count_record(entry.record, record_bytes(&entry), true)?;
        if let EntryContent::Big { bytes, segment } = entry.content {
            let usage = SegmentUsage {
                record_bytes: bytes,
                live_bytes: bytes,
                record_count: 1,
                live_count: 1,
                ..SegmentUsage::empty(SegmentClass::Big)
            };
            self.active.segments.insert(segment, Some(usage));
        }
        let entry = Arc::new(entry);
        self.active.entries.insert(key, Some(Arc::clone(&entry)));
        Ok((replaced, entry))
    }

    /// Applies the deletion of an object at this time by the record at `tombstone`.
    pub(crate) fn delete(
        &mut self,
        name: &ObjectName,
        deleted_ms: u64,
        tombstone: Location,
    ) -> Result<ReplacedEntry> {
        let key: Arc<[u8]> = entry_key::encode(name).into();
        let mut replaced = self.replace(&key, None)?;
        self.retain(&mut replaced, deleted_ms);
        self.count_tombstone(tombstone)?;
        self.active.entries.insert(key, None);
        Ok(replaced)
    }

    /// Applies the put of a fact.
    pub(crate) fn put_fact(&mut self, name: &FactName, fact: Fact) -> Result<()> {
        self.forget_fact(name)?;
        self.count_record(fact.record, fact_record_bytes(&fact), true)?;
        self.active.facts.insert(name.clone(), Some(Arc::new(fact)));
        Ok(())
    }

    /// Applies the deletion of a fact by the record at `removal`.
    pub(crate) fn delete_fact(&mut self, name: &FactName, removal: Location) -> Result<()> {
        self.forget_fact(name)?;
        self.count_tombstone(removal)?;
        self.active.facts.insert(name.clone(), None);
        Ok(())
    }

    /// Counts an appended record that changes nothing else in the index.
    pub(crate) fn apply_segment_record(&mut self, record: Location) -> Result<()> {
        self.count_record(record, u64::from(record.head_bytes), false)
    }

    /// Applies the hole punch record at `record`, with the number of bytes punched in a segment.
    pub(crate) fn apply_hole_punch(
        &mut self,
        segment: SegmentId,
        bytes: u64,
        record: Location,
    ) -> Result<()> {
        self.apply_segment_record(record)?;
        self.change_segment(segment, |usage| usage.punched_bytes += bytes)
    }

    /// Applies the commit of a compaction: registers the output segments, which the index does not refer to yet.
    pub(crate) fn add_compacted(&mut self, outputs: &[(SegmentId, SegmentUsage)]) {
        for (segment, usage) in outputs {
            self.active.segments.insert(*segment, Some(*usage));
        }
    }

    /// Returns the index change to refer to `copy`, if the record that it copies is the current one and is in one of
    /// these segments.
    pub(crate) fn relocation_of(
        &self,
        copy: &Record,
        to: Location,
        inputs: &[SegmentId],
    ) -> Result<Option<RelocatedRecord>> {
        let (of, lsn, from) = match &copy.op {
            RecordOp::Put { name, .. } => {
                let key: Arc<[u8]> = entry_key::encode(name).into();
                let Some(entry) = self.entry_at(&key)? else { return Ok(None) };
                (RelocatedKey::Object(key), entry.lsn, entry.record)
            }
            RecordOp::PutFact { name, .. } => {
                let Some(fact) = self.fact(name)? else { return Ok(None) };
                (RelocatedKey::Fact(name.clone()), fact.lsn, fact.record)
            }
            _ => return Ok(None),
        };
        let is_wanted = lsn == copy.lsn && inputs.contains(&from.segment);
        Ok(is_wanted.then_some(RelocatedRecord { of, lsn, from, to }))
    }

    /// Changes an index row to refer to the copy of a record. Returns false if the original is not the current
    /// record.
    pub(crate) fn repoint(&mut self, moved: &RelocatedRecord) -> Result<bool> {
        let RelocatedRecord { of, lsn, from, to } = moved;
        let bytes = match of {
            RelocatedKey::Object(key) => {
                let Some(old) = self.entry_at(key)? else { return Ok(false) };
                if (old.lsn, old.record) != (*lsn, *from) {
                    return Ok(false);
                }
                let entry = Entry { record: *to, ..Entry::clone(&old) };
                self.active.entries.insert(Arc::clone(key), Some(Arc::new(entry)));
                record_bytes(&old)
            }
            RelocatedKey::Fact(name) => {
                let Some(old) = self.fact(name)? else { return Ok(false) };
                if (old.lsn, old.record) != (*lsn, *from) {
                    return Ok(false);
                }
                let fact = Fact { record: *to, ..Fact::clone(&old) };
                self.active.facts.insert(name.clone(), Some(Arc::new(fact)));
                fact_record_bytes(&old)
            }
        };
        self.count_dead(from.segment, bytes)?;
        self.change_segment(to.segment, |usage| {
            usage.live_bytes += bytes;
            usage.live_count += 1;
        })?;
        Ok(true)
    }

    /// Drops the counters of segments without live records. Returns false, without a change, if one still has live
    /// records: then a copy is missing, and the originals must stay.
    pub(crate) fn drop_segments(&mut self, inputs: &[SegmentId]) -> Result<bool> {
        for input in inputs {
            if self.segment_usage(*input)?.is_some_and(|usage| usage.live_count > 0) {
                return Ok(false);
            }
        }
        self.active.segments.extend(inputs.iter().map(|input| (*input, None)));
        Ok(true)
    }

    /// Updates the counters for replacing the entry under this key, if any, by another or none.
    fn replace(&mut self, key: &[u8], new: Option<&Entry>) -> Result<ReplacedEntry> {
        let old = self.entry_at(key)?;
        self.count_object(key, old.as_deref(), new)?;
        let Some(old) = old else {
            return Ok(ReplacedEntry::default());
        };
        self.count_dead(old.record.segment, record_bytes(&old))?;
        let big = match old.content {
            EntryContent::Big { segment, .. } => {
                self.active.segments.insert(segment, None);
                Some(UnreferencedSegment { segment, retained: None })
            }
            EntryContent::Inline { .. } | EntryContent::Lost { .. } => None,
        };
        Ok(ReplacedEntry { entry: Some(old), big })
    }

    /// Records that the file of a replaced object is retained. Derived objects are not retained, because they can be
    /// regenerated.
    fn retain(&mut self, replaced: &mut ReplacedEntry, ended_ms: u64) {
        let (Some(old), Some(big)) = (&replaced.entry, &mut replaced.big) else { return };
        if !old.meta.flags.derived {
            let bytes = BigTrailer::file_bytes(old.body_bytes());
            let retained = RetainedSegment { ended_ms, bytes };
            big.retained = Some(retained);
            self.active.retained.insert(big.segment, Some(retained));
        }
    }

    fn forget_fact(&mut self, name: &FactName) -> Result<()> {
        if let Some(old) = self.fact(name)? {
            self.count_dead(old.record.segment, fact_record_bytes(&old))?;
        }
        Ok(())
    }

    fn count_tombstone(&mut self, removal: Location) -> Result<()> {
        self.count_record(removal, u64::from(removal.head_bytes), false)?;
        self.change_segment(removal.segment, |usage| usage.tombstone_count += 1)
    }

    fn count_record(&mut self, record: Location, bytes: u64, live: bool) -> Result<()> {
        let mut usage =
            self.segment_usage(record.segment)?.unwrap_or(SegmentUsage::empty(SegmentClass::Log));
        usage.record_bytes += bytes;
        usage.record_count += 1;
        if live {
            usage.live_bytes += bytes;
            usage.live_count += 1;
        }
        self.active.segments.insert(record.segment, Some(usage));
        Ok(())
    }

    fn count_dead(&mut self, segment: SegmentId, bytes: u64) -> Result<()> {
        self.change_segment(segment, |usage| {
            usage.live_bytes = usage.live_bytes.saturating_sub(bytes);
            usage.live_count = usage.live_count.saturating_sub(1);
        })
    }

    /// Changes the counters of a segment that has some.
    fn change_segment(
        &mut self,
        segment: SegmentId,
        change: impl FnOnce(&mut SegmentUsage),
    ) -> Result<()> {
        if let Some(mut usage) = self.segment_usage(segment)? {
            change(&mut usage);
            self.active.segments.insert(segment, Some(usage));
        }
        Ok(())
    }

    /// Changes the counters of the bucket and of the top-level folder, each looked up once.
    fn count_object(&mut self, key: &[u8], old: Option<&Entry>, new: Option<&Entry>) -> Result<()> {
        for counted in entry_key::counted_in(key) {
            let usage = match self.active.usage.get_mut(counted) {
                Some(usage) => usage,
                None => {
                    let known = self.usage_at(counted)?;
                    self.active.usage.entry(counted.into()).or_insert(known)
                }
            };
            if let Some(old) = old {
                usage.subtract(old);
            }
            if let Some(new) = new {
                usage.add(new);
            }
        }
        Ok(())
    }
}

/// Returns the log bytes of the record of an entry.
fn record_bytes(entry: &Entry) -> u64 {
    let body = match entry.content {
        EntryContent::Inline { bytes } => bytes,
        EntryContent::Big { .. } | EntryContent::Lost { .. } => 0,
    };
    u64::from(entry.record.head_bytes) + body
}

fn fact_record_bytes(fact: &Fact) -> u64 {
    u64::from(fact.record.head_bytes) + fact.value.len() as u64
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::disk::sim::SimDisk;
    use crate::format::{ObjectFlags, ObjectMeta};
    use crate::index::{Index, IndexLocation};
    use crate::name::{BucketName, ObjectKey};

    fn at(segment: u64, offset: u64) -> Location {
        Location { segment: SegmentId::new(segment).unwrap(), offset, head_bytes: 100 }
    }

    fn name() -> ObjectName {
        ObjectName::new(BucketName::parse("photos").unwrap(), ObjectKey::parse("a").unwrap())
    }

    fn fact_name() -> FactName {
        FactName::parse("token").unwrap()
    }

    fn entry(lsn: u64, record: Location) -> Entry {
        let meta = ObjectMeta {
            content_type: String::new(),
            hash: [0; 32],
            created_ms: 0,
            modified_ms: 0,
            flags: ObjectFlags { derived: false },
            attributes: Vec::new(),
        };
        Entry { lsn, record, meta, content: EntryContent::Inline { bytes: 10 } }
    }

    fn fact(lsn: u64, record: Location) -> Fact {
        Fact { lsn, record, value: Bytes::from_static(b"value") }
    }

    /// Returns an index and a view of it with an object and a fact in segment 1, which segment 9 has copies of.
    fn compacted() -> (Index, View, [RelocatedRecord; 2]) {
        let index = Index::open(IndexLocation::on(&SimDisk::new()), 0).unwrap();
        let mut view = View::clone(&index.view());
        view.put(&name(), entry(1, at(1, 0))).unwrap();
        view.put_fact(&fact_name(), fact(2, at(1, 500))).unwrap();
        let nine = SegmentUsage::empty(SegmentClass::Compacted);
        view.add_compacted(&[(at(9, 0).segment, nine)]);
        let object = RelocatedKey::Object(entry_key::encode(&name()).into());
        let moved = [
            RelocatedRecord { of: object, lsn: 1, from: at(1, 0), to: at(9, 0) },
            RelocatedRecord {
                of: RelocatedKey::Fact(fact_name()),
                lsn: 2,
                from: at(1, 500),
                to: at(9, 500),
            },
        ];
        (index, view, moved)
    }

    fn places(view: &View) -> (Option<Location>, Option<Location>) {
        let object = view.entry(&name()).unwrap().map(|entry| entry.record);
        (object, view.fact(&fact_name()).unwrap().map(|fact| fact.record))
    }

    #[test]
    fn repoint_moves_live_bytes_to_the_copies() {
        let (_index, mut view, moved) = compacted();
        let originals = [at(1, 0).segment];
        assert!(!view.drop_segments(&originals).unwrap(), "both are wanted");
        assert!(view.repoint(&moved[0]).unwrap());
        assert!(!view.drop_segments(&originals).unwrap(), "one is wanted");
        assert!(view.repoint(&moved[1]).unwrap());
        assert_eq!(places(&view), (Some(at(9, 0)), Some(at(9, 500))));
        assert!(view.drop_segments(&originals).unwrap());
        assert_eq!(view.segment_usage(originals[0]).unwrap(), None);
        assert_eq!(view.segment_usage(at(9, 0).segment).unwrap().unwrap().live_count, 2);
    }

    #[test]
    fn repoint_skips_overwritten_and_deleted_keys() {
        let (_index, mut view, moved) = compacted();
        view.put(&name(), entry(3, at(2, 0))).unwrap();
        view.put_fact(&fact_name(), fact(4, at(2, 500))).unwrap();
        let usages = view.segments().unwrap();
        for moved in &moved {
            assert!(!view.repoint(moved).unwrap());
        }
        assert_eq!(places(&view), (Some(at(2, 0)), Some(at(2, 500))));
        view.delete(&name(), 0, at(2, 900)).unwrap();
        view.delete_fact(&fact_name(), at(2, 950)).unwrap();
        for moved in &moved {
            assert!(!view.repoint(moved).unwrap());
        }
        assert_eq!(places(&view), (None, None));
        assert_eq!(view.segments().unwrap().len(), usages.len());
        assert_eq!(view.segment_usage(at(9, 0).segment).unwrap().unwrap().live_count, 0);
    }
}
