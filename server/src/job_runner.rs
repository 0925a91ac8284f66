//! Job scheduler: start, cancellation and completion of background jobs.
//!
//! ```text
//! standing    authorization of a running job
//! folders     deletion, move and restoring of files
//! imports     import of files from URLs
//! whole_store compaction and scrub
//! ```
//!
//! Guarantees: the number of running jobs is bounded, in all and per account; the longest waiting jobs start first. A
//! job stops soon after it is cancelled, its key is revoked, or an account that it works for is suspended; a job
//! interrupted by a shutdown continues after the restart. Non-goals: authorization to create jobs.

mod folders;
mod imports;
mod standing;
mod whole_store;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use catalog::{AccountId, Actor, Job, JobEnd, JobError, JobId, JobProgress, JobSpec, JobState};
use protocol::error::ApiError;
use tokio::task::{Id, JoinSet};
use usage::registry::{JobKind, JobOutcome};
use usage::task::blocking;

use self::standing::JobAuthorization;
pub use self::standing::check_allowed;
use crate::filing::CancelCheck;
use crate::job_board::RunningJob;
use crate::limits;
use crate::state::AppState;

/// Starts jobs as capacity permits, forever.
pub async fn run_scheduler(app: AppState) {
    let mut running = JoinSet::new();
    let mut tasks: HashMap<Id, JobId> = HashMap::new();
    loop {
        let change = app.jobs.change();
        while let Some(ended) = running.try_join_next_with_id() {
            let (task, panicked) = match ended {
                Ok((task, ())) => (task, false),
                Err(error) => (error.id(), error.is_panic()),
            };
            if let Some(id) = tasks.remove(&task).filter(|_| panicked) {
                let error = ApiError::internal("the job panicked");
                end(&app, &id, JobEnd::Failed(job_error(&error)), None).await;
            }
        }
        for job in next_jobs(&app) {
            let (id, board) = (job.id.clone(), app.jobs.register(job.id.clone(), job.progress));
            tasks.insert(running.spawn(work(app.clone(), job, board)).id(), id);
        }
        if tokio::time::timeout(limits::JOBS_SWEEP_INTERVAL, change).await.is_err() {
            let catalog = app.catalog.clone();
            if let Err(error) = blocking(move || catalog.sweep_jobs()).await {
                tracing::warn!(%error, "failed to delete old jobs");
            }
        }
    }
}

/// Cancels a job. Returns false if it has already ended.
pub async fn cancel(app: &AppState, id: &JobId, actor: Actor) -> Result<bool, ApiError> {
    let running = app.jobs.get(id);
    let sums = running.as_ref().map(|job| job.progress());
    let (catalog, ended) = (app.catalog.acting_as(actor), id.clone());
    let job = blocking(move || catalog.end_job(&ended, JobEnd::Cancelled, sums)).await?;
    if let Some(job) = &job {
        count_job_end(app, job, JobOutcome::Cancelled);
    }
    if let Some(running) = running {
        running.cancel();
    }
    app.jobs.notify();
    Ok(job.is_some())
}

/// Returns the waiting jobs that can start now.
fn next_jobs(app: &AppState) -> Vec<Arc<Job>> {
    if app.is_draining() {
        return Vec::new();
    }
    let mut jobs = app.catalog.jobs();
    jobs.sort_by(|one, other| one.creation_order().cmp(&other.creation_order()));
    let (at_work, waiting): (Vec<_>, Vec<_>) = jobs
        .into_iter()
        .filter(|job| job.state.is_active() || app.jobs.get(&job.id).is_some())
        .partition(|job| app.jobs.get(&job.id).is_some());
    let mut accounts: BTreeMap<(AccountId, bool), usize> = BTreeMap::new();
    // Imports, which wait for other hosts, have a separate limit.
    let (mut in_files, mut in_imports) = (0, 0);
    // Store jobs also wait for the lock of the command line's exclusive requests.
    let mut has_whole_store = false;
    let mut count = |job: &Job| match job.work.bucket() {
        None => !std::mem::replace(&mut has_whole_store, true),
        Some(_) => {
            let is_import = matches!(job.work, JobSpec::ImportUrls { .. });
            let of_account = accounts.entry((job.account.clone(), is_import)).or_default();
            let of_kind = if is_import { &mut in_imports } else { &mut in_files };
            let has_room = *of_kind < limits::JOBS_RUNNING_MAX
                && *of_account < limits::JOBS_RUNNING_PER_ACCOUNT_MAX;
            if has_room {
                *of_kind += 1;
                *of_account += 1;
            }
            has_room
        }
    };
    for job in &at_work {
        count(job);
    }
    waiting.into_iter().filter(|job| job.state == JobState::Waiting && count(job)).collect()
}

/// Runs a job to its end, or until it is to stop.
async fn work(app: AppState, job: Arc<Job>, board: Arc<RunningJob>) {
    let _ends = UnregisterOnDrop { app: app.clone(), id: job.id.clone() };
    let outcome = tokio::select! {
        outcome = do_work(&app, &job, &board) => outcome,
        never = keep_saved(&app, &job.id, &board) => match never {},
    };
    // The job continues after the restart.
    if app.is_draining() && !matches!(outcome, Ok(())) {
        return;
    }
    let end_of_job = match outcome {
        Ok(()) if board.is_cancelled() => JobEnd::Cancelled,
        Ok(()) => JobEnd::Done,
        Err(error) => {
            if let Some(line) = error.log().filter(|_| error.is_failure()) {
                tracing::error!(job = %job.id, "job failed: {line}");
            }
            JobEnd::Failed(job_error(&error))
        }
    };
    end(&app, &job.id, end_of_job, Some(board.progress())).await;
}

/// Records the end of a job. If the store rejects the write, pauses: the job then runs again.
async fn end(app: &AppState, id: &JobId, end: JobEnd, sums: Option<JobProgress>) {
    let (catalog, ended) = (app.catalog.clone(), id.clone());
    let outcome = match end {
        JobEnd::Done => JobOutcome::Done,
        JobEnd::Failed(_) => JobOutcome::Failed,
        JobEnd::Cancelled => JobOutcome::Cancelled,
    };
    match blocking(move || catalog.end_job(&ended, end, sums)).await {
        Ok(Some(job)) => count_job_end(app, &job, outcome),
        // The job was already ended.
        Ok(None) => {}
        Err(error) => {
            tracing::error!(job = %id, %error, "failed to record job completion; the job will run again");
            tokio::time::sleep(limits::JOB_SAVE_RETRY_DELAY).await;
        }
    }
}

fn count_job_end(app: &AppState, job: &Job, outcome: JobOutcome) {
    if let Some(kind) = JobKind::named(job.work.kind()) {
        app.metrics.count_job_end(kind, outcome);
    }
}

fn job_error(error: &ApiError) -> JobError {
    JobError { code: error.code().to_owned(), message: error.message().to_owned() }
}

async fn do_work(app: &AppState, job: &Arc<Job>, board: &Arc<RunningJob>) -> Result<(), ApiError> {
    let standing = JobAuthorization::new(app.clone(), job.clone(), board.clone());
    standing.check()?;
    if job.work.bucket().is_none() {
        return whole_store::run(app, &job.work, &standing, board, &job.id).await;
    }
    start(app, &job.id).await?;
    match &job.work {
        JobSpec::DeleteFolder { folder, .. } => {
            folders::delete(app, job, &folder.0, &standing, board).await
        }
        JobSpec::EmptyBucket { .. } => {
            let root = engine::FolderKey::root();
            folders::delete(app, job, &root, &standing, board).await
        }
        JobSpec::MoveFolder { folder, to, on_taken, .. } => {
            folders::move_all(app, job, (&folder.0, &to.0, *on_taken), &standing, board).await
        }
        JobSpec::UndeleteFolder { folder, since_ms, .. } => {
            folders::undelete(app, job, &folder.0, *since_ms, &standing, board).await
        }
        JobSpec::ImportUrls { folder, urls, on_taken, .. } => {
            imports::import_urls(app, job, (&folder.0, urls, *on_taken), &standing, board).await
        }
        JobSpec::Compact { .. } | JobSpec::Scrub => Ok(()),
    }
}

/// Returns the result of a stopped job, which has not ended if the server is draining.
fn ended(board: &RunningJob) -> Result<(), ApiError> {
    match board.is_cancelled() {
        true => Ok(()),
        false => Err(engine::Error::Closed.into()),
    }
}

/// Marks a job as running.
async fn start(app: &AppState, id: &JobId) -> Result<(), ApiError> {
    let (catalog, id) = (app.catalog.clone(), id.clone());
    blocking(move || catalog.start_job(&id)).await?;
    Ok(())
}

/// Persists the progress of a job periodically.
async fn keep_saved(app: &AppState, id: &JobId, board: &RunningJob) -> std::convert::Infallible {
    let mut saved = board.progress();
    loop {
        tokio::time::sleep(limits::JOB_SAVE_INTERVAL).await;
        let sums = board.progress();
        if sums == saved {
            continue;
        }
        let (catalog, job) = (app.catalog.clone(), id.clone());
        match blocking(move || catalog.save_job(&job, sums)).await {
            Ok(_) => saved = sums,
            Err(error) => tracing::warn!(job = %id, %error, "failed to save job progress"),
        }
    }
}

/// Guard that removes a job from the registry.
struct UnregisterOnDrop {
    app: AppState,
    id: JobId,
}

impl Drop for UnregisterOnDrop {
    fn drop(&mut self) {
        self.app.jobs.unregister(&self.id);
    }
}

/// Returns the cancellation check of object operations.
fn cancel_check(app: &AppState, board: &Arc<RunningJob>) -> CancelCheck {
    let (app, board) = (app.clone(), board.clone());
    Arc::new(move || board.is_cancelled() || app.is_draining())
}
