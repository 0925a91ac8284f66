//! `GET /-/metrics`: metrics in the Prometheus text format.
//!
//! Guarantees: without the token nothing is returned, and guesses are rate-limited like invalid API keys. Non-goals:
//! the metrics, and their format.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::header::{self, HeaderMap, HeaderValue};
use http::request::Parts;
use protocol::error::ApiError;
use service::request_context::RoutedContext;
use service::state::AppState;
use usage::task::blocking;

use crate::server_metrics;

/// Returns Prometheus metrics. Requires the token of the setting `metrics_token`; 404 if not set.
#[utoipa::path(
    get,
    path = "/-/metrics",
    operation_id = "metrics",
    tag = "Server",
    security(()),
    params(
        ("Authorization" = Option<String>, Header, description = "`Bearer` followed by the value of the setting \
            `metrics_token`."),
    ),
    responses(
        (
            status = OK,
            description = "Metrics in the OpenMetrics 1.0 text format.",
            body = String,
            content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8",
        ),
        (status = UNAUTHORIZED, description = "`wrong_metrics_token`."),
        (status = NOT_FOUND, description = "`not_found`: the setting `metrics_token` is not set."),
    )
)]
pub async fn metrics(State(app): State<AppState>, head: Parts) -> Result<Response, ApiError> {
    let config = app.config();
    let token = config.metrics_token.as_ref().ok_or_else(ApiError::not_found)?;
    let presented = presented(&head.headers);
    if presented.is_some_and(|presented| token.matches(presented)) {
        return answer(app).await;
    }
    if let Some(address) =
        RoutedContext::client_ip(&head.extensions).filter(|_| presented.is_some())
    {
        app.rate_limiter.take_failure(address)?;
    }
    Err(ApiError::wrong_metrics_token())
}

/// Returns the metrics on the admin listener, without a token.
pub async fn metrics_unauthenticated(State(app): State<AppState>) -> Result<Response, ApiError> {
    answer(app).await
}

async fn answer(app: AppState) -> Result<Response, ApiError> {
    let text = blocking(move || server_metrics::render(&app)).await?;
    let mut response = Response::new(Body::from(text));
    let headers = response.headers_mut();
    let mut put = |name, value| headers.insert(name, HeaderValue::from_static(value));
    put(header::CONTENT_TYPE, server_metrics::CONTENT_TYPE);
    put(header::CACHE_CONTROL, "no-store");
    put(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    Ok(response)
}

/// Extracts the bearer token of the only `Authorization` header.
fn presented(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (scheme, token) = value.as_bytes().split_at_checked(BEARER.len())?;
    scheme.eq_ignore_ascii_case(BEARER).then(|| token.trim_ascii())
}

const BEARER: &[u8] = b"Bearer ";
