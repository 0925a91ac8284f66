//! Limits of trace export.

use std::time::Duration;

/// Maximum queued spans; more are dropped.
pub const QUEUED_SPANS_MAX: usize = 4_096;
/// Maximum spans per export.
pub const BATCH_SPANS_MAX: usize = 512;
/// Maximum time that queued spans wait for a full batch.
pub const BATCH_DELAY: Duration = Duration::from_secs(2);
/// Time-out of the flush at shutdown.
pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
