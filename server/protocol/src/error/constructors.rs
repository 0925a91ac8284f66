//! Constructors of all client errors, one function each: status, code, message.
//!
//! Non-goals: conversion to responses.

use std::borrow::Cow;
use std::fmt;

use http::StatusCode;
use http::header::{self, HeaderName};

use super::ApiError;

/// Code of an invalid credential.
pub const INVALID_API_KEY: &str = "invalid_api_key";
/// Code of a scan that the log is too large for.
pub const LOG_TOO_LARGE: &str = "log_too_large";

/// Code of an ended session.
pub const SESSION_ENDED: &str = "session_ended";

/// Code of a missing file.
pub(super) const FILE_NOT_FOUND: &str = "file_not_found";
/// Code of a missing bucket.
pub(super) const BUCKET_NOT_FOUND: &str = "bucket_not_found";
/// Code of an upload that exceeds a quota.
pub(super) const QUOTA_EXCEEDED: &str = "quota_exceeded";

const QUOTA_PROBLEM: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";

impl ApiError {
    /// Returns 400 with a message.
    pub fn bad_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }

    /// Returns 400 for an invalid parameter, with the valid form.
    pub fn bad_parameter(name: &str, must: &str) -> Self {
        let message = format!("Parameter \"{name}\" {must}");
        Self::new(StatusCode::BAD_REQUEST, "bad_parameter", message).with("parameter", name)
    }

    /// Returns 400 for a path that violates a rule.
    pub fn bad_path(rule: impl fmt::Display) -> Self {
        let message = format!("Invalid path: {rule}");
        Self::new(StatusCode::BAD_REQUEST, "bad_path", message)
    }

    /// Returns 400 for a form without a file.
    pub fn no_file() -> Self {
        Self::new(StatusCode::BAD_REQUEST, "no_file", "No file provided")
    }

    /// Returns 401 for a request without a credential.
    pub fn missing_api_key() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "missing_api_key",
            "Missing API key: send it as `Authorization: Bearer <key>`",
        )
        .with_header(header::WWW_AUTHENTICATE, "Bearer")
    }

    /// Returns 401 for an unknown, revoked or expired credential, without distinguishing these.
    pub fn invalid_api_key() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, INVALID_API_KEY, "Invalid, revoked or expired API key")
            .with_header(header::WWW_AUTHENTICATE, "Bearer error=\"invalid_token\"")
    }

    /// Returns 401 for a wrong metrics token.
    pub fn wrong_metrics_token() -> Self {
        let message = "Missing or invalid metrics token: send `metrics_token` as a bearer token";
        Self::new(StatusCode::UNAUTHORIZED, "wrong_metrics_token", message)
            .with_header(header::WWW_AUTHENTICATE, "Bearer")
    }

    /// Returns 401 for the cookie of an ended or unknown session.
    pub fn session_ended() -> Self {
        let message = "Session expired: sign in again";
        Self::new(StatusCode::UNAUTHORIZED, SESSION_ENDED, message)
            .with_header(header::WWW_AUTHENTICATE, "Bearer error=\"invalid_token\"")
    }

    /// Returns 401 for an unknown name or a wrong password, without distinguishing these.
    pub fn wrong_password() -> Self {
        let message = "Wrong name or password";
        Self::new(StatusCode::UNAUTHORIZED, "wrong_password", message)
            .with_header(header::WWW_AUTHENTICATE, "Bearer")
    }

    /// Returns 403 for a cross-site request, for which no session is honored.
    pub fn cross_site() -> Self {
        let message = "Cross-site request blocked: session cookies are accepted from this \
            server's pages only";
        Self::new(StatusCode::FORBIDDEN, "cross_site", message)
    }

    /// Returns 400 for an OPTIONS request that is no preflight.
    pub fn incomplete_preflight() -> Self {
        Self::bad_request(
            "A preflight request requires the headers Origin and Access-Control-Request-Method",
        )
    }

    /// Returns 421 for a host name that is not the dashboard's.
    pub fn wrong_host() -> Self {
        let message = "Unknown host name: open the dashboard at `public_url`, or add this host to \
            `dashboard_hosts`";
        Self::new(StatusCode::MISDIRECTED_REQUEST, "wrong_host", message)
    }

    /// Returns 404 for an unknown, used or replaced link.
    pub fn link_not_found() -> Self {
        let message = "Invalid link: it was already used or replaced by a newer one";
        Self::new(StatusCode::NOT_FOUND, "link_not_found", message)
    }

    /// Returns 404 for an unknown shared link.
    pub fn shared_link_not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "link_not_found", "The link does not exist")
    }

    /// Returns 410 for an expired link.
    pub fn link_expired(advice: &'static str) -> Self {
        let message = format!("The link has expired: {advice}");
        Self::new(StatusCode::GONE, "link_expired", message)
    }

    /// Returns 401 for a shared link whose password was not entered.
    pub fn link_locked() -> Self {
        let message = "The link is protected by a password: open its page and enter it";
        Self::new(StatusCode::UNAUTHORIZED, "link_locked", message)
    }

    /// Returns 409 for a link that requests files, at one of its limits.
    pub fn link_full() -> Self {
        let message = "The files exceed the limits of the link";
        Self::new(StatusCode::CONFLICT, "link_full", message)
    }

    /// Returns 410 if an operator already has a password.
    pub fn set_up_done() -> Self {
        let message =
            "This server is already set up: sign in, or ask the operator for an invitation";
        Self::new(StatusCode::GONE, "set_up_done", message)
    }

    /// Returns 404 for an unknown session of the account.
    pub fn session_not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "session_not_found", "Session not found")
    }

    /// Returns 403 for an authenticated caller without the permission.
    pub fn forbidden(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    /// Returns 403 for a suspended account.
    pub fn account_suspended() -> Self {
        Self::new(StatusCode::FORBIDDEN, "account_suspended", "The account is suspended")
    }

    /// Returns 403 for an account whose plan excludes the premium endpoint.
    pub fn plan_required() -> Self {
        let message = "This endpoint requires the Pro or Business plan";
        Self::new(StatusCode::FORBIDDEN, "plan_required", message)
    }

    /// Returns 404 for a webhook that does not exist, or that the caller may not see.
    pub fn webhook_not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "webhook_not_found", "Webhook not found")
    }

    /// Returns 404 for a bucket that does not exist, or that the caller may not see.
    pub fn bucket_not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, BUCKET_NOT_FOUND, "Bucket not found")
    }

    /// Returns 404 for a missing file.
    pub fn file_not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, FILE_NOT_FOUND, "File not found")
    }

    /// Returns 409 for a name that is taken and was not to be replaced.
    pub fn file_exists() -> Self {
        let message = "A file with this name already exists";
        Self::new(StatusCode::CONFLICT, "already_exists", message)
    }

    /// Returns 404 for a version that cannot be restored.
    pub fn version_not_found(why: impl fmt::Display) -> Self {
        let message = format!("The file cannot be restored: {why}");
        Self::new(StatusCode::NOT_FOUND, "version_not_found", message)
    }

    /// Returns 503 for a log that is too large for one request.
    pub fn log_too_large() -> Self {
        let message = "The version history is too long to search in one request: pass the `lsn` \
            of the version, or start an `undeleteFolder` job";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, LOG_TOO_LARGE, message)
    }

    /// Returns 404 for a job that does not exist, or that the caller may not see.
    pub fn job_not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "job_not_found", "Job not found")
    }

    /// Returns 409 for a job that has ended.
    pub fn job_ended() -> Self {
        Self::new(StatusCode::CONFLICT, "job_ended", "The job has already ended")
    }

    /// Returns 429 for an account at its limit of unfinished jobs.
    pub fn too_many_jobs(bound: usize) -> Self {
        let message = format!(
            "Job limit reached: {bound} jobs are active; wait for one to finish or cancel one"
        );
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_jobs", message)
            .with_header(header::RETRY_AFTER, "10")
            .with("retryAfter", 10)
    }

    /// Returns 404 for an organisation that does not exist, or that the caller does not belong to.
    pub fn organisation_not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "organisation_not_found", "Organisation not found")
    }

    /// Returns 404 for a missing account.
    pub fn account_not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "account_not_found", "Account not found")
    }

    /// Returns 404 for an API key that does not exist, or that the caller may not see.
    pub fn api_key_not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "api_key_not_found", "API key not found")
    }

    /// Returns 404 for an unknown path.
    pub fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", "Not found")
    }

    /// Returns 404 for a token that was not issued here, or whose signing key was deleted long ago.
    pub fn token_not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "token_not_found", "The upload token does not exist")
    }

    /// Returns 409 for a token that another upload is using.
    pub fn token_in_use() -> Self {
        let message = "Another upload with this token is in progress";
        Self::new(StatusCode::CONFLICT, "token_in_use", message)
    }

    /// Returns 410 for an expired token.
    pub fn token_expired() -> Self {
        Self::new(StatusCode::GONE, "token_expired", "The upload token has expired")
    }

    /// Returns 410 for a used token.
    pub fn token_used() -> Self {
        Self::new(StatusCode::GONE, "token_used", "The upload token has already been used")
    }

    /// Returns 410 for a token whose issuer no longer has the rights for it. The holder does not get the reason.
    pub fn token_revoked() -> Self {
        Self::new(StatusCode::GONE, "token_revoked", "The token was revoked")
    }

    /// Returns 409 with a message.
    pub fn conflict(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", message)
    }

    /// Returns 405 with the allowed methods, such as `GET, HEAD`.
    pub fn method_not_allowed(allow: &str) -> Self {
        let message = "Method not allowed for this URL; see the `Allow` header";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
            .with_header(header::ALLOW, allow)
    }

    /// Returns 405 for a PUT to a URL that is not presigned. The message names the request that uploads with an API
    /// key.
    pub fn put_needs_token(allow: &str) -> Self {
        let message = "PUT is for presigned URLs only. With an API key: curl -H \"Authorization: \
            Bearer KEY\" -F file=@FILE URL";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
            .with_header(header::ALLOW, allow)
    }

    /// Returns 408 for a request that was too slow. The connection is closed.
    pub fn too_slow() -> Self {
        let message = "Request body timed out: less than 4,000 bytes in 5 seconds";
        Self::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", message)
            .with_header(header::CONNECTION, "close")
    }

    /// Returns 412 for a failed precondition of the request.
    pub fn precondition_failed() -> Self {
        let message = "Precondition failed";
        Self::new(StatusCode::PRECONDITION_FAILED, "precondition_failed", message)
    }

    /// Returns 413 with the limit in bytes.
    pub fn file_too_large(limit: u64) -> Self {
        let message = format!("Request body too large: the limit is {limit} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "file_too_large", message).with("limit", limit)
    }

    /// Returns 413 for a file over the size limit of its bucket.
    pub fn file_over_limit(limit: u64) -> Self {
        let message = format!("File too large: the bucket's limit is {limit} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "file_too_large", message).with("limit", limit)
    }

    /// Returns 400 for attributes that do not fit in the record of an object.
    pub fn metadata_too_large() -> Self {
        Self::bad_parameter("metadata", "and the headers to store exceed 2,048 bytes together")
    }

    /// Returns 415 for a media type that the bucket does not accept.
    pub fn type_not_allowed(content_type: &str) -> Self {
        let message = format!("Content type {content_type} is not allowed in this bucket");
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "type_not_allowed", message)
            .with("contentType", content_type)
    }

    /// Returns 415 for a body that is not JSON.
    pub fn not_json() -> Self {
        let message = "Content-Type must be application/json";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message)
    }

    /// Returns 422 for a file that claims to be an image and is corrupt.
    pub fn undecodable(why: &str) -> Self {
        let message = format!("The image cannot be decoded: {why}");
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "undecodable", message)
    }

    /// Returns 507 for an upload that exceeds a quota of its owner, `account` or `bucket`, for a measure, `bytes` or
    /// `files`.
    pub fn quota_exceeded(owner: &str, measure: &str, limit: u64, used: u64) -> Self {
        let message = format!("Quota exceeded: the {owner} is limited to {limit} {measure}");
        Self::new(StatusCode::INSUFFICIENT_STORAGE, QUOTA_EXCEEDED, message)
            .with("quota", owner)
            .with("measure", measure)
            .with("limit", limit)
            .with("used", used)
    }

    /// Returns 415 for a body that is not a multipart form.
    pub fn not_multipart() -> Self {
        let message = "Only multipart/form-data is accepted";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message)
    }

    /// Returns 416 for an object of `total` bytes.
    pub fn range_not_satisfiable(total: u64) -> Self {
        let message = format!("Range not satisfiable: the file has {total} bytes");
        Self::new(StatusCode::RANGE_NOT_SATISFIABLE, "range_not_satisfiable", message)
            .with("size", total)
            .with_header(header::CONTENT_RANGE, format!("bytes */{total}"))
    }

    /// Returns 429 for an exceeded rate limit, without its `RateLimit` headers.
    pub fn rate_limited(policy: &'static str, retry_after_seconds: u64) -> Self {
        let message = format!("Rate limit exceeded: retry in {retry_after_seconds} s");
        Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", message)
            .with("retryAfter", retry_after_seconds)
            .with_problem("type", QUOTA_PROBLEM)
            .with_problem("violated-policies", vec![policy])
            .with_rate_limit_policy(policy)
            .with_header(header::RETRY_AFTER, retry_after_seconds.to_string())
    }

    /// Returns 400 for a zip archive of too many files.
    pub fn zip_too_large(files_max: usize) -> Self {
        let message =
            format!("A zip archive has at most {files_max} files: choose subfolders instead");
        Self::new(StatusCode::BAD_REQUEST, "zip_too_large", message)
    }

    /// Returns 503 for an overloaded server, with a retry time of at least 1 second.
    pub fn overloaded(retry_after_seconds: u64) -> Self {
        let seconds = retry_after_seconds.max(1);
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", "Server overloaded: retry later")
            .with("retryAfter", seconds)
            .with_header(header::RETRY_AFTER, seconds.to_string())
    }

    /// Returns 500 for an internal error, without details.
    pub fn internal(log: impl Into<String>) -> Self {
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        Self::new(
            status,
            "internal",
            "Internal server error; see the server log under this request id",
        )
        .with_log(log)
    }

    /// Returns 400 for an invalid header, with the valid form.
    pub fn bad_header(name: &str, must: &str) -> Self {
        let message = format!("Header \"{name}\" {must}");
        Self::new(StatusCode::BAD_REQUEST, "bad_header", message).with("header", name)
    }

    /// Returns 412 for an unsupported version of tus.
    pub fn tus_version(version: &str) -> Self {
        let message = format!("Header \"Tus-Resumable\" must be {version}");
        Self::new(StatusCode::PRECONDITION_FAILED, "tus_version", message)
            .with_header(HeaderName::from_static("tus-version"), version)
    }

    /// Returns 415 for a chunk of a resumable upload without its media type.
    pub fn not_a_chunk(content_type: &str) -> Self {
        let message = format!("Content-Type must be {content_type}");
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message)
    }

    /// Returns 404 for an unknown resumable upload of the caller.
    pub fn upload_not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "upload_not_found", "Upload not found")
    }

    /// Returns 410 for an expired resumable upload, or one whose bytes are lost: the client has to start over.
    pub fn upload_expired() -> Self {
        Self::new(StatusCode::GONE, "upload_expired", "The upload has expired: start it again")
    }

    /// Returns 409 for a chunk that does not start at the offset of the upload.
    pub fn wrong_offset(offset: u64) -> Self {
        let message = format!("Offset mismatch: the upload resumes at byte {offset}");
        Self::new(StatusCode::CONFLICT, "wrong_offset", message).with("offset", offset)
    }

    /// Returns 423 for a resumable upload that another request is using.
    pub fn upload_locked() -> Self {
        let message = "The upload is locked by another request: retry";
        Self::new(StatusCode::LOCKED, "upload_locked", message)
    }

    /// Returns 423 for a complete upload that cannot be stored for now.
    pub fn upload_waits(why: &Self) -> Self {
        let message =
            format!("The upload is complete but could not be committed yet: {}", why.message());
        Self::new(StatusCode::LOCKED, "upload_locked", message).with_log(why.to_string())
    }

    /// Returns 429 for an account at its limit of unfinished uploads.
    pub fn too_many_uploads(bound: usize) -> Self {
        let message =
            format!("Upload limit reached: {bound} unfinished uploads; finish or delete some");
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_uploads", message)
            .with_header(header::RETRY_AFTER, "60")
            .with("retryAfter", 60)
    }

    /// Returns 429 for an account at its limit of declared bytes of unfinished uploads.
    pub fn too_many_unfinished_bytes(bound: u64) -> Self {
        let message = format!(
            "Upload limit reached: unfinished uploads of the account may have {bound} bytes; \
            finish or delete some"
        );
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_uploads", message)
            .with_header(header::RETRY_AFTER, "60")
            .with("retryAfter", 60)
    }

    /// Returns 460, a status of tus, for a chunk that does not match its checksum.
    pub fn checksum_mismatch() -> Self {
        let status = StatusCode::from_u16(460).unwrap_or(StatusCode::BAD_REQUEST);
        Self::new(status, "checksum_mismatch", "Checksum mismatch")
    }
}
