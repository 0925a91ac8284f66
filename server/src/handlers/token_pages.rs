//! `/api/presigned-url/{token}`: uploads with a token, and the page for them.
//!
//! Guarantees: the page leaves the token valid, and shows neither bucket nor folder; only clients that accept HTML get
//! it. Non-goals: issuing of tokens, and their checks (`presign`).

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use catalog::{AskName, Grant, Purpose, StoredAmount, UploadRules};
use http::request::Parts;
use http::{Request, StatusCode};
use protocol::error::{ApiError, ErrorMediaType};
use protocol::limits::FORM_FILES_MAX;
use protocol::multipart::FormFiles;
use protocol::object_path::PathInBucket;
use protocol::query::Query;
use protocol::reserved_paths::TOKEN_PATH;
use service::admission::with_rate_limit_headers;
use service::parameters::ObjectOptionParameters;
use service::path_params::UrlToken;
use service::replies::{Success, UploadReply};
use service::request_context::{Path, RoutedContext};
use service::state::AppState;
use service::upload::UploadTarget;

use super::presign::{issuer_and_destination, redeem, require_unused, verify_grant};
use super::shared_pages::html::Notice;
use super::upload_pages::form_html::FormPage;
use super::upload_pages::message_of;

/// Methods of a token for clients that do not accept HTML.
const TOKEN_METHODS: &str = "POST, OPTIONS";

/// Returns the page on which files are uploaded with a token.
#[utoipa::path(
    get,
    path = "/api/presigned-url/{token}",
    operation_id = "showTokenPage",
    tag = "Presigned uploads",
    security(()),
    params(
        ("token" = String, Path, description = "Upload token."),
        ("Accept" = Option<String>, Header, description = "`text/html` for the page."),
    ),
    responses(
        (status = OK, description = "HTML page.", body = String, content_type = "text/html; charset=utf-8"),
        (status = NOT_FOUND, description = "Unknown token.", body = String, content_type = "text/html; charset=utf-8"),
        (status = METHOD_NOT_ALLOWED, description = "`method_not_allowed`: the client does not accept HTML."),
        (status = GONE, description = "The token expired, was used or was revoked.", body = String, content_type = "text/html; charset=utf-8"),
    )
)]
pub async fn page(
    State(app): State<AppState>,
    Path(UrlToken(token)): Path<UrlToken>,
    head: Parts,
) -> Result<Response, ApiError> {
    if ErrorMediaType::for_file(&head.headers) != ErrorMediaType::Html {
        return Err(ApiError::method_not_allowed(TOKEN_METHODS));
    }
    finished(form_page(&app, &token, &head))
}

fn form_page(app: &AppState, token: &str, head: &Parts) -> Result<Response, ApiError> {
    let (grant, destination) = unused_token(app, token)?;
    RoutedContext::attribute(&head.extensions, &destination.bucket, app.clock.unix_ms());
    Ok(form_of(app, token, &grant, &destination).form(StatusCode::OK, None))
}

/// Uploads the files of a multipart form with a one-time upload token.
#[utoipa::path(
    post,
    path = "/api/presigned-url/{token}",
    operation_id = "uploadWithToken",
    tag = "Presigned uploads",
    security(()),
    params(
        ("token" = String, Path, description = "Upload token."),
        ("page" = Option<String>, Query, description = "`1` for a page as the response."),
        ObjectOptionParameters,
    ),
    request_body(content = FormFiles, content_type = "multipart/form-data"),
    responses(
        (status = OK, body = UploadReply),
        (status = FORBIDDEN, description = "`plan_required`: the premium endpoint requires the plan Pro or Business."),
        (status = NOT_FOUND, description = "`token_not_found`."),
        (status = CONFLICT, description = "`token_in_use`, `conflict`."),
        (status = GONE, description = "`token_expired`, `token_used`, `token_revoked`."),
    )
)]
pub async fn upload_with_token(
    State(app): State<AppState>,
    Path(UrlToken(token)): Path<UrlToken>,
    query: Query,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    if query.string(&["page"]).is_ok_and(|page| page.as_deref() == Some("1")) {
        return finished(form_upload(&app, &token, &query, request).await);
    }
    let upload = redeem(&app, &token, &query, request).await?;
    Ok(with_rate_limit_headers(&upload.granted, upload.stored))
}

/// Uploads the form of the page.
async fn form_upload(
    app: &AppState,
    token: &str,
    query: &Query,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let (grant, destination) = unused_token(app, token)?;
    let form = form_of(app, token, &grant, &destination);
    let error = match redeem(app, token, query, request).await.and_then(|upload| upload.stored) {
        Ok(Success(reply)) => return Ok(form.thanks(reply.file_count())),
        Err(error) => error,
    };
    match message_of(&error, destination.bucket.file_bytes_max) {
        Some(message) => Ok(form.form(error.status(), Some(&message))),
        None => Err(error),
    }
}

/// Checks a token like an upload with it, and returns the destination.
fn unused_token(app: &AppState, token: &str) -> Result<(Grant, UploadTarget), ApiError> {
    let grant = verify_grant(app, token, Purpose::Form)?;
    require_unused(app, &grant)?;
    let (_, destination) = issuer_and_destination(app, &grant)?;
    Ok((grant, destination))
}

fn form_of(
    app: &AppState,
    token: &str,
    grant: &Grant,
    destination: &UploadTarget,
) -> FormPage<'static> {
    let is_file = matches!(grant.path, PathInBucket::File(_));
    let files_max = if is_file { 1 } else { FORM_FILES_MAX as u64 };
    let bytes_max = app.body_bytes_max();
    FormPage {
        action: format!("{TOKEN_PATH}{token}?page=1"),
        resumable: None,
        again: None,
        title: if is_file { "Upload a file" } else { "Upload files" },
        message: "",
        expires_ms: Some(grant.expires_ms),
        host: app.public_url.host().unwrap_or_default(),
        preview_base: None,
        rules: UploadRules {
            files_max,
            bytes_max,
            file_bytes_max: destination.bucket.file_bytes_max,
            allowed_types: destination.bucket.allowed_types.clone(),
            ask_name: AskName::No,
        },
        rest: StoredAmount { objects: files_max, bytes: bytes_max },
        nonce: app.rng.uuid().simple().to_string(),
    }
}

/// Returns the response, or the page about a token that cannot be used.
fn finished(result: Result<Response, ApiError>) -> Result<Response, ApiError> {
    let Err(error) = &result else { return result };
    let notice = match error.code() {
        "token_not_found" => Notice::Unknown,
        "token_expired" => Notice::Expired,
        "token_used" => Notice::Used,
        "token_in_use" => Notice::InUse,
        "token_revoked" => Notice::NoLongerAvailable,
        _ => return result,
    };
    Ok(notice.page())
}
