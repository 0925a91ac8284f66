//! Dispatch: from a request to the response of its endpoint, with what concerns every request.
//!
//! Guarantees: an address over its rate limit is rejected before its credentials are looked up; every response is
//! counted once, for one bucket. Non-goals: which endpoint a request has (`routes`), and the endpoints themselves.

use std::sync::Arc;

use axum::body::Body;
use axum::response::IntoResponse;
use catalog::Bucket;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use listener::ip_network::any_contains;
use listener::peer::Peer;
use listener::trusted_proxies::client_ip;
use protocol::error::{ApiError, ErrorMediaType};
use protocol::object_path::ObjectPath;
use protocol::reserved_paths::is_dashboard_path;
use protocol::response_headers::{allow_no_origin, preflight_response};
use protocol::tus_headers::option_headers;
use service::admission::admit;
use service::config::Scheme;
use service::cors::CorsHeaders;
use service::delivery::deliver;
use service::finish_response::finish_response;
use service::request_context::{RequestContext, RoutedContext, RoutedPath};
use service::state::AppState;
use usage::bucket_counters::BucketCounters;
use usage::registry::ServerCounters;
use usage::rejection::{AuthFailure, Limited};
use usage::request_meter::{MeteredBody, RequestMeter, ResponseCounter};
use usage::spans;

use crate::routes::{Endpoint, Entry, Responder, Route, RouteTable, is_reserved_path};

/// HTTP service without a socket: request in, response out. Cheap to clone.
#[derive(Clone)]
pub struct HttpService {
    state: AppState,
    routes: Arc<RouteTable>,
    #[cfg(feature = "s3")]
    gateway: s3::S3Gateway,
}

impl HttpService {
    /// Assembles the service.
    pub fn new(state: AppState) -> Self {
        Self {
            routes: Arc::new(RouteTable::new(state.config().metrics_token.is_some())),
            #[cfg(feature = "s3")]
            gateway: s3::S3Gateway::new(state.clone()),
            state,
        }
    }

    /// Handles a request. The futures of the less common responses are boxed, because this future is moved several
    /// times for every request.
    pub fn call(
        &self,
        request: Request<Body>,
        peer: Peer,
    ) -> impl Future<Output = Response<MeteredBody>> + Send + use<> {
        let (head, body) = request.into_parts();
        let service = self.clone();
        async move {
            let began_us = service.state.clock.monotonic_us();
            let entry = service.routes.entry(&service.state, &head);
            let context = service.context(&head, peer, &entry, began_us);
            match entry {
                Entry::Delivery(_, target) => {
                    drop(body);
                    service.deliver(&context, &head, target).await
                }
                Entry::Endpoint(endpoint) => {
                    let span = context.span.clone();
                    let routed = service.route(context, endpoint, head, body);
                    spans::within(span, Box::pin(routed)).await
                }
            }
        }
    }

    /// Delivers a file.
    async fn deliver(
        &self,
        context: &RequestContext,
        head: &Parts,
        target: Result<ObjectPath, ApiError>,
    ) -> Response<MeteredBody> {
        let response = match self.charge_address(context).and(target) {
            Ok(target) => {
                let deliver = || deliver(&self.state, context, head, target);
                // Most requests are not sampled: their futures are neither boxed nor wrapped.
                let delivered = match &context.span {
                    None => deliver().await,
                    span => spans::within(span.clone(), Box::pin(deliver())).await,
                };
                delivered.into_response()
            }
            Err(error) => error.into_response(),
        };
        let nobody = self.state.catalog.usage().unattributed();
        let counters = context.bucket.as_ref().map_or(nobody, |bucket| &bucket.traffic);
        let (method, uri) = (&head.method, &head.uri);
        let media_type = || ErrorMediaType::for_file(&head.headers);
        self.finish(context, method, uri, media_type, response, counters.clone())
    }

    /// Reads what is known of a request from its head.
    fn context(
        &self,
        head: &Parts,
        peer: Peer,
        entry: &Entry<'_>,
        began_us: u64,
    ) -> RequestContext {
        let proxies = &self.state.config().trusted_proxies;
        let is_trusted = || peer.ip().is_some_and(|address| any_contains(address, proxies));
        let span = spans::start_request(head, is_trusted);
        let id = self.state.request_ids.next();
        let operation = entry.operation();
        let bucket = self.bucket(head, entry);
        if let Some(span) = &span {
            let route = entry.route().map(|route| route.path);
            let bucket = bucket.as_ref().map(|bucket| bucket.name.as_str());
            span.record_request(operation.name(), route, bucket, id);
        }
        RequestContext {
            id,
            began_us,
            operation,
            client: client_ip(peer, &head.headers, proxies),
            cors: CorsHeaders::of(head, bucket.as_ref(), entry.is_of_file()),
            bucket,
            span,
        }
    }

    /// Returns the bucket that the path of a request names, if it exists.
    fn bucket(&self, head: &Parts, entry: &Entry<'_>) -> Option<Arc<Bucket>> {
        let path = match entry {
            Entry::Delivery(_, Ok(target))
            | Entry::Endpoint(Endpoint::Route(_, RoutedPath::Object(Ok(target)))) => {
                return self.state.catalog.buckets().get(&target.bucket);
            }
            Entry::Endpoint(Endpoint::Route(_, RoutedPath::Gateway(path))) => path,
            Entry::Endpoint(Endpoint::Route(_, RoutedPath::Own(_))) => return None,
            _ => head.uri.path(),
        };
        // The path after the bucket is invalid or irrelevant.
        let name = (!is_reserved_path(path)).then(|| ObjectPath::bucket_of_path(path))??;
        self.state.catalog.buckets().get(&name)
    }

    /// Rejects an address that is over its rate limit.
    fn charge_address(&self, context: &RequestContext) -> Result<(), ApiError> {
        let Some(address) = context.client else { return Ok(()) };
        self.state.rate_limiter.charge_request(address).map_err(ApiError::from)
    }

    /// Handles a request that is not a delivery.
    async fn route(
        &self,
        context: RequestContext,
        endpoint: Endpoint<'_>,
        head: Parts,
        body: Body,
    ) -> Response<MeteredBody> {
        let (method, uri) = (head.method.clone(), head.uri.clone());
        let media_type = ErrorMediaType::for_api(&head.headers);
        let is_signed = matches!(endpoint, Endpoint::Route(_, RoutedPath::Gateway(_)));
        let is_for_own_pages = !is_signed && is_dashboard_path(uri.path());
        let counters = context.bucket.as_ref().map(|bucket| &bucket.traffic);
        let meter = RequestMeter::new(counters, self.state.metrics.local_shard());
        let is_upload = context.operation.is_upload(&method);
        let in_flight = is_upload.then(|| self.state.metrics.track_upload());
        let response = self.handle(&context, endpoint, head, body, &meter).await;
        drop(in_flight);
        let counters = meter.finish(self.state.catalog.usage().unattributed());
        let mut response = self.finish(&context, &method, &uri, || media_type, response, counters);
        if is_for_own_pages {
            allow_no_origin(response.headers_mut());
        }
        if let Some(hsts) = self.hsts() {
            response.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, hsts);
        }
        response
    }

    /// Runs the endpoint. The futures of the S3 gateway are boxed: otherwise the future of this function, which is
    /// moved for every request, would be as large as they are.
    async fn handle(
        &self,
        context: &RequestContext,
        endpoint: Endpoint<'_>,
        head: Parts,
        body: Body,
        meter: &RequestMeter,
    ) -> Response<Body> {
        if !matches!(endpoint, Endpoint::Preflight(_))
            && let Err(error) = self.charge_address(context)
        {
            return error.into_response();
        }
        match endpoint {
            Endpoint::Route(route, path) => {
                let (mut head, body) = (head, meter.wrap_request_body(body));
                head.extensions.insert(RoutedContext::new(context, meter.clone(), path));
                self.respond(route, Request::from_parts(head, body)).await
            }
            Endpoint::Preflight(allow) => preflight(&head, &context.cors, allow),
            Endpoint::WrongMethod(allow) => ApiError::method_not_allowed(allow).into_response(),
            Endpoint::NotFound => ApiError::not_found().into_response(),
        }
    }

    /// Responds to the request of a route. Deliveries do not come here.
    async fn respond(&self, route: &'static Route, request: Request<Body>) -> Response<Body> {
        match route.responder {
            Responder::Handler(handler) => {
                admit(self.state.clone(), route.access, request, handler).await
            }
            #[cfg(feature = "s3")]
            Responder::Gateway => Box::pin(self.gateway.handle(request)).await,
            #[cfg(feature = "s3")]
            Responder::GatewayForm => Box::pin(self.gateway.answer_form(request)).await,
            _ => ApiError::not_found().into_response(),
        }
    }

    /// Completes a response, and counts it.
    fn finish(
        &self,
        context: &RequestContext,
        method: &Method,
        uri: &Uri,
        media_type: impl FnOnce() -> ErrorMediaType,
        response: Response<Body>,
        traffic: Arc<BucketCounters>,
    ) -> Response<MeteredBody> {
        let mut response = finish_response(method, uri.path(), context.id, media_type, response);
        context.cors.write(response.headers_mut());
        traffic.count_response(response.status(), self.state.clock.unix_ms());
        if let Some(span) = &context.span {
            span.record_response(response.status());
        }
        if response.status().is_client_error() {
            count_rejection(&self.state.metrics, &response);
        }
        let shard = self.state.metrics.local_shard().clone();
        let took_us = self.state.clock.monotonic_us().saturating_sub(context.began_us);
        shard.record_response(context.operation, response.status(), took_us);
        response.map(|body| MeteredBody::new(body, ResponseCounter { traffic, shard }))
    }

    /// Returns the `Strict-Transport-Security` value, if this listener uses TLS.
    fn hsts(&self) -> Option<HeaderValue> {
        let config = self.state.config();
        let hsts = config.hsts.filter(|_| config.scheme() == Scheme::Https)?;
        HeaderValue::try_from(format!("max-age={}", hsts.as_secs())).ok()
    }
}

/// Returns the response to OPTIONS, with the methods of the path if these do not depend on the request.
fn preflight(head: &Parts, cors: &CorsHeaders, allow: Option<&str>) -> Response<Body> {
    if let CorsHeaders::Rules(cors) = cors {
        return cors.preflight().map_or_else(IntoResponse::into_response, |it| it.map(Body::from));
    }
    #[cfg(feature = "s3")]
    if s3::is_signed_address(&head.uri) && !head.headers.contains_key(header::ORIGIN) {
        return ApiError::incomplete_preflight().into_response();
    }
    let mut response = preflight_response(&head.headers).map(Body::from);
    if is_tus(head.uri.path()) {
        option_headers(response.headers_mut());
    }
    let allow = allow.and_then(|methods| HeaderValue::from_str(methods).ok());
    response.headers_mut().extend(allow.map(|methods| (header::ALLOW, methods)));
    response
}

/// Counts a rejected request by reason.
#[cold]
fn count_rejection(metrics: &ServerCounters, response: &Response<Body>) {
    let Some(error) = response.extensions().get::<ApiError>() else { return };
    if error.status() == StatusCode::TOO_MANY_REQUESTS {
        metrics.count_rate_limited(Limited::from_error_code(error.code(), error.policy()));
    } else if let Some(kind) = AuthFailure::of(error.code()) {
        metrics.count_auth_failure(kind);
    }
}

fn is_tus(path: &str) -> bool {
    path.strip_prefix("/api/tus").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
