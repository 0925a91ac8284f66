//! `/-/health` and `/-/ready`: for whoever watches over the server.
//!
//! Never here: anything that waits or needs a key.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use engine::Health;
use http::StatusCode;
use serde::Serialize;

use crate::error::ApiError;
use crate::replies::Json;
use crate::state::AppState;

#[derive(Serialize)]
struct HealthReply {
    success: bool,
    status: &'static str,
}

/// `GET /-/health`: the process is alive.
pub async fn health() -> Response {
    Json(HealthReply { success: true, status: "ok" }).into_response()
}

/// `GET /-/ready`: the store takes writes and the server is not stopping.
pub async fn ready(State(app): State<AppState>) -> Result<Response, ApiError> {
    if app.is_draining() {
        return Err(not_ready("The server is stopping"));
    }
    match app.store.health() {
        Health::Writable => {
            Ok(Json(HealthReply { success: true, status: "ready" }).into_response())
        }
        Health::ReadOnly(reason) => {
            Err(not_ready("The store takes no writes").with_log(format!("not ready: {reason}")))
        }
    }
}

fn not_ready(message: &'static str) -> ApiError {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", message)
}
