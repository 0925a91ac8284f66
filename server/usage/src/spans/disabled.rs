//! Stubs without the build feature `otel`.

use std::sync::Arc;

use http::StatusCode;
use http::request::Parts;
use protocol::request_id::RequestId;
use rustls::ClientConfig;

use super::OtlpSettings;

pub struct RequestSpan;

impl RequestSpan {
    pub fn start(_: &Parts, _: impl FnOnce() -> bool) -> Self {
        Self
    }

    pub fn instrument<F: Future>(self, answering: F) -> F {
        answering
    }
}

pub fn record_request(_: &'static str, _: Option<&str>, _: RequestId) {}

pub fn record_response(_: StatusCode) {}

pub fn record_route(_: &'static str) {}

/// Returns the future unchanged.
pub fn with_current_span<F: Future>(work: F) -> F {
    work
}

/// Returns the future unchanged.
pub fn child_span<F: Future>(_: &'static str, work: F) -> F {
    work
}

/// Exporter without spans. Never started: the settings that enable it are refused.
pub struct OtlpSpanExporter;

impl OtlpSpanExporter {
    pub fn start(_: &OtlpSettings, _: Arc<ClientConfig>) -> Self {
        Self
    }

    pub async fn stop(self) {}
}
