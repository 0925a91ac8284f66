//! Admin listener for monitoring, on its own address and without authentication: metrics and health checks.
//!
//! Guarantees: the listener serves nothing else, and its requests count for no account or bucket. Non-goals: the
//! responses.

use std::sync::Arc;

use axum::body::Body;
use axum::response::IntoResponse;
use http::{Request, Response};
use protocol::error::ApiError;

use crate::layers::ResponseContext;
use crate::routes::{RouteMatch, RouteTable};
use crate::state::AppState;

/// Admin service without a socket. Cheap to clone.
#[derive(Clone)]
pub struct AdminService {
    state: AppState,
    routes: Arc<RouteTable>,
}

impl AdminService {
    pub fn new(state: AppState) -> Self {
        Self { routes: Arc::new(RouteTable::for_admin()), state }
    }

    /// Handles a request.
    pub async fn call(&self, request: Request<Body>) -> Response<Body> {
        let (head, _) = request.into_parts();
        let outgoing = ResponseContext::from_request(&head, self.state.next_request_id());
        let request = Request::from_parts(head, Body::empty());
        outgoing.finish(match self.routes.find(request.method(), request.uri().path()) {
            RouteMatch::Found(route, _) => (route.handler)(self.state.clone(), request).await,
            RouteMatch::WrongMethod(allow) => ApiError::method_not_allowed(allow).into_response(),
            RouteMatch::NotFound => ApiError::not_found().into_response(),
        })
    }
}
