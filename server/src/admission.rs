//! Authentication and rate limiting in front of every endpoint that needs an API key or a session.
//!
//! 1. The caller is authenticated, once. An invalid API key is charged to the client address.
//! 2. The request is charged to the rate limit that the route names.
//! 3. The handler runs, and finds the [`Caller`] in the request's extensions.
//! 4. The response, whatever its status, carries the rate-limit headers.
//!
//! Endpoints of the dashboard additionally reject cross-site requests ([`same_origin_only`]). Guarantees: of a request
//! that is rejected here, only the head has been read. Non-goals: the implementation of rate limits.

use axum::body::Body;
use axum::extract::State;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use http::Request;
use protocol::error::ApiError;
use protocol::query::Query;

use crate::auth::{Caller, PresentedCredentials};
use crate::own_pages::RequestOrigin;
use crate::rate_limit::{RateClass, RateLimitGrant};
use crate::state::AppState;

/// Wraps methods that store files, charging the upload rate limit.
pub fn with_upload_limit(
    app: &AppState,
    methods: MethodRouter<AppState>,
) -> MethodRouter<AppState> {
    methods.route_layer(from_fn_with_state((app.clone(), RateClass::Upload), admit))
}

/// Wraps all other authenticated methods, charging the management rate limit.
pub fn with_management_limit(
    app: &AppState,
    methods: MethodRouter<AppState>,
) -> MethodRouter<AppState> {
    methods.route_layer(from_fn_with_state((app.clone(), RateClass::Management), admit))
}

/// Restricts methods to dashboard pages and non-browser clients: the request must name one of the server's own hosts,
/// which defeats DNS rebinding, and one that changes state must be same-origin.
pub fn same_origin_only(app: &AppState, methods: MethodRouter<AppState>) -> MethodRouter<AppState> {
    // Also covers methods with a single handler for all of them, which `route_layer` skips.
    methods.layer(from_fn_with_state(app.clone(), check_same_origin))
}

async fn check_same_origin(
    State(app): State<AppState>,
    request: Request<Body>,
    next: Next,
) -> Response {
    let (method, headers, uri) = (request.method(), request.headers(), request.uri());
    if !app.dashboard_hosts().matches_host(headers, uri) {
        return ApiError::wrong_host().into_response();
    }
    if !method.is_safe()
        && RequestOrigin::from_headers(method, headers, uri) == RequestOrigin::CrossSite
    {
        return ApiError::cross_site().into_response();
    }
    next.run(request).await
}

/// Authenticates the caller of a request to this endpoint, and charges the account's rate limit.
pub fn authenticate(
    app: &AppState,
    action: RateClass,
    asking: PresentedCredentials<'_>,
    query: &Query,
) -> Result<(Caller, RateLimitGrant), ApiError> {
    let caller = Caller::authenticate(app, asking, query)?;
    caller.require_plan(app.endpoint())?;
    let taken = charge(app, action, &caller)?;
    Ok((caller, taken))
}

/// Charges the rate limit of a caller that is already authenticated.
pub fn charge(
    app: &AppState,
    action: RateClass,
    caller: &Caller,
) -> Result<RateLimitGrant, ApiError> {
    let taken = app.rate_limiter.charge(action, caller.account());
    taken.map_err(ApiError::from)
}

/// Adds the rate-limit headers to a response.
pub fn with_rate_limit_headers(taken: &RateLimitGrant, answer: impl IntoResponse) -> Response {
    let mut response = answer.into_response();
    taken.insert_headers(response.headers_mut());
    response
}

async fn admit(
    State((app, action)): State<(AppState, RateClass)>,
    mut request: Request<Body>,
    next: Next,
) -> Response {
    let query = Query::from_uri(request.uri());
    let asking = PresentedCredentials {
        method: request.method(),
        uri: request.uri(),
        headers: request.headers(),
        extensions: request.extensions(),
    };
    match authenticate(&app, action, asking, &query) {
        Ok((caller, taken)) => {
            request.extensions_mut().insert(caller);
            with_rate_limit_headers(&taken, next.run(request).await)
        }
        Err(refusal) => refusal.into_response(),
    }
}
