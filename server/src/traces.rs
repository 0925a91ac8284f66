//! Request traces as OpenTelemetry spans: one for a request until its response begins, with child spans for its long
//! steps.
//!
//! Without the feature `otel` these calls do nothing. Guarantees: a span contains the kind of request, never its path,
//! its query, a key or an address; a span that is not sampled costs one check. Non-goals: export.

#[cfg(feature = "otel")]
mod seen;
#[cfg(not(feature = "otel"))]
#[path = "traces/unseen.rs"]
mod seen;

pub(crate) use self::seen::{
    RequestSpan, child_span, record_request, record_response, with_current_span,
};
#[cfg(feature = "otel")]
pub(crate) use self::seen::{record_route, set_tracer};
