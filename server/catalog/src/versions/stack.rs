//! Versions of a key, and the removal of one.
//!
//! The current version comes first, then the noncurrent ones, the newest first. Without a current version a delete
//! marker comes first. Removing the first version makes the next one current, if it is an object: it is copied back.
//!
//! Guarantees: a removal is one batch that requires the state that was looked up. Two removals of the first version of
//! one key must not run concurrently: [`crate`] has a lock for them. Non-goals: authorization.

use std::ops::ControlFlow;

use engine::{Batch, Object, ObjectKey, ObjectName, Precondition, PutOptions, Store};

use super::mark::{VersionId, noncurrent};
use super::replaced::null_of;
use super::{Versioning, names};
use crate::object_attributes::{StoredAttributes, last_modified_ms};

/// Version of an object.
#[derive(Clone, Debug)]
pub struct Version {
    /// Stored object; noncurrent versions and delete markers are objects of the internal bucket.
    pub object: Object,
    pub key: ObjectKey,
    pub id: VersionId,
    pub is_delete_marker: bool,
    pub is_latest: bool,
    /// Time of the original upload, in milliseconds since 1970.
    pub modified_ms: u64,
}

/// Removal of a version.
pub struct Removal {
    pub batch: Batch,
    pub version: Version,
    /// Effect on the key.
    pub promoted: Promoted,
}

/// Effect of a removal on the key.
pub enum Promoted {
    /// The current version, or the absence of one, is unchanged.
    Unchanged,
    /// The key has no current version after the removal.
    Nothing,
    /// The given version becomes current.
    Version(Version),
}

impl Version {
    /// Returns the current version of a key.
    pub fn current(versioning: Option<Versioning>, object: Object) -> Self {
        let known = versioning.map(|it| it.known(&object, StoredAttributes::of(&object).version));
        Self {
            key: object.name().key.clone(),
            id: known.map_or(VersionId::Null, |known| known.id()),
            is_delete_marker: false,
            is_latest: true,
            modified_ms: known.map_or(last_modified_ms(&object), |known| known.modified_ms),
            object,
        }
    }

    /// Returns a version in the internal bucket.
    pub(super) fn noncurrent(object: Object) -> Option<Self> {
        let (key, number, is_null) = noncurrent(&object)?;
        let mark = StoredAttributes::of(&object).version.unwrap_or_default();
        Some(Self {
            key,
            id: if is_null { VersionId::Null } else { VersionId::Number(number) },
            is_delete_marker: mark.is_delete_marker,
            is_latest: false,
            modified_ms: mark.modified_ms.unwrap_or(last_modified_ms(&object)),
            object,
        })
    }
}

/// Finds the version of a key with this id. Blocks on the index.
pub fn find(
    store: &Store,
    versioning: Option<Versioning>,
    name: &ObjectName,
    id: VersionId,
) -> engine::Result<Option<Version>> {
    let current = store.get(name)?.map(|object| Version::current(versioning, object));
    let is_absent = current.is_none();
    if let Some(current) = current.filter(|current| current.id == id) {
        return Ok(Some(current));
    }
    if versioning.is_none() {
        return Ok(None);
    }
    let object = match id {
        VersionId::Null => null_of(store, name)?,
        // A key that is too long has no noncurrent versions.
        VersionId::Number(number) => match names::name(name, number, false) {
            Ok(name) => store.get(&name)?,
            Err(_) => None,
        },
    };
    let Some(mut version) = object.and_then(Version::noncurrent) else { return Ok(None) };
    if is_absent {
        let top = top(store, name, 1)?;
        version.is_latest = top.first().is_some_and(|top| top.id == version.id);
    }
    Ok(Some(version))
}

/// Returns the latest version of a key: the current one, or the first delete marker. Blocks on the index.
pub fn latest(
    store: &Store,
    versioning: Versioning,
    name: &ObjectName,
) -> engine::Result<Option<Version>> {
    if let Some(object) = store.get(name)? {
        return Ok(Some(Version::current(Some(versioning), object)));
    }
    let top = top(store, name, 1)?.into_iter().next();
    Ok(top.map(|top| Version { is_latest: true, ..top }))
}

/// Returns the first noncurrent versions of a key.
fn top(store: &Store, name: &ObjectName, count: usize) -> engine::Result<Vec<Version>> {
    let Ok(bucket) = names::bucket() else { return Ok(Vec::new()) };
    let prefix = names::of_key(&name.bucket, name.key.as_str());
    let page = store.list_keys(&bucket, &prefix, None, count)?;
    Ok(page.objects.into_iter().filter_map(Version::noncurrent).collect())
}

/// Prepares the permanent removal of a version; `None` if it does not exist. Blocks on the disk, and if the next
/// version becomes current, for the time of copying its body.
pub fn removal(
    store: &Store,
    versioning: Option<Versioning>,
    name: &ObjectName,
    id: VersionId,
) -> engine::Result<Option<Removal>> {
    let Some(version) = find(store, versioning, name, id)? else { return Ok(None) };
    let removed = version.object.name().clone();
    let is_current = removed == *name;
    let batch =
        Batch::new().require(Precondition::KeyHasLsn(removed.clone(), version.object.lsn()));
    if !version.is_latest {
        let (batch, promoted) = (batch.delete(removed), Promoted::Unchanged);
        return Ok(Some(Removal { batch, version, promoted }));
    }
    let next = match versioning {
        Some(_) => top(store, name, 2)?.into_iter().find(|it| it.id != version.id),
        None => None,
    };
    let next = next.filter(|next| !next.is_delete_marker);
    let (batch, promoted) = match (next, is_current) {
        (Some(next), true) => (promoting(store, batch, name, &next)?, Promoted::Version(next)),
        (Some(next), false) => {
            let batch = batch.require(Precondition::KeyAbsent(name.clone())).delete(removed);
            (promoting(store, batch, name, &next)?, Promoted::Version(next))
        }
        (None, true) => (batch.delete(removed), Promoted::Nothing),
        (None, false) => (batch.delete(removed), Promoted::Unchanged),
    };
    Ok(Some(Removal { batch, version, promoted }))
}

/// Makes a noncurrent version current: stores its content under the key, replacing the current object.
fn promoting(
    store: &Store,
    batch: Batch,
    name: &ObjectName,
    next: &Version,
) -> engine::Result<Batch> {
    let object = &next.object;
    let body = store.stage_copy(object, &mut |_| ControlFlow::Continue(()))?;
    let options = PutOptions {
        content_type: object.content_type().to_owned(),
        attributes: object.attributes().to_vec(),
        derived: false,
        created_ms: Some(object.created_ms()),
    };
    Ok(batch
        .require(Precondition::KeyHasLsn(object.name().clone(), object.lsn()))
        .put(name.clone(), body, options)
        .delete(object.name().clone()))
}
