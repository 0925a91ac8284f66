//! Variant cache in the store, and its eviction.
//!
//! A variant is an object in a bucket that is not addressable: `{LSN of the parent's version}/{plan}`. A variant of a
//! deleted version is therefore never found again; the next sweep removes it. Guarantees: the cache stays below its
//! limit, and evicts the least recently used first; the list in memory and the store agree, whatever the outcome of a
//! commit; a variant is stored only while its parent is the version that it was rendered from. Losing any of it costs
//! only rendering it again. Non-goals: rendering.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use bytes::Bytes;
use engine::damage::RecordName;
use engine::{
    Batch, BucketName, Health, Object, ObjectKey, ObjectName, Precondition, PutOptions, Store,
};
use protocol::reserved_paths;

use crate::limits::{VARIANTS_BATCH, VARIANTS_PAGE, VARIANTS_PER_OBJECT_MAX};

/// LSN of a parent's version, and name of the plan.
pub(super) type VariantKey = (u64, String);

/// Cached variants, and their last use.
pub(super) struct VariantCache {
    store: Store,
    bucket: BucketName,
    bytes_max: u64,
    state: Mutex<CacheState>,
    /// Held shared while adding to the store and the list, exclusively while removing from both.
    changes: RwLock<()>,
}

#[derive(Default)]
struct CacheState {
    parents: HashMap<u64, CachedParent>,
    /// Variants by last use.
    by_use: BTreeMap<u64, VariantKey>,
    uses: u64,
    bytes: u64,
}

struct CachedParent {
    name: ObjectName,
    variants: HashMap<String, CachedVariant>,
}

struct CachedVariant {
    bytes: u64,
    used: u64,
}

impl VariantCache {
    /// Creates an empty cache with a limit in bytes; [`VariantCache::load`] loads it from the store.
    pub(super) fn new(store: Store, bytes_max: u64) -> Result<Self, engine::name::NameError> {
        let bucket = BucketName::parse(reserved_paths::VARIANTS)?;
        Ok(Self { store, bucket, bytes_max, state: Mutex::default(), changes: RwLock::default() })
    }

    /// Returns the cached variant of a version of a file.
    pub(super) fn get(&self, parent: &Object, plan: &str) -> engine::Result<Option<Object>> {
        let key = (parent.lsn(), plan.to_owned());
        let Some(name) = self.name(&key) else { return Ok(None) };
        let Some(variant) = self.store.get(&name)? else { return Ok(None) };
        if !self.lock_state().touch(&key)
            // Not loaded yet, or being removed.
            && let Ok(_unchanging) = self.changes.try_read()
            && self.store.get(&name)?.is_some()
        {
            self.lock_state().insert(parent.name(), key, variant.bytes());
        }
        Ok(Some(variant))
    }

    /// Caches a variant, if there is room for it, its parent still exists, and the limit per parent is not reached.
    /// `None` if it is not cached. Blocks on the disk.
    pub(super) fn put(
        &self,
        parent: &Object,
        plan: &str,
        content_type: &str,
        bytes: &Bytes,
    ) -> engine::Result<Option<Object>> {
        let length = bytes.len() as u64;
        let key = (parent.lsn(), plan.to_owned());
        let Some(name) = self.name(&key) else { return Ok(None) };
        let Some(over) = self.over_with(key.0, length) else { return Ok(None) };
        self.remove(&over)?;
        let options = PutOptions {
            content_type: content_type.to_owned(),
            attributes: parent.name().to_string().into_bytes(),
            derived: true,
            created_ms: None,
        };
        let mut upload = self.store.upload();
        upload.push(bytes)?;
        let unchanged = Precondition::KeyHasEtag(parent.name().clone(), parent.etag());
        let batch = Batch::new().put(name, upload.finish()?, options).require(unchanged);
        let _unchanging = self.unchanging();
        let committed = match self.store.commit(batch) {
            Err(engine::Error::Conflict(_)) => return Ok(None),
            committed => committed?,
        };
        self.lock_state().insert(parent.name(), key, length);
        Ok(committed.objects.into_iter().next())
    }

    /// Loads the cache from the store, at the start. Blocks on the disk.
    pub(super) fn load(&self) -> engine::Result<()> {
        let mut after: Option<String> = None;
        loop {
            let unchanging = self.unchanging();
            let page = self.store.list_keys(&self.bucket, "", after.as_deref(), VARIANTS_PAGE)?;
            for variant in &page.objects {
                let parent = std::str::from_utf8(variant.attributes()).ok().and_then(parse_name);
                match (parent, key_of(variant)) {
                    (Some(parent), Some(key)) => {
                        self.lock_state().found(&parent, key, variant.bytes());
                    }
                    _ => drop(self.store.commit(Batch::new().delete(variant.name().clone()))?),
                }
            }
            drop(unchanging);
            after = page.objects.last().map(|last| last.name().key.as_str().to_owned());
            if !page.more {
                return Ok(());
            }
        }
    }

    /// Removes variants of deleted versions, corrupt ones, and those over the limit; if the disk is short of space,
    /// also as many others as are needed. Blocks on the disk.
    pub(super) fn evict(&self) -> engine::Result<()> {
        let parents: Vec<(u64, ObjectName)> = {
            let state = self.lock_state();
            state.parents.iter().map(|(version, parent)| (*version, parent.name.clone())).collect()
        };
        for (version, name) in parents {
            let is_current = self.store.get(&name)?.is_some_and(|parent| parent.lsn() == version);
            if !is_current {
                let stale = self.lock_state().keys_of(version);
                self.remove(&stale)?;
            }
        }
        self.remove(&self.damaged()?)?;
        let missing_bytes = match self.store.health() {
            Health::Full { free_bytes, reserve_bytes } => reserve_bytes.saturating_sub(free_bytes),
            _ => 0,
        };
        let over = {
            let state = self.lock_state();
            state.over(self.bytes_max.min(state.bytes.saturating_sub(missing_bytes)))
        };
        self.remove(&over)
    }

    /// Returns the variants that are known to be corrupt.
    fn damaged(&self) -> engine::Result<Vec<VariantKey>> {
        let mut damaged = Vec::new();
        for damage in self.store.damage()?.places {
            let Some(RecordName::Object(name)) = damage.name else { continue };
            if name.bucket == self.bucket
                && let Some(variant) = self.store.get(&name)?
                && damage.lsn.is_none_or(|lsn| lsn == variant.lsn())
            {
                damaged.extend(key_of(&variant));
            }
        }
        Ok(damaged)
    }

    /// Returns the number of variants on the list, and their bytes.
    pub(super) fn totals(&self) -> (usize, u64) {
        let state = self.lock_state();
        (state.by_use.len(), state.bytes)
    }

    /// Removes a variant. Blocks on the disk.
    pub(super) fn discard(&self, variant: &Object) -> engine::Result<()> {
        key_of(variant).map_or(Ok(()), |key| self.remove(&[key]))
    }

    /// Removes variants, from the store and then from the list. Blocks on the disk.
    fn remove(&self, keys: &[VariantKey]) -> engine::Result<()> {
        for some in keys.chunks(VARIANTS_BATCH) {
            let names = some.iter().filter_map(|key| self.name(key));
            let alone = self.changes.write().unwrap_or_else(PoisonError::into_inner);
            self.store.commit(names.fold(Batch::new(), Batch::delete))?;
            self.lock_state().forget(some);
            drop(alone);
        }
        Ok(())
    }

    /// Returns the variants to evict for a further one of this size. `None` if it does not fit at all.
    fn over_with(&self, version: u64, bytes: u64) -> Option<Vec<VariantKey>> {
        let state = self.lock_state();
        let of_parent = state.parents.get(&version).map_or(0, |parent| parent.variants.len());
        if of_parent >= VARIANTS_PER_OBJECT_MAX {
            return None;
        }
        Some(state.over(self.bytes_max.checked_sub(bytes)?))
    }

    fn name(&self, (version, plan): &VariantKey) -> Option<ObjectName> {
        let key = ObjectKey::parse(&format!("{version:016x}/{plan}")).ok()?;
        Some(ObjectName::new(self.bucket.clone(), key))
    }

    fn lock_state(&self) -> MutexGuard<'_, CacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unchanging(&self) -> RwLockReadGuard<'_, ()> {
        self.changes.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CacheState {
    /// Records the use of a variant. Returns false if it is not on the list.
    fn touch(&mut self, key: &VariantKey) -> bool {
        let variant = self.parents.get_mut(&key.0).and_then(|it| it.variants.get_mut(&key.1));
        let Some(variant) = variant else { return false };
        self.uses += 1;
        if let Some(key) = self.by_use.remove(&variant.used) {
            self.by_use.insert(self.uses, key);
        }
        variant.used = self.uses;
        true
    }

    fn variant(&self, key: &VariantKey) -> Option<&CachedVariant> {
        self.parents.get(&key.0)?.variants.get(&key.1)
    }

    /// Adds a variant as the most recently used.
    fn insert(&mut self, parent: &ObjectName, key: VariantKey, bytes: u64) {
        self.uses += 1;
        let used = self.uses;
        let parent = self
            .parents
            .entry(key.0)
            .or_insert_with(|| CachedParent { name: parent.clone(), variants: HashMap::new() });
        let before = parent.variants.insert(key.1.clone(), CachedVariant { bytes, used });
        if let Some(before) = before {
            self.by_use.remove(&before.used);
            self.bytes -= before.bytes;
        }
        self.bytes += bytes;
        self.by_use.insert(used, key);
    }

    /// Adds a variant found in the store, unless it was used already.
    fn found(&mut self, parent: &ObjectName, key: VariantKey, bytes: u64) {
        if self.variant(&key).is_none() {
            self.insert(parent, key, bytes);
        }
    }

    fn keys_of(&self, version: u64) -> Vec<VariantKey> {
        let variants = self.parents.get(&version).into_iter().flat_map(|it| it.variants.keys());
        variants.map(|plan| (version, plan.clone())).collect()
    }

    /// Returns the least recently used variants to evict for a limit.
    fn over(&self, bytes_max: u64) -> Vec<VariantKey> {
        let mut left = self.bytes;
        let mut over = Vec::new();
        for key in self.by_use.values() {
            if left <= bytes_max {
                break;
            }
            left -= self.variant(key).map_or(0, |variant| variant.bytes);
            over.push(key.clone());
        }
        over
    }

    fn forget(&mut self, keys: &[VariantKey]) {
        for (version, plan) in keys {
            let Some(parent) = self.parents.get_mut(version) else { continue };
            if let Some(variant) = parent.variants.remove(plan) {
                self.by_use.remove(&variant.used);
                self.bytes -= variant.bytes;
            }
            if parent.variants.is_empty() {
                self.parents.remove(version);
            }
        }
    }
}

/// Parses the name of a parent, in the format of [`ObjectName`]'s `Display`.
fn parse_name(text: &str) -> Option<ObjectName> {
    let (bucket, key) = text.split_once('/')?;
    Some(ObjectName::new(BucketName::parse(bucket).ok()?, ObjectKey::parse(key).ok()?))
}

fn key_of(variant: &Object) -> Option<VariantKey> {
    parse_key(variant.name().key.as_str())
}

fn parse_key(key: &str) -> Option<VariantKey> {
    let (version, plan) = key.split_once('/')?;
    Some((u64::from_str_radix(version, 16).ok()?, plan.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use engine::clock::SimClock;
    use engine::disk::faults::{Fault, FaultRule, Operation, PathPattern};
    use engine::disk::sim::SimDisk;
    use engine::rng::SeededRng;
    use engine::{Create, Environment, OpenOptions};

    use super::*;

    fn name(text: &str) -> ObjectName {
        parse_name(text).unwrap()
    }

    fn key(version: u64, plan: &str) -> VariantKey {
        (version, plan.to_owned())
    }

    /// Returns a cache over a store with one file, and the file.
    fn cache(disk: &SimDisk, bytes_max: u64) -> (VariantCache, Object) {
        let surroundings = Environment {
            disk: Arc::new(disk.clone()),
            clock: Arc::new(SimClock::at(0)),
            rng: Arc::new(SeededRng::new(1)),
            remote: None,
        };
        let (store, _) = Store::open(surroundings, OpenOptions::new(Create::IfMissing)).unwrap();
        let mut upload = store.upload();
        upload.push(b"a picture").unwrap();
        let options = PutOptions {
            content_type: "image/png".to_owned(),
            attributes: Vec::new(),
            derived: false,
            created_ms: None,
        };
        let batch = Batch::new().put(name("pics/a.png"), upload.finish().unwrap(), options);
        let parent = store.commit(batch).unwrap().objects.remove(0);
        (VariantCache::new(store, bytes_max).unwrap(), parent)
    }

    #[test]
    fn failed_eviction_keeps_the_cache_entry() {
        let disk = SimDisk::new();
        let (cache, parent) = cache(&disk, 25);
        for plan in ["a", "b"] {
            cache.put(&parent, plan, "image/png", &Bytes::from_static(b"0123456789")).unwrap();
        }
        disk.inject(FaultRule::always(Operation::SyncData, PathPattern::Any, Fault::Error));
        let third = cache.put(&parent, "c", "image/png", &Bytes::from_static(b"0123456789"));
        assert!(third.is_err());
        assert_eq!(cache.lock_state().bytes, 20);
        assert_eq!(cache.lock_state().keys_of(parent.lsn()).len(), 2);
        for plan in ["a", "b"] {
            assert!(cache.get(&parent, plan).unwrap().is_some(), "{plan}");
        }
    }

    #[test]
    fn eviction_is_least_recently_used() {
        let mut state = CacheState::default();
        let parent = name("pics/a.png");
        for plan in ["a", "b", "c"] {
            state.insert(&parent, key(1, plan), 10);
        }
        assert!(state.touch(&key(1, "a")));
        assert!(!state.touch(&key(1, "z")));
        assert_eq!(state.bytes, 30);
        assert_eq!(state.over(20), [key(1, "b")]);
        state.forget(&[key(1, "b")]);
        assert_eq!(state.over(20), []);
        assert_eq!(state.over(0), [key(1, "c"), key(1, "a")]);
        state.forget(&state.over(0));
        assert_eq!((state.bytes, state.parents.len(), state.by_use.len()), (0, 0, 0));
    }

    #[test]
    fn loaded_entries_rank_below_recent_hits() {
        let mut state = CacheState::default();
        let parent = name("pics/a.png");
        state.insert(&parent, key(1, "asked for"), 10);
        state.found(&parent, key(1, "asked for"), 10);
        state.found(&parent, key(2, "found"), 10);
        assert_eq!(state.bytes, 20);
        assert_eq!(state.over(10), [key(1, "asked for")]);
        state.forget(&state.over(10));
        assert_eq!(state.keys_of(2), [key(2, "found")]);
        assert_eq!(state.keys_of(1), []);
    }

    #[test]
    fn variant_names_round_trip() {
        let parent = name("pics/a/b c.png");
        assert_eq!(parse_name(&parent.to_string()), Some(parent));
        assert_eq!(parse_name("pics"), None);
        assert_eq!(parse_key("00000000000000ff/9x9-q80.jpg"), Some(key(255, "9x9-q80.jpg")));
        assert_eq!(parse_key("x/9x9"), None);
        assert_eq!(parse_key("ff"), None);
    }
}
