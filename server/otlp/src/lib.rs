//! Export of request traces to an OpenTelemetry collector, feature `export`.
//!
//! ```text
//! tracer      spans of `usage` as spans of OpenTelemetry
//! exporter    OTLP over HTTP
//! disabled    without the feature
//! ```

#[cfg(not(feature = "export"))]
mod disabled;
#[cfg(feature = "export")]
mod exporter;
#[cfg(feature = "export")]
mod tracer;

use protocol::destination::OutboundUrl;

#[cfg(not(feature = "export"))]
pub use self::disabled::SpanExport;
#[cfg(feature = "export")]
pub use self::exporter::SpanExport;

/// Whether this build exports spans.
pub const IS_AVAILABLE: bool = cfg!(feature = "export");

/// Collector and sampling of spans.
#[derive(Clone, Copy, Debug)]
pub struct ExportOptions<'a> {
    /// URL that receives spans.
    pub traces: &'a OutboundUrl,
    /// Fraction of traces to sample, from 0 to 1.
    pub sample_ratio: f64,
    pub service_name: &'a str,
}
