//! Counting of requests, and its views: metrics, usage of buckets, spans.
//!
//! ```text
//! registry           counters of the server             operation, rejection   classification of requests
//! bucket_counters    usage of one bucket over time      request_meter          bytes of one request
//! exposition         OpenMetrics encoding               request_metrics, process_metrics
//! spans              traces, feature `otel`             store_stats_cache
//! task               blocking work of a request         limits
//! ```
//!
//! Guarantees: counting takes no lock and no memory. Non-goals: storage of usage, which the catalog does.

pub mod bucket_counters;
pub mod exposition;
pub mod limits;
pub mod operation;
pub mod process_metrics;
pub mod registry;
pub mod rejection;
pub mod request_meter;
pub mod request_metrics;
pub mod spans;
pub mod store_stats_cache;
pub mod task;
