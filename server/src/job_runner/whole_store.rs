//! Jobs on the whole store: compaction and scrub.
//!
//! Guarantees: one at a time, and none concurrently with exclusive work of the command line; they stop at the next
//! progress report. A restart covers the whole store of that time. Non-goals: the work, which the engine does.

use std::ops::ControlFlow;
use std::sync::Arc;

use catalog::{CatalogError, JobId, JobSpec};
use engine::progress::WorkProgress;
use protocol::error::ApiError;
use usage::task::blocking;

use super::standing::JobAuthorization;
use super::start;
use crate::job_board::RunningJob;
use crate::management::{AdminRequest, AdminResponse, CompactionParams, execute};
use crate::state::AppState;

/// Waits for the lock, and runs the job.
pub(super) async fn run(
    app: &AppState,
    work: &JobSpec,
    standing: &JobAuthorization,
    board: &Arc<RunningJob>,
    id: &JobId,
) -> Result<(), ApiError> {
    let request = match work {
        JobSpec::Compact { dead_percent_min } => AdminRequest::Compact(CompactionParams {
            dead_percent_min: *dead_percent_min,
            bytes_per_second_max: None,
        }),
        _ => AdminRequest::Scrub,
    };
    let turn = tokio::select! {
        turn = app.whole_store_lock.clone().lock_owned() => turn,
        () = board.cancelled() => return Ok(()),
    };
    standing.check()?;
    start(app, id).await?;
    let (shared, shared_board) = (app.clone(), board.clone());
    let catalog = standing.catalog();
    let done = blocking(move || {
        let _turn = turn;
        let mut watch = |progress: WorkProgress| {
            shared_board.set_progress(|sums| {
                sums.done = progress.done_bytes;
                sums.total = progress.total_bytes;
            });
            match shared_board.is_cancelled() || shared.is_draining() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        execute(&shared.store, &catalog, request, &mut watch)
    });
    match done.await {
        Ok(AdminResponse::Compacted(view)) => board.set_progress(|sums| {
            sums.bytes = view.freed_bytes + view.punched_bytes;
            sums.skipped = view.refused.len() as u64;
        }),
        Ok(AdminResponse::Scrubbed(view)) => board.set_progress(|sums| {
            sums.bytes = view.bytes;
            sums.damage = view.damage.count;
        }),
        Ok(_) => {}
        Err(CatalogError::Store(engine::Error::Cancelled)) if board.is_cancelled() => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}
