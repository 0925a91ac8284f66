//! Changes of the attributes of stored versions: tags, retention, legal hold.
//!
//! A version is stored again with the same content. Guarantees: content, ETag, type, metadata and version ID do not
//! change; a version that is replaced concurrently is looked up again. Non-goals: which changes are allowed.

use std::ops::ControlFlow;

use catalog::commit::commit;
use catalog::object_attributes::StoredAttributes;
use catalog::versions::VersionId;
use catalog::{Bucket, Scope};
use engine::{Batch, Conflict, Error, FactName, Object, ObjectName, Precondition, PutOptions};
use jobs::limits::MOVE_TRIES_MAX;
use protocol::error::ApiError;
use s3s::S3Result;
use service::auth::Caller;
use service::state::AppState;
use usage::task::blocking;

use super::errors::to_s3_error;
use super::objects::authorized_object;
use super::versioning::{find_version, version_id};

/// Version that a request names.
pub(super) struct Stored<'a> {
    bucket: &'a str,
    key: &'a str,
    id: Option<VersionId>,
}

impl<'a> Stored<'a> {
    pub(super) fn of(bucket: &'a str, key: &'a str, sent_id: Option<&str>) -> S3Result<Self> {
        Ok(Self { bucket, key, id: version_id(sent_id)? })
    }
}

/// Stores a version again with the attributes that `change` returns; returns its id. Takes as long as a copy of the
/// object, and one of the permits of copies.
pub(super) async fn rewrite(
    app: &AppState,
    caller: &Caller,
    stored: Stored<'_>,
    scope: Scope,
    change: impl Fn(&Bucket, StoredAttributes) -> S3Result<StoredAttributes>,
) -> S3Result<Option<String>> {
    let ours = |error: ApiError| to_s3_error(&error);
    let (bucket, key) =
        authorized_object(app, caller, stored.bucket, stored.key, scope).map_err(ours)?;
    let fact = bucket.fact().map_err(|why| ours(ApiError::internal(why.to_string())))?;
    let name = ObjectName::new(bucket.name.clone(), key);
    let _turn = app.jobs.copy_permit().await.map_err(ours)?;
    for _ in 0..MOVE_TRIES_MAX {
        let version = find_version(app, &bucket, &name, stored.key, stored.id).await?;
        let version_id = bucket.versioning.map(|_| version.id.to_string());
        let before = StoredAttributes::of(&version.object);
        let mut attributes = change(&bucket, before.clone())?;
        if attributes == before {
            return Ok(version_id);
        }
        if let Some(versioning) = bucket.versioning.filter(|_| *version.object.name() == name) {
            attributes.version =
                Some(versioning.preserved_mark(&version.object, attributes.version));
        }
        match store_with(app, fact.clone(), version.object, attributes).await {
            Err(Error::Conflict(Conflict::FactMissing(_))) => {
                return Err(ours(ApiError::bucket_not_found()));
            }
            Err(Error::Conflict(_)) => {}
            stored => return stored.map(|()| version_id).map_err(|error| ours(error.into())),
        }
    }
    Err(ours(ApiError::conflict("The file kept changing: try again")))
}

/// Stores the same content under the same name, provided that the object is the version that was read.
async fn store_with(
    app: &AppState,
    bucket_fact: FactName,
    object: Object,
    attributes: StoredAttributes,
) -> engine::Result<()> {
    let (store, source, draining) = (app.store.clone(), object.clone(), app.clone());
    let stage = move || {
        store.stage_copy(&source, &mut |_| match draining.is_draining() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        })
    };
    let staged = blocking(stage).await?;
    let options = PutOptions {
        content_type: object.content_type().to_owned(),
        attributes: attributes.encoded().unwrap_or_default(),
        ..PutOptions::default()
    };
    let name = object.name().clone();
    let batch = Batch::new()
        .require(Precondition::KeyHasLsn(name.clone(), object.lsn()))
        .require(Precondition::FactPresent(bucket_fact));
    commit(&app.store, batch.put(name, staged, options)).await.map(drop)
}
