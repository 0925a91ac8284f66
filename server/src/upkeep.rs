//! Periodic background tasks of the server.
//!
//! Guarantees: failures are logged and retried; no response depends on these tasks. Non-goals: background work of the
//! store.

use std::sync::Arc;
use std::time::Duration;

use catalog::{Catalog, CatalogError};
use jobs::fair_use::sweep;
use jobs::run_expiry;
use jobs::scheduler::run_scheduler;
use jobs::webhooks::run_sender;
use service::state::AppState;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};
use usage::bucket_counters::MINUTE_MS;
use usage::task::blocking;

use crate::damage_log::log_corruption;
use crate::handlers::tus;

/// Running background tasks.
pub(crate) struct BackgroundTasks {
    tasks: JoinSet<()>,
    damage_log: JoinHandle<()>,
    /// Dropping it ends the corruption log after one more check.
    damage_log_end: oneshot::Sender<()>,
    catalog: Catalog,
}

impl BackgroundTasks {
    /// Starts all tasks.
    pub(crate) fn start(state: &AppState) -> Self {
        let catalog = state.catalog.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(keep_catalog(catalog.clone()));
        tasks.spawn(write_file_audit(catalog.clone()));
        tasks.spawn(keep_presigned(catalog.clone()));
        tasks.spawn(tus::run_expiry_loop(state.clone()));
        tasks.spawn(run_sender(state.jobs.clone()));
        tasks.spawn(keep_dead_letters(catalog.clone()));
        tasks.spawn(keep_traffic(catalog.clone()));
        tasks.spawn(run_expiry(state.jobs.clone()));
        tasks.spawn(run_scheduler(state.jobs.clone(), Arc::new(state.clone())));
        tasks.spawn(state.variants.clone().run_eviction());
        if state.config().fair_use_sweep {
            tasks.spawn(keep_fair_use(state.clone()));
        }
        let (damage_log_end, end) = oneshot::channel();
        let damage_log = tokio::spawn(log_corruption(state.store.clone(), end));
        Self { tasks, damage_log, damage_log_end, catalog }
    }

    /// Stops all tasks, and writes pending data.
    pub(crate) async fn stop(mut self) {
        self.tasks.shutdown().await;
        drop(self.damage_log_end);
        // A panicked task has already reported it.
        let _ = self.damage_log.await;
        let catalog = self.catalog;
        let work = catalog.clone();
        let write = move || {
            work.audit().write_file_changes()?;
            work.api_keys().write_uses()?;
            work.sessions().write_uses()?;
            work.shared_links().write_uses()?;
            work.shared_links().write_all_events()
        };
        if let Err(error) = blocking(write).await {
            tracing::warn!(%error, "failed to persist file audit, last-used times and the use of links");
        }
        if let Err(error) = blocking(move || catalog.usage().write()).await {
            tracing::warn!(%error, "failed to persist usage counters");
        }
    }
}

/// Stores changes of files in the audit log, within a second.
async fn write_file_audit(catalog: Catalog) {
    loop {
        catalog.audit().wait_for_file_change().await;
        tokio::time::sleep(crate::limits::FILE_AUDIT_DELAY).await;
        let work = catalog.clone();
        if let Err(error) = blocking(move || work.audit().write_file_changes()).await {
            tracing::warn!(%error, "failed to store changes of files in the audit log; will retry");
        }
    }
}

/// Deletes expired used tokens, and rotates the signing key.
async fn keep_presigned(catalog: Catalog) {
    loop {
        let catalog = catalog.clone();
        let swept = blocking(move || {
            catalog.tokens().renew_keys()?;
            catalog.tokens().sweep()
        });
        match swept.await {
            Ok(catalog::limits::USED_TOKENS_SWEPT_MAX) => continue,
            Ok(_) => {}
            Err(error) => tracing::warn!("failed to delete used tokens: {error}"),
        }
        tokio::time::sleep(crate::limits::PRESIGN_SWEEP_INTERVAL).await;
    }
}

/// Runs the fair-use sweep. Each step is logged.
async fn keep_fair_use(app: AppState) {
    loop {
        let catalog = app.catalog.clone();
        if let Err(error) = blocking(move || sweep(&catalog)).await {
            tracing::warn!(%error, "fair-use sweep failed");
        }
        tokio::time::sleep(crate::limits::FAIR_USE_SWEEP_INTERVAL).await;
    }
}

/// Deletes old dead letters of webhooks.
async fn keep_dead_letters(catalog: Catalog) {
    loop {
        let work = catalog.clone();
        if let Err(error) = blocking(move || work.deliveries().sweep()).await {
            tracing::warn!(%error, "failed to delete old dead letters");
        }
        tokio::time::sleep(crate::limits::WEBHOOK_SWEEP_INTERVAL).await;
    }
}

/// Advances usage counters by the minute, persists them periodically, and deletes old ones.
async fn keep_traffic(catalog: Catalog) {
    loop {
        let now_ms = catalog.now_ms();
        tokio::time::sleep(Duration::from_millis(MINUTE_MS - now_ms % MINUTE_MS)).await;
        let minute = catalog.now_ms() / MINUTE_MS;
        let work = catalog.clone();
        let done = blocking(move || {
            work.usage().advance();
            if minute.is_multiple_of(crate::limits::USAGE_WRITE_INTERVAL_MINUTES) {
                work.usage().write()?;
                work.usage().compact()?;
            }
            Ok::<_, CatalogError>(())
        });
        if let Err(error) = done.await {
            tracing::warn!(%error, "failed to persist usage counters; will retry");
        }
    }
}

/// Finishes deletions of buckets and webhooks that a stop or a failure cut short, persists the last-used times of keys
/// and sessions and the use of links, and deletes expired sessions and links.
async fn keep_catalog(catalog: Catalog) {
    loop {
        let work = catalog.clone();
        let done = blocking(move || {
            work.api_keys().write_uses()?;
            work.sessions().write_uses()?;
            work.shared_links().write_uses()?;
            work.shared_links().write_events()?;
            work.shared_links().delete_old()?;
            work.sessions().sweep()?;
            work.audit().sweep()?;
            work.audit().write_file_changes()?;
            work.webhooks().remove_leftovers()?;
            work.buckets().resume_deletions()
        });
        if let Err(error) = done.await {
            tracing::warn!(%error, "catalog maintenance failed; will retry");
        }
        tokio::time::sleep(crate::limits::CATALOG_MAINTENANCE_INTERVAL).await;
    }
}
