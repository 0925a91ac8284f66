//! The refusals that clients meet, one function each: status, code, sentence.
//!
//! Never here: how an error is sent.

use std::borrow::Cow;
use std::fmt;

use http::StatusCode;
use http::header::{self, HeaderName};

use super::ApiError;
use crate::catalog::{Exceeded, QuotaMeasure, QuotaOwner};
use crate::rate_limit::Refused;

/// The code of a credential that does not hold.
pub const INVALID_API_KEY: &str = "invalid_api_key";
/// The code of an answer that would take the whole of a log that is too large.
pub const LOG_TOO_LARGE: &str = "log_too_large";

/// The code of a session that is over.
pub const SESSION_ENDED: &str = "session_ended";

/// The code of an upload that does not fit into a quota.
pub(super) const QUOTA_EXCEEDED: &str = "quota_exceeded";

const QUOTA_PROBLEM: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";

impl ApiError {
    /// 400 with a sentence.
    pub fn bad_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }

    /// 400: a parameter is wrong, and what it must be.
    pub fn bad_parameter(name: &str, must: &str) -> Self {
        let message = format!("Parameter \"{name}\" {must}");
        Self::new(StatusCode::BAD_REQUEST, "bad_parameter", message).with("parameter", name)
    }

    /// 400: a path breaks a rule.
    pub fn bad_path(rule: impl fmt::Display) -> Self {
        let message = format!("Invalid path: {rule}");
        Self::new(StatusCode::BAD_REQUEST, "bad_path", message)
    }

    /// 400: a form without a file.
    pub fn no_file() -> Self {
        Self::new(StatusCode::BAD_REQUEST, "no_file", "No file provided")
    }

    /// 401: no credential.
    pub fn missing_api_key() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "missing_api_key",
            "Missing API key: send it as `Authorization: Bearer <key>`",
        )
        .with_header(header::WWW_AUTHENTICATE, "Bearer")
    }

    /// 401: a credential that is unknown, revoked or expired. Which of them is not said.
    pub fn invalid_api_key() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, INVALID_API_KEY, "Invalid, revoked or expired API key")
            .with_header(header::WWW_AUTHENTICATE, "Bearer error=\"invalid_token\"")
    }

    /// 401: not the token that opens the metrics.
    pub fn wrong_metrics_token() -> Self {
        let message = "Missing or invalid metrics token: send `metrics_token` as a bearer token";
        Self::new(StatusCode::UNAUTHORIZED, "wrong_metrics_token", message)
            .with_header(header::WWW_AUTHENTICATE, "Bearer")
    }

    /// 401: a cookie of a session that has ended, or that was none.
    pub fn session_ended() -> Self {
        let message = "Session expired: sign in again";
        Self::new(StatusCode::UNAUTHORIZED, SESSION_ENDED, message)
            .with_header(header::WWW_AUTHENTICATE, "Bearer error=\"invalid_token\"")
    }

    /// 401: a name that there is not, or another password. Which of them is not said.
    pub fn wrong_password() -> Self {
        let message = "Wrong name or password";
        Self::new(StatusCode::UNAUTHORIZED, "wrong_password", message)
            .with_header(header::WWW_AUTHENTICATE, "Bearer")
    }

    /// 403: the request comes from another site, for which no session counts.
    pub fn cross_site() -> Self {
        let message = "Cross-site request blocked: session cookies are accepted from this \
            server's pages only";
        Self::new(StatusCode::FORBIDDEN, "cross_site", message)
    }

    /// 421: the dashboard does not answer under this name.
    pub fn wrong_host() -> Self {
        let message = "Unknown host name: open the dashboard at `public_url`, or add this host to \
            `dashboard_hosts`";
        Self::new(StatusCode::MISDIRECTED_REQUEST, "wrong_host", message)
    }

    /// 404: a link that was never made here, was used, or that another one took the place of.
    pub fn link_not_found() -> Self {
        let message = "Invalid link: it was already used or replaced by a newer one";
        Self::new(StatusCode::NOT_FOUND, "link_not_found", message)
    }

    /// 410: a link whose time is over.
    pub fn link_expired(advice: &'static str) -> Self {
        let message = format!("The link has expired: {advice}");
        Self::new(StatusCode::GONE, "link_expired", message)
    }

    /// 410: an operator has a password.
    pub fn set_up_done() -> Self {
        let message =
            "This server is already set up: sign in, or ask the operator for an invitation";
        Self::new(StatusCode::GONE, "set_up_done", message)
    }

    /// 404: no such session of the account.
    pub fn session_not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "session_not_found", "Session not found")
    }

    /// 403: the caller is known and may not.
    pub fn forbidden(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    /// 403: the account is suspended.
    pub fn account_suspended() -> Self {
        Self::new(StatusCode::FORBIDDEN, "account_suspended", "The account is suspended")
    }

    /// 403: the premium endpoint is for other plans.
    pub fn plan_required() -> Self {
        let message = "This endpoint requires the Pro or Business plan";
        Self::new(StatusCode::FORBIDDEN, "plan_required", message)
    }

    /// 404: no such webhook, or not one that the caller sees.
    pub fn webhook_not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "webhook_not_found", "Webhook not found")
    }

    /// 404: no such bucket, or none that the caller may see.
    pub fn bucket_not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "bucket_not_found", "Bucket not found")
    }

    /// 404: no such file.
    pub fn file_not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "file_not_found", "File not found")
    }

    /// 409: something has the name, and was not to be replaced.
    pub fn file_exists() -> Self {
        let message = "A file with this name already exists";
        Self::new(StatusCode::CONFLICT, "already_exists", message)
    }

    /// 404: no version that could be brought back.
    pub fn version_not_found(why: impl fmt::Display) -> Self {
        let message = format!("The file cannot be restored: {why}");
        Self::new(StatusCode::NOT_FOUND, "version_not_found", message)
    }

    /// 503: the log is longer than one request may read.
    pub fn log_too_large() -> Self {
        let message = "The version history is too long to search in one request: pass the `lsn` \
            of the version, or start an `undeleteFolder` job";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, LOG_TOO_LARGE, message)
    }

    /// 404: no such job, or none that the caller sees.
    pub fn job_not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "job_not_found", "Job not found")
    }

    /// 409: the job has ended already.
    pub fn job_ended() -> Self {
        Self::new(StatusCode::CONFLICT, "job_ended", "The job has already ended")
    }

    /// 429: the account has as many jobs as it may have at once.
    pub fn too_many_jobs(bound: usize) -> Self {
        let message = format!(
            "Job limit reached: {bound} jobs are active; wait for one to finish or cancel one"
        );
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_jobs", message)
            .with_header(header::RETRY_AFTER, "10")
            .with("retryAfter", 10)
    }

    /// 404: no such organisation, or none that the caller belongs to.
    pub fn organisation_not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "organisation_not_found", "Organisation not found")
    }

    /// 404: no such account.
    pub fn account_not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "account_not_found", "Account not found")
    }

    /// 404: no such API key, or none that the caller may see.
    pub fn api_key_not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "api_key_not_found", "API key not found")
    }

    /// 404: an address that is none of ours.
    pub fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", "Not found")
    }

    /// 404: a token that was never issued here, or whose key to prove it is long gone.
    pub fn token_not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "token_not_found", "The upload token does not exist")
    }

    /// 409: another upload with this token is under way.
    pub fn token_in_use() -> Self {
        let message = "Another upload with this token is in progress";
        Self::new(StatusCode::CONFLICT, "token_in_use", message)
    }

    /// 410: the token's time is over.
    pub fn token_expired() -> Self {
        Self::new(StatusCode::GONE, "token_expired", "The upload token has expired")
    }

    /// 410: the token was used.
    pub fn token_used() -> Self {
        Self::new(StatusCode::GONE, "token_used", "The upload token has already been used")
    }

    /// 410: whoever issued the token may not upload there any more. Why is not said to its holder.
    pub fn token_revoked() -> Self {
        Self::new(StatusCode::GONE, "token_revoked", "The upload token was revoked")
    }

    /// 409 with a sentence.
    pub fn conflict(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", message)
    }

    /// 405 with the methods that are allowed, as `GET, HEAD`.
    pub fn method_not_allowed(allow: &str) -> Self {
        let message = "Method not allowed for this URL; see the `Allow` header";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
            .with_header(header::ALLOW, allow)
    }

    /// 405: a PUT to an address that was not issued for it. The message names the request that uploads with an API key.
    pub fn put_needs_token(allow: &str) -> Self {
        let message = "PUT is for presigned URLs only. With an API key: curl -H \"Authorization: \
            Bearer KEY\" -F file=@FILE URL";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
            .with_header(header::ALLOW, allow)
    }

    /// 408: the request came too slowly. The connection ends with it.
    pub fn too_slow() -> Self {
        let message = "Request body timed out: less than 4,000 bytes in 5 seconds";
        Self::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", message)
            .with_header(header::CONNECTION, "close")
    }

    /// 412: a precondition of the request does not hold.
    pub fn precondition_failed() -> Self {
        let message = "Precondition failed";
        Self::new(StatusCode::PRECONDITION_FAILED, "precondition_failed", message)
    }

    /// 413 with the limit in bytes.
    pub fn file_too_large(limit: u64) -> Self {
        let message = format!("Request body too large: the limit is {limit} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "file_too_large", message).with("limit", limit)
    }

    /// 413: one file is larger than its bucket takes.
    pub fn file_over_limit(limit: u64) -> Self {
        let message = format!("File too large: the bucket's limit is {limit} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "file_too_large", message).with("limit", limit)
    }

    /// 415: a file of a type that its bucket does not take.
    pub fn type_not_allowed(content_type: &str) -> Self {
        let message = format!("Content type {content_type} is not allowed in this bucket");
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "type_not_allowed", message)
            .with("contentType", content_type)
    }

    /// 415: a body that is no JSON, where JSON is expected.
    pub fn not_json() -> Self {
        let message = "Content-Type must be application/json";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message)
    }

    /// 422: a file that says that it is a picture, and is a broken one.
    pub fn undecodable(why: &str) -> Self {
        let message = format!("The image cannot be decoded: {why}");
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "undecodable", message)
    }

    /// 507: what is uploaded does not fit into a quota.
    pub fn quota_exceeded(exceeded: Exceeded) -> Self {
        let Exceeded { whose, what, limit, used } = exceeded;
        let whose = match whose {
            QuotaOwner::Account => "account",
            QuotaOwner::Bucket => "bucket",
        };
        let what = match what {
            QuotaMeasure::Bytes => "bytes",
            QuotaMeasure::Objects => "files",
        };
        let message = format!("Quota exceeded: the {whose} is limited to {limit} {what}");
        Self::new(StatusCode::INSUFFICIENT_STORAGE, QUOTA_EXCEEDED, message)
            .with("quota", whose)
            .with("measure", what)
            .with("limit", limit)
            .with("used", used)
    }

    /// 415: not a form.
    pub fn not_multipart() -> Self {
        let message = "Only multipart/form-data is accepted";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message)
    }

    /// 416 for an object of `total` bytes.
    pub fn range_not_satisfiable(total: u64) -> Self {
        let message = format!("Range not satisfiable: the file has {total} bytes");
        Self::new(StatusCode::RANGE_NOT_SATISFIABLE, "range_not_satisfiable", message)
            .with("size", total)
            .with_header(header::CONTENT_RANGE, format!("bytes */{total}"))
    }

    /// 429: an allowance is used up.
    pub fn rate_limited(refused: &Refused) -> Self {
        let seconds = refused.retry_after_seconds();
        let message = format!("Rate limit exceeded: retry in {seconds} s");
        let refusal = Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", message)
            .with("retryAfter", seconds)
            .with_problem("type", QUOTA_PROBLEM)
            .with_problem("violated-policies", vec![refused.policy().name])
            .with_policy(refused.policy().name)
            .with_header(header::RETRY_AFTER, seconds.to_string());
        refused.fields().fold(refusal, |refusal, (name, value)| refusal.with_header(name, value))
    }

    /// 503: too much is going on, to be tried again after so many seconds (at least 1).
    pub fn overloaded(retry_after_seconds: u64) -> Self {
        let seconds = retry_after_seconds.max(1);
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", "Server overloaded: retry later")
            .with("retryAfter", seconds)
            .with_header(header::RETRY_AFTER, seconds.to_string())
    }

    /// 500: our fault. The client learns nothing but that.
    pub fn internal(log: impl Into<String>) -> Self {
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        Self::new(
            status,
            "internal",
            "Internal server error; see the server log under this request id",
        )
        .with_log(log)
    }

    /// 400: a header is wrong, and what it must be.
    pub fn bad_header(name: &str, must: &str) -> Self {
        let message = format!("Header \"{name}\" {must}");
        Self::new(StatusCode::BAD_REQUEST, "bad_header", message).with("header", name)
    }

    /// 412: a version of tus that is not spoken.
    pub fn tus_version(version: &str) -> Self {
        let message = format!("Header \"Tus-Resumable\" must be {version}");
        Self::new(StatusCode::PRECONDITION_FAILED, "tus_version", message)
            .with_header(HeaderName::from_static("tus-version"), version)
    }

    /// 415: a piece of a resumable upload without its type.
    pub fn not_a_chunk(content_type: &str) -> Self {
        let message = format!("Content-Type must be {content_type}");
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message)
    }

    /// 404: no such resumable upload of the caller.
    pub fn upload_not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "upload_not_found", "Upload not found")
    }

    /// 410: a resumable upload whose time is over, or whose bytes are lost: it is to be begun again.
    pub fn upload_expired() -> Self {
        Self::new(StatusCode::GONE, "upload_expired", "The upload has expired: start it again")
    }

    /// 409: a piece that does not begin where the upload ends.
    pub fn wrong_offset(offset: u64) -> Self {
        let message = format!("Offset mismatch: the upload resumes at byte {offset}");
        Self::new(StatusCode::CONFLICT, "wrong_offset", message).with("offset", offset)
    }

    /// 423: somebody else is working on the resumable upload.
    pub fn upload_locked() -> Self {
        let message = "The upload is locked by another request: retry";
        Self::new(StatusCode::LOCKED, "upload_locked", message)
    }

    /// 423: all of the upload has come, and something else keeps it from being stored for now.
    pub fn upload_waits(why: &Self) -> Self {
        let message =
            format!("The upload is complete but could not be committed yet: {}", why.message());
        Self::new(StatusCode::LOCKED, "upload_locked", message).with_log(why.to_string())
    }

    /// 429: the account has begun too many uploads and not ended them.
    pub fn too_many_uploads(bound: usize) -> Self {
        let message =
            format!("Upload limit reached: {bound} unfinished uploads; finish or delete some");
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_uploads", message)
            .with_header(header::RETRY_AFTER, "60")
            .with("retryAfter", 60)
    }

    /// The same where it is their declared lengths together.
    pub fn too_many_unfinished_bytes(bound: u64) -> Self {
        let message = format!(
            "Upload limit reached: unfinished uploads of the account may have {bound} bytes; \
            finish or delete some"
        );
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_uploads", message)
            .with_header(header::RETRY_AFTER, "60")
            .with("retryAfter", 60)
    }

    /// 460, a status of tus: the bytes are not those that the client meant.
    pub fn checksum_mismatch() -> Self {
        let status = StatusCode::from_u16(460).unwrap_or(StatusCode::BAD_REQUEST);
        Self::new(status, "checksum_mismatch", "Checksum mismatch")
    }
}
