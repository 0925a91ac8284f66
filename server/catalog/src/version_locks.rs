//! Locks for changes of versions: concurrent copies, and changes of the current version of a key.
//!
//! Guarantees: of two removals of the current version of one key, the second sees the result of the first. Non-goals:
//! the changes.

use std::collections::BTreeSet;

use engine::ObjectName;
use tokio::sync::{Mutex, MutexGuard};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::Catalog;
use crate::versions::limits;

/// Locks of a catalog.
pub(super) struct VersionLocks {
    copies: Semaphore,
    keys: [Mutex<()>; limits::LOCK_COUNT],
}

impl Default for VersionLocks {
    fn default() -> Self {
        Self {
            copies: Semaphore::new(limits::COPIES_MAX),
            keys: std::array::from_fn(|_| Mutex::default()),
        }
    }
}

impl VersionLocks {
    /// Waits for a permit to copy the versions that a batch replaces.
    pub(super) async fn copy(&self) -> engine::Result<SemaphorePermit<'_>> {
        self.copies.acquire().await.map_err(|_| engine::Error::Closed)
    }
}

impl Catalog {
    /// Locks the current versions of keys until dropped.
    pub async fn lock_current_versions(
        &self,
        names: impl Iterator<Item = &ObjectName>,
    ) -> Vec<MutexGuard<'_, ()>> {
        let hash_of = |name: &ObjectName| {
            let hasher = std::hash::BuildHasherDefault::<std::hash::DefaultHasher>::default();
            std::hash::BuildHasher::hash_one(&hasher, name) % limits::LOCK_COUNT as u64
        };
        // Locked in a fixed order, which prevents deadlocks.
        let wanted: BTreeSet<u64> = names.map(hash_of).collect();
        let mut turns = Vec::with_capacity(wanted.len());
        for (at, turn) in (0..).zip(&self.state.version_locks.keys) {
            if wanted.contains(&at) {
                turns.push(turn.lock().await);
            }
        }
        turns
    }
}
