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

use super::body::BodyContent;
use crate::format::{Entry, Location, SegmentId};
use crate::limits;
use crate::name::ObjectName;

/// Cache of bodies.
pub(crate) struct KeptBodies {
    bodies: Cache<Where, Arc<KeptBody>, Weight>,
    /// Fingerprints of recent opens.
    seen: Box<[AtomicU32]>,
}

/// Location of the record.
type Where = (SegmentId, u64);

struct KeptBody {
    name: ObjectName,
    lsn: u64,
    bytes: u64,
    content: BodyContent,
}

#[derive(Clone)]
struct Weight;

impl Weighter<Where, Arc<KeptBody>> for Weight {
    fn weight(&self, _: &Where, kept: &Arc<KeptBody>) -> u64 {
        let content = match &kept.content {
            BodyContent::Whole(bytes) | BodyContent::Table(bytes) => bytes.len(),
            BodyContent::Blocks(blocks) => size_of_val(&**blocks),
        };
        (content + KEPT_FIXED_BYTES) as u64
    }
}

impl Default for KeptBodies {
    fn default() -> Self {
        let bytes_max = limits::KEPT_BODIES_BYTES_MAX;
        let typical = bytes_max / (4 * 1_024);
        Self {
            bodies: Cache::with_weighter(typical, bytes_max as u64, Weight),
            seen: (0..SEEN_PLACES).map(|_| AtomicU32::new(0)).collect(),
        }
    }
}

impl KeptBodies {
    /// Returns the cached content of the body that `entry` refers to.
    pub(super) fn get(&self, name: &ObjectName, entry: &Entry) -> Option<BodyContent> {
        let kept = self.bodies.get(&place(entry.record))?;
        let is_it = kept.lsn == entry.lsn && kept.bytes == entry.body_bytes() && kept.name == *name;
        is_it.then(|| kept.content.clone())
    }

    /// Records that the body of `entry` was opened with this content, and caches it unless this is the first recent
    /// open.
    pub(super) fn note(&self, name: &ObjectName, entry: &Entry, content: &BodyContent) {
        let hash = hash_of(entry.record);
        let (place_seen, part) = ((hash >> 32) as usize % SEEN_PLACES, hash as u32);
        let before = self.seen.get(place_seen).map(|it| it.swap(part, Ordering::Relaxed));
        if before != Some(part) {
            return;
        }
        let content = match content {
            // A slice would be a view into a map, and its pages may be evicted.
            BodyContent::Whole(bytes) => BodyContent::Whole(Bytes::copy_from_slice(bytes)),
            other => other.clone(),
        };
        let (lsn, bytes) = (entry.lsn, entry.body_bytes());
        let kept = KeptBody { name: name.clone(), lsn, bytes, content };
        self.bodies.insert(place(entry.record), Arc::new(kept));
    }
}

fn place(record: Location) -> Where {
    (record.segment, record.offset)
}

fn hash_of(record: Location) -> u64 {
    let mixed =
        (record.segment.get().rotate_left(40) ^ record.offset).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // Never zero, which marks an empty slot.
    mixed ^ (mixed >> 29) | 1
}

/// Number of slots for recent opens.
const SEEN_PLACES: usize = 32 * 1_024;
/// Memory overhead of a cached body.
const KEPT_FIXED_BYTES: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{EntryContent, ObjectFlags, ObjectMeta};
    use crate::name::{BucketName, ObjectKey};

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
    fn what_is_opened_twice_is_kept_for_its_own_record_alone() {
        let kept = KeptBodies::default();
        let (name_a, entry_a) = (name("a"), entry(4_096, 7, 3));
        let content = BodyContent::Whole(Bytes::from_static(b"abc"));
        kept.note(&name_a, &entry_a, &content);
        assert!(kept.get(&name_a, &entry_a).is_none(), "once is not often");
        kept.note(&name_a, &entry_a, &content);
        let found = kept.get(&name_a, &entry_a);
        assert!(matches!(found, Some(BodyContent::Whole(bytes)) if bytes == "abc"));
        assert!(kept.get(&name("b"), &entry_a).is_none());
        assert!(kept.get(&name_a, &entry(4_096, 8, 3)).is_none());
        assert!(kept.get(&name_a, &entry(4_096, 7, 4)).is_none());
        assert!(kept.get(&name_a, &entry(8_192, 7, 3)).is_none());
    }

    #[test]
    fn what_is_kept_takes_bounded_memory() {
        let kept = KeptBodies::default();
        let body = BodyContent::Whole(Bytes::from(vec![1; 16 * 1_024]));
        for at in 0..2 * (limits::KEPT_BODIES_BYTES_MAX as u64 / (16 * 1_024)) {
            let entry = entry(at * 20_000, at, 16 * 1_024);
            kept.note(&name("a"), &entry, &body);
            kept.note(&name("a"), &entry, &body);
        }
        assert!(kept.bodies.weight() <= limits::KEPT_BODIES_BYTES_MAX as u64);
        assert!(kept.bodies.len() > 100);
    }
}
