//! Spans of the current request.

use std::sync::OnceLock;

use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{FutureExt, SpanKind, Status, TraceContextExt, Tracer};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracer;
use protocol::request_id::RequestId;

static TRACER: OnceLock<SdkTracer> = OnceLock::new();

/// Installs the tracer, which enables spans.
pub(super) fn set_tracer(tracer: SdkTracer) {
    // A process has one server; further ones, in tests, use the first tracer.
    let _ = TRACER.set(tracer);
}

/// Span of a request, from its head to the start of its response.
pub struct RequestSpan(Context);

impl RequestSpan {
    /// Starts the span. The trace context of the request (`traceparent`, W3C) is adopted only from trusted peers.
    pub fn start(head: &Parts, is_trusted: impl FnOnce() -> bool) -> Self {
        let Some(tracer) = TRACER.get() else { return Self(Context::new()) };
        let caller = match head.headers.contains_key("traceparent") && is_trusted() {
            true => {
                let none = Context::new();
                TraceContextPropagator::new()
                    .extract_with_context(&none, &HeaderExtractor(&head.headers))
            }
            false => Context::new(),
        };
        let method = method_name(&head.method);
        let builder = tracer.span_builder(method).with_kind(SpanKind::Server);
        let builder = builder.with_attributes([KeyValue::new("http.request.method", method)]);
        let span = tracer.build_with_context(builder, &caller);
        Self(caller.with_span(span))
    }

    /// Runs a future within the span.
    pub fn instrument<F: Future>(self, answering: F) -> impl Future<Output = F::Output> {
        answering.with_context(self.0)
    }
}

/// Returns the method for the span; unknown methods, which clients may invent, are replaced.
fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "_OTHER",
    }
}

/// Records operation, bucket and id of the current request.
pub fn record_request(operation: &'static str, bucket: Option<&str>, request_id: RequestId) {
    let context = Context::current();
    let span = context.span();
    if !span.is_recording() {
        return;
    }
    span.update_name(operation);
    span.set_attribute(KeyValue::new("trug.operation", operation));
    span.set_attribute(KeyValue::new("trug.request_id", request_id.to_string()));
    if let Some(bucket) = bucket {
        span.set_attribute(KeyValue::new("trug.bucket", bucket.to_owned()));
    }
}

/// Records the path of the route of the current request.
pub fn record_route(path: &'static str) {
    let context = Context::current();
    if context.span().is_recording() {
        context.span().set_attribute(KeyValue::new("http.route", path));
    }
}

/// Records the response status of the current request.
pub fn record_response(status: StatusCode) {
    let context = Context::current();
    let span = context.span();
    if !span.is_recording() {
        return;
    }
    let code = KeyValue::new("http.response.status_code", i64::from(status.as_u16()));
    span.set_attribute(code);
    if status.is_server_error() {
        span.set_attribute(KeyValue::new("error.type", status.as_u16().to_string()));
        span.set_status(Status::error(""));
    }
}

/// Runs a future as a child span of the current request.
pub fn child_span<F: Future>(name: &'static str, work: F) -> impl Future<Output = F::Output> {
    let request = Context::current();
    let context = match TRACER.get().filter(|_| request.span().is_recording()) {
        Some(tracer) => request.with_span(tracer.start_with_context(name, &request)),
        None => request,
    };
    work.with_context(context)
}

struct HeaderExtractor<'a>(&'a HeaderMap);

impl Extractor for HeaderExtractor<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(|name| name.as_str()).collect()
    }
}

/// Carries the current request's span to another task.
pub fn with_current_span<F: Future>(work: F) -> impl Future<Output = F::Output> {
    work.with_current_context()
}
