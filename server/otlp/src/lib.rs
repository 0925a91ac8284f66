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

#[cfg(not(feature = "export"))]
pub use self::disabled::SpanExport;
#[cfg(feature = "export")]
pub use self::exporter::SpanExport;

/// Whether this build exports spans.
pub const IS_AVAILABLE: bool = cfg!(feature = "export");
