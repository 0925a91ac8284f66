//! Authentication and rate limiting in front of every endpoint that needs an API key or a session.
//!
//! 1. The caller is authenticated, once. An invalid API key is charged to the client address.
//! 2. The request is charged to the rate limit that the route names.
//! 3. The handler runs, and finds the [`Caller`] in the request's extensions.
//! 4. The response, whatever its status, carries the rate-limit headers.
//!
//! Endpoints of the dashboard additionally reject cross-site requests ([`at_home`]). Guarantees: of a request that is
//! rejected here, only the head has been read. Non-goals: the implementation of rate limits.

use axum::body::Body;
use axum::extract::State;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use http::Request;

use crate::auth::{Asking, Caller};
use crate::error::ApiError;
use crate::own_pages::Source;
use crate::query::Query;
use crate::rate_limit::{LimitedAction, Taken};
use crate::state::AppState;

/// Wraps methods that store files, charging the upload rate limit.
pub fn uploading(app: &AppState, methods: MethodRouter<AppState>) -> MethodRouter<AppState> {
    methods.route_layer(from_fn_with_state((app.clone(), LimitedAction::Upload), admit))
}

/// Wraps all other authenticated methods, charging the management rate limit.
pub fn managing(app: &AppState, methods: MethodRouter<AppState>) -> MethodRouter<AppState> {
    methods.route_layer(from_fn_with_state((app.clone(), LimitedAction::Management), admit))
}

/// Restricts methods to dashboard pages and non-browser clients: the request must name one of the server's own hosts,
/// which defeats DNS rebinding, and one that changes state must be same-origin.
pub fn at_home(app: &AppState, methods: MethodRouter<AppState>) -> MethodRouter<AppState> {
    // Also covers methods with a single handler for all of them, which `route_layer` skips.
    methods.layer(from_fn_with_state(app.clone(), let_own_pages_in))
}

async fn let_own_pages_in(
    State(app): State<AppState>,
    request: Request<Body>,
    next: Next,
) -> Response {
    let (method, headers, uri) = (request.method(), request.headers(), request.uri());
    if !app.own_hosts().are_asked_for(headers, uri) {
        return ApiError::wrong_host().into_response();
    }
    if !method.is_safe() && Source::of(method, headers, uri) == Source::Elsewhere {
        return ApiError::cross_site().into_response();
    }
    next.run(request).await
}

/// Authenticates the caller of a request to this endpoint, and charges the account's rate limit.
pub fn enter(
    app: &AppState,
    action: LimitedAction,
    asking: Asking<'_>,
    query: &Query,
) -> Result<(Caller, Taken), ApiError> {
    let caller = Caller::recognise(app, asking, query)?;
    caller.check_plan(app.endpoint())?;
    let taken = take(app, action, &caller)?;
    Ok((caller, taken))
}

/// Charges the rate limit of a caller that is already authenticated.
pub fn take(app: &AppState, action: LimitedAction, caller: &Caller) -> Result<Taken, ApiError> {
    let taken = app.allowances.take(action, caller.account());
    taken.map_err(|refused| ApiError::rate_limited(&refused))
}

/// Adds the rate-limit headers to a response.
pub fn telling(taken: &Taken, answer: impl IntoResponse) -> Response {
    let mut response = answer.into_response();
    taken.write(response.headers_mut());
    response
}

async fn admit(
    State((app, action)): State<(AppState, LimitedAction)>,
    mut request: Request<Body>,
    next: Next,
) -> Response {
    let query = Query::of(request.uri());
    let asking = Asking {
        method: request.method(),
        uri: request.uri(),
        headers: request.headers(),
        extensions: request.extensions(),
    };
    match enter(&app, action, asking, &query) {
        Ok((caller, taken)) => {
            request.extensions_mut().insert(caller);
            telling(&taken, next.run(request).await)
        }
        Err(refusal) => refusal.into_response(),
    }
}
