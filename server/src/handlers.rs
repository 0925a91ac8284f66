//! HTTP handlers, one file per resource: authentication, request parsing, one call of the engine, one response.

pub mod account;
pub mod accounts;
pub mod api_keys;
mod asset;
pub mod audit;
pub mod buckets;
pub mod client_module;
pub mod dashboard;
pub mod delete;
pub mod deleted_versions;
pub mod docs;
pub mod download_links;
pub mod file_pages;
pub mod health;
pub mod integrations;
pub mod jobs;
pub mod list;
pub mod metrics;
pub mod moves;
pub mod object_metadata;
pub mod organisations;
pub mod presign;
pub mod presigned_put;
pub mod recent_uploads;
pub mod search;
pub mod server_settings;
pub mod sessions;
pub mod set_up;
pub mod shared_links;
pub mod shared_pages;
pub mod storage;
pub mod token_pages;
pub mod tus;
pub mod upload_pages;
pub mod usage_history;
pub mod usage_report;
pub mod webhooks;
pub mod zips;

use catalog::{Actor, Catalog, CatalogError};
use engine::ObjectKey;
use protocol::error::ApiError;
use protocol::object_path::PathInBucket;
use service::auth::Caller;
use service::state::AppState;
use usage::task::blocking;

/// Runs catalog work that blocks on the disk.
async fn with_catalog<T: Send + 'static>(
    app: &AppState,
    work: impl FnOnce(&Catalog) -> Result<T, CatalogError> + Send + 'static,
) -> Result<T, ApiError> {
    let catalog = app.catalog.clone();
    Ok(blocking(move || work(&catalog)).await?)
}

/// Changes the catalog on behalf of a caller.
async fn changing<T: Send + 'static>(
    app: &AppState,
    caller: &Caller,
    work: impl FnOnce(&Catalog) -> Result<T, CatalogError> + Send + 'static,
) -> Result<T, ApiError> {
    changing_as(app, caller.actor(), work).await
}

/// Changes the catalog on behalf of an audit actor.
async fn changing_as<T: Send + 'static>(
    app: &AppState,
    actor: Actor,
    work: impl FnOnce(&Catalog) -> Result<T, CatalogError> + Send + 'static,
) -> Result<T, ApiError> {
    let catalog = app.catalog.acting_as(actor);
    Ok(blocking(move || work(&catalog)).await?)
}

/// Parses the file that a field of a body names.
fn file_in(path: &str) -> Result<ObjectKey, ApiError> {
    match PathInBucket::parse(path)? {
        PathInBucket::File(key) => Ok(key),
        PathInBucket::Folder(_) => Err(ApiError::bad_path("a file path is required, not a folder")),
    }
}
