//! The table of endpoints, in the order of the specification. Delivery is not in it: `dispatch` takes it before.
//!
//! Promises: whatever is asked for, the answer is JSON; a wrong method is told the right ones.
//! Never here: what an endpoint does.

use axum::Router;
use axum::routing::{MethodRouter, get, post};

use crate::admission::admitted_to_place;
use crate::error::ApiError;
use crate::handlers::delete::delete;
use crate::handlers::health::{health, ready};
use crate::handlers::upload::upload;
use crate::state::AppState;

/// Methods of a place in a bucket; GET and HEAD never get here.
const PLACE_METHODS: &str = "GET, HEAD, POST, DELETE, OPTIONS";
const READ_METHODS: &str = "GET, HEAD, OPTIONS";

/// Everything but delivery.
pub fn router(app: AppState) -> Router {
    Router::new().merge(places(&app)).merge(api()).merge(own()).fallback(not_found).with_state(app)
}

/// Places in buckets: 4.2 upload, 4.3 delete.
fn places(app: &AppState) -> Router<AppState> {
    Router::new()
        .route("/{bucket}", place(app))
        .route("/{bucket}/", place(app))
        .route("/{bucket}/{*path}", place(app))
}

/// What the specification puts under `/api`. No bucket can have that name.
fn api() -> Router<AppState> {
    Router::new()
        .route("/api", nothing())
        .route("/api/", nothing())
        .route("/api/{*path}", nothing())
}

/// What is ours alone. No bucket can have that name.
fn own() -> Router<AppState> {
    Router::new()
        .route("/-", nothing())
        .route("/-/", nothing())
        .route("/-/{*path}", nothing())
        .route("/-/health", get(health).fallback(|| refuse_method(READ_METHODS)))
        .route("/-/ready", get(ready).fallback(|| refuse_method(READ_METHODS)))
}

fn place(app: &AppState) -> MethodRouter<AppState> {
    let methods = admitted_to_place(app, post(upload).delete(delete));
    methods.fallback(|| refuse_method(PLACE_METHODS))
}

fn nothing() -> MethodRouter<AppState> {
    axum::routing::any(not_found)
}

async fn not_found() -> ApiError {
    ApiError::not_found()
}

async fn refuse_method(allow: &'static str) -> ApiError {
    ApiError::method_not_allowed(allow)
}

#[cfg(test)]
mod tests {
    use crate::reserved;

    #[test]
    fn no_bucket_can_have_the_name_of_an_address_of_ours() {
        let routes = include_str!("router.rs").lines().filter_map(|line| {
            line.trim().strip_prefix(".route(\"/").and_then(|rest| rest.split('"').next())
        });
        let mut count = 0;
        for first in routes.filter_map(|path| path.split('/').next()) {
            count += 1;
            assert!(first == "{bucket}" || reserved::is_reserved(first), "{first}");
        }
        assert!(count > 3, "the routes were not found");
    }
}
