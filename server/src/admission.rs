//! What stands before every endpoint that needs an API key or a session: who is asking, and whether that is one request
//! too many.
//!
//! 1. The caller is recognised, once; where an address presented too many wrong keys, nothing is looked up any more.
//! 2. One is taken of the allowance that the route names.
//! 3. The handler runs, and finds the [`Caller`] among the request's extensions.
//! 4. The answer, whatever it is, tells what is left.
//!
//! Before endpoints that are for pages of our own stands whether it is one of them that asks ([`at_home`]).
//! Promises: a request that is refused here has not been read beyond its head. Never here: what an allowance is.

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

/// Puts admission before methods that store files.
pub fn uploading(app: &AppState, methods: MethodRouter<AppState>) -> MethodRouter<AppState> {
    methods.route_layer(from_fn_with_state((app.clone(), LimitedAction::Upload), admit))
}

/// Puts admission before methods that do anything else.
pub fn managing(app: &AppState, methods: MethodRouter<AppState>) -> MethodRouter<AppState> {
    methods.route_layer(from_fn_with_state((app.clone(), LimitedAction::Management), admit))
}

/// Lets methods be called by pages of our own alone, and by who is no browser: under our own names, so that no page
/// that was looked up under another one gets here, and, where they change something, not from other sites.
pub fn at_home(app: &AppState, methods: MethodRouter<AppState>) -> MethodRouter<AppState> {
    // Also where the methods are one handler for all of them, which `route_layer` leaves alone.
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

/// Recognises the caller of a request to this endpoint, and takes one of the account's allowance.
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

/// Takes one for somebody who is known already.
pub fn take(app: &AppState, action: LimitedAction, caller: &Caller) -> Result<Taken, ApiError> {
    let taken = app.allowances.take(action, caller.account());
    taken.map_err(|refused| ApiError::rate_limited(&refused))
}

/// An answer that tells what is left.
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
