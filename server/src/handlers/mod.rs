//! One file per resource: who is asking, what is meant, one call of the engine, one reply.

pub mod account;
pub mod accounts;
pub mod api_keys;
pub mod buckets;
pub mod delete;
pub mod deliver;
pub mod docs;
pub mod health;
pub mod integrations;
pub mod list;
pub mod organisations;
pub mod presign;
pub mod presigned_put;
pub mod search;
pub mod tus;
pub mod upload;
pub mod usage;
pub mod webhooks;

use crate::bridge::blocking;
use crate::catalog::{Catalog, CatalogError};
use crate::error::ApiError;
use crate::state::AppState;

/// Changes the catalog, or asks it what waits for the disk.
async fn with_catalog<T: Send + 'static>(
    app: &AppState,
    work: impl FnOnce(&Catalog) -> Result<T, CatalogError> + Send + 'static,
) -> Result<T, ApiError> {
    let catalog = app.catalog.clone();
    Ok(blocking(move || work(&catalog)).await?)
}
