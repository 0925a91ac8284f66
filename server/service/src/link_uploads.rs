//! Uploads to shared links that request files: limits, and the name of the person who uploads.
//!
//! Guarantees: files are reserved before they are stored, so that concurrent uploads do not exceed the limits of a
//! link; an upload is in the audit log with the client's address. Non-goals: the pages, and receiving of files.

use std::collections::BTreeMap;
use std::sync::Arc;

use catalog::object_attributes::{S3Attributes, StoredAttributes};
use catalog::{Actor, AskName, SharedLink, StoredAmount, UploadReservation};
use engine::ObjectKey;
use protocol::error::ApiError;
use usage::task::blocking;

use crate::limits::LINK_NAME_CHARS_MAX;
use crate::state::AppState;

/// Name of the field with the name of the person who uploads.
pub const UPLOADED_BY: &str = "uploadedBy";
/// Metadata key under which the name is stored.
const METADATA_KEY: &str = "uploaded-by";

/// Client of a link that requests files.
#[derive(Clone)]
pub struct LinkVisitor {
    pub link: Arc<SharedLink>,
    /// Author of audit entries.
    pub actor: Actor,
}

/// Reserves a share of the limits of a link.
pub fn reserve_in_link(
    app: &AppState,
    link: &SharedLink,
    amount: StoredAmount,
) -> Result<UploadReservation, ApiError> {
    let reserved = app.catalog.shared_links().reserve_uploads(&link.id, amount)?;
    reserved.ok_or_else(ApiError::link_full)
}

/// Parses the name of the person who uploads.
pub fn uploader_name(ask: AskName, given: Option<&str>) -> Result<Option<String>, ApiError> {
    let name = given.map(str::trim).filter(|name| !name.is_empty() && ask != AskName::No);
    match name {
        Some(name) if name.chars().count() > LINK_NAME_CHARS_MAX => {
            let must = format!("must have at most {LINK_NAME_CHARS_MAX} characters");
            Err(ApiError::bad_parameter(UPLOADED_BY, &must))
        }
        Some(name) if name.contains(char::is_control) => {
            Err(ApiError::bad_parameter(UPLOADED_BY, "must have no control characters"))
        }
        None if ask == AskName::Required => {
            Err(ApiError::bad_parameter(UPLOADED_BY, "is required: enter your name"))
        }
        name => Ok(name.map(str::to_owned)),
    }
}

/// Returns the attributes of a file that this person uploaded.
pub fn attributes_of(uploader_name: Option<String>) -> StoredAttributes {
    let metadata = |name| BTreeMap::from([(METADATA_KEY.to_owned(), name)]);
    let s3 = uploader_name
        .map(|name| S3Attributes { metadata: metadata(name), ..S3Attributes::default() });
    StoredAttributes { s3, ..StoredAttributes::default() }
}

/// Records stored files in the audit log. The files are stored already, so that a failure is only logged.
pub async fn audit_link_upload(
    app: &AppState,
    visitor: &LinkVisitor,
    files: Vec<ObjectKey>,
    uploader_name: Option<String>,
) {
    let catalog = app.catalog.acting_as(visitor.actor.clone());
    let link = visitor.link.clone();
    let record = move || {
        let files: Vec<_> = files.iter().collect();
        catalog.shared_links().audit_upload(&link, &files, uploader_name.as_deref())
    };
    if let Err(error) = blocking(record).await {
        tracing::warn!(%error, "upload to a link not recorded in the audit log");
    }
}
