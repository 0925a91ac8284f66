//! Conversion of API errors to S3 errors.
//!
//! Guarantees: an S3 client gets an error code that it handles correctly: a retryable one for transient errors, and
//! never for permanent ones; system errors about disks and files are only logged. Non-goals: XML.

use http::StatusCode;
use http::header::{self, HeaderMap, HeaderValue};
use s3s::{S3Error, S3ErrorCode};

use protocol::error::{ApiError, ErrorFormat};

/// Converts an API error to an S3 error.
pub(super) fn to_s3_error(error: &ApiError) -> S3Error {
    let status = error.status();
    let message = error.message().to_owned();
    if error.is_failure() {
        let (code, log) = (error.code(), error.log().unwrap_or_default());
        tracing::error!(code, log, "S3 request failed");
    }
    let mut refused = S3Error::with_message(code_of(error), message);
    if refused.status_code().is_none() {
        refused.set_status_code(status);
    }
    if let Some(wait) = error.response(&ErrorFormat::default()).headers().get(header::RETRY_AFTER) {
        refused.set_headers(HeaderMap::from_iter([
            (header::RETRY_AFTER, wait.clone()),
            (header::CONTENT_TYPE, HeaderValue::from_static("application/xml")),
        ]));
    }
    refused
}

/// Creates an error with a code of S3, or with a code of trug's own.
pub(super) fn s3_error(code: S3ErrorCode, message: &'static str) -> S3Error {
    let mut refusal = S3Error::with_message(code, message);
    if refusal.status_code().is_none() {
        refusal.set_status_code(StatusCode::BAD_REQUEST);
    }
    refusal
}

/// Creates a code that S3 documents and `s3s` does not define.
pub(super) fn code(name: &'static str) -> S3ErrorCode {
    S3ErrorCode::from_bytes(name.as_bytes()).unwrap_or(S3ErrorCode::InvalidRequest)
}

fn code_of(error: &ApiError) -> S3ErrorCode {
    match error.code() {
        "missing_api_key" | "forbidden" | "plan_required" => S3ErrorCode::AccessDenied,
        "invalid_api_key" => S3ErrorCode::InvalidAccessKeyId,
        "account_suspended" => S3ErrorCode::AccountProblem,
        "bucket_not_found" => S3ErrorCode::NoSuchBucket,
        "file_not_found" => S3ErrorCode::NoSuchKey,
        "upload_not_found" | "upload_expired" => S3ErrorCode::NoSuchUpload,
        "already_exists" => S3ErrorCode::BucketAlreadyExists,
        "bad_path" if error.message().contains("longer than") => S3ErrorCode::KeyTooLongError,
        "file_too_large" | "file_over_limit" | "too_large" => S3ErrorCode::EntityTooLarge,
        "incomplete_body" => S3ErrorCode::IncompleteBody,
        "precondition_failed" => S3ErrorCode::PreconditionFailed,
        "range_not_satisfiable" => S3ErrorCode::InvalidRange,
        // S3 has no quotas; clients retry an error with a 5xx status.
        "quota_exceeded" => code("QuotaExceeded"),
        "no_space" => code("InsufficientStorage"),
        "too_many_uploads" => code("TooManyUploads"),
        _ => match error.status() {
            StatusCode::TOO_MANY_REQUESTS => S3ErrorCode::SlowDown,
            StatusCode::SERVICE_UNAVAILABLE => S3ErrorCode::ServiceUnavailable,
            StatusCode::REQUEST_TIMEOUT => S3ErrorCode::RequestTimeout,
            StatusCode::CONFLICT => S3ErrorCode::OperationAborted,
            StatusCode::FORBIDDEN => S3ErrorCode::AccessDenied,
            status if status.is_server_error() => S3ErrorCode::InternalError,
            _ => S3ErrorCode::InvalidArgument,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s3_error_codes_match_clients() {
        for (error, code, status) in [
            (ApiError::bucket_not_found(), "NoSuchBucket", 404),
            (ApiError::file_not_found(), "NoSuchKey", 404),
            (ApiError::forbidden("no"), "AccessDenied", 403),
            (ApiError::invalid_api_key(), "InvalidAccessKeyId", 403),
            (ApiError::overloaded(3), "ServiceUnavailable", 503),
            (ApiError::bad_path("it is longer than 1024 bytes"), "KeyTooLongError", 400),
            (ApiError::bad_path("it contains a backslash"), "InvalidArgument", 400),
            (ApiError::file_too_large(5), "EntityTooLarge", 400),
            (ApiError::range_not_satisfiable(5), "InvalidRange", 416),
            (ApiError::from(engine::Error::NoSpace), "InsufficientStorage", 507),
            (ApiError::internal("disk of the machine"), "InternalError", 500),
            (ApiError::conflict("again"), "OperationAborted", 409),
        ] {
            let refused = to_s3_error(&error);
            assert_eq!(refused.code().as_str(), code);
            assert_eq!(refused.status_code().unwrap().as_u16(), status, "{code}");
            assert!(!refused.message().unwrap().contains("disk of the machine"), "{code}");
        }
    }

    #[test]
    fn s3_slow_down_sets_retry_after() {
        let refused = to_s3_error(&ApiError::overloaded(3));
        assert_eq!(refused.headers().unwrap()["retry-after"], "3");
    }
}
