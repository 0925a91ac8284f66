//! Limits of the crate `usage`, each with its source; see `limits.rs` of the server.

use std::time::Duration;

/// Maximum shards of a metric that many threads count concurrently.
pub const MEASURE_SHARDS_MAX: usize = 16;
/// Maximum time of a lookup for the metrics that is repeated for each scrape; slower ones are cached.
pub const METRICS_STATS_FAST: Duration = Duration::from_millis(100);
/// Inverse of the maximum share of time spent on slow lookups for the metrics.
pub const METRICS_CPU_FRACTION: u32 = 20;
/// Minutes of usage history in memory: an hour, and the current minute.
pub const USAGE_MINUTES_KEPT: u64 = 61;
/// Days for which hourly usage is retained, before it is aggregated to days.
pub const USAGE_HOURS_RETENTION_DAYS: u64 = 31;
