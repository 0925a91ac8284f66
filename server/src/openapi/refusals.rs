//! Errors common to endpoints of a kind.
//!
//! The requirements of an endpoint imply its errors: an invalid key, a body that is too large, a missing resource, or a
//! lack of space for changes. Non-goals: errors of a single endpoint.

use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{HttpMethod, Operation};
use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{Components, ContentBuilder, Header, Ref, RefOr};

/// Status, component name, and description.
const SHARED: &[(u16, &str, &str)] = &[
    (
        400,
        "BadRequest",
        "`bad_request`, `bad_parameter`, `bad_path`, `bad_json`, `bad_form`, `bad_header`, `no_file`, `too_many_files`, `incomplete_body`: `message` has the details.",
    ),
    (401, "Unauthorized", "`missing_api_key`, `invalid_api_key`, `session_ended`."),
    (
        403,
        "Forbidden",
        "`forbidden`, `account_suspended`, `plan_required`: the credential is valid but not authorized. `cross_site`: session cookie of a cross-site request.",
    ),
    (404, "NotFound", "The resource does not exist or the caller may not see it; `code` names it."),
    (408, "TooSlow", "`request_timeout`: the body arrived too slowly."),
    (409, "Conflict", "`conflict`: concurrent change; retry."),
    (413, "TooLarge", "`file_too_large`, with `limit`; `too_large`."),
    (
        415,
        "UnsupportedMediaType",
        "`unsupported_media_type`; `type_not_allowed`: the bucket does not allow this type.",
    ),
    (429, "TooManyRequests", "`rate_limited`, with `retryAfter`; `too_many_uploads`."),
    (500, "Failed", "`internal`, `damaged`: server error."),
    (
        503,
        "Unavailable",
        "`overloaded`, `read_only`, `shutting_down`, `cancelled`: temporarily unavailable.",
    ),
    (507, "Full", "`quota_exceeded`, with `quota`, `measure`, `limit` and `used`; `no_space`."),
];

/// Adds the shared errors as components.
pub(super) fn components(components: &mut Components) {
    for (status, name, description) in SHARED {
        let mut response = with_error(ResponseBuilder::new().description(*description).build());
        for (header, value) in headers(*status) {
            response.headers.insert(header.to_owned(), RefOr::T(value));
        }
        components.responses.insert((*name).to_owned(), RefOr::T(response));
    }
}

/// Adds the shared errors to an operation, and the error body to its own errors.
pub(super) fn complete(address: &str, method: &HttpMethod, operation: &mut Operation) {
    // A preflight is never rejected.
    if *method == HttpMethod::Options {
        return;
    }
    let is_head = *method == HttpMethod::Head;
    for (status, response) in &mut operation.responses.responses {
        if let RefOr::T(response) = response {
            let status = status.parse().unwrap_or_default();
            if response.description.is_empty() {
                response.description = reason(status);
            }
            if status >= 400 && !is_head {
                *response = with_error(std::mem::take(response));
            }
        }
    }
    let shared = SHARED.iter().filter(|(status, ..)| applies(*status, address, method, operation));
    let shared: Vec<_> = shared.collect();
    for (status, name, description) in shared {
        let response = match is_head {
            true => RefOr::T(ResponseBuilder::new().description(*description).build()),
            false => RefOr::Ref(Ref::from_response_name(*name)),
        };
        operation.responses.responses.entry(status.to_string()).or_insert(response);
    }
}

fn applies(status: u16, address: &str, method: &HttpMethod, operation: &Operation) -> bool {
    let needs_key = operation.security.is_none();
    let takes_key = operation.security.as_ref().is_none_or(|schemes| schemes.len() > 1);
    let reads = matches!(method, HttpMethod::Get | HttpMethod::Head);
    match status {
        401 | 403 => takes_key,
        404 => address.contains('{'),
        408 | 413 | 415 => operation.request_body.is_some(),
        409 | 507 => !reads,
        503 => needs_key || address.contains('{'),
        _ => true,
    }
}

/// Adds the error body to a response, in addition to its other content.
fn with_error(mut response: Response) -> Response {
    let error = || {
        let schema = RefOr::Ref(Ref::from_schema_name("ApiError"));
        RefOr::T(ContentBuilder::new().schema(Some(schema)).build())
    };
    for content_type in ["application/json", "application/problem+json"] {
        response.content.entry(content_type.to_owned()).or_insert_with(error);
    }
    response
}

fn headers(status: u16) -> Vec<(&'static str, Header)> {
    let number = |description: &str| {
        let schema = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0));
        HeaderBuilder::new().schema(Some(schema)).description(Some(description)).build()
    };
    let text = |description: &str| {
        let schema = ObjectBuilder::new().schema_type(Type::String).build();
        HeaderBuilder::new().schema(Some(schema)).description(Some(description)).build()
    };
    let retry = || ("Retry-After", number("Seconds to wait before retrying."));
    match status {
        401 => vec![("WWW-Authenticate", text("`Bearer`"))],
        429 => vec![
            retry(),
            ("RateLimit-Policy", text("Rate limit policy, such as `\"upload-free\";q=100;w=60`.")),
            ("RateLimit", text("Remaining requests, such as `\"upload-free\";r=0;t=17`.")),
            ("X-RateLimit-Limit", number("Limit of requests per minute.")),
            ("X-RateLimit-Remaining", number("Remaining requests.")),
            (
                "X-RateLimit-Reset",
                number("Seconds until the limit is reset or one request is allowed."),
            ),
        ],
        503 => vec![retry()],
        _ => Vec::new(),
    }
}

fn reason(status: u16) -> String {
    let status = http::StatusCode::from_u16(status).ok();
    status.and_then(|status| status.canonical_reason()).unwrap_or("Refused").to_owned()
}
