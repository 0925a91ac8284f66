//! Jobs on the whole store: compaction and scrub.
//!
//! Guarantees: one at a time, and none concurrently with exclusive work of the command line; they stop at the next
//! progress report. A restart covers the whole store of that time. Non-goals: the work, which the engine does.

use std::ops::ControlFlow;
use std::sync::Arc;

use engine::WorkProgress;

use super::standing::Standing;
use super::start;
use crate::bridge::blocking;
use crate::catalog::{CatalogError, JobId, JobWork};
use crate::error::ApiError;
use crate::job_board::RunningJob;
use crate::management::{CompactionAsked, Reply, Request, execute};
use crate::state::AppState;

/// Waits for the lock, and runs the job.
pub(super) async fn work(
    app: &AppState,
    work: &JobWork,
    standing: &Standing,
    board: &Arc<RunningJob>,
    id: &JobId,
) -> Result<(), ApiError> {
    let request = match work {
        JobWork::Compact { dead_percent_min } => Request::Compact(CompactionAsked {
            dead_percent_min: *dead_percent_min,
            bytes_per_second_max: None,
        }),
        _ => Request::Scrub,
    };
    let turn = tokio::select! {
        turn = app.long_work.clone().lock_owned() => turn,
        () = board.stopped() => return Ok(()),
    };
    standing.check()?;
    start(app, id).await?;
    let (shared, told) = (app.clone(), board.clone());
    let catalog = standing.catalog();
    let done = blocking(move || {
        let _turn = turn;
        let mut watch = |progress: WorkProgress| {
            told.note(|sums| {
                sums.done = progress.done_bytes;
                sums.total = progress.total_bytes;
            });
            match told.is_stopped() || shared.is_draining() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        execute(&shared.store, &catalog, request, &mut watch)
    });
    match done.await {
        Ok(Reply::Compacted(view)) => board.note(|sums| {
            sums.bytes = view.freed_bytes + view.punched_bytes;
            sums.skipped = view.refused.len() as u64;
        }),
        Ok(Reply::Scrubbed(view)) => board.note(|sums| {
            sums.bytes = view.bytes;
            sums.damage = view.damage.count;
        }),
        Ok(_) => {}
        Err(CatalogError::Store(engine::Error::Cancelled)) if board.is_stopped() => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}
