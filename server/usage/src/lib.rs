//! Counting of requests, and its views: metrics, usage of buckets, spans.
//!
//! ```text
//! request --> request_meter --> registry: counters of the server --> request_metrics --> exposition --> Prometheus
//!                  |        (operation, rejection)                  process_metrics, store_stats_cache
//!                  '----------> bucket_counters, by minute --> history in the catalog --> API, dashboard, fair use
//!
//! spans       traces, for a library that exports them
//! task        blocking work of a request
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
