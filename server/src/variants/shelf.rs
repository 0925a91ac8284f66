//! Variants that are kept in the store, and which of them have to go.
//!
//! A variant is an object of its own in a bucket that nobody can address: `{number of the parent's version}/{plan}`. So
//! a variant of a version that is gone is never found again; it is removed when the shelf is next looked through.
//! Promises: what is kept stays below a bound, what was not asked for longest goes first; a variant is put only while
//! its parent is what it was made of. Losing any of it costs the time to make it again. Never here: making it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use engine::{Batch, BucketName, Object, ObjectKey, ObjectName, Precondition, PutOptions, Store};

use crate::bridge::{blocking, commit};
use crate::limits::{VARIANTS_BATCH, VARIANTS_PAGE, VARIANTS_PER_OBJECT_MAX};
use crate::reserved;

/// The number of a parent's version, and the name of the plan.
type Place = (u64, String);

/// What is kept, and when it was last asked for.
pub(super) struct Shelf {
    store: Store,
    bucket: BucketName,
    bytes_max: u64,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    parents: HashMap<u64, Parent>,
    /// The places by when they were last asked for.
    by_use: BTreeMap<u64, Place>,
    uses: u64,
    bytes: u64,
}

struct Parent {
    name: ObjectName,
    variants: HashMap<String, Variant>,
}

struct Variant {
    bytes: u64,
    used: u64,
}

impl Shelf {
    /// An empty shelf for so many bytes; [`Shelf::find`] looks what the store has.
    pub(super) fn new(store: Store, bytes_max: u64) -> Result<Self, engine::NameError> {
        let bucket = BucketName::parse(reserved::VARIANTS)?;
        Ok(Self { store, bucket, bytes_max, kept: Mutex::default() })
    }

    /// The variant of a version of a file, if it is kept.
    pub(super) fn get(&self, parent: &Object, plan: &str) -> engine::Result<Option<Object>> {
        let Some(name) = self.name(parent.lsn(), plan) else { return Ok(None) };
        let found = self.store.get(&name)?;
        if let Some(variant) = &found {
            self.kept().note(parent.name(), (parent.lsn(), plan.to_owned()), variant.bytes());
        }
        Ok(found)
    }

    /// Keeps a variant, if there is room for it, its parent is still there, and not too many of it are kept. None where
    /// it is not kept.
    pub(super) async fn put(
        &self,
        parent: &Object,
        plan: &str,
        content_type: &str,
        bytes: Bytes,
    ) -> engine::Result<Option<Object>> {
        let length = bytes.len() as u64;
        let place = (parent.lsn(), plan.to_owned());
        let Some(name) = self.name(parent.lsn(), plan) else { return Ok(None) };
        let Some(evicted) = self.make_room(place.0, length) else { return Ok(None) };
        for some in evicted.chunks(VARIANTS_BATCH) {
            commit(&self.store, self.deletion(some)).await?;
        }
        let options = PutOptions {
            content_type: content_type.to_owned(),
            attributes: parent.name().to_string().into_bytes(),
            derived: true,
            created_ms: None,
        };
        let store = self.store.clone();
        let staged = blocking(move || {
            let mut upload = store.upload();
            upload.push(&bytes)?;
            upload.finish()
        });
        let unchanged = Precondition::KeyIs(parent.name().clone(), parent.etag());
        let batch = Batch::new().put(name, staged.await?, options).require(unchanged);
        let committed = match commit(&self.store, batch).await {
            Err(engine::Error::Conflict(_)) => return Ok(None),
            committed => committed?,
        };
        self.kept().note(parent.name(), place, length);
        Ok(committed.objects.into_iter().next())
    }

    /// Looks what the store has, at the start. Waits for the disk.
    pub(super) fn find(&self) -> engine::Result<()> {
        let mut after: Option<String> = None;
        loop {
            let page = self.store.list_keys(&self.bucket, "", after.as_deref(), VARIANTS_PAGE)?;
            for variant in &page.objects {
                let parent = std::str::from_utf8(variant.attributes()).ok().and_then(parse_name);
                let place = parse_place(variant.name().key.as_str());
                match (parent, place) {
                    (Some(parent), Some(place)) => {
                        self.kept().found(&parent, place, variant.bytes());
                    }
                    _ => drop(self.store.commit(Batch::new().delete(variant.name().clone()))?),
                }
            }
            after = page.objects.last().map(|last| last.name().key.as_str().to_owned());
            if !page.more {
                return Ok(());
            }
        }
    }

    /// Removes the variants of versions that are gone, and what is over the bound. Waits for the disk.
    pub(super) fn sweep(&self) -> engine::Result<()> {
        let parents: Vec<(u64, ObjectName)> = {
            let kept = self.kept();
            kept.parents.iter().map(|(version, parent)| (*version, parent.name.clone())).collect()
        };
        for (version, name) in parents {
            let is_there = self.store.get(&name)?.is_some_and(|parent| parent.lsn() == version);
            if !is_there {
                let gone = self.kept().places_of(version);
                for some in gone.chunks(VARIANTS_BATCH) {
                    self.store.commit(self.deletion(some))?;
                    self.kept().forget(some);
                }
            }
        }
        let over = self.kept().over(self.bytes_max);
        for some in over.chunks(VARIANTS_BATCH) {
            self.store.commit(self.deletion(some))?;
        }
        Ok(())
    }

    /// Takes what must go for so many bytes off the list. None where there is no room for them at all.
    fn make_room(&self, version: u64, bytes: u64) -> Option<Vec<Place>> {
        let mut kept = self.kept();
        let of_parent = kept.parents.get(&version).map_or(0, |parent| parent.variants.len());
        if of_parent >= VARIANTS_PER_OBJECT_MAX {
            return None;
        }
        Some(kept.over(self.bytes_max.checked_sub(bytes)?))
    }

    fn deletion(&self, places: &[Place]) -> Batch {
        let names = places.iter().filter_map(|(version, plan)| self.name(*version, plan));
        names.fold(Batch::new(), Batch::delete)
    }

    fn name(&self, version: u64, plan: &str) -> Option<ObjectName> {
        let key = ObjectKey::parse(&format!("{version:016x}/{plan}")).ok()?;
        Some(ObjectName::new(self.bucket.clone(), key))
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// Notes that a variant is kept and was asked for.
    fn note(&mut self, parent: &ObjectName, place: Place, bytes: u64) {
        self.uses += 1;
        let used = self.uses;
        let parent = self
            .parents
            .entry(place.0)
            .or_insert_with(|| Parent { name: parent.clone(), variants: HashMap::new() });
        let before = parent.variants.insert(place.1.clone(), Variant { bytes, used });
        if let Some(before) = before {
            self.by_use.remove(&before.used);
            self.bytes -= before.bytes;
        }
        self.bytes += bytes;
        self.by_use.insert(used, place);
    }

    /// Notes what the store has, unless it was asked for already.
    fn found(&mut self, parent: &ObjectName, place: Place, bytes: u64) {
        let is_known =
            self.parents.get(&place.0).is_some_and(|it| it.variants.contains_key(&place.1));
        if !is_known {
            self.note(parent, place, bytes);
        }
    }

    fn places_of(&self, version: u64) -> Vec<Place> {
        let variants = self.parents.get(&version).into_iter().flat_map(|it| it.variants.keys());
        variants.map(|plan| (version, plan.clone())).collect()
    }

    /// Takes off the list what was not asked for longest, until the rest is within a bound.
    fn over(&mut self, bytes_max: u64) -> Vec<Place> {
        let mut over = Vec::new();
        while self.bytes > bytes_max
            && let Some((_, place)) = self.by_use.first_key_value()
        {
            let place = place.clone();
            self.forget(std::slice::from_ref(&place));
            over.push(place);
        }
        over
    }

    fn forget(&mut self, places: &[Place]) {
        for (version, plan) in places {
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

/// The name of a parent, as [`ObjectName`] is shown.
fn parse_name(text: &str) -> Option<ObjectName> {
    let (bucket, key) = text.split_once('/')?;
    Some(ObjectName::new(BucketName::parse(bucket).ok()?, ObjectKey::parse(key).ok()?))
}

fn parse_place(key: &str) -> Option<Place> {
    let (version, plan) = key.split_once('/')?;
    Some((u64::from_str_radix(version, 16).ok()?, plan.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> ObjectName {
        parse_name(text).unwrap()
    }

    fn place(version: u64, plan: &str) -> Place {
        (version, plan.to_owned())
    }

    #[test]
    fn what_was_not_asked_for_longest_goes_first() {
        let mut kept = Kept::default();
        let parent = name("pics/a.png");
        for plan in ["a", "b", "c"] {
            kept.note(&parent, place(1, plan), 10);
        }
        kept.note(&parent, place(1, "a"), 10);
        assert_eq!(kept.bytes, 30);
        assert_eq!(kept.over(20), [place(1, "b")]);
        assert_eq!(kept.over(20), []);
        assert_eq!(kept.over(0), [place(1, "c"), place(1, "a")]);
        assert_eq!((kept.bytes, kept.parents.len(), kept.by_use.len()), (0, 0, 0));
    }

    #[test]
    fn what_is_found_late_does_not_overtake_what_was_asked_for() {
        let mut kept = Kept::default();
        let parent = name("pics/a.png");
        kept.note(&parent, place(1, "asked for"), 10);
        kept.found(&parent, place(1, "asked for"), 10);
        kept.found(&parent, place(2, "found"), 10);
        assert_eq!(kept.bytes, 20);
        assert_eq!(kept.over(10), [place(1, "asked for")]);
        assert_eq!(kept.places_of(2), [place(2, "found")]);
        assert_eq!(kept.places_of(1), []);
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        let parent = name("pics/a/b c.png");
        assert_eq!(parse_name(&parent.to_string()), Some(parent));
        assert_eq!(parse_name("pics"), None);
        assert_eq!(parse_place("00000000000000ff/9x9-q80.jpg"), Some(place(255, "9x9-q80.jpg")));
        assert_eq!(parse_place("x/9x9"), None);
        assert_eq!(parse_place("ff"), None);
    }
}
