//! Statistics of a store: objects, segments, disk.

use crate::error::Result;
use crate::format::{SegmentClass, SegmentId, SegmentUsage, Usage};
pub use crate::index::UsagePage;
use crate::index::{DamageList, Index, View};
use crate::name::BucketName;
pub use crate::segment::RetainedStats;

/// Statistics of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Number of objects in all buckets, without derived ones.
    pub objects: u64,
    /// Content bytes of all objects, without derived ones.
    pub object_bytes: u64,
    /// Number of derived objects.
    pub derived_objects: u64,
    /// Content bytes of derived objects.
    pub derived_bytes: u64,
    /// Usage of each nonempty bucket.
    pub buckets: Vec<(BucketName, Usage)>,
    /// Log segments.
    pub log: ClassStats,
    /// Compacted segments.
    pub compacted: ClassStats,
    /// Big segments, one object each.
    pub big: ClassStats,
    /// Retained segments: files of deleted or replaced large objects. Not included in `big`.
    pub retained: RetainedStats,
    /// LSN of the last committed record; 0 for an empty store.
    pub last_lsn: u64,
    /// Number of changes in memory that are not yet written to the index file.
    pub overlay_changes: usize,
    /// Number of batches queued for the committer.
    pub queued_batches: usize,
    /// Memory in use by uploads, in bytes.
    pub upload_memory_bytes: u64,
    /// Number of memory-mapped segments.
    pub mapped_segments: usize,
    /// Whether the index was found corrupt. The next open rebuilds it from the segments; no object is lost.
    pub index_is_corrupt: bool,
    /// All segments except retained ones, by id.
    pub segments: Vec<SegmentStats>,
    /// Earliest of the last verification times of all segments except the active one, in milliseconds since 1970: each
    /// of them was verified at this time or later. `None` if one was never verified, or if there is no other segment.
    pub verified_since_ms: Option<u64>,
    /// Known damage.
    pub damage: DamageList,
}

/// Usage of the disk that a store is on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskStats {
    /// Capacity of the disk in bytes.
    pub total_bytes: u64,
    /// Free bytes on the disk.
    pub free_bytes: u64,
    /// Free space in bytes that bodies may not use: uploads are rejected while less is free.
    pub reserve_bytes: u64,
    /// Size of the index file in bytes.
    pub index_bytes: u64,
}

/// Statistics of one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentStats {
    /// Id of the segment.
    pub id: SegmentId,
    /// Class of the segment.
    pub class: SegmentClass,
    /// Bytes of all records, live and dead.
    pub record_bytes: u64,
    /// Bytes of live records.
    pub live_bytes: u64,
    /// Bytes of dead records, which compaction can reclaim.
    pub dead_bytes: u64,
    /// Number of live records.
    pub live_count: u64,
    /// Whether records may still be appended.
    pub is_unsealed: bool,
    /// Time of the last complete scrub of the segment, in milliseconds since 1970.
    pub verified_ms: Option<u64>,
    /// Number of known corrupt locations.
    pub damage: u64,
}

/// Statistics of all segments of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassStats {
    /// Number of segments.
    pub segments: u64,
    /// Bytes of all records in the segments, live and dead.
    pub record_bytes: u64,
    /// Bytes of live records. The other record bytes are dead and can be reclaimed by compaction.
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
            let (verified_ms, damage) = index.segment_integrity(id);
            if log_end != Some(id) {
                // `None`, of a segment that was never verified, sorts lowest.
                verified_since_ms = verified_since_ms.min(verified_ms);
            }
            stats.segments.push(SegmentStats {
                id,
                class: usage.class,
                record_bytes: usage.record_bytes,
                live_bytes: usage.live_bytes,
                dead_bytes: usage.dead_bytes(),
                live_count: usage.live_count,
                is_unsealed: log_end == Some(id),
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
