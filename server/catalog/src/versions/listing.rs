//! Pages of the versions of a bucket, as in ListObjectVersions: by key, with the latest version of each key first.
//!
//! Guarantees: a version that exists throughout is on exactly one page; a page costs as many index lookups as it has
//! items, whatever the groups of a delimiter contain. Non-goals: XML.

use engine::{BucketName, Object, ObjectKey, ObjectName, Store};

use super::mark::{VersionId, noncurrent};
use super::stack::{Version, find};
use super::{Versioning, names};

/// Minimum and maximum of objects that are read ahead.
const AHEAD: std::ops::RangeInclusive<usize> = 16..=engine::limits::LIST_PAGE_MAX;

/// Selection of versions.
pub struct VersionsQuery {
    pub prefix: String,
    /// Keys that contain it after the prefix are grouped; no grouping if it is empty.
    pub delimiter: String,
    /// Start after this key or group; with a version, after that version of the key.
    pub after: Option<(String, Option<VersionId>)>,
    pub limit: usize,
}

/// Page of versions.
#[derive(Default)]
pub struct VersionPage {
    pub versions: Vec<Version>,
    pub groups: Vec<String>,
    /// Last item, if more follow: a key with its version, or a group.
    pub next: Option<(String, Option<VersionId>)>,
}

/// Lists the versions of a bucket. Blocks on the index.
pub fn list(
    store: &Store,
    bucket: &BucketName,
    versioning: Option<Versioning>,
    query: &VersionsQuery,
) -> engine::Result<VersionPage> {
    let mut page = VersionPage::default();
    if query.limit == 0 {
        return Ok(page);
    }
    let mut walk = Walk::begin(store, bucket, versioning, query)?;
    let mut last = None;
    while let Some(item) = walk.next(query)? {
        if page.versions.len() + page.groups.len() == query.limit {
            page.next = last;
            return Ok(page);
        }
        match item {
            Item::Group(group) => {
                last = Some((group.clone(), None));
                page.groups.push(group);
            }
            Item::Version(version) => {
                last = Some((version.key.to_string(), Some(version.id)));
                page.versions.push(*version);
            }
        }
    }
    Ok(page)
}

enum Item {
    Group(String),
    Version(Box<Version>),
}

/// Merge of the current and the noncurrent versions.
struct Walk<'s> {
    versioning: Option<Versioning>,
    current: Source<'s>,
    /// `None` in a bucket that was never versioned.
    noncurrent: Option<Source<'s>>,
    /// Key of the last version: further versions of it are not the latest.
    seen: Option<ObjectKey>,
}

impl<'s> Walk<'s> {
    fn begin(
        store: &'s Store,
        bucket: &BucketName,
        versioning: Option<Versioning>,
        query: &VersionsQuery,
    ) -> engine::Result<Self> {
        let current = Source::new(store, bucket.clone(), query.prefix.clone());
        let noncurrent = match (versioning, names::bucket()) {
            (Some(_), Ok(internal)) => {
                Some(Source::new(store, internal, names::within(bucket, &query.prefix)))
            }
            _ => None,
        };
        let mut walk = Self { versioning, current, noncurrent, seen: None };
        match &query.after {
            None => {}
            Some((key, _)) if query.group_of(key).is_some_and(|group| group == *key) => {
                walk.skip(bucket, key);
            }
            Some((key, version)) => {
                walk.current.after = Some(key.clone());
                let after = walk.start_after(store, bucket, key, *version)?;
                if let Some(noncurrent) = &mut walk.noncurrent {
                    noncurrent.after = Some(after);
                }
                walk.seen = ObjectKey::parse(key).ok().filter(|_| version.is_some());
            }
        }
        Ok(walk)
    }

    /// Returns the name in the internal bucket after which the versions of a key continue.
    fn start_after(
        &self,
        store: &Store,
        bucket: &BucketName,
        key: &str,
        version: Option<VersionId>,
    ) -> engine::Result<String> {
        let of_key = names::of_key(bucket, key);
        let Some(version) = version else { return Ok(format!("{of_key}~")) };
        let Ok(key) = ObjectKey::parse(key) else { return Ok(of_key) };
        let name = ObjectName::new(bucket.clone(), key);
        let found = find(store, self.versioning, &name, version)?;
        Ok(match (found.and_then(|it| noncurrent(&it.object).map(|_| it)), version) {
            (Some(found), _) => found.object.name().key.to_string(),
            // The current version, or a concurrently removed one, which had this position.
            (None, VersionId::Number(number))
                if store.get(&name)?.is_none_or(|current| {
                    Version::current(self.versioning, current).id != version
                }) =>
            {
                names::name(&name, number, false).map_or(of_key, |name| name.key.to_string())
            }
            (None, _) => of_key,
        })
    }

    /// Skips all keys that start with a group.
    fn skip(&mut self, bucket: &BucketName, group: &str) {
        self.current.skip(group);
        if let Some(noncurrent) = &mut self.noncurrent {
            noncurrent.skip(&names::within(bucket, group));
        }
    }

    fn next(&mut self, query: &VersionsQuery) -> engine::Result<Option<Item>> {
        let current = self.current.peek()?.map(|object| object.name().key.clone());
        let noncurrent = match &mut self.noncurrent {
            Some(source) => source.peek()?.and_then(noncurrent_key),
            None => None,
        };
        let key = match (&current, &noncurrent) {
            (Some(current), Some(noncurrent)) => current.min(noncurrent).clone(),
            (Some(key), None) | (None, Some(key)) => key.clone(),
            (None, None) => return Ok(None),
        };
        if let Some(group) = query.group_of(key.as_str()) {
            let bucket = self.current.of_bucket.clone();
            self.skip(&bucket, &group);
            return Ok(Some(Item::Group(group)));
        }
        let version = if current.as_ref() == Some(&key) {
            self.current.take()?.map(|object| Version::current(self.versioning, object))
        } else {
            let object = match &mut self.noncurrent {
                Some(source) => source.take()?,
                None => None,
            };
            let is_latest = self.seen.as_ref() != Some(&key);
            object.and_then(Version::noncurrent).map(|it| Version { is_latest, ..it })
        };
        self.seen = Some(key);
        Ok(version.map(|version| Item::Version(Box::new(version))))
    }
}

fn noncurrent_key(object: &Object) -> Option<ObjectKey> {
    noncurrent(object).map(|(key, ..)| key)
}

impl VersionsQuery {
    /// Returns the group of a key.
    fn group_of(&self, key: &str) -> Option<String> {
        if self.delimiter.is_empty() {
            return None;
        }
        let rest = key.strip_prefix(self.prefix.as_str())?;
        let (before, _) = rest.split_once(self.delimiter.as_str())?;
        Some(format!("{}{before}{}", self.prefix, self.delimiter))
    }
}

/// Objects of a bucket in key order, read ahead.
struct Source<'s> {
    store: &'s Store,
    of_bucket: BucketName,
    prefix: String,
    after: Option<String>,
    ahead: std::collections::VecDeque<Object>,
    ahead_max: usize,
    is_read: bool,
}

impl<'s> Source<'s> {
    fn new(store: &'s Store, of_bucket: BucketName, prefix: String) -> Self {
        let (ahead, ahead_max) = (std::collections::VecDeque::new(), *AHEAD.start());
        Self { store, of_bucket, prefix, after: None, ahead, ahead_max, is_read: false }
    }

    fn peek(&mut self) -> engine::Result<Option<&Object>> {
        if self.ahead.is_empty() && !self.is_read {
            let after = self.after.as_deref();
            let page =
                self.store.list_keys(&self.of_bucket, &self.prefix, after, self.ahead_max)?;
            self.ahead_max = (self.ahead_max * 4).min(*AHEAD.end());
            self.is_read = !page.more;
            self.ahead.extend(page.objects);
        }
        Ok(self.ahead.front())
    }

    fn take(&mut self) -> engine::Result<Option<Object>> {
        self.peek()?;
        let taken = self.ahead.pop_front();
        if let Some(taken) = &taken {
            self.after = Some(taken.name().key.to_string());
        }
        Ok(taken)
    }

    /// Skips all keys that start with a text.
    fn skip(&mut self, text: &str) {
        while self.ahead.front().is_some_and(|it| it.name().key.as_str().starts_with(text)) {
            self.ahead.pop_front();
        }
        if self.ahead.is_empty() {
            self.after = Some(format!("{text}{}", char::MAX));
            self.ahead_max = *AHEAD.start();
        }
    }
}
