//! Changes of the attributes of stored versions: media type, headers, metadata, expiry, tags, retention, legal hold.
//!
//! A version is stored again with the same content, since a record of the log never changes. Guarantees: content, ETag,
//! times and version ID do not change; a version that was replaced concurrently is not changed. Non-goals: which
//! changes are allowed.

use std::ops::ControlFlow;

use catalog::object_attributes::{StoredAttributes, last_modified_ms};
use catalog::versions::Version;
use catalog::{Bucket, Catalog, ObjectBatch};
use engine::progress::ProgressCallback;
use engine::{
    Batch, Conflict, Error, Object, ObjectName, Precondition, PutOptions, StagedBody, Store,
};
use protocol::error::ApiError;
use usage::task::blocking;

use crate::state::AppState;
use crate::upload::StagedFile;

/// New attributes of a version.
pub struct NewAttributes {
    pub attributes: StoredAttributes,
    /// New media type, which the content must not contradict; `None` for no change.
    pub content_type: Option<String>,
}

/// Stores a version of the object `name` again with other attributes; returns the object that is stored then. `None` if
/// the version was replaced since it was looked up. Blocks on the disk, for as long as a copy of the object.
pub fn change_attributes(
    store: &Store,
    catalog: &Catalog,
    bucket: &Bucket,
    name: &ObjectName,
    version: &Version,
    mut new: NewAttributes,
    watch: &mut ProgressCallback<'_>,
) -> Result<Option<Object>, ApiError> {
    let object = &version.object;
    let is_same_type = new.content_type.as_ref().is_none_or(|new| *new == object.content_type());
    if new.attributes == StoredAttributes::of(object) && is_same_type {
        return Ok(Some(object.clone()));
    }
    new.attributes.modified_ms = Some(last_modified_ms(object));
    if let Some(versioning) = bucket.versioning.filter(|_| object.name() == name) {
        let mark = versioning.preserved_mark(object, new.attributes.version);
        new.attributes.version = Some(mark);
    }
    let staged = match store.stage_copy(object, watch) {
        Err(Error::Conflict(_)) => return Ok(None),
        staged => staged?,
    };
    let options = put_options(bucket, object, &staged, new)?;
    let fact = bucket.fact().map_err(|why| ApiError::internal(why.to_string()))?;
    let batch = Batch::new()
        .require(Precondition::KeyHasLsn(object.name().clone(), object.lsn()))
        .require(Precondition::FactPresent(fact))
        .put(object.name().clone(), staged, options);
    let objects = ObjectBatch::new(&bucket.name, batch, &[]).without_versions();
    match catalog.commit_blocking(objects) {
        // A batch with one put stores one object.
        Ok(mut stored) => Ok(stored.objects.pop()),
        Err(Error::Conflict(Conflict::FactMissing(_))) => Err(ApiError::bucket_not_found()),
        Err(Error::Conflict(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Changes attributes for a request, which holds one of the permits of copies; see [`change_attributes`].
pub async fn change_attributes_of(
    app: &AppState,
    bucket: &Bucket,
    name: &ObjectName,
    version: &Version,
    new: NewAttributes,
) -> Result<Option<Object>, ApiError> {
    let (app, bucket) = (app.clone(), bucket.clone());
    let (name, version) = (name.clone(), version.clone());
    blocking(move || {
        let mut watch = |_| match app.is_draining() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        change_attributes(&app.store, &app.catalog, &bucket, &name, &version, new, &mut watch)
    })
    .await
}

/// Returns the options for storing the same content under the same name.
fn put_options(
    bucket: &Bucket,
    object: &Object,
    staged: &StagedBody,
    new: NewAttributes,
) -> Result<PutOptions, ApiError> {
    match new.content_type {
        None => Ok(PutOptions {
            content_type: object.content_type().to_owned(),
            attributes: new.attributes.encoded().ok_or_else(ApiError::metadata_too_large)?,
            ..PutOptions::default()
        }),
        Some(chosen) => {
            let file = StagedFile::new(None, new.attributes.declared_type.clone(), staged.clone());
            let key = &object.name().key;
            file.with_attributes(new.attributes).chosen_options(bucket, key, chosen)
        }
    }
}
