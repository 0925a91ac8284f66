//! The service for those who watch over the server, on an address of its own and without a token: metrics, and whether
//! it is well.
//!
//! Promises: nothing else is behind this address. What is asked here counts among the requests of nobody.
//! Never here: what is answered.

use axum::Router;
use axum::body::Body;
use http::{Request, Response};
use tower::ServiceExt;

use crate::layers::Outgoing;
use crate::router::admin_router;
use crate::state::AppState;

/// The service without a socket. Cheap to clone.
#[derive(Clone)]
pub struct AdminApp {
    state: AppState,
    router: Router,
}

impl AdminApp {
    pub fn new(state: AppState) -> Self {
        Self { router: admin_router(state.clone()), state }
    }

    /// Answers a request.
    pub async fn call(&self, request: Request<Body>) -> Response<Body> {
        let (head, _) = request.into_parts();
        let outgoing = Outgoing::of(&head, self.state.next_request_id());
        let request = Request::from_parts(head, Body::empty());
        match self.router.clone().oneshot(request).await {
            Ok(response) => outgoing.finish(response),
            Err(never) => match never {},
        }
    }
}
