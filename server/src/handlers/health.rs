//! `/-/health` and `/-/ready`: for whoever watches over the server.
//!
//! Neither needs a key, so neither says why: the log does, and `trug stats`.
//! Never here: anything that waits.

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
    store: &'static str,
}

/// `GET /-/health`: the process is alive, and this is how its store is.
pub async fn health(State(app): State<AppState>) -> Response {
    reply("ok", &app.store.health())
}

/// `GET /-/ready`: the store takes writes, deletions at least, and the server is not stopping.
pub async fn ready(State(app): State<AppState>) -> Result<Response, ApiError> {
    if app.is_draining() {
        return Err(not_ready("The server is stopping"));
    }
    match app.store.health() {
        Health::ReadOnly(reason) => {
            Err(not_ready("The store takes no writes").with_log(format!("not ready: {reason}")))
        }
        // Files are delivered and deleted: whoever sends requests elsewhere now makes it worse.
        health @ (Health::Writable | Health::Full { .. }) => Ok(reply("ready", &health)),
    }
}

fn reply(status: &'static str, health: &Health) -> Response {
    let store = match health {
        Health::Writable => "writable",
        Health::Full { .. } => "full",
        Health::ReadOnly(_) => "read_only",
    };
    Json(HealthReply { success: true, status, store }).into_response()
}

fn not_ready(message: &'static str) -> ApiError {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", message)
}
