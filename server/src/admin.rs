//! Admin listener for monitoring, on its own address and without authentication: metrics and health checks.
//!
//! Guarantees: the listener serves nothing else, and its requests count for no account or bucket. Non-goals: the
//! responses.

use std::sync::Arc;

use axum::body::Body;
use axum::response::IntoResponse;
use http::{Request, Response};
use protocol::error::{ApiError, ErrorMediaType};
use service::finish_response::finish_response;
use service::state::AppState;

use crate::routes::{Endpoint, Responder, Route, RouteTable};

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
        let id = self.state.request_ids.next();
        let media_type = ErrorMediaType::for_api(&head.headers);
        let (method, uri) = (head.method.clone(), head.uri.clone());
        let response = match self.routes.find(&method, uri.path()) {
            Endpoint::Route(Route { responder: Responder::Handler(handler), .. }, _) => {
                let request = Request::from_parts(head, Body::empty());
                handler(self.state.clone(), request).await
            }
            Endpoint::WrongMethod(allow) => ApiError::method_not_allowed(allow).into_response(),
            _ => ApiError::not_found().into_response(),
        };
        finish_response(&method, uri.path(), id, || media_type, response)
    }
}
