//! Routing table of all endpoints except delivery, which `dispatch` handles first; in the order of the specification.
//!
//! Guarantees: every error response is JSON; a wrong method gets the list of allowed ones. Non-goals: the endpoints
//! themselves.

use axum::Router;
use axum::routing::{MethodRouter, any, get, post};
use protocol::error::ApiError;

use crate::admission::{same_origin_only, with_management_limit, with_upload_limit};
use crate::handlers::dashboard;
use crate::handlers::delete::delete;
use crate::handlers::docs;
use crate::handlers::health::{health, ready};
use crate::handlers::integrations::{curl, lb_phone, sharex};
use crate::handlers::list::list;
use crate::handlers::metrics::{metrics, metrics_unauthenticated};
use crate::handlers::presign::{presign_token, upload_with_token};
use crate::handlers::presigned_put::{OBJECT_METHODS, put_presigned};
use crate::handlers::search::search;
use crate::handlers::tus;
use crate::handlers::upload::upload;
use crate::handlers::{
    account, accounts, api_keys, audit, buckets, download_links, gone_files, jobs, moves,
    organisations, recent_uploads, server_settings, sessions, set_up, storage, usage_history,
    usage_report, webhooks,
};
use crate::state::AppState;

const READ_METHODS: &str = "GET, HEAD, OPTIONS";
const POST_METHODS: &str = "POST, OPTIONS";
/// Methods of management lists.
const LIST_METHODS: &str = "GET, HEAD, POST, OPTIONS";
const RECORD_METHODS: &str = "GET, HEAD, PATCH, DELETE, OPTIONS";
const ACCOUNT_METHODS: &str = "GET, HEAD, PATCH, OPTIONS";
const MEMBERS_METHODS: &str = "GET, HEAD, POST, DELETE, OPTIONS";
const MEMBERSHIP_METHODS: &str = "POST, DELETE, OPTIONS";
const DEAD_LETTERS_METHODS: &str = "GET, HEAD, DELETE, OPTIONS";
const JOB_METHODS: &str = "GET, HEAD, DELETE, OPTIONS";
const REVOKE_METHODS: &str = "DELETE, OPTIONS";
/// Methods of session endpoints.
const SESSION_METHODS: &str = "GET, HEAD, POST, DELETE, OPTIONS";
const SESSIONS_METHODS: &str = "GET, HEAD, DELETE, OPTIONS";
const PUT_METHODS: &str = "PUT, OPTIONS";

/// Creates the router of everything except delivery.
pub fn router(app: AppState) -> Router {
    let table = Router::new()
        .merge(object_routes(&app))
        .merge(api(&app))
        .merge(management(&app))
        .merge(internal_routes(&app))
        .merge(session_routes(&app));
    usage::spans::record_routes(table).fallback(not_found).with_state(app)
}

/// Creates the router of the admin listener.
pub fn admin_router(app: AppState) -> Router {
    Router::new()
        .route("/-/metrics", reading(get(metrics_unauthenticated)))
        .route("/-/health", reading(get(health)))
        .route("/-/ready", reading(get(ready)))
        .fallback(not_found)
        .with_state(app)
}

/// Routes of objects and folders: 4.2 upload, 4.3 delete, 4.5 use of a presigned URL.
fn object_routes(app: &AppState) -> Router<AppState> {
    Router::new()
        .route("/{bucket}", object_methods(app))
        .route("/{bucket}/", object_methods(app))
        .route("/{bucket}/{*path}", object_methods(app))
}

/// Routes that the specification defines under `/api`. No bucket can have that name.
fn api(app: &AppState) -> Router<AppState> {
    Router::new()
        .route("/api", not_found_route())
        .route("/api/", not_found_route())
        .route("/api/{*path}", not_found_route())
        // 4.4 presigned tokens.
        .route("/api/presigned-url", reading(with_management_limit(app, get(presign_token))))
        .route(
            "/api/presigned-url/{token}",
            post(upload_with_token).fallback(|| refuse_method(POST_METHODS)),
        )
        // 4.6 list, 4.7 search.
        .route("/api/list-objects", reading(with_management_limit(app, get(list))))
        .route("/api/search/{bucket}", reading(with_management_limit(app, get(search))))
        .merge(resumable_uploads(app))
}

/// Routes of resumable uploads. An upload is charged when it is created, regardless of the number of its chunks.
fn resumable_uploads(app: &AppState) -> Router<AppState> {
    let all = || with_upload_limit(app, post(tus::create)).fallback(|| refuse_method(POST_METHODS));
    let one = axum::routing::head(tus::state)
        .patch(tus::append)
        .delete(tus::terminate)
        .post(tus::overridden);
    let one = with_management_limit(app, one)
        .fallback(|| refuse_method("HEAD, POST, PATCH, DELETE, OPTIONS"));
    Router::new().route("/api/tus", all()).route("/api/tus/", all()).route("/api/tus/{id}", one)
}

/// Routes of management, 4.8. Clients 13.11.
fn management(app: &AppState) -> Router<AppState> {
    let route =
        |methods, allow| with_management_limit(app, methods).fallback(move || refuse_method(allow));
    let bucket = get(buckets::show).patch(buckets::edit).delete(buckets::delete);
    let organisation =
        get(organisations::show).patch(organisations::edit).delete(organisations::delete);
    let members = get(organisations::members)
        .post(organisations::set_member)
        .delete(organisations::remove_member);
    let membership =
        post(organisations::accept_membership).delete(organisations::decline_membership);
    let organisations = get(organisations::list).post(organisations::create);
    let account = get(accounts::show).patch(accounts::edit);
    let webhook = get(webhooks::show).patch(webhooks::edit).delete(webhooks::delete);
    let dead_letters = get(webhooks::dead_letters).delete(webhooks::forget_dead_letters);
    let test = post(webhooks::test);
    let retry = post(webhooks::retry_dead_letters);
    let webhooks = get(webhooks::list).post(webhooks::create);
    Router::new()
        .route("/api/buckets", route(get(buckets::list).post(buckets::create), LIST_METHODS))
        .route("/api/buckets/{bucketName}", route(bucket, RECORD_METHODS))
        .route("/api/buckets/{bucketName}/folders", route(get(buckets::folders), READ_METHODS))
        .route("/api/buckets/{bucketName}/move", route(post(moves::move_one), POST_METHODS))
        .route("/api/buckets/{bucketName}/copy", route(post(moves::copy_one), POST_METHODS))
        .route(
            "/api/buckets/{bucketName}/download-links",
            route(post(download_links::create), POST_METHODS),
        )
        .route("/api/buckets/{bucketName}/deleted", route(get(gone_files::list), READ_METHODS))
        .route(
            "/api/buckets/{bucketName}/undelete",
            route(post(gone_files::undelete), POST_METHODS),
        )
        .route("/api/buckets/{bucketName}/webhooks", route(webhooks, LIST_METHODS))
        .route("/api/buckets/{bucketName}/webhooks/{id}", route(webhook, RECORD_METHODS))
        .route("/api/buckets/{bucketName}/webhooks/{id}/test", route(test, POST_METHODS))
        .route(
            "/api/buckets/{bucketName}/webhooks/{id}/dead-letters",
            route(dead_letters, DEAD_LETTERS_METHODS),
        )
        .route(
            "/api/buckets/{bucketName}/webhooks/{id}/dead-letters/retry",
            route(retry, POST_METHODS),
        )
        .route("/api/jobs", route(get(jobs::list).post(jobs::begin), LIST_METHODS))
        .route("/api/jobs/{id}", route(get(jobs::show).delete(jobs::cancel), JOB_METHODS))
        .route("/api/audit", route(get(audit::show), READ_METHODS))
        .route("/api/storage", route(get(storage::show), READ_METHODS))
        .route("/api/settings", route(get(server_settings::show), READ_METHODS))
        .route("/api/recent-uploads", route(get(recent_uploads::list), READ_METHODS))
        .route("/api/keys", route(get(api_keys::list).post(api_keys::create), LIST_METHODS))
        .route("/api/keys/{id}", route(axum::routing::delete(api_keys::revoke), REVOKE_METHODS))
        .route("/api/organisations", route(organisations, LIST_METHODS))
        .route("/api/organisations/{id}", route(organisation, RECORD_METHODS))
        .route("/api/organisations/{id}/members", route(members, MEMBERS_METHODS))
        .route("/api/organisations/{id}/membership", route(membership, MEMBERSHIP_METHODS))
        .route("/api/account", route(get(account::show).patch(account::edit), ACCOUNT_METHODS))
        .route("/api/usage", route(get(usage_report::usage), READ_METHODS))
        .route("/api/usage/history", route(get(usage_history::history), READ_METHODS))
        .route("/api/accounts", route(get(accounts::list).post(accounts::create), LIST_METHODS))
        .route("/api/accounts/sweep", route(post(accounts::sweep), POST_METHODS))
        .route("/api/accounts/{id}", route(account, ACCOUNT_METHODS))
        .route("/api/accounts/{id}/invitations", route(post(set_up::invite), POST_METHODS))
}

/// Routes of the server's own pages. No bucket can have that name.
fn internal_routes(app: &AppState) -> Router<AppState> {
    let router = match app.config().metrics_token {
        Some(_) => Router::new().route("/-/metrics", reading(get(metrics))),
        // Without a metrics token the path is not found, like any unknown one.
        None => Router::new(),
    };
    router
        .route("/", reading(get(dashboard::entrance)))
        .route("/-", not_found_route())
        .route("/-/assets/{version}/{name}", reading(get(dashboard::asset)))
        .route("/-/openapi.json", reading(get(docs::openapi)))
        .route("/-/docs", reading(get(docs::page)))
        .route("/-/health", reading(get(health)))
        .route("/-/ready", reading(get(ready)))
        .route("/-/integrations/sharex", reading(get(sharex)))
        .route("/-/integrations/lb-phone", reading(get(lb_phone)))
        .route("/-/integrations/curl", reading(get(curl)))
}

/// Routes of sign-in and set-up, restricted to the dashboard.
fn session_routes(app: &AppState) -> Router<AppState> {
    let home =
        |methods, allow| same_origin_only(app, methods).fallback(move || refuse_method(allow));
    let session = get(sessions::show).post(sessions::sign_in).delete(sessions::sign_out);
    // These need a session, and are charged like any request of its account.
    let counted = |methods, allow| home(with_management_limit(app, methods), allow);
    let sessions = get(sessions::list).delete(sessions::end_all);
    let one = axum::routing::delete(sessions::end);
    let password = axum::routing::put(sessions::change_password);
    Router::new()
        .route("/-/", home(get(dashboard::shell), READ_METHODS))
        .route("/-/{*path}", same_origin_only(app, any(dashboard::view)))
        .route("/-/session", home(session, SESSION_METHODS))
        .route("/-/sessions", counted(sessions, SESSIONS_METHODS))
        .route("/-/sessions/{id}", counted(one, REVOKE_METHODS))
        .route("/-/password", counted(password, PUT_METHODS))
        .route("/-/set-up", home(get(dashboard::shell).post(set_up::set_up), LIST_METHODS))
        .route(
            "/-/invitation",
            home(get(dashboard::shell).post(set_up::accept_invitation), LIST_METHODS),
        )
}

fn object_methods(app: &AppState) -> MethodRouter<AppState> {
    let methods = with_upload_limit(app, post(upload))
        .merge(with_management_limit(app, axum::routing::delete(delete)));
    // A presigned URL carries its own authorization.
    methods.put(put_presigned).fallback(|| refuse_method(OBJECT_METHODS))
}

fn reading(handler: MethodRouter<AppState>) -> MethodRouter<AppState> {
    handler.fallback(|| refuse_method(READ_METHODS))
}

fn not_found_route() -> MethodRouter<AppState> {
    any(not_found)
}

async fn not_found() -> ApiError {
    ApiError::not_found()
}

async fn refuse_method(allow: &'static str) -> ApiError {
    ApiError::method_not_allowed(allow)
}

#[cfg(test)]
mod tests {
    use protocol::reserved_paths;

    #[test]
    fn routes_are_reserved_bucket_names() {
        let routes = include_str!("router.rs").lines().filter_map(|line| {
            line.trim().strip_prefix(".route(\"/").and_then(|rest| rest.split('"').next())
        });
        let mut count = 0;
        for first in routes.filter_map(|path| path.split('/').next()) {
            count += 1;
            let is_ours = first.is_empty() || reserved_paths::is_reserved(first);
            assert!(first == "{bucket}" || is_ours, "{first}");
        }
        assert!(count > 3, "the routes were not found");
    }
}
