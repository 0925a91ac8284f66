//! The fork: a GET or HEAD of a file is delivered at once, everything else goes to the router.
//!
//! Delivery is most of what the server does and has one shape of address, so it does not pay for the router and its
//! extractors. Promises: an address that asks for more than its share is told so before anything is looked up; what
//! begins with a component of our own is never taken for a bucket; every method OPTIONS is
//! answered as a preflight. Never here: what delivery and the endpoints do.

use axum::Router;
use axum::body::Body;
use axum::response::IntoResponse;
use http::{Method, Request, Response};
use tower::ServiceExt;

use crate::client_address::client_address;
use crate::delivery_headers::preflight;
use crate::error::ApiError;
use crate::handlers::deliver::deliver;
use crate::layers::Outgoing;
use crate::reserved;
use crate::router::router;
use crate::state::AppState;

/// The service without a socket: a request in, an answer out. Cheap to clone.
#[derive(Clone)]
pub struct App {
    state: AppState,
    router: Router,
}

impl App {
    /// Puts the service together.
    pub fn new(state: AppState) -> Self {
        Self { router: router(state.clone()), state }
    }

    /// Answers a request.
    pub async fn call(&self, request: Request<Body>) -> Response<Body> {
        let outgoing = Outgoing::of(&request, self.state.next_request_id());
        outgoing.finish(self.answer(request).await)
    }

    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        if request.method() == Method::OPTIONS {
            return preflight(request.headers()).map(Body::from);
        }
        if let Some(address) = client_address(request.extensions())
            && let Err(refused) = self.state.allowances.take_request(address)
        {
            return ApiError::rate_limited(&refused).into_response();
        }
        if is_delivery(&request) {
            let (head, _) = request.into_parts();
            return deliver(&self.state, &head).await.into_response();
        }
        match self.router.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

/// Compared as sent: an address of ours in percent escapes is a bucket's, and no bucket has such a name.
fn is_delivery(request: &Request<Body>) -> bool {
    let path = request.uri().path().strip_prefix('/').unwrap_or("");
    let first = path.split('/').next().unwrap_or("");
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    is_read && !path.is_empty() && !matches!(first, reserved::API | reserved::OWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_delivered_and_the_rest_is_routed() {
        let is = |method: &str, path: &str| {
            let request = Request::builder().method(method).uri(path).body(Body::empty());
            is_delivery(&request.unwrap())
        };
        for path in ["/b/x", "/b", "/b/", "/b/api/x", "/apis/x", "/%61pi/x", "//b/x"] {
            assert!(is("GET", path) && is("HEAD", path), "{path}");
            assert!(!is("POST", path) && !is("DELETE", path), "{path}");
        }
        for path in ["/", "/api", "/api/", "/api/x", "/-/health", "/-", "/api?x=/b"] {
            assert!(!is("GET", path), "{path}");
        }
    }
}
