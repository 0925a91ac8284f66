//! Histories and undeletes: the versions in the log are versions that once existed.

use std::collections::{BTreeMap, BTreeSet};

use engine::history::{
    RestoreError, RestoredObject, UndeleteReport, UndeleteRequest, VersionEvent, VersionFilter,
    VersionHistory, VersionScope, VersionState,
};
use engine::{BucketName, Error, Etag, FolderKey, ObjectName, Store};
use tests::store::ObservedObject;

use super::run::{Put, Run};

impl Run {
    /// Reads the history of an object or of a bucket.
    pub(super) fn check_history(&mut self, store: &Store) -> Result<(), String> {
        let name = self.name();
        let scope = match self.below(2) {
            0 => VersionScope::Key(name.key),
            _ => VersionScope::Folder(FolderKey::root()),
        };
        let filter = VersionFilter { bucket: name.bucket, scope, since_ms: 0 };
        let knew_all = !self.was_compacted;
        let mut is_stopped = false;
        let before = self.versions.clone();
        let done = store.version_history(&filter, 100_000, &mut |_| {
            let flow = self.run_concurrent(store);
            is_stopped |= flow.is_break();
            flow
        });
        match done {
            Ok(_) if self.was_hit() => Ok(()),
            Ok(history) => {
                self.tally.count("histories");
                self.history_must_be_true(&history)?;
                match knew_all {
                    true => check_nothing_missing(&filter, &history, &before),
                    false => Ok(()),
                }
            }
            Err(Error::Cancelled) if is_stopped => Ok(()),
            Err(error) => self.excuse(store, "a history", error),
        }
    }

    fn history_must_be_true(&self, history: &VersionHistory) -> Result<(), String> {
        if history.damage_count > 0 {
            return Err(format!("a history finds damage in {} places", history.damage_count));
        }
        for version in &history.versions {
            let VersionEvent::Put(put) = &version.event else { continue };
            let (name, lsn) = (&version.name, version.lsn);
            let known = self.versions.get(name).and_then(|versions| versions.get(&lsn));
            let is_true = match known {
                Some(known) => known.etag == put.etag && known.derived == put.derived,
                // A version replaced by a later one of its own batch, which was never acknowledged.
                None => self.unsure.contains_key(name),
            };
            if !is_true {
                return Err(format!("{name} never was as version {lsn} says: {put:?}"));
            }
            if put.state == VersionState::Current && put.recoverable.is_err() {
                return Err(format!("{name} is current and {:?}", put.recoverable));
            }
            if put.recoverable == Err(RestoreError::Damaged) {
                return Err(format!("{name}, version {lsn}, is damaged"));
            }
        }
        Ok(())
    }

    /// Restores a deleted version.
    pub(super) fn undelete(&mut self, store: &Store) -> Result<(), String> {
        let name = self.name();
        let (request, names) = match self.below(3) {
            0 => (UndeleteRequest::Object(name.clone()), vec![name]),
            1 => {
                let lsns: Vec<u64> = self
                    .versions
                    .get(&name)
                    .into_iter()
                    .flat_map(|it| it.keys().copied())
                    .collect();
                let Some(lsn) = lsns.get(self.below(lsns.len() as u64) as usize) else {
                    return Ok(());
                };
                (UndeleteRequest::Version { name: name.clone(), lsn: *lsn }, vec![name])
            }
            _ => {
                let folder = ["", "a/", "d/", "many/"][self.below(4) as usize];
                let folder = FolderKey::parse(folder).map_err(|why| why.to_string())?;
                let names = self.deleted_names(&name.bucket, &folder);
                let bucket = name.bucket;
                (UndeleteRequest::Folder { bucket, folder, since_ms: 0 }, names)
            }
        };
        // A restored object is committed in the last batch, after the concurrent changes.
        let is_single = names.len() == 1 && !matches!(request, UndeleteRequest::Folder { .. });
        let (mut is_stopped, mut asked) = (false, 0);
        let stop_at = self.below(200);
        let newest =
            |name: &ObjectName| Some((name.clone(), *self.versions.get(name)?.keys().last()?));
        let newest = names.iter().filter_map(newest).collect();
        let done = store.undelete(&request, &mut |_| {
            asked += 1;
            let flow = match is_single {
                true => self.run_concurrent(store),
                false if asked == stop_at => std::ops::ControlFlow::Break(()),
                false => std::ops::ControlFlow::Continue(()),
            };
            is_stopped |= flow.is_break();
            flow
        });
        match done {
            Ok(undeleted) => {
                self.tally.count_many("objects brought back", undeleted.restored.len() as u64);
                self.undelete_must_be_true(&request, &undeleted, &newest)?;
                self.restore_versions(store, &names, &undeleted.restored)
            }
            Err(Error::Cancelled) if is_stopped => self.restore_versions(store, &names, &[]),
            Err(error) => {
                self.excuse(store, "an undelete", error)?;
                self.restore_versions(store, &names, &[])
            }
        }
    }

    fn deleted_names(&self, bucket: &BucketName, folder: &FolderKey) -> Vec<ObjectName> {
        let known = self.versions.keys().chain(self.unsure.keys());
        let gone = known.filter(|name| {
            let is_inside = name.key.as_str().starts_with(folder.as_str());
            name.bucket == *bucket && is_inside && !self.model.objects.contains_key(name)
        });
        gone.cloned().collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Checks that, without compactions, the newest version of a small object is restored: of those that existed at the
    /// request.
    fn undelete_must_be_true(
        &self,
        request: &UndeleteRequest,
        undeleted: &UndeleteReport,
        newest: &BTreeMap<ObjectName, u64>,
    ) -> Result<(), String> {
        for RestoredObject { name, lsn, newer_unrecoverable: newer } in &undeleted.restored {
            let newest = newest.get(name).copied().unwrap_or(0);
            let is_wanted = matches!(request, UndeleteRequest::Version { .. });
            // A compaction may have removed a newer version without a trace.
            let is_lost = newer.is_some() || self.was_compacted;
            if !is_wanted && *lsn < newest && !is_lost {
                return Err(format!("{name} came back as {lsn}, not as {newest}"));
            }
        }
        for (name, why) in &undeleted.failed {
            let is_there = self.model.objects.contains_key(name);
            let is_fine = match why {
                RestoreError::NotDeleted => is_there,
                RestoreError::Damaged => self.was_hit(),
                RestoreError::NotFound => !newest.contains_key(name) || self.was_compacted,
                RestoreError::SpaceReclaimed | RestoreError::Compacted => true,
                RestoreError::Overwritten => true,
            };
            if !is_fine {
                return Err(format!("{name} is not brought back: {why}"));
            }
        }
        Ok(())
    }

    /// Applies the restored versions to the model.
    fn restore_versions(
        &mut self,
        store: &Store,
        names: &[ObjectName],
        restored: &[RestoredObject],
    ) -> Result<(), String> {
        for name in names {
            let seen = match tests::store::observe(store, name) {
                Ok(seen) => seen,
                Err(error) => {
                    self.excuse(store, "what came back", error)?;
                    self.returning = names.to_vec();
                    return Ok(());
                }
            };
            let result = restored.iter().find(|restored| restored.name == *name);
            self.restore_one_version(store, name, seen, result)?;
        }
        // After a failed batch the content after the next opening is unknown.
        if super::run::is_read_only(store) {
            self.returning = names.to_vec();
        }
        Ok(())
    }

    fn restore_one_version(
        &mut self,
        store: &Store,
        name: &ObjectName,
        seen: Option<ObservedObject>,
        result: Option<&RestoredObject>,
    ) -> Result<(), String> {
        let there = self.model.objects.get(name).map(|(body, _)| body.clone());
        let Some(seen) = seen else {
            return match (there, result) {
                (None, None) => Ok(()),
                _ => Err(format!("{name} is not there after an undelete")),
            };
        };
        if let Some(RestoredObject { lsn, .. }) = result {
            let put = self.versions.get(name).and_then(|versions| versions.get(lsn));
            let is_it = match put {
                Some(put) => put.bytes == seen.body && put.derived == seen.described.4,
                None => self.is_known_version(name, &seen.body),
            };
            if !is_it {
                return Err(format!("{name} came back, but not as version {lsn}"));
            }
        }
        if there.as_ref() == Some(&seen.body) && result.is_none() {
            return Ok(());
        }
        if !self.is_known_version(name, &seen.body) {
            return Err(format!("{name} came back as it never was"));
        }
        let etag = match store.get(name) {
            Ok(Some(object)) => object.etag(),
            Ok(None) => return Err(format!("{name} is gone again")),
            Err(error) => {
                self.excuse(store, "what came back", error)?;
                Etag::of_hash(&[0; 32])
            }
        };
        let put = Put { bytes: seen.body.clone(), derived: seen.described.4, etag };
        self.versions.entry(name.clone()).or_default().insert(seen.lsn, put);
        self.model.objects.insert(name.clone(), (seen.body, seen.described.4));
        Ok(())
    }
}

fn check_nothing_missing(
    filter: &VersionFilter,
    history: &VersionHistory,
    versions: &BTreeMap<ObjectName, BTreeMap<u64, Put>>,
) -> Result<(), String> {
    let shown: BTreeSet<(&ObjectName, u64)> =
        history.versions.iter().map(|version| (&version.name, version.lsn)).collect();
    for (name, versions) in versions {
        let is_asked = name.bucket == filter.bucket
            && match &filter.scope {
                VersionScope::Key(key) => name.key == *key,
                VersionScope::Folder(_) => true,
            };
        let missing = versions.keys().find(|lsn| is_asked && !shown.contains(&(name, **lsn)));
        if let Some(lsn) = missing {
            return Err(format!("the history of {name} lacks version {lsn}"));
        }
    }
    Ok(())
}
