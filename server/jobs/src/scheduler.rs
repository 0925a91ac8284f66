//! Job scheduler: start, cancellation and completion of background jobs.
//!
//! ```text
//! job_run     running job, with its authorization
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
mod job_run;
mod whole_store;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use catalog::{AccountId, Actor, Job, JobEnd, JobError, JobId, JobProgress, JobSpec, JobState};
use engine::FolderKey;
use protocol::error::ApiError;
use tokio::task::{Id, JoinSet};
use usage::registry::{JobKind, JobOutcome};
use usage::task::blocking;

use self::job_run::JobRun;
use crate::Context;
use crate::limits;
use crate::running_jobs::RunningJob;
use crate::services::Services;

/// Starts jobs as capacity permits, forever.
pub async fn run_scheduler(context: Arc<Context>, services: Arc<dyn Services>) {
    let mut at_work = JoinSet::new();
    let mut tasks: HashMap<Id, JobId> = HashMap::new();
    loop {
        let change = context.running.change();
        while let Some(ended) = at_work.try_join_next_with_id() {
            let (task, panicked) = match ended {
                Ok((task, ())) => (task, false),
                Err(error) => (error.id(), error.is_panic()),
            };
            if let Some(id) = tasks.remove(&task).filter(|_| panicked) {
                let error = ApiError::internal("the job panicked");
                end(&context, &id, JobEnd::Failed(job_error(&error)), None).await;
            }
        }
        for job in next_jobs(&context) {
            let (id, running) =
                (job.id.clone(), context.running.register(job.id.clone(), job.progress));
            let (context, services) = (context.clone(), services.clone());
            let run = JobRun { context, services, job, running };
            tasks.insert(at_work.spawn(work(run)).id(), id);
        }
        if tokio::time::timeout(limits::JOBS_SWEEP_INTERVAL, change).await.is_err() {
            let catalog = context.catalog.clone();
            if let Err(error) = blocking(move || catalog.jobs().sweep()).await {
                tracing::warn!(%error, "failed to delete old jobs");
            }
        }
    }
}

/// Cancels a job. Returns false if it has already ended.
pub async fn cancel(context: &Context, id: &JobId, actor: Actor) -> Result<bool, ApiError> {
    let running = context.running.get(id);
    let progress = running.as_ref().map(|job| job.progress());
    let (catalog, ended) = (context.catalog.acting_as(actor), id.clone());
    let job = blocking(move || catalog.jobs().end(&ended, JobEnd::Cancelled, progress)).await?;
    if let Some(job) = &job {
        count_job_end(context, job, JobOutcome::Cancelled);
    }
    if let Some(running) = running {
        running.cancel();
    }
    context.running.notify();
    Ok(job.is_some())
}

/// Returns the waiting jobs that can start now.
fn next_jobs(context: &Context) -> Vec<Arc<Job>> {
    if context.is_draining() {
        return Vec::new();
    }
    let mut jobs = context.catalog.jobs().all();
    jobs.sort_by(|one, other| one.creation_order().cmp(&other.creation_order()));
    let (at_work, waiting): (Vec<_>, Vec<_>) = jobs
        .into_iter()
        .filter(|job| job.state.is_active() || context.running.get(&job.id).is_some())
        .partition(|job| context.running.get(&job.id).is_some());
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
async fn work(run: JobRun) {
    let JobRun { context, job, running, .. } = &run;
    let _unregister = UnregisterOnDrop { context: context.clone(), id: job.id.clone() };
    let outcome = tokio::select! {
        outcome = do_work(&run) => outcome,
        never = save_progress(context, &job.id, running) => match never {},
    };
    // The job continues after the restart.
    if context.is_draining() && outcome.is_err() {
        return;
    }
    let end_of_job = match outcome {
        Ok(()) if running.is_cancelled() => JobEnd::Cancelled,
        Ok(()) => JobEnd::Done,
        Err(error) => {
            if let Some(line) = error.log().filter(|_| error.is_failure()) {
                tracing::error!(job = %job.id, "job failed: {line}");
            }
            JobEnd::Failed(job_error(&error))
        }
    };
    end(context, &job.id, end_of_job, Some(running.progress())).await;
}

/// Records the end of a job. If the store rejects the write, pauses: the job then runs again.
async fn end(context: &Context, id: &JobId, end: JobEnd, progress: Option<JobProgress>) {
    let (catalog, ended) = (context.catalog.clone(), id.clone());
    let outcome = match end {
        JobEnd::Done => JobOutcome::Done,
        JobEnd::Failed(_) => JobOutcome::Failed,
        JobEnd::Cancelled => JobOutcome::Cancelled,
    };
    match blocking(move || catalog.jobs().end(&ended, end, progress)).await {
        Ok(Some(job)) => count_job_end(context, &job, outcome),
        // The job was already ended.
        Ok(None) => {}
        Err(error) => {
            tracing::error!(job = %id, %error, "failed to record job completion; the job will run again");
            tokio::time::sleep(limits::JOB_SAVE_RETRY_DELAY).await;
        }
    }
}

fn count_job_end(context: &Context, job: &Job, outcome: JobOutcome) {
    if let Some(kind) = JobKind::named(job.work.kind()) {
        context.counters.count_job_end(kind, outcome);
    }
}

fn job_error(error: &ApiError) -> JobError {
    JobError { code: error.code().to_owned(), message: error.message().to_owned() }
}

async fn do_work(run: &JobRun) -> Result<(), ApiError> {
    run.authorize()?;
    if run.job.work.bucket().is_none() {
        return whole_store::run(run).await;
    }
    run.start().await?;
    match &run.job.work {
        JobSpec::DeleteFolder { folder, .. } => folders::delete(run, folder).await,
        JobSpec::EmptyBucket { .. } => folders::delete(run, &FolderKey::root()).await,
        JobSpec::MoveFolder { folder, to, on_taken, .. } => {
            folders::move_all(run, folder, to, *on_taken).await
        }
        JobSpec::UndeleteFolder { folder, since_ms, .. } => {
            folders::undelete(run, folder, *since_ms).await
        }
        JobSpec::ImportUrls { folder, urls, on_taken, .. } => {
            imports::import_urls(run, folder, urls, *on_taken).await
        }
        JobSpec::Compact { .. } | JobSpec::Scrub => Ok(()),
    }
}

/// Persists the progress of a job periodically.
async fn save_progress(
    context: &Context,
    id: &JobId,
    running: &RunningJob,
) -> std::convert::Infallible {
    let mut saved = running.progress();
    loop {
        tokio::time::sleep(limits::JOB_SAVE_INTERVAL).await;
        let progress = running.progress();
        if progress == saved {
            continue;
        }
        let (catalog, job) = (context.catalog.clone(), id.clone());
        match blocking(move || catalog.jobs().save(&job, progress)).await {
            Ok(_) => saved = progress,
            Err(error) => tracing::warn!(job = %id, %error, "failed to save job progress"),
        }
    }
}

/// Guard that removes a job from the registry.
struct UnregisterOnDrop {
    context: Arc<Context>,
    id: JobId,
}

impl Drop for UnregisterOnDrop {
    fn drop(&mut self) {
        self.context.running.unregister(&self.id);
    }
}
