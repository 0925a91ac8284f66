//! Checks in front of every endpoint, as its route demands them.
//!
//! 1. An endpoint of the dashboard rejects cross-site requests.
//! 2. The caller is authenticated, once. An invalid API key is charged to the client address.
//! 3. The request is charged to the rate limit that the route names.
//! 4. The handler runs, and finds the [`Caller`] in the request's extensions.
//! 5. The response, whatever its status, carries the rate-limit headers.
//!
//! Guarantees: of a request that is rejected here, only the head has been read. Non-goals: the implementation of rate
//! limits.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::Request;
use protocol::error::ApiError;
use protocol::query::Query;

use crate::auth::{Caller, PresentedCredentials};
use crate::own_pages::RequestOrigin;
use crate::rate_limit::{RateClass, RateLimitGrant};
use crate::state::AppState;

/// What a route demands of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing.
    Open,
    /// Not to come from another site.
    SameOrigin,
    /// A caller, whose upload rate limit is charged.
    Upload,
    /// A caller, whose management rate limit is charged.
    Management,
    /// `SameOrigin` and `Management`.
    SameOriginManagement,
}

impl Access {
    fn is_same_origin(self) -> bool {
        matches!(self, Self::SameOrigin | Self::SameOriginManagement)
    }

    fn rate_class(self) -> Option<RateClass> {
        match self {
            Self::Open | Self::SameOrigin => None,
            Self::Upload => Some(RateClass::Upload),
            Self::Management | Self::SameOriginManagement => Some(RateClass::Management),
        }
    }
}

/// Checks a request, and runs its handler if it is admitted.
pub async fn admit<F: Future<Output = Response>>(
    app: AppState,
    access: Access,
    request: Request<Body>,
    handler: impl FnOnce(AppState, Request<Body>) -> F,
) -> Response {
    if access.is_same_origin()
        && let Err(refusal) = check_same_origin(&app, &request)
    {
        return refusal.into_response();
    }
    let Some(class) = access.rate_class() else { return handler(app, request).await };
    let (mut head, body) = request.into_parts();
    let query = Query::from_uri(&head.uri);
    match authenticate(&app, class, PresentedCredentials::from_request(&head), &query) {
        Ok((caller, taken)) => {
            head.extensions.insert(caller);
            let request = Request::from_parts(head, body);
            with_rate_limit_headers(&taken, handler(app, request).await)
        }
        Err(refusal) => refusal.into_response(),
    }
}

/// Checks that a request comes from a dashboard page or a client that is no browser: it must name one of the server's
/// own hosts, which defeats DNS rebinding, and one that changes state must be same-origin.
fn check_same_origin(app: &AppState, request: &Request<Body>) -> Result<(), ApiError> {
    let (method, headers, uri) = (request.method(), request.headers(), request.uri());
    if !app.dashboard_hosts().matches_host(headers, uri) {
        return Err(ApiError::wrong_host());
    }
    let origin = RequestOrigin::from_headers(method, headers, uri);
    match !method.is_safe() && origin == RequestOrigin::CrossSite {
        true => Err(ApiError::cross_site()),
        false => Ok(()),
    }
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
