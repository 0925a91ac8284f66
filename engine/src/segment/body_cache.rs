//! Body cache: small bodies and block checksums of larger ones.
//!
//! Guarantees: cached content was read, verified and matched to the record of its entry; it is a copy, which disk
//! corruption does not affect; memory is bounded; a body is cached only when it is opened again within a short time,
//! so a full scan does not evict frequently read bodies.
//! Non-goals: resolving names. An entry with another location is a cache miss.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::format::{Checksum, Entry, Location, SegmentId};
use crate::name::ObjectName;

/// Source of the bytes and of their block checksums.
#[derive(Clone)]
pub(super) enum BodySource {
    /// Whole body, read and verified together with the record head.
    Whole(Bytes),
    /// Body in the segment, with its block checksums.
    Blocks(Arc<[Checksum]>),
    /// Body in the segment, with a block table that contains its block checksums.
    Table(Bytes),
}

/// Cache of bodies.
pub(crate) struct BodyCache {
    bodies: Cache<SegmentOffset, Arc<CachedBody>, Weight>,
    /// Fingerprints of recent opens.
    seen: Box<[AtomicU32]>,
}

/// Location of the record.
type SegmentOffset = (SegmentId, u64);

struct CachedBody {
    name: ObjectName,
    lsn: u64,
    bytes: u64,
    content: BodySource,
}

#[derive(Clone)]
struct Weight;

impl Weighter<SegmentOffset, Arc<CachedBody>> for Weight {
    fn weight(&self, _: &SegmentOffset, cached: &Arc<CachedBody>) -> u64 {
        let content = match &cached.content {
            BodySource::Whole(bytes) | BodySource::Table(bytes) => bytes.len(),
            BodySource::Blocks(blocks) => size_of_val(&**blocks),
        };
        (content + CACHED_BODY_FIXED_BYTES) as u64
    }
}

impl BodyCache {
    /// Creates a cache of at most this size in bytes.
    pub(super) fn new(bytes_max: usize) -> Self {
        let typical = bytes_max / (4 * 1_024);
        Self {
            bodies: Cache::with_weighter(typical, bytes_max as u64, Weight),
            seen: (0..ADMISSION_SLOTS).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    /// Returns the cached content of the body that `entry` refers to.
    pub(super) fn get(&self, name: &ObjectName, entry: &Entry) -> Option<BodySource> {
        let cached = self.bodies.get(&place(entry.record))?;
        let is_it =
            cached.lsn == entry.lsn && cached.bytes == entry.body_bytes() && cached.name == *name;
        is_it.then(|| cached.content.clone())
    }

    /// Records that the body of `entry` was opened with this content, and caches it unless this is the first recent
    /// open.
    pub(super) fn insert(&self, name: &ObjectName, entry: &Entry, content: &BodySource) {
        let hash = hash_of(entry.record);
        let (place_seen, part) = ((hash >> 32) as usize % ADMISSION_SLOTS, hash as u32);
        let before = self.seen.get(place_seen).map(|it| it.swap(part, Ordering::Relaxed));
        if before != Some(part) {
            return;
        }
        let content = match content {
            // A slice would be a view into a map, and its pages may be evicted.
            BodySource::Whole(bytes) => BodySource::Whole(Bytes::copy_from_slice(bytes)),
            other => other.clone(),
        };
        let (lsn, bytes) = (entry.lsn, entry.body_bytes());
        let cached = CachedBody { name: name.clone(), lsn, bytes, content };
        self.bodies.insert(place(entry.record), Arc::new(cached));
    }
}

fn place(record: Location) -> SegmentOffset {
    (record.segment, record.offset)
}

fn hash_of(record: Location) -> u64 {
    let mixed =
        (record.segment.get().rotate_left(40) ^ record.offset).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // Never zero, which marks an empty slot.
    mixed ^ (mixed >> 29) | 1
}

/// Number of slots for recent opens.
const ADMISSION_SLOTS: usize = 32 * 1_024;
/// Memory overhead of a cached body.
const CACHED_BODY_FIXED_BYTES: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{EntryContent, ObjectFlags, ObjectMeta};
    use crate::name::{BucketName, ObjectKey};

    const CACHE_BYTES: usize = 16 << 20;

    fn name(key: &str) -> ObjectName {
        ObjectName::new(BucketName::parse("bucket").unwrap(), ObjectKey::parse(key).unwrap())
    }

    fn entry(offset: u64, lsn: u64, bytes: u64) -> Entry {
        let segment = SegmentId::new(1).unwrap();
        Entry {
            lsn,
            record: Location { segment, offset, head_bytes: 100 },
            meta: ObjectMeta {
                content_type: String::new(),
                hash: [0; 32],
                created_ms: 0,
                modified_ms: 0,
                flags: ObjectFlags::default(),
                attributes: Vec::new(),
            },
            content: EntryContent::Inline { bytes },
        }
    }

    #[test]
    fn body_cache_admits_on_second_open_per_record() {
        let cache = BodyCache::new(CACHE_BYTES);
        let (name_a, entry_a) = (name("a"), entry(4_096, 7, 3));
        let content = BodySource::Whole(Bytes::from_static(b"abc"));
        cache.insert(&name_a, &entry_a, &content);
        assert!(cache.get(&name_a, &entry_a).is_none(), "once is not often");
        cache.insert(&name_a, &entry_a, &content);
        let found = cache.get(&name_a, &entry_a);
        assert!(matches!(found, Some(BodySource::Whole(bytes)) if bytes == "abc"));
        assert!(cache.get(&name("b"), &entry_a).is_none());
        assert!(cache.get(&name_a, &entry(4_096, 8, 3)).is_none());
        assert!(cache.get(&name_a, &entry(4_096, 7, 4)).is_none());
        assert!(cache.get(&name_a, &entry(8_192, 7, 3)).is_none());
    }

    #[test]
    fn body_cache_memory_is_bounded() {
        let cache = BodyCache::new(CACHE_BYTES);
        let body = BodySource::Whole(Bytes::from(vec![1; 16 * 1_024]));
        for at in 0..2 * (CACHE_BYTES as u64 / (16 * 1_024)) {
            let entry = entry(at * 20_000, at, 16 * 1_024);
            cache.insert(&name("a"), &entry, &body);
            cache.insert(&name("a"), &entry, &body);
        }
        assert!(cache.bodies.weight() <= CACHE_BYTES as u64);
        assert!(cache.bodies.len() > 100);
    }
}
