//! Jobs on the whole store: compaction and scrub.
//!
//! Guarantees: one at a time, and none concurrently with exclusive work of the command line; they stop at the next
//! progress report. A restart covers the whole store of that time. Non-goals: the work, which the engine does.

use std::ops::ControlFlow;

use catalog::{CatalogError, JobSpec};
use engine::Error;
use engine::progress::WorkProgress;
use protocol::error::ApiError;
use usage::task::blocking;

use super::job_run::JobRun;
use crate::compaction::compact;

/// Waits for the lock, and runs the job.
pub(super) async fn run(run: &JobRun) -> Result<(), ApiError> {
    let lock = tokio::select! {
        lock = run.context.lock_whole_store() => lock,
        () = run.running.cancelled() => return Ok(()),
    };
    let catalog = run.context.catalog.acting_as(run.authorize()?.actor);
    run.start().await?;
    let work = run.clone();
    let done = blocking(move || {
        let _lock = lock;
        let (store, running) = (&work.context.store, &work.running);
        let mut watch = |so_far: WorkProgress| {
            running.set_progress(|progress| {
                progress.done = so_far.done_bytes;
                progress.total = so_far.total_bytes;
            });
            match work.is_stopped() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        match &work.job.work {
            JobSpec::Compact { dead_percent_min } => {
                let report = compact(store, &catalog, *dead_percent_min, None, &mut watch)?;
                let freed_bytes = report.freed_bytes.saturating_add(report.released_bytes);
                running.set_progress(|progress| {
                    progress.bytes = freed_bytes + report.punched_bytes;
                    progress.skipped = report.skipped.len() as u64;
                });
            }
            _ => {
                let report = store.scrub(&mut watch)?;
                running.set_progress(|progress| {
                    progress.bytes = report.bytes;
                    progress.damage = report.damage.count();
                });
            }
        }
        Ok(())
    });
    match done.await {
        Err(CatalogError::Store(Error::Cancelled)) if run.running.is_cancelled() => Ok(()),
        done => Ok(done?),
    }
}
