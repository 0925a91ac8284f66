//! `GET /api/storage`: how it is with the store on its disk, for operators.

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::with_catalog;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::management::{StorageView, storage};
use crate::replies::Json;
use crate::state::AppState;

/// The disk, the segments, the damage, and what a compaction would do.
#[derive(Serialize, ToSchema)]
pub struct StorageReply {
    success: bool,
    #[serde(flatten)]
    storage: StorageView,
}

/// Tells how it is with the store on its disk. Operators only.
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
) -> Result<Json<StorageReply>, ApiError> {
    caller.check_operator("sees the storage")?;
    let store = app.store.clone();
    let storage = with_catalog(&app, move |catalog| storage(&store, catalog)).await?;
    Ok(Json(StorageReply { success: true, storage }))
}
