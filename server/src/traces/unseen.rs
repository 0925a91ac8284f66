//! Stubs without the build feature `otel`.

use http::StatusCode;
use http::request::Parts;

pub(crate) struct RequestSpan;

impl RequestSpan {
    pub(crate) fn start(_: &Parts, _: impl FnOnce() -> bool) -> Self {
        Self
    }

    pub(crate) fn instrument<F: Future>(self, answering: F) -> F {
        answering
    }
}

pub(crate) fn record_request(_: &'static str, _: Option<&str>, _: &str) {}

pub(crate) fn record_response(_: StatusCode) {}

/// Returns the future unchanged.
pub(crate) fn with_current_span<F: Future>(work: F) -> F {
    work
}

/// Returns the future unchanged.
pub(crate) fn child_span<F: Future>(_: &'static str, work: F) -> F {
    work
}
