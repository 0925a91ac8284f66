//! Heads of answers, kept for files that are asked for again.
//!
//! A table with a place for each of some thousand versions; a version that is asked for twice takes the place of
//! another. Promises: a head is found only for the version and the very settings of the bucket that it was made of;
//! memory is bounded; files that are asked for once take no place.
//! Never here: what stands in a head, and whether the caller may see the file.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use http::HeaderMap;

use crate::catalog::Bucket;
use crate::conditional::Validators;
use crate::limits::KEPT_HEADS_MAX;

/// What was kept.
pub struct KeptHeads(Box<[Place]>);

/// The head of an answer with the whole of a file.
pub struct KeptHead {
    lsn: u64,
    bucket: Arc<Bucket>,
    pub validators: Validators,
    pub headers: HeaderMap,
}

#[derive(Default)]
struct Place {
    /// The version that was asked for last.
    asked: AtomicU64,
    kept: RwLock<Option<Arc<KeptHead>>>,
}

impl Default for KeptHeads {
    fn default() -> Self {
        Self((0..KEPT_HEADS_MAX).map(|_| Place::default()).collect())
    }
}

impl KeptHeads {
    /// The head for a version of a file: the LSN that put it.
    pub fn get(&self, lsn: u64, bucket: &Arc<Bucket>) -> Option<Arc<KeptHead>> {
        let kept = self.place(lsn)?.kept.read().unwrap_or_else(PoisonError::into_inner);
        // Settings that change are a bucket of their own.
        kept.as_ref().filter(|it| it.lsn == lsn && Arc::ptr_eq(&it.bucket, bucket)).cloned()
    }

    /// A head was made, and is kept unless this is the first time lately.
    pub fn note(
        &self,
        lsn: u64,
        bucket: &Arc<Bucket>,
        validators: &Validators,
        headers: impl FnOnce() -> HeaderMap,
    ) {
        let Some(place) = self.place(lsn) else { return };
        if place.asked.swap(lsn, Ordering::Relaxed) != lsn {
            return;
        }
        let (bucket, validators) = (bucket.clone(), validators.clone());
        let head = Arc::new(KeptHead { lsn, bucket, validators, headers: headers() });
        *place.kept.write().unwrap_or_else(PoisonError::into_inner) = Some(head);
    }

    fn place(&self, lsn: u64) -> Option<&Place> {
        self.0.get(lsn as usize % KEPT_HEADS_MAX)
    }
}
