//! Bounds of what is told a collector of traces.

use std::time::Duration;

/// Spans that wait to be sent; more are dropped.
pub const WAITING_MAX: usize = 4_096;
/// Spans that are sent at once.
pub const SENT_MAX: usize = 512;
/// How long they wait, where fewer come.
pub const SEND_WAIT: Duration = Duration::from_secs(2);
/// How long what waits may take when the server stops.
pub const STOP_WAIT: Duration = Duration::from_secs(5);
