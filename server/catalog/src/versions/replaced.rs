//! Batches that retain the versions they replace.
//!
//! Every object that a batch replaces or deletes is copied to the name of a noncurrent version in the same batch,
//! provided that the key is unchanged since the lookup; a deletion creates a delete marker. A body belongs to its
//! record, to whose position its checksums are bound, so retaining it requires a copy.
//!
//! Guarantees: the batch is atomic; a lost race is a conflict, after which the caller repeats the lookup. Non-goals:
//! derived objects, which can be regenerated.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use engine::commit::ObjectChange;
use engine::{
    Batch, BucketName, Conflict, Error, Object, ObjectKey, ObjectName, Precondition, PutOptions,
    Store,
};

use super::mark::Known;
use super::{Versioning, VersioningState, names};
use crate::object_attributes::{S3Attributes, StoredAttributes, VersionMark};
use crate::object_lock::{ObjectLock, Retention};

/// Handling of the deletion of a missing object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    Ignore,
    /// A delete marker is created, as in S3.
    Mark,
}

/// Rules for new versions of a bucket.
#[derive(Clone, Copy)]
pub struct Rules {
    pub versioning: Versioning,
    /// Default retention of versions without their own.
    pub retention: Option<Retention>,
}

/// Batch that retains the versions it replaces.
pub struct RetainingBatch {
    pub batch: Batch,
    /// Names that must be unchanged since their lookup.
    guarded: Vec<ObjectName>,
}

impl RetainingBatch {
    /// Returns whether a batch was rejected because a replaced version changed, and not for a precondition of the
    /// caller.
    pub fn is_outdated(&self, required: &[Precondition], error: &Error) -> bool {
        let Error::Conflict(conflict) = error else { return false };
        let name = match conflict {
            Conflict::KeyChanged(name) | Conflict::KeyPresent(name) => name,
            Conflict::KeyMissing(name) => name,
            _ => return false,
        };
        let is_missing = matches!(conflict, Conflict::KeyMissing(_));
        let is_required = required.iter().any(|it| match it {
            Precondition::KeyPresent(of) => of == name && is_missing,
            Precondition::KeyAbsent(of)
            | Precondition::KeyHasEtag(of, _)
            | Precondition::KeyHasLsn(of, _)
            | Precondition::KeyAbsentOrDerived(of, _) => of == name,
            Precondition::FactAbsent(_) | Precondition::FactPresent(_) => false,
        });
        self.guarded.contains(name) && !is_required
    }
}

/// Extends a batch by copies of the versions that it replaces. `bucket_fact` makes the bucket exist. Blocks on the
/// disk, for the time of copying the replaced bodies.
pub fn retain_replaced_versions(
    store: &Store,
    bucket: &BucketName,
    rules: Rules,
    absent: Absent,
    batch: Batch,
) -> engine::Result<RetainingBatch> {
    let Rules { versioning, retention } = rules;
    let mut changes: BTreeMap<ObjectName, ObjectChange> = BTreeMap::new();
    for (name, change) in batch.object_changes().filter(|(name, _)| name.bucket == *bucket) {
        changes.insert(name.clone(), change);
    }
    let new_mark = versioning.new_mark();
    let marked = |attributes: Vec<u8>| of_new_version(&attributes, new_mark, retention);
    let mut keeping = RetainingBatch { batch: batch.map_attributes(marked), guarded: Vec::new() };
    for (name, change) in changes {
        keeping = keep_one(store, versioning, absent, keeping, name, change)?;
    }
    Ok(keeping)
}

fn keep_one(
    store: &Store,
    versioning: Versioning,
    absent: Absent,
    keeping: RetainingBatch,
    name: ObjectName,
    change: ObjectChange,
) -> engine::Result<RetainingBatch> {
    let RetainingBatch { mut batch, mut guarded } = keeping;
    let there = store.get(&name)?;
    batch = batch.require(match &there {
        Some(there) => Precondition::KeyHasLsn(name.clone(), there.lsn()),
        None => Precondition::KeyAbsent(name.clone()),
    });
    guarded.push(name.clone());
    // The new version has to be retained later: a key that is too long for that is rejected now.
    let number = store.last_lsn()? + 1;
    names::name(&name, number, true)?;
    let is_derived = there.as_ref().is_some_and(Object::is_derived);
    let old = there.filter(|_| !is_derived);
    let is_deleted = change == ObjectChange::Delete;
    if is_derived && is_deleted || old.is_none() && is_deleted && absent == Absent::Ignore {
        return Ok(RetainingBatch { batch, guarded });
    }
    let mut sent_key = None;
    if let Some(old) = old {
        let attributes = StoredAttributes::of(&old);
        sent_key = attributes.s3.as_ref().and_then(|s3| s3.key.clone());
        let known = versioning.known(&old, attributes.version);
        if versioning.state == VersioningState::Enabled || !known.is_null {
            batch = put_noncurrent(store, batch, &old, attributes, known)?;
        }
    }
    if versioning.state == VersioningState::Suspended
        && let Some(null) = null_of(store, &name)?
    {
        batch = batch
            .require(Precondition::KeyHasLsn(null.name().clone(), null.lsn()))
            .delete(null.name().clone());
        guarded.push(null.name().clone());
    }
    if is_deleted {
        let marker = put_marker(store, batch, versioning, &name, number, sent_key)?;
        guarded.push(marker.1);
        batch = marker.0;
    }
    Ok(RetainingBatch { batch, guarded })
}

/// Stores a copy of the current version under the name of a noncurrent version.
fn put_noncurrent(
    store: &Store,
    batch: Batch,
    old: &Object,
    attributes: StoredAttributes,
    known: Known,
) -> engine::Result<Batch> {
    let name = names::name(old.name(), known.number, known.is_null)?;
    let body = store.stage_copy(old, &mut |_| ControlFlow::Continue(()))?;
    let attributes = StoredAttributes { version: Some(known.mark()), ..attributes };
    let options = PutOptions {
        content_type: old.content_type().to_owned(),
        attributes: attributes.encoded().unwrap_or_default(),
        derived: false,
        created_ms: Some(old.created_ms()),
    };
    Ok(batch.put(name, body, options))
}

/// Stores a delete marker. Its number is between those of the adjacent versions: greater than that of any record so
/// far, and no greater than that of the batch.
fn put_marker(
    store: &Store,
    batch: Batch,
    versioning: Versioning,
    of: &ObjectName,
    number: u64,
    sent_key: Option<String>,
) -> engine::Result<(Batch, ObjectName)> {
    let is_null = versioning.state == VersioningState::Suspended;
    let name = names::name(of, number, is_null)?;
    let mark = VersionMark { is_null, is_delete_marker: true, ..VersionMark::default() };
    let s3 = sent_key.map(|key| S3Attributes { key: Some(key), ..S3Attributes::default() });
    let attributes = StoredAttributes { s3, version: Some(mark), ..StoredAttributes::default() };
    let options = PutOptions {
        attributes: attributes.encoded().unwrap_or_default(),
        ..PutOptions::default()
    };
    let batch = batch.require(Precondition::KeyAbsent(name.clone())).put(
        name.clone(),
        store.upload().finish()?,
        options,
    );
    Ok((batch, name))
}

/// Returns the noncurrent version `null` of a key, or its delete marker `null`: there is at most one.
pub(super) fn null_of(store: &Store, of: &ObjectName) -> engine::Result<Option<Object>> {
    let Ok(bucket) = names::bucket() else { return Ok(None) };
    let prefix = names::of_key(&of.bucket, of.key.as_str());
    let mut after: Option<ObjectKey> = None;
    loop {
        let from = after.as_ref().map(ObjectKey::as_str);
        let page = store.list_keys(&bucket, &prefix, from, engine::limits::LIST_PAGE_MAX)?;
        after = page.objects.last().map(|last| last.name().key.clone());
        let is_null = |it: &Object| names::parse(it.name()).is_some_and(|(_, _, is_null)| is_null);
        let found = page.objects.into_iter().find(is_null);
        if found.is_some() || !page.more || after.is_none() {
            return Ok(found);
        }
    }
}

/// Returns the attributes of a new version: with its mark, and with the default retention unless it has its own.
fn of_new_version(
    attributes: &[u8],
    mark: Option<VersionMark>,
    default_retention: Option<Retention>,
) -> Vec<u8> {
    let stored = StoredAttributes::parse(attributes);
    let retention = stored.lock.retention.or(default_retention);
    if stored.version == mark && stored.lock.retention == retention {
        return attributes.to_vec();
    }
    let lock = ObjectLock { retention, ..stored.lock };
    StoredAttributes { version: mark, lock, ..stored }.encoded().unwrap_or_default()
}

/// Returns the delete marker that a committed batch created for a key.
pub fn marker_of(committed: &engine::CommitInfo, key: &ObjectKey) -> Option<super::VersionId> {
    committed.objects.iter().find_map(|object| {
        let (of, number, is_null) = super::mark::noncurrent(object)?;
        let mark = StoredAttributes::of(object).version?;
        let is_meant = of == *key && mark.is_delete_marker;
        let id = if is_null { super::VersionId::Null } else { super::VersionId::Number(number) };
        is_meant.then_some(id)
    })
}
