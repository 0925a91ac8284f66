//! Schema of the error body, for the OpenAPI document.
//!
//! Non-goals: the body itself, which `ApiError::body` builds.

use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::ApiError;

/// All error codes.
const CODES: &[&str] = &[
    "account_not_found",
    "account_suspended",
    "already_exists",
    "api_key_not_found",
    "bad_form",
    "bad_header",
    "bad_json",
    "bad_parameter",
    "bad_path",
    "bad_request",
    "bucket_not_empty",
    "bucket_not_found",
    "cancelled",
    "checksum_mismatch",
    "conflict",
    "cross_site",
    "damaged",
    "file_not_found",
    "file_too_large",
    "forbidden",
    "head_too_large",
    "incomplete_body",
    "internal",
    "invalid_api_key",
    "job_ended",
    "job_not_found",
    "last_owner",
    "link_ended",
    "link_expired",
    "link_full",
    "link_locked",
    "link_not_found",
    "log_too_large",
    "method_not_allowed",
    "missing_api_key",
    "no_file",
    "no_space",
    "not_found",
    "not_ready",
    "organisation_not_empty",
    "organisation_not_found",
    "overloaded",
    "plan_required",
    "precondition_failed",
    "quota_exceeded",
    "range_not_satisfiable",
    "rate_limited",
    "read_only",
    "remote_unavailable",
    "request_timeout",
    "session_ended",
    "session_not_found",
    "set_up_done",
    "shutting_down",
    "tls_required",
    "token_expired",
    "token_in_use",
    "token_not_found",
    "token_revoked",
    "token_used",
    "too_large",
    "too_many_files",
    "too_many_jobs",
    "too_many_uploads",
    "tus_version",
    "type_not_allowed",
    "undecodable",
    "unsupported_media_type",
    "upload_expired",
    "upload_locked",
    "upload_not_found",
    "uri_too_long",
    "version_not_found",
    "webhook_not_found",
    "wrong_host",
    "wrong_metrics_token",
    "wrong_offset",
    "wrong_password",
    "zip_too_large",
];

impl PartialSchema for ApiError {
    fn schema() -> RefOr<Schema> {
        let said = |kind: Type, what: &str| {
            ObjectBuilder::new().schema_type(kind).description(Some(what)).build()
        };
        let sentence = || said(Type::String, "Human-readable message.");
        let code = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(CODES.to_vec()));
        let code = code.description(Some("Machine-readable error code."));
        let never = ObjectBuilder::new().schema_type(Type::Boolean).enum_values(Some([false]));
        let policies =
            ArrayBuilder::new().items(said(Type::String, "Name of an exceeded rate limit policy."));
        ObjectBuilder::new()
            .schema_type(Type::Object)
            .description(Some("Error response."))
            .property("success", never)
            .property("error", sentence())
            .property("message", sentence())
            .property("code", code)
            .property("status", said(Type::Integer, "HTTP status code."))
            .property(
                "requestId",
                said(Type::String, "Request id, as in `X-Request-Id` and in the server log."),
            )
            .required("success")
            .required("error")
            .required("message")
            .required("code")
            .required("status")
            .property("parameter", said(Type::String, "Name of the invalid parameter or field."))
            .property("header", said(Type::String, "Name of the invalid header."))
            .property("retryAfter", said(Type::Integer, "Seconds to wait before retrying."))
            .property("limit", said(Type::Integer, "Exceeded limit, in bytes or files."))
            .property("used", said(Type::Integer, "Current usage of the quota, in bytes or files."))
            .property(
                "quota",
                said(Type::String, "Scope of the exceeded quota: `account` or `bucket`."),
            )
            .property(
                "measure",
                said(Type::String, "Unit of the exceeded quota: `bytes` or `files`."),
            )
            .property("size", said(Type::Integer, "File size in bytes."))
            .property(
                "offset",
                said(Type::Integer, "Offset in bytes at which the upload continues."),
            )
            .property("contentType", said(Type::String, "Rejected content type."))
            .property("bucketName", said(Type::String, "Bucket of the corrupt file."))
            .property("key", said(Type::String, "Path of the corrupt file."))
            .property(
                "type",
                said(Type::String, "Problem type URI; only in `application/problem+json`."),
            )
            .property(
                "title",
                said(Type::String, "Problem title; only in `application/problem+json`."),
            )
            .property(
                "detail",
                said(Type::String, "Problem detail; only in `application/problem+json`."),
            )
            .property("violated-policies", policies)
            .into()
    }
}

impl ToSchema for ApiError {}
