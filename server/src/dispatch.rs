//! Dispatch: a GET or HEAD of a file is delivered directly, every other request goes to its route.
//!
//! Delivery is most of the load and has a single URL form, so it bypasses the route table and its extractors.
//! Guarantees: an address over its rate limit is rejected before any lookup; a path that starts with a reserved segment
//! is never taken for a bucket; every OPTIONS request is answered as a preflight. Non-goals: delivery and the endpoints
//! themselves.

use std::sync::Arc;

use axum::body::Body;
use axum::response::IntoResponse;
use catalog::{Bucket, CorsOrigins};
use http::request::Parts;
use http::{Extensions, HeaderValue, Method, Request, Response, StatusCode, header};
use listener::ip_network::any_contains;
use listener::trusted_proxies::{apply_forwarded_for, client_ip};
use protocol::error::ApiError;
use protocol::object_path::ObjectPath;
use protocol::query::Query;
use protocol::reserved_paths::{self, is_dashboard_path};
use protocol::response_headers::{allow_no_origin, preflight_response, restrict_origins};
use protocol::tus_headers::option_headers;
use usage::operation::Operation;
use usage::registry::ServerCounters;
use usage::rejection::{AuthFailure, Limited};
use usage::request_meter::{MeteredBody, RequestMeter, ResponseCounter};
use usage::spans::{RequestSpan, record_request, record_response, record_route};

use crate::admission::admit;
use crate::auth::presents_key;
use crate::config::Scheme;
use crate::cors::CorsRequest;
use crate::handlers::deliver::deliver;
use crate::handlers::presign::presign_address;
use crate::layers::ResponseContext;
use crate::routes::{RouteMatch, RouteTable, is_reserved_path};
use crate::state::AppState;

/// HTTP service without a socket: request in, response out. Cheap to clone.
#[derive(Clone)]
pub struct HttpService {
    state: AppState,
    routes: Arc<RouteTable>,
    #[cfg(feature = "s3")]
    gateway: crate::s3::S3Gateway,
}

impl HttpService {
    /// Assembles the service.
    pub fn new(state: AppState) -> Self {
        Self {
            routes: Arc::new(RouteTable::new(state.config().metrics_token.is_some())),
            #[cfg(feature = "s3")]
            gateway: crate::s3::S3Gateway::new(state.clone()),
            state,
        }
    }

    /// Handles a request. The futures of the less common responses are boxed, because hyper moves this future twice for
    /// every request.
    pub fn call(
        &self,
        request: Request<Body>,
    ) -> impl Future<Output = Response<MeteredBody>> + Send {
        let (mut head, body) = request.into_parts();
        let span = RequestSpan::start(&head, || self.is_of_trusted_proxy(&head.extensions));
        apply_forwarded_for(&mut head, &self.state.config().trusted_proxies);
        span.instrument(self.answer(head, body))
    }

    /// Returns whether the peer is a trusted proxy whose client is not resolved yet.
    fn is_of_trusted_proxy(&self, extensions: &Extensions) -> bool {
        let proxies = &self.state.config().trusted_proxies;
        client_ip(extensions).is_some_and(|peer| any_contains(peer, proxies))
    }

    async fn answer(&self, head: Parts, body: Body) -> Response<MeteredBody> {
        let began_us = self.state.clock.monotonic_us();
        let outgoing = ResponseContext::from_request(&head, self.state.next_request_id());
        // Parsed once, for CORS and for delivery.
        let signed_path = self.signed_path(&head);
        let is_signed = signed_path.is_some();
        let is_delivered = is_delivery(&head) && !is_signed;
        let target = is_delivered.then(|| ObjectPath::from_path(head.uri.path()));
        let route = match is_delivered || is_signed {
            true => RouteMatch::NotFound,
            false => self.routes.find(&head.method, head.uri.path()),
        };
        let operation = match (&target, &signed_path, &route) {
            (Some(_), ..) if is_presigning(&head) => Operation::Presign,
            (Some(_), ..) => Operation::for_delivery(head.uri.query()),
            (None, Some(path), _) => Operation::for_s3(&head.method, path),
            _ if head.method == Method::OPTIONS => Operation::Preflight,
            (.., RouteMatch::Found(route, _)) => route.operation,
            _ => Operation::Other,
        };
        let path = signed_path.as_deref().unwrap_or(head.uri.path());
        let bucket = self.bucket(path, target.as_ref());
        let bucket_name = bucket.as_ref().map(|bucket| bucket.name.as_str());
        record_request(operation.name(), bucket_name, outgoing.request_id());
        let origins = origins(&head, target.is_some(), bucket.as_ref());
        let cors = CorsRequest::of(&head, bucket.as_ref()).map(Box::new);
        let is_for_own_pages = !is_delivered && !is_signed && is_dashboard_path(head.uri.path());
        let nobody = self.state.catalog.unattributed_usage();
        let (answer, traffic) = match target {
            Some(target) => {
                drop(body);
                let answer = self.deliver(&head, target, bucket.as_ref(), operation).await;
                (answer, bucket.as_ref().map_or(nobody, |bucket| &bucket.traffic).clone())
            }
            None => {
                let named = bucket.as_ref().map(|bucket| &bucket.traffic);
                let shard = self.state.metrics.local_shard();
                let meter = RequestMeter::new(outgoing.request_id(), named, shard);
                let request = Request::from_parts(head, body);
                let answer = match &cors {
                    Some(cors) if *request.method() == Method::OPTIONS => cors
                        .preflight()
                        .map_or_else(IntoResponse::into_response, |it| it.map(Body::from)),
                    _ => Box::pin(self.route(request, route, &meter, operation)).await,
                };
                (answer, meter.finish(nobody))
            }
        };
        let mut response = outgoing.finish(answer);
        if let Some(cors) = &cors {
            cors.write(response.headers_mut());
        } else if let Some((bucket, origin)) = origins {
            let is_allowed = |origin: &str| bucket.cors_origins.allow(origin);
            restrict_origins(response.headers_mut(), is_allowed, origin.as_ref());
        }
        if is_for_own_pages {
            allow_no_origin(response.headers_mut());
        }
        if !is_delivered && let Some(hsts) = self.hsts() {
            response.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, hsts);
        }
        traffic.count_response(response.status(), self.state.clock.unix_ms());
        record_response(response.status());
        if response.status().is_client_error() {
            count_rejection(&self.state.metrics, &response);
        }
        let shard = self.state.metrics.local_shard().clone();
        let took_us = self.state.clock.monotonic_us().saturating_sub(began_us);
        shard.record_response(operation, response.status(), took_us);
        response.map(|body| MeteredBody::new(body, ResponseCounter { traffic, shard }))
    }

    /// Returns the `Strict-Transport-Security` value, if this listener uses TLS.
    fn hsts(&self) -> Option<HeaderValue> {
        let config = self.state.config();
        let hsts = config.hsts.filter(|_| config.scheme() == Scheme::Https)?;
        HeaderValue::try_from(format!("max-age={}", hsts.as_secs())).ok()
    }

    /// Returns the path of a signed S3 request, prefixed with its bucket for virtual-hosted-style requests. `None`
    /// without the S3 gateway.
    fn signed_path(&self, head: &Parts) -> Option<String> {
        #[cfg(feature = "s3")]
        return crate::s3::path_of(&self.state, head);
        #[cfg(not(feature = "s3"))]
        {
            let _ = head;
            None
        }
    }

    /// Returns the bucket that a path names, if it exists.
    fn bucket(&self, path: &str, delivered: Option<&Delivered>) -> Option<Arc<Bucket>> {
        match delivered {
            Some(Ok(target)) => self.state.catalog.bucket(&target.bucket),
            None if is_reserved_path(path) => None,
            // The path after the bucket is invalid or irrelevant.
            _ => self.state.catalog.bucket(&ObjectPath::bucket_of_path(path)?),
        }
    }

    /// Rejects an address that is over its rate limit.
    fn charge_address(&self, extensions: &Extensions) -> Result<(), ApiError> {
        let Some(address) = client_ip(extensions) else { return Ok(()) };
        let taken = self.state.rate_limiter.charge_request(address);
        taken.map_err(ApiError::from)
    }

    async fn deliver(
        &self,
        request: &Parts,
        target: Delivered,
        bucket: Option<&Arc<Bucket>>,
        operation: Operation,
    ) -> Response<Body> {
        if let Err(refusal) = self.charge_address(&request.extensions) {
            return refusal.into_response();
        }
        if operation == Operation::Presign {
            return presign_address(&self.state, request).into_response();
        }
        match target {
            Ok(target) => deliver(&self.state, request, target, bucket).await.into_response(),
            Err(refusal) => refusal.into_response(),
        }
    }

    async fn route(
        &self,
        request: Request<Body>,
        route: RouteMatch<'_>,
        meter: &RequestMeter,
        operation: Operation,
    ) -> Response<Body> {
        let is_upload = operation.is_upload(request.method());
        let _ends = is_upload.then(|| self.state.metrics.track_upload());
        if request.method() == Method::OPTIONS {
            return self.options(&request);
        }
        if let Err(refusal) = self.charge_address(request.extensions()) {
            return refusal.into_response();
        }
        let mut request = request.map(|body| meter.wrap_request_body(body));
        request.extensions_mut().insert(meter.clone());
        #[cfg(feature = "s3")]
        if crate::s3::is_signed_request(&request) {
            return self.gateway.handle(request).await;
        }
        #[cfg(feature = "s3")]
        if crate::s3::is_form_upload(&self.state, &request) {
            return self.gateway.answer_form(request).await;
        }
        match route {
            RouteMatch::Found(route, params) => {
                record_route(route.path);
                request.extensions_mut().insert(params);
                admit(self.state.clone(), route.access, request, route.handler).await
            }
            RouteMatch::WrongMethod(allow) => ApiError::method_not_allowed(allow).into_response(),
            RouteMatch::NotFound => ApiError::not_found().into_response(),
        }
    }

    /// Returns a preflight response, with the allowed methods of the path where these do not depend on the request; in
    /// a bucket they do.
    fn options(&self, request: &Request<Body>) -> Response<Body> {
        #[cfg(feature = "s3")]
        if crate::s3::is_signed_address(request.uri())
            && !request.headers().contains_key(header::ORIGIN)
        {
            let message = "A preflight request requires the headers Origin and \
                Access-Control-Request-Method";
            return ApiError::bad_request(message).into_response();
        }
        let mut response = preflight_response(request.headers()).map(Body::from);
        if is_tus(request.uri().path()) {
            option_headers(response.headers_mut());
        }
        if is_reserved_path(request.uri().path()) {
            let methods = self.routes.allowed_methods(request.uri().path());
            let methods = methods.and_then(|methods| HeaderValue::from_str(methods).ok());
            response.headers_mut().extend(methods.map(|methods| (header::ALLOW, methods)));
        }
        response
    }
}

/// Target of a delivery, or why the path has none.
type Delivered = Result<ObjectPath, ApiError>;

/// Returns the bucket whose allowed origins apply to the response, if it has any, and the origin of the request; for
/// deliveries and preflights. Errors about a bucket count as its responses.
fn origins(
    request: &Parts,
    is_delivery: bool,
    bucket: Option<&Arc<Bucket>>,
) -> Option<(Arc<Bucket>, Option<HeaderValue>)> {
    let is_asked = is_delivery || request.method == Method::OPTIONS;
    let bucket = bucket.filter(|bucket| is_asked && bucket.cors_origins != CorsOrigins::Any)?;
    Some((bucket.clone(), request.headers.get(header::ORIGIN).cloned()))
}

/// Counts a rejected request by reason.
#[cold]
fn count_rejection(measures: &ServerCounters, response: &Response<Body>) {
    let Some(error) = response.extensions().get::<ApiError>() else { return };
    if error.status() == StatusCode::TOO_MANY_REQUESTS {
        measures.count_rate_limited(Limited::from_error_code(error.code(), error.policy()));
    } else if let Some(kind) = AuthFailure::of(error.code()) {
        measures.count_auth_failure(kind);
    }
}

fn is_tus(path: &str) -> bool {
    path.strip_prefix("/api/tus").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn is_delivery(request: &Parts) -> bool {
    let is_read = matches!(request.method, Method::GET | Method::HEAD);
    is_read && !is_reserved_path(request.uri.path())
}

/// Returns whether a request uses the earlier presign form, `/{bucket}/presigned/{*path}`: with a key it creates a
/// presigned URL, without one it requests a file.
fn is_presigning(head: &Parts) -> bool {
    head.method == Method::GET
        && head.uri.path().split('/').nth(2) == Some(reserved_paths::PRESIGNED)
        && presents_key(&head.headers, &Query::from_uri(&head.uri))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_delivered_and_the_rest_is_routed() {
        let is = |method: &str, path: &str| {
            let request = Request::builder().method(method).uri(path).body(());
            is_delivery(&request.unwrap().into_parts().0)
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
