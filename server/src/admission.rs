//! What stands before every endpoint that needs an API key: who is asking, and whether that is one request too many.
//!
//! 1. The caller is recognised, once; where an address presented too many wrong keys, nothing is looked up any more.
//! 2. One is taken of the allowance that the method and the group of the route name.
//! 3. The handler runs, and finds the [`Caller`] among the request's extensions.
//! 4. The answer, whatever it is, tells what is left.
//!
//! Promises: a request that is refused here has not been read beyond its head. Never here: what an allowance is.

use axum::body::Body;
use axum::extract::State;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use http::{Method, Request};

use crate::auth::Caller;
use crate::error::ApiError;
use crate::query::Query;
use crate::rate_limit::{LimitedAction, Taken};
use crate::state::AppState;

/// Puts admission before methods under `/api`: all of them are management.
pub fn admitted(app: &AppState, methods: MethodRouter<AppState>) -> MethodRouter<AppState> {
    methods.route_layer(from_fn_with_state(app.clone(), manage))
}

/// Puts admission before methods of places in buckets: POST and PUT are uploads.
pub fn admitted_to_place(
    app: &AppState,
    methods: MethodRouter<AppState>,
) -> MethodRouter<AppState> {
    methods.route_layer(from_fn_with_state(app.clone(), change_place))
}

async fn manage(State(app): State<AppState>, request: Request<Body>, next: Next) -> Response {
    admit(app, LimitedAction::Management, request, next).await
}

async fn change_place(State(app): State<AppState>, request: Request<Body>, next: Next) -> Response {
    let action = match *request.method() {
        Method::POST | Method::PUT => LimitedAction::Upload,
        _ => LimitedAction::Management,
    };
    admit(app, action, request, next).await
}

async fn admit(
    app: AppState,
    action: LimitedAction,
    mut request: Request<Body>,
    next: Next,
) -> Response {
    match enter(&app, action, &request) {
        Ok((caller, taken)) => {
            request.extensions_mut().insert(caller);
            let mut response = next.run(request).await;
            taken.write(response.headers_mut());
            response
        }
        Err(refusal) => refusal.into_response(),
    }
}

fn enter(
    app: &AppState,
    action: LimitedAction,
    request: &Request<Body>,
) -> Result<(Caller, Taken), ApiError> {
    let query = Query::of(request.uri());
    let caller = Caller::recognise(app, request.headers(), &query, request.extensions())?;
    let taken = app.allowances.take(action, caller.account());
    Ok((caller, taken.map_err(|refused| ApiError::rate_limited(&refused))?))
}
