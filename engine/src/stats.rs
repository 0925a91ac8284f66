//! Counts for people and gauges.

use crate::error::Result;
use crate::format::{SegmentClass, SegmentId, SegmentUsage, Usage};
use crate::index::{DamageList, Index, View};
use crate::name::BucketName;
use crate::segment::RetainedStats;

/// What a store holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Objects in all buckets, derived ones apart.
    pub objects: u64,
    /// Their bytes.
    pub object_bytes: u64,
    /// Derived objects.
    pub derived_objects: u64,
    /// Their bytes.
    pub derived_bytes: u64,
    /// Each bucket that holds something.
    pub buckets: Vec<(BucketName, Usage)>,
    /// Segments of the log.
    pub log: ClassStats,
    /// Segments that compaction made of others.
    pub compacted: ClassStats,
    /// Big segments, one object each.
    pub big: ClassStats,
    /// Big segments of objects that are gone, which stay for a while; in no other count.
    pub retained: RetainedStats,
    /// LSN of the last record.
    pub last_lsn: u64,
    /// Changes in memory that the index on disk does not hold yet.
    pub overlay_changes: usize,
    /// Batches that wait for the committer.
    pub queued_batches: usize,
    /// Memory in use by bodies on their way in.
    pub upload_memory_bytes: u64,
    /// Names that searches have in memory,
    pub searched_names: u64,
    /// and what these take there, about.
    pub searched_names_bytes: u64,
    /// Segments that are memory-mapped.
    pub mapped_segments: usize,
    /// Whether the index was found to be damaged. Opening the store again makes a new one; no object is lost.
    pub index_is_condemned: bool,
    /// Every segment, by id.
    pub segments: Vec<SegmentStats>,
    /// Everything was verified since then, but for what the log ends in. None while a segment never was.
    /// Milliseconds since 1970.
    pub verified_since_ms: Option<u64>,
    /// The damage that is known.
    pub damage: DamageList,
}

/// What a store takes of its disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskStats {
    /// Bytes that the disk takes when it is empty.
    pub total_bytes: u64,
    /// Bytes of it that are free.
    pub free_bytes: u64,
    /// How many are to stay free: with fewer nothing is uploaded.
    pub reserve_bytes: u64,
    /// Bytes of the index.
    pub index_bytes: u64,
}

/// What is known of one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentStats {
    /// Its id.
    pub id: SegmentId,
    /// What kind of segment it is.
    pub class: SegmentClass,
    /// Bytes of its records.
    pub record_bytes: u64,
    /// Bytes of the records that are still wanted.
    pub live_bytes: u64,
    /// Bytes of the others.
    pub dead_bytes: u64,
    /// How many of its records are still wanted.
    pub live_count: u64,
    /// Whether more may be appended to it.
    pub is_growing: bool,
    /// When a scrub last read it whole. Milliseconds since 1970.
    pub verified_ms: Option<u64>,
    /// How many places of damage are known in it.
    pub damage: u64,
}

/// What the segments of a class hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassStats {
    /// How many there are.
    pub segments: u64,
    /// Bytes of their records.
    pub record_bytes: u64,
    /// Bytes of the records that are still wanted. The rest is dead, and compaction's to take.
    pub live_bytes: u64,
}

impl StoreStats {
    /// Counts a view of this index.
    pub(crate) fn of(view: &View, index: &Index) -> Result<Self> {
        let mut stats = Self { buckets: view.buckets()?, ..Self::default() };
        for (_, usage) in &stats.buckets {
            stats.objects += usage.objects;
            stats.object_bytes += usage.bytes;
            stats.derived_objects += usage.derived_objects;
            stats.derived_bytes += usage.derived_bytes;
        }
        let position = view.position();
        let log_end = position.and_then(|position| position.segment);
        let mut verified_since_ms = Some(u64::MAX);
        for (id, usage) in view.segments()? {
            let (verified_ms, damage) = index.segment_notes(id);
            if log_end != Some(id) {
                // None, of a segment that never was, is the smallest.
                verified_since_ms = verified_since_ms.min(verified_ms);
            }
            stats.segments.push(SegmentStats {
                id,
                class: usage.class,
                record_bytes: usage.record_bytes,
                live_bytes: usage.live_bytes,
                dead_bytes: usage.dead_bytes(),
                live_count: usage.live_count,
                is_growing: log_end == Some(id),
                verified_ms,
                damage,
            });
            match usage.class {
                SegmentClass::Log => stats.log.add(&usage),
                SegmentClass::Big => stats.big.add(&usage),
                SegmentClass::Compacted => stats.compacted.add(&usage),
            }
        }
        stats.verified_since_ms = verified_since_ms.filter(|since_ms| *since_ms != u64::MAX);
        stats.damage = index.damage();
        stats.last_lsn = position.map_or(0, |position| position.lsn);
        stats.overlay_changes = view.overlays().map(|overlay| overlay.len()).sum();
        Ok(stats)
    }
}

impl ClassStats {
    fn add(&mut self, usage: &SegmentUsage) {
        self.segments += 1;
        self.record_bytes += usage.record_bytes;
        self.live_bytes += usage.live_bytes;
    }
}
