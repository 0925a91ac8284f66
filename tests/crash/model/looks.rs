//! Reads: the store returns what the model holds, unless the disk failed.

use engine::listing::FolderCursor;
use engine::{BucketName, FolderKey, Store};
use tests::store::{bucket_named, fact};

use super::run::{Pinned, Run};

/// Maximum number of open bodies.
const PINNED_MAX: usize = 4;

impl Run {
    /// Reads one object, and a range of its body.
    pub(super) fn check_one_object(&mut self, store: &Store) -> Result<(), String> {
        let name = self.name();
        let wanted = self.model.objects.get(&name).cloned();
        let object = match store.get(&name) {
            Ok(object) => object,
            Err(error) => return self.excuse(store, "get", error),
        };
        let (object, (bytes, derived)) = match (object, wanted) {
            (Some(object), Some(wanted)) => (object, wanted),
            (None, None) => return Ok(()),
            (object, _) => return Err(format!("{name} is there: {}", object.is_some())),
        };
        if object.is_derived() != derived || object.bytes() != bytes.len() as u64 {
            return Err(format!("{name} is another object"));
        }
        if self.below(4) == 0 {
            match store.body_if_open(&object) {
                Ok(_) => {}
                Err(error) => return self.excuse(store, "a body that is open", error),
            }
        }
        let body = match store.body(&object) {
            Ok(body) => body,
            Err(error) => return self.excuse(store, "opening a body", error),
        };
        self.tally.count("bodies read");
        let from = self.below(1 + body.bytes());
        let to = from + self.below(1 + body.bytes() - from);
        match body.read(from..to) {
            Ok(piece) if piece.is_empty() && from < to => Err(format!("{name}: nothing is read")),
            Ok(piece) if bytes[from as usize..to as usize].starts_with(&piece) => Ok(()),
            Ok(_) => Err(format!("{name} reads otherwise from {from} on")),
            Err(error) => self.excuse(store, "a body", error),
        }
    }

    /// Keeps a body open.
    pub(super) fn pin(&mut self, store: &Store) -> Result<(), String> {
        let name = self.name();
        let Some((bytes, _)) = self.model.objects.get(&name).cloned() else { return Ok(()) };
        let opened = store.get(&name).and_then(|object| match object {
            None => Ok(None),
            Some(object) => {
                let body = store.body(&object)?;
                let piece = body.read(0..body.bytes())?;
                Ok(Some((body, piece)))
            }
        });
        match opened {
            Ok(Some((body, piece))) => {
                if self.pinned.len() == PINNED_MAX {
                    self.pinned.remove(self.below(PINNED_MAX as u64) as usize);
                }
                self.pinned.push(Pinned { body, piece, bytes });
                Ok(())
            }
            Ok(None) => Err(format!("{name} is missing")),
            Err(error) => self.excuse(store, "a body to keep", error),
        }
    }

    /// Checks that bodies opened earlier stay readable, whatever happened to their objects, and so do pieces of them.
    pub(super) fn read_pinned(&mut self, store: &Store) -> Result<(), String> {
        for Pinned { body, piece, bytes } in &self.pinned {
            if !bytes.starts_with(piece) || piece.is_empty() != bytes.is_empty() {
                return Err(format!("a piece of {} bytes has changed", bytes.len()));
            }
            let from = self.below(1 + body.bytes());
            match body.read(from..body.bytes()) {
                Ok(piece) if bytes[from as usize..].starts_with(&piece) => {}
                Ok(_) => return Err(format!("a body of {} bytes has changed", bytes.len())),
                Err(error) => self.excuse(store, "a body kept open", error)?,
            }
        }
        self.tally.count_many("bodies read later", self.pinned.len() as u64);
        Ok(())
    }

    /// Reads a page of keys.
    pub(super) fn list_keys(&mut self, store: &Store) -> Result<(), String> {
        let bucket = self.bucket();
        let prefix = ["", "", "a", "a/", "d/e", "many/", "é", "x"][self.below(8) as usize];
        let after = (self.below(2) == 0).then(|| self.name().key);
        let after = after.as_ref().map(|key| key.as_str());
        let limit = 1 + self.below(9) as usize;
        let page = match store.list_keys(&bucket, prefix, after, limit) {
            Ok(page) => page,
            Err(error) => return self.excuse(store, "a page of keys", error),
        };
        let mut wanted = self.keys_of(&bucket, prefix);
        wanted.retain(|key| after.is_none_or(|after| key.as_str() > after));
        let more = wanted.len() > limit;
        wanted.truncate(limit);
        let listed: Vec<_> =
            page.objects.iter().map(|object| object.name().key.as_str().to_owned()).collect();
        if listed != wanted || page.more != more {
            let more = page.more;
            return Err(format!(
                "{limit} keys of {prefix:?} after {after:?} are {listed:?}, more: {more}; not {wanted:?}"
            ));
        }
        self.tally.count("pages of keys");
        Ok(())
    }

    fn keys_of(&self, bucket: &BucketName, prefix: &str) -> Vec<String> {
        let names = self.model.objects.keys().filter(|name| name.bucket == *bucket);
        let keys = names.map(|name| name.key.as_str().to_owned());
        let mut keys: Vec<String> = keys.filter(|key| key.starts_with(prefix)).collect();
        keys.sort();
        keys
    }

    /// Reads a folder, page by page.
    pub(super) fn list_folder(&mut self, store: &Store) -> Result<(), String> {
        let bucket = self.bucket();
        let folder = ["", "", "a/", "a.b/", "d/", "d/e/", "many/", "é/"][self.below(8) as usize];
        let limit = 1 + self.below(9) as usize;
        let parsed = FolderKey::parse(folder).map_err(|why| why.to_string())?;
        let mut listed = Vec::new();
        let mut after: Option<FolderCursor> = None;
        loop {
            let page = match store.list_folder(&bucket, &parsed, after.as_ref(), limit) {
                Ok(page) => page,
                Err(error) => return self.excuse(store, "a page of a folder", error),
            };
            let folders = page.folders.iter().map(|folder| folder.as_str().to_owned());
            let files = page.files.iter().map(|file| file.name().key.as_str().to_owned());
            let items: Vec<String> = folders.chain(files).collect();
            if items.len() > limit || (page.next.is_some() && items.len() < limit) {
                return Err(format!("a page of {limit} has {} items", items.len()));
            }
            listed.extend(items);
            self.tally.count("pages of folders");
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let (mut folders, mut files) = (Vec::new(), Vec::new());
        for key in self.keys_of(&bucket, folder) {
            match key[folder.len()..].split_once('/') {
                Some((component, _)) => folders.push(format!("{folder}{component}")),
                None if key != folder => files.push(key),
                None => {}
            }
        }
        folders.sort();
        folders.dedup();
        let folders = folders.iter().map(|folder| format!("{folder}/"));
        let wanted: Vec<String> = folders.chain(files).collect();
        match listed == wanted {
            true => Ok(()),
            false => Err(format!("the folder {folder:?} holds {listed:?}, not {wanted:?}")),
        }
    }

    /// Reads facts, and the counters of a bucket.
    pub(super) fn check_facts_and_counters(&mut self, store: &Store) -> Result<(), String> {
        let prefix = ["", "fact/", "token/", "fact/3"][self.below(4) as usize];
        let after = (self.below(2) == 0).then(|| fact(&format!("fact/{}", self.below(6))));
        let limit = 1 + self.below(6) as usize;
        let wanted = self.model.facts.iter().filter(|(name, _)| {
            name.as_str().starts_with(prefix) && after.as_ref().is_none_or(|after| *name > after)
        });
        let wanted: Vec<_> =
            wanted.take(limit).map(|(name, value)| (name.clone(), value.clone())).collect();
        match store.facts(prefix, after.as_ref(), limit) {
            Ok(facts) if facts == wanted => {}
            Ok(facts) => return Err(format!("facts are {facts:?}, not {wanted:?}")),
            Err(error) => self.excuse(store, "facts", error)?,
        }
        let usages = self.model.usages();
        for bucket in ["photos", "other", "tokens"].map(bucket_named) {
            let wanted = |folder: FolderKey| {
                usages.get(&(bucket.clone(), folder)).copied().unwrap_or_default()
            };
            match store.bucket_usage(&bucket) {
                Ok(usage) if usage == wanted(FolderKey::root()) => {}
                Ok(usage) => return Err(format!("{bucket} counts {usage:?}")),
                Err(error) => self.excuse(store, "counters", error)?,
            }
            let key = self.name().key;
            let component = key.as_str().split('/').next().unwrap_or_default();
            let folder =
                FolderKey::parse(&format!("{component}/")).map_err(|why| why.to_string())?;
            match store.folder_usage(&bucket, &folder) {
                Ok(usage) if usage == Some(wanted(folder.clone())) => {}
                Ok(usage) => return Err(format!("{bucket}/{folder} counts {usage:?}")),
                Err(error) => self.excuse(store, "counters of a folder", error)?,
            }
            // In the order of their names, without the slash.
            let mut page: Vec<_> = usages
                .iter()
                .filter(|((of, _), _)| *of == bucket)
                .map(|((_, folder), usage)| (folder.clone(), *usage))
                .filter(|(it, _)| it.last_segment() > folder.last_segment())
                .collect();
            page.sort_by_key(|(folder, _)| folder.last_segment().to_owned());
            let more = page.len() > limit;
            page.truncate(limit);
            match store.folder_usages(&bucket, Some(&folder), limit) {
                Ok(found) if found.folders == page && found.more == more => {}
                Ok(found) => {
                    return Err(format!("{bucket} after {folder}: {found:?}, not {page:?}"));
                }
                Err(error) => self.excuse(store, "counters of folders", error)?,
            }
        }
        match store.stats() {
            Ok(stats) => {
                let objects = self.model.objects.len() as u64;
                if stats.objects + stats.derived_objects != objects {
                    return Err(format!("{objects} objects count {stats:?}"));
                }
            }
            Err(error) => self.excuse(store, "stats", error)?,
        }
        Ok(())
    }
}
