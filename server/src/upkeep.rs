//! What the server does by itself, now and then, beside requests.
//!
//! Promises: what fails is logged and tried again; nothing here is needed for an answer to be right.
//! Never here: what the store does by itself.

use std::collections::BTreeSet;

use engine::Store;
use tokio::task::JoinSet;

use crate::bridge::blocking;
use crate::catalog::Catalog;
use crate::handlers::tus;
use crate::limits;
use crate::state::AppState;

/// Begins all of it.
pub(crate) fn start(state: &AppState) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    tasks.spawn(tell_damage(state.store.clone()));
    tasks.spawn(keep_catalog(state.catalog.clone()));
    tasks.spawn(keep_presigned(state.catalog.clone()));
    tasks.spawn(tus::sweep_now_and_then(state.clone()));
    tasks
}

/// Ends all of it, and writes what was not written yet.
pub(crate) async fn stop(mut tasks: JoinSet<()>, state: &AppState) {
    tasks.shutdown().await;
    let catalog = state.catalog.clone();
    if let Err(error) = blocking(move || catalog.write_last_uses()).await {
        tracing::warn!(%error, "when keys were last used is not written");
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
            Err(error) => tracing::warn!("cannot sweep used tokens: {error}"),
        }
        tokio::time::sleep(limits::PRESIGN_SWEEP_WAIT).await;
    }
}

/// Finishes deletions of buckets that a stop or a failure cut short, and writes when keys were last used.
async fn keep_catalog(catalog: Catalog) {
    loop {
        let work = catalog.clone();
        let done = blocking(move || work.write_last_uses().and_then(|()| work.finish_removals()));
        if let Err(error) = done.await {
            tracing::warn!(%error, "the upkeep of the catalog failed, and is tried again");
        }
        tokio::time::sleep(limits::CATALOG_UPKEEP_WAIT).await;
    }
}

/// Logs each place of damage once, as it becomes known.
async fn tell_damage(store: Store) {
    let mut told = BTreeSet::new();
    loop {
        let asked = store.clone();
        match blocking(move || asked.damage()).await {
            Ok(known) => {
                let mut still = BTreeSet::new();
                for damage in known.places {
                    let place = (damage.segment, damage.offset);
                    if !told.contains(&place) {
                        tracing::error!(found_ms = damage.found_ms, "DAMAGE: {damage}");
                    }
                    still.insert(place);
                }
                told = still;
            }
            Err(error) => tracing::warn!("cannot tell what is damaged: {error}"),
        }
        tokio::time::sleep(limits::DAMAGE_LOOK_WAIT).await;
    }
}
