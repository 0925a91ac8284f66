//! Changes of the attributes of stored versions by S3 clients: tags, retention, legal hold.
//!
//! Non-goals: which changes are allowed; storing (`service::attribute_change`).

use catalog::object_attributes::StoredAttributes;
use catalog::versions::VersionId;
use catalog::{Bucket, Scope};
use engine::ObjectName;
use jobs::limits::MOVE_TRIES_MAX;
use protocol::error::ApiError;
use s3s::S3Result;
use service::attribute_change::{NewAttributes, change_attributes_of};
use service::auth::Caller;
use service::state::AppState;

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

/// Stores a version again with the attributes that `change` returns; returns its id.
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
    let name = ObjectName::new(bucket.name.clone(), key);
    let _turn = app.jobs.copy_permit().await.map_err(ours)?;
    for _ in 0..MOVE_TRIES_MAX {
        let version = find_version(app, &bucket, &name, stored.key, stored.id).await?;
        let attributes = change(&bucket, StoredAttributes::of(&version.object))?;
        let new = NewAttributes { attributes, content_type: None };
        let changed =
            change_attributes_of(app, &bucket, &name, &version, new).await.map_err(ours)?;
        if changed.is_some() {
            return Ok(bucket.versioning.map(|_| version.id.to_string()));
        }
    }
    Err(ours(ApiError::conflict("The file kept changing: try again")))
}
