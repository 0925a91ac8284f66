//! What is measured, as OpenMetrics tells it.
//!
//! ```text
//! requests    HTTP, connections, refusals
//! storage     the store and its disk
//! work        pictures, searches, jobs, webhooks, accounts
//! process     what the system says of the process
//! sheet       how a series is written
//! ```
//!
//! Promises: every series that there is is told each time, with zero where nothing happened, but for numbers that are
//! not known; labels have the values that stand in the code and no others, so there are as many series after any
//! requests as before. Never here: measuring, and who may see it.

mod process;
mod requests;
mod sheet;
mod storage;
mod work;

use std::fmt;
use std::sync::Arc;

use engine::{DiskStats, StoreMeasures, StoreStats};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::registry::Registry;

use self::process::Process;
use self::sheet::Sheet;
use crate::catalog::LastBackup;
use crate::error::ApiError;
use crate::state::AppState;

/// The media type of what is told.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The start of every name that is ours.
const PREFIX: &str = "trug";

/// All of it, as text. Waits for the disk.
pub fn text(app: &AppState) -> Result<String, ApiError> {
    let mut ours = Registry::with_prefix(PREFIX);
    ours.register_collector(Box::new(Ours::read(app)));
    // Names that are the same for every program.
    let mut systems = Registry::default();
    systems.register_collector(Box::new(Process::read(app.measures.started_ms)));
    let mut text = String::new();
    let written = encode_registry(&mut text, &ours)
        .and_then(|()| encode_registry(&mut text, &systems))
        .and_then(|()| encode_eof(&mut text));
    written.map_err(|error| ApiError::internal(format!("the metrics: {error}")))?;
    Ok(text)
}

/// What is told of the service, at one moment.
struct Ours {
    app: AppState,
    /// None where the index cannot be read just now: the rest is told all the same.
    stats: Option<Arc<StoreStats>>,
    disk: Option<DiskStats>,
    store: StoreMeasures,
    backup: Option<LastBackup>,
}

impl Ours {
    fn read(app: &AppState) -> Self {
        let note = |error: &dyn fmt::Display| {
            tracing::debug!(%error, "store statistics unavailable; metrics incomplete");
        };
        let stats = app.kept_stats.get(&app.store, &*app.clock);
        let disk = app.store.disk_stats();
        let backup = app.catalog.last_backup();
        Self {
            stats: stats.inspect_err(|error| note(error)).ok(),
            disk: disk.inspect_err(|error| note(error)).ok().flatten(),
            store: app.store.measures(),
            backup: backup.inspect_err(|error| note(error)).ok().flatten(),
            app: app.clone(),
        }
    }
}

impl Collector for Ours {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut sheet = Sheet::new(encoder);
        requests::tell(&self.app, &mut sheet)?;
        storage::tell(self, &mut sheet)?;
        work::tell(self, &mut sheet)
    }
}

impl Collector for Process {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.tell(&mut Sheet::new(encoder))
    }
}

impl fmt::Debug for Ours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ours").finish_non_exhaustive()
    }
}
