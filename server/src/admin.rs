//! Admin listener for monitoring, on its own address and without authentication: metrics and health checks.
//!
//! Guarantees: the listener serves nothing else, and its requests count for no account or bucket. Non-goals: the
//! responses.

use axum::Router;
use axum::body::Body;
use http::{Request, Response};
use tower::ServiceExt;

use crate::layers::ResponseContext;
use crate::router::admin_router;
use crate::state::AppState;

/// Admin service without a socket. Cheap to clone.
#[derive(Clone)]
pub struct AdminService {
    state: AppState,
    router: Router,
}

impl AdminService {
    pub fn new(state: AppState) -> Self {
        Self { router: admin_router(state.clone()), state }
    }

    /// Handles a request.
    pub async fn call(&self, request: Request<Body>) -> Response<Body> {
        let (head, _) = request.into_parts();
        let outgoing = ResponseContext::from_request(&head, self.state.next_request_id());
        let request = Request::from_parts(head, Body::empty());
        match self.router.clone().oneshot(request).await {
            Ok(response) => outgoing.finish(response),
            Err(never) => match never {},
        }
    }
}
