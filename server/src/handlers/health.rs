//! `/-/health` and `/-/ready`: health checks.
//!
//! Neither needs a key, so neither gives a reason: the log and `trug stats` do. Non-goals: anything that waits.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use engine::Health;
use http::StatusCode;
use protocol::error::ApiError;
use serde::Serialize;
use service::replies::Success;
use service::state::AppState;
use utoipa::ToSchema;

#[derive(Serialize, ToSchema)]
struct HealthReply {
    status: &'static str,
    store: &'static str,
}

/// Reports liveness and the health of the store.
#[utoipa::path(
    get,
    path = "/-/health",
    operation_id = "health",
    tag = "Server",
    security(()),
    responses((status = OK, body = HealthReply))
)]
pub async fn health(State(app): State<AppState>) -> Response {
    reply("ok", &app.store.health())
}

/// Reports readiness: 200 if the server accepts requests and the store accepts at least deletions.
#[utoipa::path(
    get,
    path = "/-/ready",
    operation_id = "ready",
    tag = "Server",
    security(()),
    responses(
        (status = OK, body = HealthReply),
        (status = SERVICE_UNAVAILABLE, description = "`not_ready`."),
    )
)]
pub async fn ready(State(app): State<AppState>) -> Result<Response, ApiError> {
    if app.is_draining() {
        return Err(not_ready("The server is shutting down"));
    }
    match app.store.health() {
        Health::ReadOnly(reason) => {
            Err(not_ready("The store is not writable").with_log(format!("not ready: {reason}")))
        }
        // A full store still delivers and deletes files: redirecting the requests elsewhere would make it worse.
        health @ (Health::Writable | Health::Full { .. }) => Ok(reply("ready", &health)),
    }
}

fn reply(status: &'static str, health: &Health) -> Response {
    let store = match health {
        Health::Writable => "writable",
        Health::Full { .. } => "full",
        Health::ReadOnly(_) => "read_only",
    };
    Success(HealthReply { status, store }).into_response()
}

fn not_ready(message: &'static str) -> ApiError {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", message)
}
