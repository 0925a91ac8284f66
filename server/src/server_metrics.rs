//! Metrics in OpenMetrics format, with those of requests and the process from `usage`.
//!
//! ```text
//! store_metrics         the store and its disk
//! replication_metrics   the remote store
//! service_metrics       images, searches, jobs, webhooks, accounts
//! ```
//!
//! Guarantees: every series is always present, zero where nothing happened, except for unknown values; label values are
//! constants of the code, so that requests cannot create series. Non-goals: measuring, and authorization.

mod replication_metrics;
mod service_metrics;
mod store_metrics;

use std::fmt;
use std::sync::Arc;

use catalog::LastBackup;
use engine::metrics::StoreMetrics;
use engine::replication::ReplicationStatus;
use engine::stats::{DiskStats, StoreStats};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::registry::Registry;
use protocol::error::ApiError;
use service::state::AppState;
use usage::exposition::MetricWriter;
use usage::process_metrics::ProcessMetrics;
use usage::request_metrics;

/// Media type of the metrics.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Prefix of all metric names of the server.
const PREFIX: &str = "trug";

/// Returns all metrics as text. Blocks on the disk.
pub fn render(app: &AppState) -> Result<String, ApiError> {
    let mut ours = Registry::with_prefix(PREFIX);
    ours.register_collector(Box::new(ServerMetrics::read(app)));
    // Metric names common to all programs, without the prefix.
    let mut systems = Registry::default();
    systems.register_collector(Box::new(ProcessMetrics::read(app.metrics.started_ms)));
    let mut text = String::new();
    let written = encode_registry(&mut text, &ours)
        .and_then(|()| encode_registry(&mut text, &systems))
        .and_then(|()| encode_eof(&mut text));
    written.map_err(|error| ApiError::internal(format!("the metrics: {error}")))?;
    Ok(text)
}

/// State of the service at one moment.
struct ServerMetrics {
    app: AppState,
    /// `None` if the index cannot be read at the moment: the other metrics are still returned.
    stats: Option<Arc<StoreStats>>,
    disk: Option<DiskStats>,
    store: StoreMetrics,
    backup: Option<LastBackup>,
    /// `None` without a remote store.
    replication: Option<ReplicationStatus>,
}

impl ServerMetrics {
    fn read(app: &AppState) -> Self {
        let note = |error: &dyn fmt::Display| {
            tracing::debug!(%error, "store statistics unavailable; metrics incomplete");
        };
        let stats = app.stats_cache.get(&app.store, &*app.clock);
        let disk = app.store.disk_stats();
        let backup = app.catalog.last_backup();
        Self {
            stats: stats.inspect_err(|error| note(error)).ok(),
            disk: disk.inspect_err(|error| note(error)).ok().flatten(),
            store: app.store.metrics(),
            replication: app.store.replication_status(),
            backup: backup.inspect_err(|error| note(error)).ok().flatten(),
            app: app.clone(),
        }
    }
}

impl Collector for ServerMetrics {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut sheet = MetricWriter::new(encoder);
        request_metrics::encode(&self.app.metrics, &mut sheet)?;
        store_metrics::encode(self, &mut sheet)?;
        replication_metrics::encode(self.replication.as_ref(), &mut sheet)?;
        service_metrics::encode(self, &mut sheet)
    }
}

impl fmt::Debug for ServerMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ours").finish_non_exhaustive()
    }
}
