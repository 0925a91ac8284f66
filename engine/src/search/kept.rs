//! Name cache: bucket names in memory, kept up to date by the change feed.
//!
//! The first search of a bucket requests its names; they are read from the index in the background and then follow
//! the commits.
//!
//! Guarantees: cached names include everything published before they are returned; the total memory is bounded, and
//! the names of the least recently searched buckets are evicted.
//! Non-goals: threads, matching.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::names::{Builder, Key, Names};
use crate::error::{Error, Result};
use crate::format::entry_key;
use crate::index::{Following, Index, NameChange, View, damaged};
use crate::limits;
use crate::name::BucketName;

/// Options of the name cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchOptions {
    /// Memory limit for the names of all buckets. 0: every search scans the index.
    pub names_bytes_max: u64,
    /// Minimum number of objects of a cached bucket; smaller ones are scanned, which is as fast.
    pub objects_min: u64,
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self {
            names_bytes_max: limits::SEARCH_NAMES_BYTES_MAX,
            objects_min: limits::SEARCH_OBJECTS_MIN,
        }
    }
}

/// Name cache.
pub(crate) struct KeptNames {
    options: SearchOptions,
    state: Mutex<State>,
    /// Signalled when a bucket is requested, and at shutdown.
    changed: Condvar,
    /// Number of searches.
    searches: AtomicU64,
}

#[derive(Default)]
struct State {
    buckets: BTreeMap<BucketName, Bucket>,
    wanted: Vec<BucketName>,
    has_ended: bool,
}

/// State of a searched bucket.
enum Bucket {
    /// Names requested or being read.
    Awaited,
    /// Names did not fit in the memory limit, for this number of objects.
    TooLarge { objects: u64 },
    /// Names of this size were evicted for others.
    MadeRoom { bytes: u64 },
    /// Names are cached.
    Here(Arc<Kept>),
}

/// Names of a bucket, and the changes since their last use.
struct Kept {
    names: Mutex<Names>,
    following: Arc<Following>,
    /// Number of the last search that used them.
    searched: AtomicU64,
}

/// Result of a cache lookup.
pub(super) enum Found {
    /// All names.
    All(Names),
    /// None yet; they are being read.
    Awaited,
    /// None, and they are not being read: the index must be scanned.
    Nothing,
}

/// Size of the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeptSizes {
    /// Number of names.
    pub(crate) names: u64,
    /// Approximate memory use in bytes.
    pub(crate) bytes: u64,
}

impl KeptNames {
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
    pub(super) fn find(&self, bucket: &BucketName, objects: u64) -> Found {
        if objects < self.options.objects_min || self.options.names_bytes_max == 0 {
            return Found::Nothing;
        }
        let search = self.searches.fetch_add(1, Ordering::Relaxed);
        let (kept, bytes_before) = match self.state().buckets.get(bucket) {
            Some(Bucket::Here(kept)) => (Some(Arc::clone(kept)), None),
            Some(Bucket::Awaited) => return Found::Awaited,
            Some(Bucket::TooLarge { objects: then }) if objects > then / 4 * 3 => {
                return Found::Nothing;
            }
            Some(Bucket::MadeRoom { bytes }) => (None, Some(*bytes)),
            Some(Bucket::TooLarge { .. }) | None => (None, None),
        };
        if bytes_before.is_some_and(|bytes| !self.has_room(bytes, search)) {
            return Found::Nothing;
        }
        let names = kept.and_then(|kept| {
            kept.searched.store(search, Ordering::Relaxed);
            kept.current()
        });
        names.map_or_else(
            || {
                self.state().want(bucket);
                self.changed.notify_all();
                Found::Awaited
            },
            Found::All,
        )
    }

    /// Waits until names are requested, at most `patience`. Returns false at shutdown.
    pub(crate) fn wait(&self, patience: Duration) -> bool {
        let is_idle = |state: &mut State| state.wanted.is_empty() && !state.has_ended;
        let waited = self.changed.wait_timeout_while(self.state(), patience, is_idle);
        !waited.unwrap_or_else(PoisonError::into_inner).0.has_ended
    }

    /// Ends [`KeptNames::wait`], and reads in progress.
    pub(crate) fn end(&self) {
        self.state().has_ended = true;
        self.changed.notify_all();
    }

    /// Reads requested names, and applies changes where many are pending.
    pub(crate) fn step(&self, index: &Index) {
        let wanted = std::mem::take(&mut self.state().wanted);
        for bucket in wanted {
            let read = self.read(index, &bucket);
            let mut state = self.state();
            match read {
                Ok(read) => state.buckets.insert(bucket, read),
                // The next search requests them again.
                Err(_) => state.buckets.remove(&bucket),
            };
        }
        let kept: Vec<Arc<Kept>> = self.state().kept().map(|(_, kept)| Arc::clone(kept)).collect();
        for kept in kept.iter().filter(|it| it.following.waiting() > limits::FOLLOWED_NAMES_WAIT) {
            kept.current();
        }
        self.make_room(0);
    }

    /// Returns the size of the cache.
    pub(crate) fn sizes(&self) -> KeptSizes {
        let kept: Vec<Arc<Kept>> = self.state().kept().map(|(_, kept)| Arc::clone(kept)).collect();
        kept.iter().fold(KeptSizes::default(), |sizes, kept| {
            let names = kept.names();
            KeptSizes {
                names: sizes.names + names.count() as u64,
                bytes: sizes.bytes + names.bytes() as u64,
            }
        })
    }

    fn read(&self, index: &Index, bucket: &BucketName) -> Result<Bucket> {
        let (view, following) = index.follow(bucket);
        let range = entry_key::bucket_range(bucket);
        let mut builder = Builder::default();
        for (at, key) in view.entry_keys(Bound::Included(&range.start), &range.end)?.enumerate() {
            builder.push(entry_key::decode(&key?).map_err(damaged)?.key.as_str());
            if at % limits::SEARCH_STEP_NAMES == 0 {
                if self.state().has_ended {
                    return Err(Error::Closed);
                }
                if self.is_too_much(builder.bytes()) {
                    return too_large(&view, bucket);
                }
                self.make_room(builder.bytes() as u64);
            }
        }
        let names = builder.finish();
        // Names that would be evicted immediately would be requested again by each search.
        if self.is_too_much(names.bytes()) {
            return too_large(&view, bucket);
        }
        let searched = AtomicU64::new(self.searches.fetch_add(1, Ordering::Relaxed));
        Ok(Bucket::Here(Arc::new(Kept { names: Mutex::new(names), following, searched })))
    }

    /// Returns whether names of this size alone exceed the memory limit.
    fn is_too_much(&self, bytes: usize) -> bool {
        bytes as u64 > self.options.names_bytes_max
    }

    /// Returns whether evicted names may be read again: there is memory, or the bucket to be evicted for them was
    /// not searched for a long time.
    fn has_room(&self, bytes: u64, search: u64) -> bool {
        if self.sizes().bytes + bytes <= self.options.names_bytes_max {
            return true;
        }
        let least = self.state().least_lately().map_or(0, |(_, searched)| searched);
        search.saturating_sub(least) > limits::SEARCHES_BEFORE_ROOM
    }

    /// Evicts names until the rest fits in the memory limit together with `beside` bytes.
    fn make_room(&self, beside: u64) {
        while self.sizes().bytes + beside > self.options.names_bytes_max {
            let mut state = self.state();
            let Some((bucket, _)) = state.least_lately() else { return };
            let Some(Bucket::Here(kept)) = state.buckets.remove(&bucket) else { return };
            let bytes = kept.names().bytes() as u64;
            state.buckets.insert(bucket, Bucket::MadeRoom { bytes });
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn too_large(view: &View, bucket: &BucketName) -> Result<Bucket> {
    let usage = view.bucket_usage(bucket)?;
    Ok(Bucket::TooLarge { objects: usage.objects + usage.derived_objects })
}

impl State {
    fn want(&mut self, bucket: &BucketName) {
        let before = self.buckets.insert(bucket.clone(), Bucket::Awaited);
        if !matches!(before, Some(Bucket::Awaited)) {
            self.wanted.push(bucket.clone());
        }
    }

    fn kept(&self) -> impl Iterator<Item = (&BucketName, &Arc<Kept>)> {
        self.buckets.iter().filter_map(|(bucket, state)| match state {
            Bucket::Here(kept) => Some((bucket, kept)),
            Bucket::Awaited | Bucket::TooLarge { .. } | Bucket::MadeRoom { .. } => None,
        })
    }

    /// Returns the least recently searched cached bucket, with the number of its last search.
    fn least_lately(&self) -> Option<(BucketName, u64)> {
        let searched = |kept: &Kept| kept.searched.load(Ordering::Relaxed);
        let least = self.kept().min_by_key(|(_, kept)| searched(kept))?;
        Some((least.0.clone(), searched(least.1)))
    }
}

impl Kept {
    /// Returns the current names; `None` if they cannot be brought up to date.
    fn current(&self) -> Option<Names> {
        let mut names = self.names();
        let changes = self.following.take()?;
        let mut last_of_each = BTreeMap::new();
        for NameChange { key, is_there } in changes {
            let name = entry_key::decode(&key).ok()?;
            last_of_each.insert(Key::new(name.key.as_str()), is_there);
        }
        names.apply(last_of_each);
        Some(names.clone())
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
