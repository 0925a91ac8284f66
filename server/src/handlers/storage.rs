//! `GET /api/storage`: state of the store and its disk, for operators.

use axum::extract::State;
use protocol::error::ApiError;
use serde::Serialize;
use service::auth::Caller;
use service::replies::Success;
use service::state::AppState;
use utoipa::ToSchema;

use super::server_settings::VERSION;
use super::with_catalog;
use crate::management::{ReplicationView, StorageView, storage};

/// Disk usage, segments, corruption, and estimated effect of a compaction.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageReply {
    /// Server version.
    version: &'static str,
    #[schema(required)]
    data_folder: Option<String>,
    /// Replication to the remote store; `null` without one.
    #[schema(required)]
    remote: Option<ReplicationView>,
    #[serde(flatten)]
    storage: StorageView,
}

/// Returns disk usage and health of the store. Operators only.
#[utoipa::path(
    get,
    path = "/api/storage",
    operation_id = "showStorage",
    tag = "Server",
    responses((status = OK, body = StorageReply))
)]
pub async fn show(
    State(app): State<AppState>,
    caller: Caller,
) -> Result<Success<StorageReply>, ApiError> {
    caller.require_operator("sees the storage")?;
    let store = app.store.clone();
    let storage = with_catalog(&app, move |catalog| storage(&store, catalog)).await?;
    let data_folder = app.data_folder.get().map(|folder| folder.display().to_string());
    let remote = app.store.replication_status().map(|status| {
        let url = app.config().remote.as_ref().map(|remote| remote.url.clone());
        ReplicationView::of(&status, url)
    });
    Ok(Success(StorageReply { version: VERSION, data_folder, remote, storage }))
}
