//! Jobs at work: which begin, how they stop, and what becomes of them.
//!
//! ```text
//! standing    whether a job may go on
//! folders     files deleted, moved, brought back
//! imports     files taken from addresses
//! whole_store compaction and scrub
//! ```
//!
//! Promises: so many at once in all and of one account; those that wait the longest begin first. A job stops soon after
//! it is cancelled, its key is revoked, or an account that it works for is suspended; a server that stops leaves it to
//! the next one, which goes on. Never here: who may begin one.

mod folders;
mod imports;
mod standing;
mod whole_store;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tokio::task::{Id, JoinSet};

use self::standing::Standing;
pub use self::standing::check_allowed;
use crate::bridge::blocking;
use crate::catalog::{AccountId, Actor, Job, JobEnd, JobError, JobId, JobState, JobSums, JobWork};
use crate::error::ApiError;
use crate::filing::IsStopped;
use crate::job_board::RunningJob;
use crate::limits;
use crate::measures::{JobKind, JobOutcome};
use crate::state::AppState;

/// Begins jobs as there is room for them, for good.
pub async fn keep_working(app: AppState) {
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
            let (id, board) = (job.id.clone(), app.jobs.begin(job.id.clone(), job.sums));
            tasks.insert(running.spawn(work(app.clone(), job, board)).id(), id);
        }
        if tokio::time::timeout(limits::JOBS_SWEEP_WAIT, change).await.is_err() {
            let catalog = app.catalog.clone();
            if let Err(error) = blocking(move || catalog.sweep_jobs()).await {
                tracing::warn!(%error, "failed to delete old jobs");
            }
        }
    }
}

/// Cancels a job. False: it has ended already.
pub async fn cancel(app: &AppState, id: &JobId, actor: Actor) -> Result<bool, ApiError> {
    let running = app.jobs.get(id);
    let sums = running.as_ref().map(|job| job.sums());
    let (catalog, ended) = (app.catalog.by(actor), id.clone());
    let job = blocking(move || catalog.end_job(&ended, JobEnd::Cancelled, sums)).await?;
    if let Some(job) = &job {
        note_end(app, job, JobOutcome::Cancelled);
    }
    if let Some(running) = running {
        running.stop();
    }
    app.jobs.tell();
    Ok(job.is_some())
}

/// The waiting jobs that can begin now.
fn next_jobs(app: &AppState) -> Vec<Arc<Job>> {
    if app.is_draining() {
        return Vec::new();
    }
    let mut jobs = app.catalog.jobs();
    jobs.sort_by(|one, other| one.order().cmp(&other.order()));
    let (at_work, waiting): (Vec<_>, Vec<_>) = jobs
        .into_iter()
        .filter(|job| job.state.is_active() || app.jobs.get(&job.id).is_some())
        .partition(|job| app.jobs.get(&job.id).is_some());
    let mut accounts: BTreeMap<(AccountId, bool), usize> = BTreeMap::new();
    // Those that wait for other machines stand in no others' way.
    let (mut in_files, mut in_imports) = (0, 0);
    // Jobs for the whole store wait for the turn that the operator's command line uses, too.
    let mut has_whole_store = false;
    let mut count = |job: &Job| match job.work.bucket() {
        None => !std::mem::replace(&mut has_whole_store, true),
        Some(_) => {
            let is_import = matches!(job.work, JobWork::ImportUrls { .. });
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

/// Does a job to its end, or until it is to stop.
async fn work(app: AppState, job: Arc<Job>, board: Arc<RunningJob>) {
    let _ends = EndOnDrop { app: app.clone(), id: job.id.clone() };
    let outcome = tokio::select! {
        outcome = do_work(&app, &job, &board) => outcome,
        never = keep_saved(&app, &job.id, &board) => match never {},
    };
    // The next server goes on with it.
    if app.is_draining() && !matches!(outcome, Ok(())) {
        return;
    }
    let end_of_job = match outcome {
        Ok(()) if board.is_stopped() => JobEnd::Cancelled,
        Ok(()) => JobEnd::Done,
        Err(error) => {
            if let Some(line) = error.log().filter(|_| error.is_failure()) {
                tracing::error!(job = %job.id, "job failed: {line}");
            }
            JobEnd::Failed(job_error(&error))
        }
    };
    end(&app, &job.id, end_of_job, Some(board.sums())).await;
}

/// Notes the end of a job. Where the store takes nothing, after a while: the job is done again then.
async fn end(app: &AppState, id: &JobId, end: JobEnd, sums: Option<JobSums>) {
    let (catalog, ended) = (app.catalog.clone(), id.clone());
    let outcome = match end {
        JobEnd::Done => JobOutcome::Done,
        JobEnd::Failed(_) => JobOutcome::Failed,
        JobEnd::Cancelled => JobOutcome::Cancelled,
    };
    match blocking(move || catalog.end_job(&ended, end, sums)).await {
        Ok(Some(job)) => note_end(app, &job, outcome),
        // Somebody else has ended it.
        Ok(None) => {}
        Err(error) => {
            tracing::error!(job = %id, %error, "failed to record job completion; the job will run again");
            tokio::time::sleep(limits::JOB_REST).await;
        }
    }
}

fn note_end(app: &AppState, job: &Job, outcome: JobOutcome) {
    if let Some(kind) = JobKind::named(job.work.kind()) {
        app.measures.note_job_end(kind, outcome);
    }
}

fn job_error(error: &ApiError) -> JobError {
    JobError { code: error.code().to_owned(), message: error.message().to_owned() }
}

async fn do_work(app: &AppState, job: &Arc<Job>, board: &Arc<RunningJob>) -> Result<(), ApiError> {
    let standing = Standing::new(app.clone(), job.clone(), board.clone());
    standing.check()?;
    if job.work.bucket().is_none() {
        return whole_store::work(app, &job.work, &standing, board, &job.id).await;
    }
    start(app, &job.id).await?;
    match &job.work {
        JobWork::DeleteFolder { folder, .. } => {
            folders::delete(app, job, &folder.0, &standing, board).await
        }
        JobWork::EmptyBucket { .. } => {
            let root = engine::FolderKey::root();
            folders::delete(app, job, &root, &standing, board).await
        }
        JobWork::MoveFolder { folder, to, on_taken, .. } => {
            folders::move_all(app, job, (&folder.0, &to.0, *on_taken), &standing, board).await
        }
        JobWork::UndeleteFolder { folder, since_ms, .. } => {
            folders::undelete(app, job, &folder.0, *since_ms, &standing, board).await
        }
        JobWork::ImportUrls { folder, urls, on_taken, .. } => {
            imports::import(app, job, (&folder.0, urls, *on_taken), &standing, board).await
        }
        JobWork::Compact { .. } | JobWork::Scrub => Ok(()),
    }
}

/// What a job that was told to stop comes to; one that stops with its server has not ended.
fn ended(board: &RunningJob) -> Result<(), ApiError> {
    match board.is_stopped() {
        true => Ok(()),
        false => Err(engine::Error::Closed.into()),
    }
}

/// Notes that a job runs.
async fn start(app: &AppState, id: &JobId) -> Result<(), ApiError> {
    let (catalog, id) = (app.catalog.clone(), id.clone());
    blocking(move || catalog.start_job(&id)).await?;
    Ok(())
}

/// Writes now and then how far a job has come.
async fn keep_saved(app: &AppState, id: &JobId, board: &RunningJob) -> std::convert::Infallible {
    let mut saved = board.sums();
    loop {
        tokio::time::sleep(limits::JOB_SAVE_WAIT).await;
        let sums = board.sums();
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

/// Takes a job off the board, however it ends.
struct EndOnDrop {
    app: AppState,
    id: JobId,
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.app.jobs.end(&self.id);
    }
}

/// As work in files asks whether to stop.
fn is_stopped(app: &AppState, board: &Arc<RunningJob>) -> IsStopped {
    let (app, board) = (app.clone(), board.clone());
    Arc::new(move || board.is_stopped() || app.is_draining())
}
