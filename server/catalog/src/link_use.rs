//! Use of a shared link: downloads, views, and the time of the last use.
//!
//! A request changes numbers in memory; they are persisted periodically, many links in one batch, like the last-used
//! times of keys. Guarantees: the download of a link with a maximum is durable before its first byte. A crash loses
//! other uses of at most some minutes. Non-goals: limits, and who used the link (`link_events`).

use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use super::record::Record;

/// Prefix of the fact names of stored uses; the id of the link follows.
pub(super) const PREFIX: &str = "link-downloads/";

/// Use of a link, shared by the versions of its record. Not part of the equality of records.
#[derive(Debug, Default)]
pub struct LinkUse {
    downloads: AtomicU64,
    views: AtomicU64,
    /// Time of the last use, in milliseconds since 1970; zero if never used.
    used_ms: AtomicU64,
}

/// Stored use.
#[derive(Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredLinkUse {
    /// Number of downloads.
    pub(super) count: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) views: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) used_ms: u64,
}

impl Record for StoredLinkUse {}

impl LinkUse {
    /// Returns the number of downloads.
    pub fn downloads(&self) -> u64 {
        self.downloads.load(Ordering::Relaxed)
    }

    /// Returns the number of views of the page.
    pub fn views(&self) -> u64 {
        self.views.load(Ordering::Relaxed)
    }

    /// Returns the time of the last use.
    pub fn used_ms(&self) -> Option<u64> {
        Some(self.used_ms.load(Ordering::Relaxed)).filter(|used_ms| *used_ms > 0)
    }

    pub(super) fn record_download(&self, now_ms: u64) {
        self.downloads.fetch_add(1, Ordering::Relaxed);
        self.record_use(now_ms);
    }

    pub(super) fn record_view(&self, now_ms: u64) {
        self.views.fetch_add(1, Ordering::Relaxed);
        self.record_use(now_ms);
    }

    pub(super) fn record_use(&self, now_ms: u64) {
        self.used_ms.fetch_max(now_ms, Ordering::Relaxed);
    }

    /// Sets stored numbers, unless greater ones are known.
    pub(super) fn advance_to(&self, stored: &StoredLinkUse) {
        self.downloads.fetch_max(stored.count, Ordering::Relaxed);
        self.views.fetch_max(stored.views, Ordering::Relaxed);
        self.used_ms.fetch_max(stored.used_ms, Ordering::Relaxed);
    }

    pub(super) fn to_stored(&self) -> StoredLinkUse {
        StoredLinkUse {
            count: self.downloads(),
            views: self.views(),
            used_ms: self.used_ms().unwrap_or(0),
        }
    }
}

impl PartialEq for LinkUse {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
