//! Name cache: bucket names in memory, cached up to date by the change feed.
//!
//! The first search of a bucket requests its names; they are read from the index in the background and then follow
//! the commits.
//!
//! Guarantees: cached names include everything published before they are returned; the total memory is bounded, and
//! the names of the least recently searched buckets are evicted.
//! Non-goals: threads, matching.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::snapshot::{NameChange, Subscription};
use engine::{BucketName, Error, FolderKey, Result, Store};

use super::limits;
use super::name_list::{Builder, Key, NameList};

/// Options of the cache of object names for searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchOptions {
    /// Memory limit for the names of all buckets, in bytes. 0: every search scans the index.
    pub names_bytes_max: u64,
    /// Minimum number of objects in a bucket whose names are cached. Smaller buckets are scanned in the index, which is
    /// as fast.
    pub objects_min: u64,
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self {
            names_bytes_max: limits::NAME_CACHE_BYTES_MAX,
            objects_min: limits::NAME_CACHE_OBJECTS_MIN,
        }
    }
}

/// Name cache.
pub(crate) struct NameCache {
    options: SearchOptions,
    state: Mutex<State>,
    /// Signalled when a bucket is requested, and at shutdown.
    changed: Condvar,
    /// Number of searches.
    searches: AtomicU64,
}

#[derive(Default)]
struct State {
    buckets: BTreeMap<BucketName, BucketState>,
    load_queue: Vec<BucketName>,
    is_shut_down: bool,
}

/// State of a searched bucket.
enum BucketState {
    /// Names requested or being read.
    Loading,
    /// Names did not fit in the memory limit, for this number of objects.
    TooLarge { objects: u64 },
    /// Names of this size were evicted for others.
    Evicted { bytes: u64 },
    /// Names are cached.
    Loaded(Arc<CachedNames>),
}

/// Names of a bucket, and the changes since their last use.
struct CachedNames {
    names: Mutex<NameList>,
    subscription: Arc<Subscription>,
    /// Number of the last search that used them.
    searched: AtomicU64,
}

/// Result of a cache lookup.
pub(super) enum CacheLookup {
    /// All names.
    Hit(NameList),
    /// None yet; they are being read.
    Loading,
    /// None, and they are not being read: the index must be scanned.
    Bypass,
}

/// Size of the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NameCacheStats {
    /// Number of names.
    pub names: u64,
    /// Approximate memory use in bytes.
    pub bytes: u64,
}

impl NameCache {
    /// Creates an empty cache.
    pub(crate) fn new(options: SearchOptions) -> Self {
        Self {
            options,
            state: Mutex::default(),
            changed: Condvar::new(),
            searches: AtomicU64::new(0),
        }
    }

    /// Looks up the names of a bucket with this number of objects, and requests them on a miss.
    pub(super) fn get(&self, bucket: &BucketName, objects: u64) -> CacheLookup {
        if objects < self.options.objects_min || self.options.names_bytes_max == 0 {
            return CacheLookup::Bypass;
        }
        let search = self.searches.fetch_add(1, Ordering::Relaxed);
        let (cached, bytes_before) = match self.state().buckets.get(bucket) {
            Some(BucketState::Loaded(cached)) => (Some(Arc::clone(cached)), None),
            Some(BucketState::Loading) => return CacheLookup::Loading,
            Some(BucketState::TooLarge { objects: then }) if objects > then / 4 * 3 => {
                return CacheLookup::Bypass;
            }
            Some(BucketState::Evicted { bytes }) => (None, Some(*bytes)),
            Some(BucketState::TooLarge { .. }) | None => (None, None),
        };
        if bytes_before.is_some_and(|bytes| !self.has_room(bytes, search)) {
            return CacheLookup::Bypass;
        }
        let names = cached.and_then(|cached| {
            cached.searched.store(search, Ordering::Relaxed);
            cached.current()
        });
        names.map_or_else(
            || {
                self.state().request_load(bucket);
                self.changed.notify_all();
                CacheLookup::Loading
            },
            CacheLookup::Hit,
        )
    }

    /// Waits until names are requested, at most `patience`. Returns false at shutdown.
    pub(crate) fn wait(&self, patience: Duration) -> bool {
        let is_idle = |state: &mut State| state.load_queue.is_empty() && !state.is_shut_down;
        let waited = self.changed.wait_timeout_while(self.state(), patience, is_idle);
        !waited.unwrap_or_else(PoisonError::into_inner).0.is_shut_down
    }

    /// Ends [`NameCache::wait`], and reads in progress.
    pub(crate) fn shut_down(&self) {
        self.state().is_shut_down = true;
        self.changed.notify_all();
    }

    /// Reads requested names, and applies changes where many are pending.
    pub(crate) fn load_requested(&self, store: &Store) {
        let wanted = std::mem::take(&mut self.state().load_queue);
        for bucket in wanted {
            let read = self.read(store, &bucket);
            let mut state = self.state();
            match read {
                Ok(read) => state.buckets.insert(bucket, read),
                // The next search requests them again.
                Err(_) => state.buckets.remove(&bucket),
            };
        }
        let cached: Vec<Arc<CachedNames>> =
            self.state().cached_names().map(|(_, cached)| Arc::clone(cached)).collect();
        for cached in
            cached.iter().filter(|it| it.subscription.pending_count() > limits::APPLY_NAMES)
        {
            cached.current();
        }
        self.evict(0);
    }

    /// Returns the size of the cache.
    pub(crate) fn stats(&self) -> NameCacheStats {
        let cached: Vec<Arc<CachedNames>> =
            self.state().cached_names().map(|(_, cached)| Arc::clone(cached)).collect();
        cached.iter().fold(NameCacheStats::default(), |stats, cached| {
            let names = cached.names();
            NameCacheStats {
                names: stats.names + names.count() as u64,
                bytes: stats.bytes + names.bytes() as u64,
            }
        })
    }

    fn read(&self, store: &Store, bucket: &BucketName) -> Result<BucketState> {
        let (snapshot, subscription) = store.subscribe(bucket);
        let mut builder = Builder::default();
        let mut count = 0;
        let read = snapshot.visit_keys(bucket, &FolderKey::root(), |key| {
            builder.push(key);
            count += 1;
            if count % limits::CANCEL_CHECK_NAMES == 0 {
                if self.state().is_shut_down {
                    return Err(Error::Closed);
                }
                if self.is_too_much(builder.bytes()) {
                    return Ok(ControlFlow::Break(()));
                }
                self.evict(builder.bytes() as u64);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let names = builder.finish();
        // Names that would be evicted immediately would be requested again by each search.
        if read.is_break() || self.is_too_much(names.bytes()) {
            let usage = snapshot.bucket_usage(bucket)?;
            return Ok(BucketState::TooLarge { objects: usage.objects + usage.derived_objects });
        }
        let searched = AtomicU64::new(self.searches.fetch_add(1, Ordering::Relaxed));
        Ok(BucketState::Loaded(Arc::new(CachedNames {
            names: Mutex::new(names),
            subscription,
            searched,
        })))
    }

    /// Returns whether names of this size alone exceed the memory limit.
    fn is_too_much(&self, bytes: usize) -> bool {
        bytes as u64 > self.options.names_bytes_max
    }

    /// Returns whether evicted names may be read again: there is memory, or the bucket to be evicted for them was
    /// not searched for a long time.
    fn has_room(&self, bytes: u64, search: u64) -> bool {
        if self.stats().bytes + bytes <= self.options.names_bytes_max {
            return true;
        }
        let least = self.state().least_recently_used().map_or(0, |(_, searched)| searched);
        search.saturating_sub(least) > limits::NAME_CACHE_IDLE_SEARCHES_MIN
    }

    /// Evicts names until the rest fits in the memory limit together with `additional_bytes`.
    fn evict(&self, additional_bytes: u64) {
        while self.stats().bytes + additional_bytes > self.options.names_bytes_max {
            let mut state = self.state();
            let Some((bucket, _)) = state.least_recently_used() else { return };
            let Some(BucketState::Loaded(cached)) = state.buckets.remove(&bucket) else { return };
            let bytes = cached.names().bytes() as u64;
            state.buckets.insert(bucket, BucketState::Evicted { bytes });
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn request_load(&mut self, bucket: &BucketName) {
        let before = self.buckets.insert(bucket.clone(), BucketState::Loading);
        if !matches!(before, Some(BucketState::Loading)) {
            self.load_queue.push(bucket.clone());
        }
    }

    fn cached_names(&self) -> impl Iterator<Item = (&BucketName, &Arc<CachedNames>)> {
        self.buckets.iter().filter_map(|(bucket, state)| match state {
            BucketState::Loaded(cached) => Some((bucket, cached)),
            BucketState::Loading | BucketState::TooLarge { .. } | BucketState::Evicted { .. } => {
                None
            }
        })
    }

    /// Returns the least recently searched cached bucket, with the number of its last search.
    fn least_recently_used(&self) -> Option<(BucketName, u64)> {
        let searched = |cached: &CachedNames| cached.searched.load(Ordering::Relaxed);
        let least = self.cached_names().min_by_key(|(_, cached)| searched(cached))?;
        Some((least.0.clone(), searched(least.1)))
    }
}

impl CachedNames {
    /// Returns the current names; `None` if they cannot be brought up to date.
    fn current(&self) -> Option<NameList> {
        let mut names = self.names();
        let changes = self.subscription.take()?;
        let mut last_of_each = BTreeMap::new();
        for NameChange { key, exists } in changes {
            last_of_each.insert(Key::new(key.as_str()), exists);
        }
        names.apply(last_of_each);
        Some(names.clone())
    }

    fn names(&self) -> MutexGuard<'_, NameList> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
