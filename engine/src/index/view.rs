//! One moment of the index, and what a record of the log does to it.
//!
//! The committer and recovery change a private copy of a view through the same functions, so what was acknowledged and
//! what is replayed cannot differ. Counters change with the entry that they count.
//! Never here: publishing, redb's transactions.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::overlay::Overlay;
use super::tables::Checkpointed;
use crate::error::Result;
use crate::format::{
    AppliedPosition, BucketUsage, Entry, EntryContent, Location, SegmentClass, SegmentId,
    SegmentUsage, entry_key,
};
use crate::name::{BucketName, FactName, ObjectName};

/// A fact: a small record of the server's, opaque here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fact {
    /// LSN of the record that set it.
    pub(crate) lsn: u64,
    /// Where that record is.
    pub(crate) record: Location,
    /// The value.
    pub(crate) value: Bytes,
}

/// One moment of the index.
#[derive(Clone)]
pub(crate) struct View {
    /// The newest changes.
    pub(crate) active: Overlay,
    /// Changes that a checkpoint is writing.
    pub(crate) frozen: Option<Arc<Overlay>>,
    /// What redb holds.
    pub(crate) checkpointed: Arc<Checkpointed>,
}

/// What an applied record took the place of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Replaced {
    /// Whether the key was there.
    pub(crate) present: bool,
    /// A big segment that no record names any more.
    pub(crate) big: Option<SegmentId>,
}

impl View {
    /// The entry of an object.
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

    /// A fact.
    pub(crate) fn fact(&self, name: &FactName) -> Result<Option<Arc<Fact>>> {
        for overlay in self.overlays() {
            if let Some(changed) = overlay.facts.get(name) {
                return Ok(changed.clone());
            }
        }
        self.checkpointed.fact(name)
    }

    /// The counters of a bucket; zeros for one that never held anything.
    pub(crate) fn bucket_usage(&self, bucket: &BucketName) -> Result<BucketUsage> {
        for overlay in self.overlays() {
            if let Some(usage) = overlay.buckets.get(bucket) {
                return Ok(*usage);
            }
        }
        Ok(self.checkpointed.bucket_usage(bucket)?.unwrap_or_default())
    }

    /// Live and dead bytes of a segment.
    pub(crate) fn segment_usage(&self, id: SegmentId) -> Result<Option<SegmentUsage>> {
        for overlay in self.overlays() {
            if let Some(usage) = overlay.segments.get(&id) {
                return Ok(*usage);
            }
        }
        self.checkpointed.segment_usage(id)
    }

    /// The position in the log that this view stands for.
    pub(crate) fn position(&self) -> Result<Option<AppliedPosition>> {
        for overlay in self.overlays() {
            if overlay.position.is_some() {
                return Ok(overlay.position);
            }
        }
        self.checkpointed.position()
    }

    /// All buckets and their counters.
    pub(crate) fn buckets(&self) -> Result<Vec<(BucketName, BucketUsage)>> {
        let mut all: BTreeMap<_, _> = self.checkpointed.buckets()?.into_iter().collect();
        for overlay in self.frozen.as_deref().into_iter().chain([&self.active]) {
            all.extend(overlay.buckets.iter().map(|(name, usage)| (name.clone(), *usage)));
        }
        Ok(all.into_iter().collect())
    }

    /// All segments with something in them, and their usage.
    pub(crate) fn segments(&self) -> Result<Vec<(SegmentId, SegmentUsage)>> {
        let found = self.checkpointed.segments()?;
        let mut all: BTreeMap<_, _> =
            found.into_iter().map(|(id, usage)| (id, Some(usage))).collect();
        for overlay in self.frozen.as_deref().into_iter().chain([&self.active]) {
            all.extend(overlay.segments.iter().map(|(id, usage)| (*id, *usage)));
        }
        Ok(all.into_iter().filter_map(|(id, usage)| Some((id, usage?))).collect())
    }

    /// The overlays, newest first.
    pub(crate) fn overlays(&self) -> impl Iterator<Item = &Overlay> {
        std::iter::once(&self.active).chain(self.frozen.as_deref())
    }

    /// An object was put: what it replaced, and its entry.
    pub(crate) fn put(
        &mut self,
        name: &ObjectName,
        entry: Entry,
    ) -> Result<(Replaced, Arc<Entry>)> {
        let key: Arc<[u8]> = entry_key::encode(name).into();
        let replaced = self.forget(&key, name)?;
        self.count_record(entry.record, record_bytes(&entry), true)?;
        if let EntryContent::Big { bytes, segment } = entry.content {
            let usage = SegmentUsage {
                class: SegmentClass::Big,
                record_bytes: bytes,
                live_bytes: bytes,
                record_count: 1,
                live_count: 1,
            };
            self.active.segments.insert(segment, Some(usage));
        }
        self.count_object(&name.bucket, &entry, Count::In)?;
        let entry = Arc::new(entry);
        self.active.entries.insert(key, Some(Arc::clone(&entry)));
        Ok((replaced, entry))
    }

    /// An object was deleted by the record at `tombstone`.
    pub(crate) fn delete(&mut self, name: &ObjectName, tombstone: Location) -> Result<Replaced> {
        let key: Arc<[u8]> = entry_key::encode(name).into();
        let replaced = self.forget(&key, name)?;
        self.count_record(tombstone, u64::from(tombstone.head_bytes), false)?;
        self.active.entries.insert(key, None);
        Ok(replaced)
    }

    /// A fact was set.
    pub(crate) fn put_fact(&mut self, name: &FactName, fact: Fact) -> Result<()> {
        self.forget_fact(name)?;
        self.count_record(fact.record, fact_record_bytes(&fact), true)?;
        self.active.facts.insert(name.clone(), Some(Arc::new(fact)));
        Ok(())
    }

    /// A fact was removed by the record at `removal`.
    pub(crate) fn delete_fact(&mut self, name: &FactName, removal: Location) -> Result<()> {
        self.forget_fact(name)?;
        self.count_record(removal, u64::from(removal.head_bytes), false)?;
        self.active.facts.insert(name.clone(), None);
        Ok(())
    }

    fn forget(&mut self, key: &[u8], name: &ObjectName) -> Result<Replaced> {
        let Some(old) = self.entry_at(key)? else {
            return Ok(Replaced::default());
        };
        self.count_dead(old.record.segment, record_bytes(&old))?;
        self.count_object(&name.bucket, &old, Count::Out)?;
        let big = match old.content {
            EntryContent::Big { segment, .. } => {
                self.active.segments.insert(segment, None);
                Some(segment)
            }
            EntryContent::Inline { .. } => None,
        };
        Ok(Replaced { present: true, big })
    }

    fn forget_fact(&mut self, name: &FactName) -> Result<()> {
        if let Some(old) = self.fact(name)? {
            self.count_dead(old.record.segment, fact_record_bytes(&old))?;
        }
        Ok(())
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
        if let Some(mut usage) = self.segment_usage(segment)? {
            usage.live_bytes = usage.live_bytes.saturating_sub(bytes);
            usage.live_count = usage.live_count.saturating_sub(1);
            self.active.segments.insert(segment, Some(usage));
        }
        Ok(())
    }

    fn count_object(&mut self, bucket: &BucketName, entry: &Entry, count: Count) -> Result<()> {
        let mut usage = self.bucket_usage(bucket)?;
        match count {
            Count::In => usage.add(entry),
            Count::Out => usage.subtract(entry),
        }
        self.active.buckets.insert(bucket.clone(), usage);
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum Count {
    In,
    Out,
}

/// The bytes that the record of an entry takes in the log.
fn record_bytes(entry: &Entry) -> u64 {
    let body = match entry.content {
        EntryContent::Inline { bytes } => bytes,
        EntryContent::Big { .. } => 0,
    };
    u64::from(entry.record.head_bytes) + body
}

fn fact_record_bytes(fact: &Fact) -> u64 {
    u64::from(fact.record.head_bytes) + fact.value.len() as u64
}
