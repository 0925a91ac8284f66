//! `/-/s/{token}/u` and `/-/s/{token}/tus`: uploads to links that request files, by clients without an account.
//!
//! Guarantees: requests ignore API keys and sessions, and pages of other sites cannot upload; the destination is the
//! folder of the link, under a free name; responses reveal no path and no name; the limits of the link, of its bucket
//! and of the accounts hold. Non-goals: resumable uploads themselves (`tus`).

pub(super) mod form_html;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use catalog::{AskName, EventKind, LinkState, StoredAmount, UploadParams};
use engine::{Batch, ObjectKey};
use http::request::Parts;
use http::{Method, Request, StatusCode};
use protocol::error::ApiError;
use protocol::multipart::{FormFiles, PartHead};
use protocol::request_body::BodyLimits;
use protocol::response_headers::allow_no_origin;
use service::admission::charge;
use service::auth::anonymous_actor;
use service::link_access::creator_and_bucket;
use service::link_uploads::{
    LinkVisitor, UPLOADED_BY, attributes_of, audit_link_upload, reserve_in_link, uploader_name,
};
use service::own_pages::RequestOrigin;
use service::path_params::UrlToken;
use service::rate_limit::RateClass;
use service::request_context::Path;
use service::state::AppState;
use service::upload::{
    StagedFile, UploadOptions, UploadTarget, receive, receive_part, resolve_keys, store_files,
};
use usage::task::run_to_completion;

use self::form_html::FormPage;
use super::shared_pages::html::{Notice, size};
use super::shared_pages::{OpenLink, Refusal, finished, open_upload};
use super::tus::{self, Uploader};

/// Longest name in a form: 100 characters of up to four bytes.
const NAME_BYTES_MAX: usize = 400;

/// Returns the page of a link that requests files.
pub(super) fn form_page(app: &AppState, open: &OpenLink) -> Response {
    form_of(app, open, |page| page.form(StatusCode::OK, None))
}

fn form_of(
    app: &AppState,
    open: &OpenLink,
    show: impl FnOnce(FormPage<'_>) -> Response,
) -> Response {
    let link = &open.link;
    let Some(rules) = &link.upload else { return Notice::FileNotFound.page() };
    let bucket = rules.restrict(&open.bucket);
    let mut shown = rules.clone();
    (shown.file_bytes_max, shown.allowed_types) = (bucket.file_bytes_max, bucket.allowed_types);
    show(FormPage {
        action: format!("{}/u", open.path),
        resumable: Some(format!("{}/tus", open.path)),
        again: Some(&open.path),
        // The name of the folder would reveal its path.
        title: if link.title.is_empty() { "Upload files" } else { &link.title },
        message: &link.message,
        expires_ms: link.expires_ms,
        host: app.public_url.host().unwrap_or_default(),
        preview_base: open.may_be_previewed().then_some(app.public_url.as_str()),
        rest: link.uploads.rest(rules),
        rules: shown,
        nonce: app.rng.uuid().simple().to_string(),
    })
}

/// Uploads the files of the form of a link that requests files.
#[utoipa::path(
    post,
    path = "/-/s/{token}/u",
    operation_id = "uploadToLink",
    tag = "Links",
    security(()),
    params(("token" = String, Path, description = "Secret of the link.")),
    request_body(content = FormFiles, content_type = "multipart/form-data"),
    responses(
        (status = OK, description = "All files are stored.", body = String, content_type = "text/html; charset=utf-8"),
        (status = BAD_REQUEST, description = "No file, or no name.", body = String, content_type = "text/html; charset=utf-8"),
        (status = UNAUTHORIZED, description = "Page that asks for the password.", body = String, content_type = "text/html; charset=utf-8"),
        (status = FORBIDDEN, description = "`cross_site`."),
        (status = NOT_FOUND, description = "Unknown link.", body = String, content_type = "text/html; charset=utf-8"),
        (status = CONFLICT, description = "The files exceed the limits of the link.", body = String, content_type = "text/html; charset=utf-8"),
        (status = GONE, description = "The link expired or was ended.", body = String, content_type = "text/html; charset=utf-8"),
    )
)]
pub async fn upload_form(
    State(app): State<AppState>,
    Path(UrlToken(secret)): Path<UrlToken>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    finished(form_upload(&app, &secret, request).await)
}

async fn form_upload(
    app: &AppState,
    secret: &str,
    request: Request<Body>,
) -> Result<Response, Refusal> {
    let (head, body) = request.into_parts();
    let open = open_for_change(app, secret, &head, false)?;
    let uploader = uploader(app, &open, &head)?;
    charge(app, RateClass::Upload, &uploader.caller)?;
    let form = FormFiles::open(&head.headers, body, BodyLimits::new(app.body_bytes_max())).await;
    let stored = match form {
        Ok(form) => store_form_files(app, &open, &uploader, form).await,
        Err(error) => Err(error),
    };
    match stored {
        Ok(count) => Ok(form_of(app, &open, |page| page.thanks(count))),
        Err(_) if open.link.state(app.clock.unix_ms()) == LinkState::UsedUp => {
            Err(Notice::Full.into())
        }
        Err(error) => {
            let rules = open.link.upload.as_ref().map(|rules| rules.restrict(&open.bucket));
            let limit = rules.and_then(|bucket| bucket.file_bytes_max);
            let shown = message_of(&error, limit).ok_or(error.clone())?;
            Ok(form_of(app, &open, |page| page.form(error.status(), Some(&shown))))
        }
    }
}

/// Receives and stores the files of a form, all or none. Returns their number.
async fn store_form_files(
    app: &AppState,
    open: &OpenLink,
    uploader: &Uploader,
    form: FormFiles,
) -> Result<usize, ApiError> {
    let rules = open.link.upload.as_ref().ok_or_else(ApiError::shared_link_not_found)?;
    let place = open.link.places().into_iter().next().ok_or_else(ApiError::file_not_found)?;
    let target = UploadTarget::exact(Arc::new(rules.restrict(&open.bucket)), place);
    let (name, files) = receive_form(app, rules.ask_name, &target, form).await?;
    let name = uploader_name(rules.ask_name, name.as_deref())?;
    let attributes = attributes_of(name.clone());
    let files: Vec<_> =
        files.into_iter().map(|file| file.with_attributes(attributes.clone())).collect();
    let keys = resolve_keys(app, &target, UploadParams::NONE.naming, &files)?;
    keys.iter().try_for_each(|key| uploader.caller.require_key_access(key))?;
    let (app, uploader) = (app.clone(), uploader.clone());
    // The reservation becomes the count of stored files even if the client disconnects.
    run_to_completion(async move { store(&app, &uploader, &target, files, &keys, name).await })
        .await
}

async fn store(
    app: &AppState,
    uploader: &Uploader,
    target: &UploadTarget,
    files: Vec<StagedFile>,
    keys: &[ObjectKey],
    name: Option<String>,
) -> Result<usize, ApiError> {
    let visitor = uploader.link.as_ref().ok_or_else(ApiError::shared_link_not_found)?;
    let bytes = files.iter().map(|file| file.staged.bytes()).sum();
    let amount = StoredAmount { objects: files.len() as u64, bytes };
    let reservation = reserve_in_link(app, &visitor.link, amount)?;
    let along = reservation.record(Batch::new(), app.rng.uuid())?;
    let actor = visitor.actor.clone();
    let options = UploadOptions::new(UploadParams::NONE, EventKind::CreatedByPost, actor);
    let stored = store_files(app, &target.bucket, &options, along, files, keys).await?;
    reservation.settle();
    let keys: Vec<_> = stored.iter().map(|file| file.object.name().key.clone()).collect();
    let count = keys.len();
    audit_link_upload(app, visitor, keys, name).await;
    Ok(count)
}

/// Receives the name, which is the first part of a form if the link asks for it, and the files.
async fn receive_form(
    app: &AppState,
    ask: AskName,
    target: &UploadTarget,
    mut form: FormFiles,
) -> Result<(Option<String>, Vec<StagedFile>), ApiError> {
    let (mut name, mut files) = (None, Vec::new());
    let first = if ask == AskName::No { None } else { form.next_part().await? };
    match first {
        Some(part) if part.is_file() => {
            let PartHead { file_name, declared_type, .. } = part;
            let mut check = |_: &[u8]| Ok(());
            let (bucket, check) = (&target.bucket, &mut check);
            let file = receive_part(app, bucket, declared_type, &mut form, check).await?;
            files.push(file.with_client_name(file_name));
        }
        Some(part) if part.field_name.as_deref() == Some(UPLOADED_BY) => {
            name = Some(receive_name(&mut form).await?);
        }
        _ => {}
    }
    match receive(app, target, form).await {
        Ok(more) => files.extend(more),
        Err(error) if error.code() == "no_file" && !files.is_empty() => {}
        Err(error) => return Err(error),
    }
    Ok((name, files))
}

async fn receive_name(form: &mut FormFiles) -> Result<String, ApiError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = form.part_chunk().await? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > NAME_BYTES_MAX {
            return Err(ApiError::bad_parameter(UPLOADED_BY, "is too long"));
        }
    }
    String::from_utf8(bytes).map_err(|_| ApiError::bad_parameter(UPLOADED_BY, "must be UTF-8"))
}

/// Creates a resumable upload to a link that requests files. The destination is the folder of the link.
#[utoipa::path(
    post,
    path = "/-/s/{token}/tus",
    operation_id = "tusCreateInLink",
    tag = "Links",
    security(()),
    params(
        ("token" = String, Path, description = "Secret of the link."),
        ("Upload-Length" = u64, Header, description = "Total size of the file in bytes."),
        ("Upload-Metadata" = Option<String>, Header, description = "`filename`, `filetype` and `uploadedBy`."),
    ),
    responses(
        (status = CREATED, description = "Upload created."),
        (status = UNAUTHORIZED, description = "`link_locked`."),
        (status = FORBIDDEN, description = "`cross_site`."),
        (status = NOT_FOUND, description = "`link_not_found`."),
        (status = CONFLICT, description = "`link_full`."),
        (status = GONE, description = "`link_expired`."),
    )
)]
pub async fn tus_create(
    State(app): State<AppState>,
    Path(UrlToken(secret)): Path<UrlToken>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let (head, body) = request.into_parts();
    let open = open_for_change(&app, &secret, &head, false).map_err(Refusal::into_error)?;
    let uploader = uploader(&app, &open, &head)?;
    charge(&app, RateClass::Upload, &uploader.caller)?;
    let request = Request::from_parts(head, body);
    same_origin_only(tus::create_for_link(&app, &uploader, &open.link, request).await)
}

/// Returns the offset of a resumable upload to a link.
#[utoipa::path(
    head,
    path = "/-/s/{token}/tus/{id}",
    operation_id = "tusStateInLink",
    tag = "Links",
    security(()),
    params(
        ("token" = String, Path, description = "Secret of the link."),
        ("id" = String, Path, description = "Id of the upload."),
    ),
    responses((status = OK, description = "Upload offset."))
)]
pub async fn tus_state(
    State(app): State<AppState>,
    Path((UrlToken(secret), id)): Path<(UrlToken, String)>,
    head: Parts,
) -> Result<Response, ApiError> {
    let uploader = begun_uploader(&app, &secret, &head)?;
    same_origin_only(tus::state_of(&app, &uploader, &id, &head.headers).await)
}

/// Appends bytes to a resumable upload to a link.
#[utoipa::path(
    patch,
    path = "/-/s/{token}/tus/{id}",
    operation_id = "tusAppendInLink",
    tag = "Links",
    security(()),
    params(
        ("token" = String, Path, description = "Secret of the link."),
        ("id" = String, Path, description = "Id of the upload."),
        ("Upload-Offset" = u64, Header, description = "Offset of the body in the file, in bytes."),
    ),
    responses((status = NO_CONTENT, description = "Bytes stored durably."))
)]
pub async fn tus_append(
    State(app): State<AppState>,
    Path((UrlToken(secret), id)): Path<(UrlToken, String)>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let (head, body) = request.into_parts();
    let uploader = begun_uploader(&app, &secret, &head)?;
    let request = Request::from_parts(head, body);
    same_origin_only(tus::append_to(&app, &uploader, &id, request).await)
}

/// Terminates a resumable upload to a link.
#[utoipa::path(
    delete,
    path = "/-/s/{token}/tus/{id}",
    operation_id = "tusTerminateInLink",
    tag = "Links",
    security(()),
    params(
        ("token" = String, Path, description = "Secret of the link."),
        ("id" = String, Path, description = "Id of the upload."),
    ),
    responses((status = NO_CONTENT, description = "Upload deleted."))
)]
pub async fn tus_terminate(
    State(app): State<AppState>,
    Path((UrlToken(secret), id)): Path<(UrlToken, String)>,
    head: Parts,
) -> Result<Response, ApiError> {
    let uploader = begun_uploader(&app, &secret, &head)?;
    same_origin_only(tus::end(&app, &uploader, &id, &head.headers).await)
}

fn begun_uploader(app: &AppState, secret: &str, head: &Parts) -> Result<Uploader, ApiError> {
    let open = open_for_change(app, secret, head, true).map_err(Refusal::into_error)?;
    uploader(app, &open, head)
}

/// Opens a link that requests files, for a request that does not come from another site.
fn open_for_change(
    app: &AppState,
    secret: &str,
    head: &Parts,
    is_begun: bool,
) -> Result<OpenLink, Refusal> {
    let method = if head.method == Method::HEAD { &Method::POST } else { &head.method };
    if RequestOrigin::from_headers(method, &head.headers, &head.uri) == RequestOrigin::CrossSite {
        return Err(ApiError::cross_site().into());
    }
    let open = open_upload(app, secret, head, is_begun)?;
    open.attribute(app, head);
    Ok(open)
}

/// Returns the client of a link, with the rights of the link's creator.
fn uploader(app: &AppState, open: &OpenLink, head: &Parts) -> Result<Uploader, ApiError> {
    let (caller, _) = creator_and_bucket(&app.catalog, &open.link)?;
    caller.require_plan(app.endpoint())?;
    let visitor = LinkVisitor { link: open.link.clone(), actor: anonymous_actor(head) };
    Ok(Uploader { caller, link: Some(visitor) })
}

/// Returns the response of tus without what only its own clients may know.
fn same_origin_only(result: Result<Response, ApiError>) -> Result<Response, ApiError> {
    let mut response = result.map_err(without_names)?;
    allow_no_origin(response.headers_mut());
    Ok(response)
}

/// Replaces an error that names the bucket, an account or a file.
fn without_names(error: ApiError) -> ApiError {
    match error.code() {
        "quota_exceeded" => {
            ApiError::new(error.status(), "quota_exceeded", "There is no space for this file")
        }
        "bucket_not_found" | "forbidden" | "account_suspended" | "token_revoked" => {
            ApiError::link_expired("ask the person who sent it for a new one")
        }
        _ => error,
    }
}

/// Returns the text about a refused form; `None` if the page cannot say it.
pub(super) fn message_of(error: &ApiError, file_bytes_max: Option<u64>) -> Option<String> {
    let text = match error.code() {
        "file_too_large" => match file_bytes_max {
            Some(limit) => format!("Too large (limit {})", size(limit)),
            None => "Too large".to_owned(),
        },
        "type_not_allowed" => "Type not accepted".to_owned(),
        "no_file" => "Choose at least one file.".to_owned(),
        "link_full" => "The files are more than this request accepts.".to_owned(),
        "quota_exceeded" | "no_space" => "There is no space for these files.".to_owned(),
        "too_many_files" => "Choose at most 100 files at a time.".to_owned(),
        "rate_limited" => "Too many uploads. Try again later.".to_owned(),
        "bad_parameter" => "Enter your name, with up to 100 characters.".to_owned(),
        _ => return None,
    };
    Some(text)
}
