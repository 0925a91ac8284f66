//! What the server does by itself, now and then, beside requests.
//!
//! Promises: what fails is logged and tried again; nothing here is needed for an answer to be right.
//! Never here: what the store does by itself.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};

use crate::bridge::blocking;
use crate::catalog::{Catalog, CatalogError};
use crate::damage_log::tell_damage;
use crate::fair_use::sweep;
use crate::handlers::tus;
use crate::jobs::keep_working;
use crate::limits;
use crate::state::AppState;
use crate::traffic::MINUTE_MS;
use crate::webhooks::keep_delivering;

/// All of it, going on.
pub(crate) struct Upkeep {
    tasks: JoinSet<()>,
    damage_log: JoinHandle<()>,
    /// Dropped, it ends the log of damage after one more look.
    damage_log_end: oneshot::Sender<()>,
    catalog: Catalog,
}

impl Upkeep {
    /// Begins.
    pub(crate) fn start(state: &AppState) -> Self {
        let catalog = state.catalog.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(keep_catalog(catalog.clone()));
        tasks.spawn(keep_presigned(catalog.clone()));
        tasks.spawn(tus::sweep_now_and_then(state.clone()));
        tasks.spawn(keep_delivering(state.clone()));
        tasks.spawn(keep_dead_letters(catalog.clone()));
        tasks.spawn(keep_traffic(catalog.clone()));
        tasks.spawn(keep_working(state.clone()));
        tasks.spawn(state.variants.clone().keep_tidy());
        if state.config().fair_use_sweep {
            tasks.spawn(keep_fair_use(state.clone()));
        }
        let (damage_log_end, end) = oneshot::channel();
        let damage_log = tokio::spawn(tell_damage(state.store.clone(), end));
        Self { tasks, damage_log, damage_log_end, catalog }
    }

    /// Ends, and writes what was not written yet.
    pub(crate) async fn stop(mut self) {
        self.tasks.shutdown().await;
        drop(self.damage_log_end);
        // A task that panicked has said so.
        let _ = self.damage_log.await;
        let catalog = self.catalog;
        let work = catalog.clone();
        let write = move || work.write_last_uses().and(work.write_session_uses());
        if let Err(error) = blocking(write).await {
            tracing::warn!(%error, "failed to persist last-used times");
        }
        if let Err(error) = blocking(move || catalog.write_traffic()).await {
            tracing::warn!(%error, "failed to persist usage counters");
        }
    }
}

/// Forgets used tokens that have expired, and lets another key sign.
async fn keep_presigned(catalog: Catalog) {
    loop {
        let catalog = catalog.clone();
        let swept = blocking(move || {
            catalog.renew_signing_keys()?;
            catalog.sweep_used_tokens()
        });
        match swept.await {
            Ok(limits::USED_TOKENS_SWEPT_MAX) => continue,
            Ok(_) => {}
            Err(error) => tracing::warn!("failed to delete used tokens: {error}"),
        }
        tokio::time::sleep(limits::PRESIGN_SWEEP_WAIT).await;
    }
}

/// Moves on accounts that break fair use. Each step is logged where it is taken.
async fn keep_fair_use(app: AppState) {
    loop {
        let catalog = app.catalog.clone();
        if let Err(error) = blocking(move || sweep(&catalog)).await {
            tracing::warn!(%error, "fair-use sweep failed");
        }
        tokio::time::sleep(limits::FAIR_USE_SWEEP_WAIT).await;
    }
}

/// Forgets events of webhooks that were given up long ago.
async fn keep_dead_letters(catalog: Catalog) {
    loop {
        let work = catalog.clone();
        if let Err(error) = blocking(move || work.sweep_dead_letters()).await {
            tracing::warn!(%error, "failed to delete old dead letters");
        }
        tokio::time::sleep(limits::WEBHOOK_SWEEP_WAIT).await;
    }
}

/// Gives what is counted its minute, writes it now and then, and forgets what is old.
async fn keep_traffic(catalog: Catalog) {
    loop {
        let now_ms = catalog.now_ms();
        tokio::time::sleep(Duration::from_millis(MINUTE_MS - now_ms % MINUTE_MS)).await;
        let minute = catalog.now_ms() / MINUTE_MS;
        let work = catalog.clone();
        let done = blocking(move || {
            work.turn_traffic();
            if minute.is_multiple_of(limits::TRAFFIC_WRITE_MINUTES) {
                work.write_traffic()?;
                work.sweep_traffic()?;
            }
            Ok::<_, CatalogError>(())
        });
        if let Err(error) = done.await {
            tracing::warn!(%error, "failed to persist usage counters; will retry");
        }
    }
}

/// Finishes deletions of buckets and webhooks that a stop or a failure cut short, writes when keys and sessions were
/// last used, and forgets sessions that are over.
async fn keep_catalog(catalog: Catalog) {
    loop {
        let work = catalog.clone();
        let done = blocking(move || {
            work.write_last_uses()?;
            work.write_session_uses()?;
            work.sweep_sessions()?;
            work.sweep_audit()?;
            work.remove_webhook_leftovers()?;
            work.finish_removals()
        });
        if let Err(error) = done.await {
            tracing::warn!(%error, "catalog maintenance failed; will retry");
        }
        tokio::time::sleep(limits::CATALOG_UPKEEP_WAIT).await;
    }
}
