//! Change of type, user metadata and expiry of an object by the operator.

use std::collections::BTreeMap;

use catalog::object_attributes::StoredAttributes;
use catalog::versions::Version;
use catalog::{Bucket, Catalog, CatalogError};
use engine::progress::ProgressCallback;
use engine::{ObjectName, Store};
use jobs::limits::MOVE_TRIES_MAX;
use protocol::error::ApiError;
use serde::{Deserialize, Serialize};
use service::attribute_change::{NewAttributes, change_attributes};
use service::object_options::{ObjectOptions, expiry_time};

use super::objects::{missing, object_view};
use super::reply::AdminResponse;

/// Change of an object; absent fields are unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ObjectEdit {
    pub content_type: Option<String>,
    /// `Cache-Control`; empty for the default.
    pub cache_control: Option<String>,
    /// User metadata to set; an empty value removes the key.
    pub metadata: BTreeMap<String, String>,
    /// Expiry time as in RFC 3339; empty for none.
    pub expires_at: Option<String>,
}

/// Changes an object. Blocks on the disk.
pub(super) fn edit_object(
    store: &Store,
    catalog: &Catalog,
    bucket: &Bucket,
    name: &ObjectName,
    edit: &ObjectEdit,
    watch: &mut ProgressCallback<'_>,
) -> Result<AdminResponse, CatalogError> {
    for _ in 0..MOVE_TRIES_MAX {
        let object = store.get(name)?.filter(|object| !object.is_derived());
        let version = Version::current(bucket.versioning, object.ok_or_else(|| missing(name))?);
        let before = StoredAttributes::of(&version.object);
        let options = options_of(edit, &before, catalog.now_ms()).map_err(invalid)?;
        let attributes = options.apply(before).map_err(invalid)?;
        let new = NewAttributes { attributes, content_type: options.content_type };
        let changed = change_attributes(store, catalog, bucket, name, &version, new, watch);
        if let Some(object) = changed.map_err(invalid)? {
            return Ok(AdminResponse::Object(Box::new(object_view(bucket, &object))));
        }
    }
    Err(CatalogError::InvalidRequest(format!("{name} kept changing: try again")))
}

fn options_of(
    edit: &ObjectEdit,
    before: &StoredAttributes,
    now_ms: u64,
) -> Result<ObjectOptions, ApiError> {
    let unless_empty = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    let mut metadata = before.s3.as_ref().map(|s3| s3.metadata.clone()).unwrap_or_default();
    for (key, value) in &edit.metadata {
        match value.is_empty() {
            true => drop(metadata.remove(key)),
            false => drop(metadata.insert(key.clone(), value.clone())),
        }
    }
    let expires_ms = match edit.expires_at.as_deref() {
        None => None,
        Some("") => Some(None),
        Some(text) => expiry_time(now_ms, None, Some(text))?.map(Some),
    };
    let options = ObjectOptions {
        content_type: edit.content_type.clone(),
        cache_control: edit.cache_control.as_ref().map(unless_empty),
        metadata: (!edit.metadata.is_empty()).then_some(metadata),
        expires_ms,
        ..ObjectOptions::default()
    };
    options.check()?;
    Ok(options)
}

fn invalid(error: ApiError) -> CatalogError {
    CatalogError::InvalidRequest(error.message().to_owned())
}
