//! Presigned uploads: `GET /api/presigned-url` issues a token, which `token_pages` uses up; the
//! earlier `GET /{bucket}/presigned/{*path}` issues a URL for `presigned_put`.
//!
//! Guarantees: issuing writes nothing; exactly one upload succeeds with a token, and a failed one leaves it valid; no
//! file gets a key outside the token's restriction. Non-goals: encoding and signing of tokens.

use axum::body::Body;
use axum::extract::State;
use catalog::{Grant, Purpose, Scope, TokenId, UploadParams};
use engine::ObjectName;
use http::Request;
use protocol::error::ApiError;
use protocol::file_name::{ConflictRule, Naming};
use protocol::object_path::{ObjectPath, check_object_path_writable};
use protocol::public_url::public_url;
use protocol::query::Query;
use protocol::reserved_paths::TOKEN_PATH;
use service::admission::charge;
use service::auth::Caller;
use service::limits;
use service::object_options::ObjectOptions;
use service::parameters::{Flag, ObjectPathParameters, UploadParameters};
use service::rate_limit::{RateClass, RateLimitGrant};
use service::replies::{PresignedUrlReply, Success, TokenReply, UploadReply};
use service::request_context::{RoutedContext, Target};
use service::state::AppState;
use service::upload::UploadTarget;
use service::upload::{store_form, thumbnail_param, upload_params};

const PATH: &[&str] = &["path"];
const BUCKET: &[&str] = &["bucketName", "bucket"];
const EXPIRY: &[&str] = &["expiresAt", "expiresIn", "ttl"];

/// Issues a one-time upload token for clients without an API key.
#[utoipa::path(
    get,
    path = "/api/presigned-url",
    operation_id = "presignToken",
    tag = "Presigned uploads",
    params(
        ("path" = Option<String>, Query, description = "`BUCKET/FOLDER/` or `BUCKET/FILE`. The bucket is optional if \
            `bucketName` or the API key determines it."),
        ("bucketName" = Option<String>, Query, description = "Bucket to which `path` is relative. Alias: `bucket`."),
        ("expiresAt" = Option<f64>, Query, description = "Lifetime in seconds, or expiry as Unix time in seconds or \
            milliseconds; clamped to 1 to 3600 seconds. Aliases: `expiresIn`, `ttl`."),
        UploadParameters,
    ),
    responses(
        (status = OK, body = TokenReply),
        (status = NOT_FOUND, description = "`bucket_not_found`."),
    )
)]
pub async fn presign_token(
    State(app): State<AppState>,
    caller: Caller,
    query: Query,
) -> Result<Success<TokenReply>, ApiError> {
    let target = target_param(&caller, &query)?;
    let params = upload_params(&query)?;
    let issued = issue(&app, &caller, &query, target, Purpose::Form, params)?;
    let url = format!("{}{TOKEN_PATH}{}", app.public_url.as_str(), issued.text);
    let expires_ms = issued.grant.expires_ms;
    Ok(Success(TokenReply::new(url, issued.text, issued.expires_in, expires_ms)))
}

/// Issues a presigned PUT URL for one file (legacy form).
#[utoipa::path(
    get,
    path = "/{bucket}/presigned/{path}",
    operation_id = "presignAddress",
    tag = "Presigned uploads",
    params(
        ObjectPathParameters,
        ("expiresIn" = Option<f64>, Query, description = "Lifetime in seconds, or expiry as Unix time in seconds or \
            milliseconds; clamped to 1 to 3600 seconds. Aliases: `expiresAt`, `ttl`."),
        ("thumbnail" = Option<Flag>, Query, description = "Whether to create thumbnails of images; default: the \
            setting of the bucket."),
    ),
    responses((status = OK, body = PresignedUrlReply))
)]
pub async fn presign_address(
    State(app): State<AppState>,
    caller: Caller,
    Target(target): Target,
    query: Query,
) -> Result<Success<PresignedUrlReply>, ApiError> {
    let Some(name) = target.object() else {
        return Err(ApiError::bad_path("a presigned URL requires a file path, not a folder"));
    };
    let params = UploadParams {
        naming: Naming::ClientName,
        rule: ConflictRule::Overwrite,
        thumbnail: thumbnail_param(&query)?,
    };
    let issued = issue(&app, &caller, &query, target, Purpose::Raw, params)?;
    let url = format!("{}?token={}", public_url(app.public_url.as_str(), &name), issued.text);
    let ObjectName { bucket, key } = name;
    let expires_ms = issued.grant.expires_ms;
    let (bucket, key) = (bucket.as_str(), key.as_str());
    Ok(Success(PresignedUrlReply::new(url, bucket, key, issued.expires_in, expires_ms)))
}

/// Upload with a token: what the rate limit granted, and the result.
pub(super) struct TokenUpload {
    pub(super) granted: RateLimitGrant,
    pub(super) stored: Result<Success<UploadReply>, ApiError>,
}

/// Stores the files of a form, and uses up the token.
pub(super) async fn redeem(
    app: &AppState,
    token: &str,
    query: &Query,
    request: Request<Body>,
) -> Result<TokenUpload, ApiError> {
    let grant = verify_grant(app, token, Purpose::Form)?;
    // Held until this request ends, whatever its outcome.
    let _in_use = app.tokens_in_use.claim(grant.id).ok_or_else(ApiError::token_in_use)?;
    require_unused(app, &grant)?;
    let (issuer, destination) = issuer_and_destination(app, &grant)?;
    // From here on the account that is charged for this upload is known.
    let granted = charge(app, RateClass::Upload, &issuer)?;
    RoutedContext::attribute(request.extensions(), &destination.bucket, app.clock.unix_ms());
    let issuer = issuer.with_request(request.extensions());
    let along = grant.redeem().map_err(internal)?;
    let options = ObjectOptions::from_query(query, app.clock.unix_ms());
    let stored = async {
        let params = (grant.params, options?);
        store_form(app, &issuer, &destination, params, along, request).await
    };
    Ok(TokenUpload { granted, stored: stored.await })
}

/// Checks that no upload with a token has succeeded.
pub(super) fn require_unused(app: &AppState, grant: &Grant) -> Result<(), ApiError> {
    match app.catalog.tokens().is_redeemed(grant).map_err(internal)? {
        true => Err(ApiError::token_used()),
        false => Ok(()),
    }
}

/// Verifies a grant: signed by this server, for this purpose, and not expired.
pub fn verify_grant(app: &AppState, text: &str, purpose: Purpose) -> Result<Grant, ApiError> {
    let grant = app.catalog.tokens().verify(text).filter(|grant| grant.purpose == purpose);
    let grant = grant.ok_or_else(ApiError::token_not_found)?;
    if grant.is_expired(app.clock.unix_ms()) {
        return Err(ApiError::token_expired());
    }
    Ok(grant)
}

/// Returns the issuer of a grant, and the destination of its files. A grant has the current rights of its issuer.
pub fn issuer_and_destination(
    app: &AppState,
    grant: &Grant,
) -> Result<(Caller, UploadTarget), ApiError> {
    let issuer = Caller::from_issuer(&app.catalog, &grant.issuer);
    let issuer = issuer.ok_or_else(ApiError::token_revoked)?;
    let place = grant.path.clone();
    let reach = issuer.bucket(&app.catalog, &grant.bucket, Scope::Presign);
    let reach = reach.and_then(|bucket| issuer.require_path_access(&place).map(|()| bucket));
    let bucket = reach.map_err(|why| ApiError::token_revoked().with_log(why.to_string()))?;
    issuer.require_plan(app.endpoint())?;
    Ok((issuer, UploadTarget::exact(bucket, place)))
}

struct IssuedGrant {
    grant: Grant,
    text: String,
    expires_in: u64,
}

fn issue(
    app: &AppState,
    caller: &Caller,
    query: &Query,
    target: ObjectPath,
    purpose: Purpose,
    params: UploadParams,
) -> Result<IssuedGrant, ApiError> {
    caller.bucket(&app.catalog, &target.bucket, Scope::Presign)?;
    caller.require_path_access(&target.place)?;
    check_object_path_writable(&target.place)?;
    let now_ms = app.clock.unix_ms();
    let expires_in = lifetime_param(query, now_ms)?;
    let grant = Grant {
        id: TokenId::issue(&*app.rng),
        purpose,
        bucket: target.bucket,
        path: target.place,
        params,
        issuer: caller.issuer(),
        expires_ms: now_ms.saturating_add(1_000 * expires_in),
    };
    // Without a signing key, which only happens if the store has never accepted a write.
    let text = app.catalog.tokens().sign(&grant).ok_or_else(|| ApiError::overloaded(60))?;
    Ok(IssuedGrant { grant, text, expires_in })
}

/// Parses the path that a token is requested for: `path` is `<bucket>/<rest>`, or `<rest>` if the bucket is given
/// separately.
fn target_param(caller: &Caller, query: &Query) -> Result<ObjectPath, ApiError> {
    let limits = caller.limits();
    let path = query.string_allow_empty(PATH)?;
    let path = path.as_deref().map(|path| path.strip_prefix('/').unwrap_or(path));
    // Without a path: everything that the key may access.
    let all = limits.prefix.as_str();
    if let Some(bucket) = query.string(BUCKET)? {
        return ObjectPath::from_parts(&bucket, path.unwrap_or(all));
    }
    match (&limits.bucket, path) {
        (Some(bucket), None) => ObjectPath::from_parts(bucket.as_str(), all),
        (Some(bucket), Some(path)) => {
            let (first, rest) = path.split_once('/').unwrap_or((path, ""));
            let rest = if first == bucket.as_str() { rest } else { path };
            ObjectPath::from_parts(bucket.as_str(), rest)
        }
        (None, Some(path)) if !path.is_empty() => {
            let (bucket, rest) = path.split_once('/').unwrap_or((path, ""));
            ObjectPath::from_parts(bucket, rest)
        }
        (None, _) => {
            Err(ApiError::bad_parameter("path", "must be <bucket>/<folder>/ or <bucket>/<file>"))
        }
    }
}

/// Parses the lifetime of a grant: seconds, or an expiry in seconds or milliseconds since 1970.
fn lifetime_param(query: &Query, now_ms: u64) -> Result<u64, ApiError> {
    let Some(text) = query.string(EXPIRY)? else { return Ok(limits::PRESIGN_SECONDS_DEFAULT) };
    let number: f64 = text.trim().parse().unwrap_or(f64::NAN);
    if !number.is_finite() {
        return Err(ApiError::bad_parameter("expiresAt", "must be a number"));
    }
    let seconds = if number <= crate::limits::PRESIGN_RELATIVE_SECONDS_MAX {
        number
    } else if number < crate::limits::PRESIGN_UNIX_MS_MIN {
        number - now_ms as f64 / 1_000.0
    } else {
        (number - now_ms as f64) / 1_000.0
    };
    Ok(seconds.clamp(1.0, limits::PRESIGN_SECONDS_MAX as f64) as u64)
}

fn internal(error: catalog::CatalogError) -> ApiError {
    match error {
        catalog::CatalogError::Store(error) => error.into(),
        other => ApiError::internal(other.to_string()),
    }
}
