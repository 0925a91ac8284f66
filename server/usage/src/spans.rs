//! Request traces as OpenTelemetry spans: one for a request until its response begins, with child spans for its long
//! steps; and their export.
//!
//! ```text
//! otel        spans of the current request
//! exporter    OTLP over HTTP
//! disabled    both without the feature `otel`: calls do nothing
//! ```
//!
//! Guarantees: a span contains the kind of request, never its path, its query, a key or an address; a span that is not
//! sampled costs one check.

#[cfg(not(feature = "otel"))]
mod disabled;
#[cfg(feature = "otel")]
mod exporter;
#[cfg(feature = "otel")]
mod otel;

use protocol::destination::OutboundUrl;

#[cfg(not(feature = "otel"))]
pub use self::disabled::{
    OtlpSpanExporter, RequestSpan, child_span, record_request, record_response, record_route,
    with_current_span,
};
#[cfg(feature = "otel")]
pub use self::exporter::OtlpSpanExporter;
#[cfg(feature = "otel")]
pub use self::otel::{
    RequestSpan, child_span, record_request, record_response, record_route, with_current_span,
};

/// Whether this build has the feature `otel`.
pub const IS_AVAILABLE: bool = cfg!(feature = "otel");

/// Collector and sampling of spans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtlpSettings {
    pub traces: OutboundUrl,
    pub sample_ratio: Ratio,
    pub service_name: String,
}

/// Ratio from 0 to 1, with a precision of one millionth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio(u32);

const PARTS_PER_ONE: u32 = 1_000_000;

impl Ratio {
    /// Ratio 1.
    pub const ONE: Self = Self(PARTS_PER_ONE);

    /// Creates a ratio. `None` outside 0 to 1.
    pub fn from_f64(part: f64) -> Option<Self> {
        (0.0..=1.0).contains(&part).then(|| Self((part * f64::from(PARTS_PER_ONE)).round() as u32))
    }

    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / f64::from(PARTS_PER_ONE)
    }
}
