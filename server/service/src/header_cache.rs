//! Response-header cache of frequently requested files.
//!
//! A table with one slot for each of some thousand versions; a version that is requested twice in a row replaces the
//! entry of its slot. Guarantees: an entry is found only for the version and the exact bucket settings that it was made
//! from; memory is bounded; files that are requested once take no slot. Non-goals: the content of the headers, and
//! authorization.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use catalog::Bucket;
use http::HeaderMap;
use protocol::conditional::Validators;

use crate::limits::HEADER_CACHE_ENTRIES_MAX;

/// Response-header cache.
pub struct ResponseHeaderCache(Box<[CacheSlot]>);

/// Cached headers of the response with a whole file.
pub struct CachedHeaders {
    lsn: u64,
    bucket: Arc<Bucket>,
    pub validators: Validators,
    pub headers: HeaderMap,
}

#[derive(Default)]
struct CacheSlot {
    /// Version that was requested last.
    requests: AtomicU64,
    headers: RwLock<Option<Arc<CachedHeaders>>>,
}

impl Default for ResponseHeaderCache {
    fn default() -> Self {
        Self((0..HEADER_CACHE_ENTRIES_MAX).map(|_| CacheSlot::default()).collect())
    }
}

impl ResponseHeaderCache {
    /// Returns the entry for a version of a file: the LSN that put it.
    pub fn get(&self, lsn: u64, bucket: &Arc<Bucket>) -> Option<Arc<CachedHeaders>> {
        let kept = self.slot(lsn)?.headers.read().unwrap_or_else(PoisonError::into_inner);
        // Changed settings are a new bucket record.
        kept.as_ref().filter(|it| it.lsn == lsn && Arc::ptr_eq(&it.bucket, bucket)).cloned()
    }

    /// Caches the headers of a version, unless this is its first recent request.
    pub fn insert(
        &self,
        lsn: u64,
        bucket: &Arc<Bucket>,
        validators: &Validators,
        headers: impl FnOnce() -> HeaderMap,
    ) {
        let Some(place) = self.slot(lsn) else { return };
        if place.requests.swap(lsn, Ordering::Relaxed) != lsn {
            return;
        }
        let (bucket, validators) = (bucket.clone(), validators.clone());
        let head = Arc::new(CachedHeaders { lsn, bucket, validators, headers: headers() });
        *place.headers.write().unwrap_or_else(PoisonError::into_inner) = Some(head);
    }

    fn slot(&self, lsn: u64) -> Option<&CacheSlot> {
        self.0.get(lsn as usize % HEADER_CACHE_ENTRIES_MAX)
    }
}
