//! Stubs without the build feature `otel`.

use http::StatusCode;
use http::request::Parts;

pub(crate) struct RequestSpan;

impl RequestSpan {
    pub(crate) fn begin(_: &Parts, _: impl FnOnce() -> bool) -> Self {
        Self
    }

    pub(crate) fn around<F: Future>(self, answering: F) -> F {
        answering
    }
}

pub(crate) fn note_request(_: &'static str, _: Option<&str>, _: &str) {}

pub(crate) fn note_answer(_: StatusCode) {}

/// Returns the future unchanged.
pub(crate) fn carried<F: Future>(work: F) -> F {
    work
}

/// Returns the future unchanged.
pub(crate) fn step<F: Future>(_: &'static str, work: F) -> F {
    work
}
