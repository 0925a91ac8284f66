//! Spans of request traces: one for a request until its response begins, with child spans for its long steps.
//!
//! Guarantees: a span contains the kind of request, never its path, its query, a key or an address. Without a tracer,
//! or for a request that is not sampled, a call costs one check. Non-goals: sampling, export.

use std::sync::{Arc, OnceLock};

use http::StatusCode;
use http::request::Parts;
use protocol::request_id::RequestId;

static TRACER: OnceLock<Box<dyn Tracer>> = OnceLock::new();

tokio::task_local! {
    static CURRENT: Option<Arc<dyn Span>>;
}

/// Source of spans.
pub trait Tracer: Send + Sync {
    /// Starts the span of a request, `None` if it is not sampled. The trace context of the request (`traceparent`, W3C)
    /// is adopted from trusted peers only.
    fn start_request(&self, head: &Parts, is_trusted: bool) -> Option<Arc<dyn Span>>;
}

/// Sampled span, which ends when it is dropped.
pub trait Span: Send + Sync {
    /// Records operation, path of the route, bucket and id of the request.
    fn record_request(
        &self,
        operation: &'static str,
        route: Option<&'static str>,
        bucket: Option<&str>,
        id: RequestId,
    );

    /// Records the status of the response.
    fn record_response(&self, status: StatusCode);

    /// Starts a span of a step of the request.
    fn start_child(&self, name: &'static str) -> Arc<dyn Span>;
}

/// Enables spans for the rest of the process. Only its first tracer is used.
pub fn install(tracer: impl Tracer + 'static) {
    let _ = TRACER.set(Box::new(tracer));
}

/// Starts the span of a request. `None` without a tracer, and if it does not sample the request.
pub fn start_request(head: &Parts, is_trusted: impl FnOnce() -> bool) -> Option<Arc<dyn Span>> {
    TRACER.get()?.start_request(head, is_trusted())
}

/// Runs a future within a span.
pub fn within<F: Future>(span: Option<Arc<dyn Span>>, work: F) -> impl Future<Output = F::Output> {
    CURRENT.scope(span, work)
}

/// Runs a future within a child of the current span.
pub fn child_span<F: Future>(name: &'static str, work: F) -> impl Future<Output = F::Output> {
    within(current().map(|span| span.start_child(name)), work)
}

/// Runs a future of another task within the current span.
pub fn with_current_span<F: Future>(work: F) -> impl Future<Output = F::Output> {
    within(current(), work)
}

/// Returns the current span. `None` outside of a sampled request.
fn current() -> Option<Arc<dyn Span>> {
    CURRENT.try_with(Option::clone).ok().flatten()
}
