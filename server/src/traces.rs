//! What requests take their time for, as spans of OpenTelemetry: one for a request until its answer begins, and within
//! it one for each step that takes long.
//!
//! Without the feature `otel` nothing of this is there, and what is called here does nothing.
//! Promises: a span says what kind of request it was, never its path, its query, a key or an address; spans that nobody
//! wants cost a look. Never here: where they go.

#[cfg(feature = "otel")]
mod seen;
#[cfg(not(feature = "otel"))]
#[path = "traces/unseen.rs"]
mod seen;

pub(crate) use self::seen::{RequestSpan, carried, note_answer, note_request, step};
#[cfg(feature = "otel")]
pub(crate) use self::seen::{install, note_route};
