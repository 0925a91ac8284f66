//! Spans of requests as spans of OpenTelemetry.

use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{SpanKind, Status, TraceContextExt, Tracer as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracer;
use protocol::request_id::RequestId;
use usage::spans::{Span, Tracer};

/// Source of sampled spans.
pub(crate) struct OtlpTracer(pub(crate) SdkTracer);

struct OtlpSpan {
    tracer: SdkTracer,
    context: Context,
}

impl Tracer for OtlpTracer {
    fn start_request(&self, head: &Parts, is_trusted: bool) -> Option<Arc<dyn Span>> {
        let none = Context::new();
        let caller = match is_trusted {
            true => TraceContextPropagator::new()
                .extract_with_context(&none, &HeaderExtractor(&head.headers)),
            false => none,
        };
        let method = method_name(&head.method);
        let builder = self.0.span_builder(method).with_kind(SpanKind::Server);
        let builder = builder.with_attributes([KeyValue::new("http.request.method", method)]);
        let context = caller.with_span(self.0.build_with_context(builder, &caller));
        if !context.span().is_recording() {
            return None;
        }
        Some(Arc::new(OtlpSpan { tracer: self.0.clone(), context }))
    }
}

impl Span for OtlpSpan {
    fn record_request(
        &self,
        operation: &'static str,
        route: Option<&'static str>,
        bucket: Option<&str>,
        id: RequestId,
    ) {
        let span = self.context.span();
        span.update_name(operation);
        span.set_attribute(KeyValue::new("trug.operation", operation));
        span.set_attribute(KeyValue::new("trug.request_id", id.to_string()));
        if let Some(path) = route {
            span.set_attribute(KeyValue::new("http.route", path));
        }
        if let Some(bucket) = bucket {
            span.set_attribute(KeyValue::new("trug.bucket", bucket.to_owned()));
        }
    }

    fn record_response(&self, status: StatusCode) {
        let span = self.context.span();
        let code = KeyValue::new("http.response.status_code", i64::from(status.as_u16()));
        span.set_attribute(code);
        if status.is_server_error() {
            span.set_attribute(KeyValue::new("error.type", status.as_u16().to_string()));
            span.set_status(Status::error(""));
        }
    }

    fn start_child(&self, name: &'static str) -> Arc<dyn Span> {
        let tracer = self.tracer.clone();
        let span = tracer.start_with_context(name, &self.context);
        Arc::new(Self { tracer, context: self.context.with_span(span) })
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

struct HeaderExtractor<'a>(&'a HeaderMap);

impl Extractor for HeaderExtractor<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(|name| name.as_str()).collect()
    }
}
