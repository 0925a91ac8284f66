//! `/api/jobs`: creation, reading and cancellation of long-running jobs.
//!
//! Guarantees: a job requires the same permissions as its operation on a single file; a job is visible to callers that
//! may list its bucket, and jobs on the whole store to operators. Non-goals: the work.

use std::sync::Arc;

use axum::extract::State;
use catalog::{Job, JobFailure, JobId, JobProgress, JobSpec, JobState, NewJob, OnConflict, Scope};
use engine::compaction::CompactionRules;
use engine::{BucketName, FolderKey};
use http::StatusCode;
use jiff::Timestamp;
use jobs::scheduler;
use protocol::destination::OutboundUrl;
use protocol::error::ApiError;
use protocol::json_body::JsonBody;
use protocol::object_path::{PathInBucket, check_object_path_writable, parse_bucket_name};
use protocol::paging::PageRequest;
use protocol::query::Query;
use protocol::time_format::iso_time;
use serde::{Deserialize, Serialize};
use service::auth::Caller;
use service::job_services::check_allowed;
use service::parameters::{FolderPathSchema, IdParameter, PageParameters};
use service::replies::Success;
use service::request_context::Path;
use service::state::AppState;
use utoipa::ToSchema;

use super::changing;

/// Request to start a job.
#[derive(Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "camelCase", deny_unknown_fields)]
pub enum JobRequest {
    /// Deletes the files of a folder.
    #[serde(rename_all = "camelCase")]
    DeleteFolder {
        bucket_name: String,
        /// Folder with a trailing slash.
        #[schema(value_type = FolderPathSchema)]
        prefix: String,
    },
    /// Moves the files of a folder.
    #[serde(rename_all = "camelCase")]
    MoveFolder {
        bucket_name: String,
        /// Folder with a trailing slash.
        #[schema(value_type = FolderPathSchema)]
        prefix: String,
        /// Destination folder with a trailing slash, outside the folder.
        #[schema(value_type = FolderPathSchema)]
        to: String,
        on_conflict: Option<OnConflict>,
    },
    /// Restores the deleted files of a folder.
    #[serde(rename_all = "camelCase")]
    UndeleteFolder {
        bucket_name: String,
        /// Folder with a trailing slash; empty for the whole bucket.
        #[schema(value_type = FolderPathSchema)]
        prefix: String,
        /// Earliest time of deletion in RFC 3339 format.
        #[schema(format = DateTime)]
        since: Option<String>,
    },
    /// Deletes all files of a bucket.
    #[serde(rename_all = "camelCase")]
    EmptyBucket { bucket_name: String },
    /// Downloads files into a folder.
    #[serde(rename_all = "camelCase")]
    ImportUrls {
        bucket_name: String,
        /// Folder with a trailing slash; by default the whole bucket.
        #[schema(value_type = Option<FolderPathSchema>)]
        prefix: Option<String>,
        /// URLs, at most 500, `http` or `https`.
        #[schema(max_items = 500)]
        urls: Vec<String>,
        on_conflict: Option<OnConflict>,
    },
    /// Reclaims dead bytes. Operators only.
    #[serde(rename_all = "camelCase")]
    Compact {
        /// Minimum percentage of dead bytes in a segment, 1 to 100.
        #[schema(minimum = 1, maximum = 100)]
        dead_percent_min: Option<u8>,
    },
    /// Verifies all bytes of the store. Operators only.
    Scrub {},
}

/// Job.
#[derive(Serialize, ToSchema)]
pub struct JobReply {
    job: JobView,
}

/// Page of jobs.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobsReply {
    jobs: Vec<JobView>,
    #[schema(required)]
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct JobView {
    id: String,
    kind: &'static str,
    #[schema(required)]
    bucket_name: Option<String>,
    #[schema(required)]
    prefix: Option<String>,
    #[schema(required)]
    to: Option<String>,
    /// Id of the account that started the job.
    account: String,
    state: JobState,
    done: u64,
    /// Total work in `unit`, as far as known.
    total: u64,
    /// Unit of `done` and `total`: `files`, `addresses` or `bytes`.
    unit: &'static str,
    created_at: String,
    #[schema(required)]
    started_at: Option<String>,
    #[schema(required)]
    ended_at: Option<String>,
    /// Error message of a failed job.
    #[schema(required)]
    error: Option<String>,
    #[schema(required)]
    error_code: Option<String>,
    /// First 50 URLs that were not imported; only for `importUrls`.
    failures: Vec<JobFailureView>,
    result: JobResultView,
}

/// URL that was not imported.
#[derive(Serialize, ToSchema)]
struct JobFailureView {
    url: String,
    error: String,
}

/// Result of a job so far.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct JobResultView {
    /// Bytes of deleted, moved or restored files; reclaimed bytes of a compaction; verified bytes of a scrub.
    bytes: u64,
    /// Skipped items: files (name in use, changed concurrently, or content reclaimed), corrupt segments, or URLs.
    skipped: u64,
    /// Number of known corrupt locations, after a scrub.
    damage_count: u64,
}

/// Lists active jobs and those finished in the last 7 days, newest first.
#[utoipa::path(
    get,
    path = "/api/jobs",
    operation_id = "listJobs",
    tag = "Jobs",
    params(PageParameters),
    responses((status = OK, body = JobsReply))
)]
pub async fn list(
    State(app): State<AppState>,
    caller: Caller,
    query: Query,
) -> Result<Success<JobsReply>, ApiError> {
    let page = PageRequest::from_query(&query)?;
    let jobs = app.catalog.jobs().all().into_iter().filter(|job| sees(&app, &caller, job));
    let place = |job: Arc<Job>| {
        let (created_ms, id) = job.creation_order();
        (format!("{:020}{id}", u64::MAX - created_ms), job)
    };
    let mut jobs: Vec<_> = jobs.map(place).collect();
    jobs.sort_by(|one, other| one.0.cmp(&other.0));
    let (jobs, next_cursor) = page.paginate(jobs, |(place, _)| place);
    let jobs = jobs.iter().map(|(_, job)| view(&app, job)).collect();
    Ok(Success(JobsReply { jobs, next_cursor }))
}

/// Starts a background job and returns immediately.
#[utoipa::path(
    post,
    path = "/api/jobs",
    operation_id = "beginJob",
    tag = "Jobs",
    request_body = JobRequest,
    responses(
        (status = ACCEPTED, body = JobReply),
        (status = NOT_FOUND, description = "`bucket_not_found`."),
        (status = TOO_MANY_REQUESTS, description = "`too_many_jobs`; `rate_limited`."),
    )
)]
pub async fn begin(
    State(app): State<AppState>,
    caller: Caller,
    body: JsonBody,
) -> Result<(StatusCode, Success<JobReply>), ApiError> {
    let work = job_spec(body.deserialize()?)?;
    check_allowed(&app.catalog, &caller, &work)?;
    let new =
        NewJob { account: caller.account().id.clone(), issuer: caller.durable_issuer(), work };
    let job = changing(&app, &caller, move |catalog| catalog.jobs().add(new)).await?;
    let job = job.ok_or_else(|| ApiError::too_many_jobs(catalog::limits::JOBS_PER_ACCOUNT_MAX))?;
    app.jobs.running.notify();
    Ok((StatusCode::ACCEPTED, Success(JobReply { job: view(&app, &job) })))
}

/// Returns the state and progress of a job.
#[utoipa::path(
    get,
    path = "/api/jobs/{id}",
    operation_id = "showJob",
    tag = "Jobs",
    params(IdParameter),
    responses(
        (status = OK, body = JobReply),
        (status = NOT_FOUND, description = "`job_not_found`."),
    )
)]
pub async fn show(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<JobId>,
) -> Result<Success<JobReply>, ApiError> {
    let job = find(&app, &caller, &id)?;
    Ok(Success(JobReply { job: view(&app, &job) }))
}

/// Cancels a job; completed work is kept.
#[utoipa::path(
    delete,
    path = "/api/jobs/{id}",
    operation_id = "cancelJob",
    tag = "Jobs",
    params(IdParameter),
    responses(
        (status = OK, body = JobReply),
        (status = NOT_FOUND, description = "`job_not_found`."),
        (status = CONFLICT, description = "`job_ended`."),
    )
)]
pub async fn cancel(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<JobId>,
) -> Result<Success<JobReply>, ApiError> {
    let job = find(&app, &caller, &id)?;
    // The permission to start a job is the permission to cancel it.
    check_allowed(&app.catalog, &caller, &job.work)?;
    if !scheduler::cancel(&app.jobs, &job.id, caller.actor()).await? {
        return Err(ApiError::job_ended());
    }
    let job = app.catalog.jobs().get(&job.id).unwrap_or(job);
    Ok(Success(JobReply { job: view(&app, &job) }))
}

fn find(app: &AppState, caller: &Caller, id: &JobId) -> Result<Arc<Job>, ApiError> {
    let job = app.catalog.jobs().get(id).filter(|job| sees(app, caller, job));
    job.ok_or_else(ApiError::job_not_found)
}

/// Returns whether the caller may see a job: if it may list the bucket, or is an operator.
fn sees(app: &AppState, caller: &Caller, job: &Job) -> bool {
    if caller.is_operator() {
        return true;
    }
    let Some(bucket) = job.work.bucket() else { return false };
    let opens = |scope| caller.bucket(&app.catalog, bucket, scope).is_ok();
    let is_import = matches!(job.work, JobSpec::ImportUrls { .. });
    let may = opens(Scope::List) || opens(Scope::Delete) || is_import && opens(Scope::Upload);
    may && job.work.folders().iter().all(|folder| caller.require_folder_access(folder).is_ok())
}

/// Parses a job request.
fn job_spec(request: JobRequest) -> Result<JobSpec, ApiError> {
    Ok(match request {
        JobRequest::DeleteFolder { bucket_name, prefix } => JobSpec::DeleteFolder {
            bucket: parse_bucket_name(&bucket_name)?,
            folder: subfolder(&prefix)?,
        },
        JobRequest::MoveFolder { bucket_name, prefix, to, on_conflict } => {
            let (from, to) = (subfolder(&prefix)?, folder("to", &to)?);
            check_object_path_writable(&PathInBucket::Folder(to.clone()))?;
            if to.as_str().starts_with(from.as_str()) {
                return Err(ApiError::bad_parameter("to", "must be outside the source folder"));
            }
            let on_taken = on_conflict.unwrap_or_default();
            JobSpec::MoveFolder {
                bucket: parse_bucket_name(&bucket_name)?,
                folder: from,
                to,
                on_taken,
            }
        }
        JobRequest::UndeleteFolder { bucket_name, prefix, since } => JobSpec::UndeleteFolder {
            bucket: parse_bucket_name(&bucket_name)?,
            folder: folder("prefix", &prefix)?,
            since_ms: since.map(|text| time_ms(&text)).transpose()?.unwrap_or(0),
        },
        JobRequest::EmptyBucket { bucket_name } => {
            JobSpec::EmptyBucket { bucket: parse_bucket_name(&bucket_name)? }
        }
        JobRequest::ImportUrls { bucket_name, prefix, urls, on_conflict } => {
            let folder = folder("prefix", &prefix.unwrap_or_default())?;
            check_object_path_writable(&PathInBucket::Folder(folder.clone()))?;
            JobSpec::ImportUrls {
                bucket: parse_bucket_name(&bucket_name)?,
                folder,
                urls: addresses(urls)?,
                on_taken: on_conflict.unwrap_or_default(),
            }
        }
        JobRequest::Compact { dead_percent_min } => {
            let usual = CompactionRules::LOW_SPACE.segment_dead_percent_min;
            let dead_percent_min = dead_percent_min.unwrap_or(usual);
            if !(1..=100).contains(&dead_percent_min) {
                let rule = "must be a number from 1 to 100";
                return Err(ApiError::bad_parameter("deadPercentMin", rule));
            }
            JobSpec::Compact { dead_percent_min }
        }
        JobRequest::Scrub {} => JobSpec::Scrub,
    })
}

fn folder(parameter: &str, text: &str) -> Result<FolderKey, ApiError> {
    match PathInBucket::parse(text)? {
        PathInBucket::Folder(folder) => Ok(folder),
        PathInBucket::File(_) => Err(ApiError::bad_parameter(parameter, "must end with \"/\"")),
    }
}

/// Parses a prefix that must not be the whole bucket.
fn subfolder(prefix: &str) -> Result<FolderKey, ApiError> {
    let folder = folder("prefix", prefix)?;
    if folder.is_root() {
        let rule = "must name a folder; use \"emptyBucket\" for the whole bucket";
        return Err(ApiError::bad_parameter("prefix", rule));
    }
    Ok(folder)
}

/// Checks the syntax of URLs.
fn addresses(urls: Vec<String>) -> Result<Vec<String>, ApiError> {
    let refused = |why: String| ApiError::bad_parameter("urls", &why);
    if urls.is_empty() || urls.len() > crate::limits::IMPORT_URLS_MAX {
        return Err(refused(format!("must be 1 to {} URLs", crate::limits::IMPORT_URLS_MAX)));
    }
    for (at, url) in urls.iter().enumerate() {
        OutboundUrl::parse(url).map_err(|why| refused(format!("number {} {why}", at + 1)))?;
    }
    // Size as encoded in a record.
    let bytes: usize = urls.iter().map(|url| url.len() + url.matches('"').count() + 3).sum();
    match bytes > crate::limits::IMPORT_URLS_BYTES_MAX {
        true => Err(refused("are too long in total: start several jobs".to_owned())),
        false => Ok(urls),
    }
}

fn time_ms(text: &str) -> Result<u64, ApiError> {
    let refused = || {
        ApiError::bad_parameter("since", "must be an RFC 3339 time such as 2030-01-31T12:00:00Z")
    };
    let time: Timestamp = text.parse().map_err(|_| refused())?;
    u64::try_from(time.as_millisecond()).map_err(|_| refused())
}

fn failures(job: &Job) -> Vec<JobFailureView> {
    let JobSpec::ImportUrls { urls, .. } = &job.work else { return Vec::new() };
    let view = |failure: &JobFailure| {
        let url = urls.get(failure.at).cloned().unwrap_or_default();
        JobFailureView { url, error: failure.error.clone() }
    };
    job.failures.iter().map(view).collect()
}

fn view(app: &AppState, job: &Job) -> JobView {
    let running = app.jobs.running.get(&job.id).filter(|_| job.state.is_active());
    let sums: JobProgress = running.map_or(job.progress, |running| running.progress());
    let folders = job.work.folders();
    let folder = |at: usize| {
        let is_in_files = job.work.bucket().is_some();
        folders.get(at).filter(|_| is_in_files).map(ToString::to_string)
    };
    JobView {
        id: job.id.to_string(),
        kind: job.work.kind(),
        bucket_name: job.work.bucket().map(BucketName::to_string),
        prefix: folder(0),
        to: folder(1),
        account: job.account.to_string(),
        state: job.state,
        done: sums.done,
        total: sums.total,
        unit: match &job.work {
            JobSpec::ImportUrls { .. } => "addresses",
            work if work.bucket().is_some() => "files",
            _ => "bytes",
        },
        created_at: iso_time(job.created_ms),
        started_at: job.started_ms.map(iso_time),
        ended_at: job.ended_ms.map(iso_time),
        error: job.error.as_ref().map(|error| error.message.clone()),
        error_code: job.error.as_ref().map(|error| error.code.clone()),
        failures: failures(job),
        result: JobResultView {
            bytes: sums.bytes,
            skipped: sums.skipped,
            damage_count: sums.damage,
        },
    }
}
