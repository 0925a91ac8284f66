//! Jobs: background work that outlives its request and restarts.
//!
//! Guarantees: a job is durable before it is reported, and until it has ended; it affects only what existed when it was
//! requested, as identified by an LSN, so that a rerun repeats nothing. Non-goals: the work, and authorization.

use std::sync::Arc;

use engine::{Batch, BucketName, FolderKey, Precondition};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::audit_entry::{AuditAction, AuditRecord};
use super::grant::Issuer;
use super::id::{AccountId, JobId};
use super::record::{CatalogRecord, encode};
use super::{Catalog, CatalogError};
use crate::limits;

/// Long-running background work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    pub id: JobId,
    /// Account of the job.
    pub account: AccountId,
    /// API key or account that started the job, whose current rights limit the job.
    pub issuer: Issuer,
    pub work: JobSpec,
    pub state: JobState,
    /// LSN of the last log record when the job was requested.
    pub began_lsn: u64,
    pub created_ms: u64,
    pub started_ms: Option<u64>,
    pub ended_ms: Option<u64>,
    pub progress: JobProgress,
    /// Code and message of a failure.
    pub error: Option<JobError>,
    /// Errors of the first URLs that failed.
    pub failures: Vec<JobFailure>,
}

/// Failed URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobFailure {
    /// Index of the URL.
    pub at: usize,
    pub error: String,
}

/// Operation of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum JobSpec {
    DeleteFolder { bucket: StoredName, folder: StoredFolder },
    EmptyBucket { bucket: StoredName },
    MoveFolder { bucket: StoredName, folder: StoredFolder, to: StoredFolder, on_taken: OnConflict },
    UndeleteFolder { bucket: StoredName, folder: StoredFolder, since_ms: u64 },
    ImportUrls { bucket: StoredName, folder: StoredFolder, urls: Vec<String>, on_taken: OnConflict },
    Compact { dead_percent_min: u8 },
    Scrub,
}

/// Bucket name in its stored form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StoredName(pub BucketName);

/// Folder in its stored form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StoredFolder(pub FolderKey);

/// Handling of a name that is already in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnConflict {
    /// The file stays where it is.
    #[default]
    Refuse,
    /// The file gets the first free name with ` (n)`.
    Rename,
    /// The file replaces the existing one. Also `replace`.
    #[serde(alias = "replace")]
    Overwrite,
}

/// Job state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    Waiting,
    Running,
    Done,
    Cancelled,
    Failed,
}

/// Progress of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobProgress {
    /// Processed files or URLs, or bytes for a store job.
    pub done: u64,
    /// Total, as far as it is known.
    pub total: u64,
    /// Files that were skipped: their names are taken, they changed, or their bytes are gone; URLs that failed.
    pub skipped: u64,
    /// Bytes moved, restored, freed or read.
    pub bytes: u64,
    /// Corrupt locations that a scrub has found.
    #[serde(default)]
    pub damage: u64,
}

/// Reason for a failed job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobError {
    pub code: String,
    pub message: String,
}

/// Parameters of a new job.
pub struct NewJob {
    pub account: AccountId,
    pub issuer: Issuer,
    pub work: JobSpec,
}

/// Outcome of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobEnd {
    Done,
    Cancelled,
    Failed(JobError),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredJob {
    account: String,
    issuer: String,
    work: JobSpec,
    state: JobState,
    began_lsn: u64,
    created_ms: u64,
    started_ms: Option<u64>,
    ended_ms: Option<u64>,
    sums: JobProgress,
    error: Option<JobError>,
    #[serde(default)]
    failures: Vec<JobFailure>,
}

impl CatalogRecord for StoredJob {
    const VERSION: u32 = 1;
}

impl TryFrom<String> for StoredName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        BucketName::parse(&text).map(Self).map_err(|why| why.to_string())
    }
}

impl From<StoredName> for String {
    fn from(StoredName(name): StoredName) -> Self {
        name.to_string()
    }
}

impl TryFrom<String> for StoredFolder {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        FolderKey::parse(&text).map(Self).map_err(|why| why.to_string())
    }
}

impl From<StoredFolder> for String {
    fn from(StoredFolder(folder): StoredFolder) -> Self {
        folder.to_string()
    }
}

impl JobSpec {
    /// Returns the name of the kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::DeleteFolder { .. } => "deleteFolder",
            Self::EmptyBucket { .. } => "emptyBucket",
            Self::MoveFolder { .. } => "moveFolder",
            Self::UndeleteFolder { .. } => "undeleteFolder",
            Self::ImportUrls { .. } => "importUrls",
            Self::Compact { .. } => "compact",
            Self::Scrub => "scrub",
        }
    }

    /// Returns the bucket of the job; `None` for a store job.
    pub fn bucket(&self) -> Option<&BucketName> {
        match self {
            Self::DeleteFolder { bucket, .. }
            | Self::EmptyBucket { bucket }
            | Self::MoveFolder { bucket, .. }
            | Self::ImportUrls { bucket, .. }
            | Self::UndeleteFolder { bucket, .. } => Some(&bucket.0),
            Self::Compact { .. } | Self::Scrub => None,
        }
    }

    /// Returns the folders of the job, the main one first.
    pub fn folders(&self) -> Vec<FolderKey> {
        match self {
            Self::DeleteFolder { folder, .. }
            | Self::UndeleteFolder { folder, .. }
            | Self::ImportUrls { folder, .. } => {
                vec![folder.0.clone()]
            }
            Self::MoveFolder { folder, to, .. } => vec![folder.0.clone(), to.0.clone()],
            Self::EmptyBucket { .. } | Self::Compact { .. } | Self::Scrub => {
                vec![FolderKey::root()]
            }
        }
    }
}

impl JobState {
    /// Returns whether the job has not ended.
    pub fn is_active(self) -> bool {
        matches!(self, Self::Waiting | Self::Running)
    }
}

impl Job {
    fn stored(&self) -> StoredJob {
        StoredJob {
            account: self.account.to_string(),
            issuer: self.issuer.to_text(),
            work: self.work.clone(),
            state: self.state,
            began_lsn: self.began_lsn,
            created_ms: self.created_ms,
            started_ms: self.started_ms,
            ended_ms: self.ended_ms,
            sums: self.progress,
            error: self.error.clone(),
            failures: self.failures.clone(),
        }
    }

    /// Restores a stored job; one that was running becomes pending.
    pub(super) fn from_stored(id: &str, stored: StoredJob) -> Result<Self, &'static str> {
        let account = AccountId::parse(&stored.account).ok_or("invalid account id")?;
        Ok(Self {
            id: JobId::parse(id).ok_or("invalid job id")?,
            issuer: Issuer::parse(&stored.issuer).ok_or("invalid credential")?,
            account,
            work: stored.work,
            state: match stored.state {
                JobState::Running => JobState::Waiting,
                other => other,
            },
            began_lsn: stored.began_lsn,
            created_ms: stored.created_ms,
            started_ms: stored.started_ms,
            ended_ms: stored.ended_ms,
            progress: stored.sums,
            error: stored.error,
            failures: stored.failures,
        })
    }

    /// Returns the sort key: the time of the request.
    pub fn creation_order(&self) -> (u64, &str) {
        (self.created_ms, self.id.as_str())
    }
}

impl Catalog {
    /// Returns every retained job, in arbitrary order.
    pub fn jobs(&self) -> Vec<Arc<Job>> {
        self.tables().jobs.values().cloned().collect()
    }

    /// Returns the job with this id.
    pub fn job(&self, id: &JobId) -> Option<Arc<Job>> {
        self.tables().jobs.get(id).cloned()
    }

    /// Creates a job. `None` at the limit of the account or the server.
    pub fn add_job(&self, new: NewJob) -> Result<Option<Arc<Job>>, CatalogError> {
        let _changing = self.change();
        let (mine, all) = {
            let tables = self.tables();
            let active = tables.jobs.values().filter(|job| job.state.is_active());
            active.fold((0, 0), |(mine, all), job| {
                (mine + usize::from(job.account == new.account), all + 1)
            })
        };
        if mine >= limits::JOBS_PER_ACCOUNT_MAX || all >= limits::JOBS_MAX {
            return Ok(None);
        }
        let job = Job {
            id: JobId::issue(&*self.0.rng),
            account: new.account,
            issuer: new.issuer,
            work: new.work,
            state: JobState::Waiting,
            began_lsn: self.0.store.last_lsn()?,
            created_ms: self.now_ms(),
            started_ms: None,
            ended_ms: None,
            progress: JobProgress::default(),
            error: None,
            failures: Vec::new(),
        };
        let fact = job.id.fact()?;
        let batch = Batch::new().require(Precondition::FactAbsent(fact.clone()));
        let batch = batch.put_fact(fact.clone(), encode(&fact, &job.stored())?);
        let folders: Vec<_> = job.work.folders().iter().map(ToString::to_string).collect();
        let detail = format!("{} {}", job.work.kind(), folders.join(" to "));
        let entry = self.job_audit_record(AuditAction::JobBegin, &job).detail(detail.trim_end());
        self.0.store.commit(self.append_audit(batch, entry)?)?;
        Ok(Some(self.show_job(job)))
    }

    /// Marks a job as running. `None` if it has ended.
    pub fn start_job(&self, id: &JobId) -> Result<Option<Arc<Job>>, CatalogError> {
        let now_ms = self.now_ms();
        self.change_job(id, |job| {
            job.state = JobState::Running;
            job.failures.clear();
            job.started_ms.get_or_insert(now_ms);
            None
        })
    }

    /// Persists the progress of a job. `None` if it has ended.
    pub fn save_job(
        &self,
        id: &JobId,
        sums: JobProgress,
    ) -> Result<Option<Arc<Job>>, CatalogError> {
        self.change_job(id, |job| {
            job.progress = sums;
            None
        })
    }

    /// Ends a job. `None` if it has already ended: then only the final progress of a cancelled job is stored.
    pub fn end_job(
        &self,
        id: &JobId,
        end: JobEnd,
        sums: Option<JobProgress>,
    ) -> Result<Option<Arc<Job>>, CatalogError> {
        let now_ms = self.now_ms();
        let ended = self.change_job(id, |job| {
            let (action, outcome) = match &end {
                JobEnd::Done => (AuditAction::JobEnd, "done".to_owned()),
                JobEnd::Cancelled => (AuditAction::JobCancel, "cancelled".to_owned()),
                JobEnd::Failed(error) => (AuditAction::JobEnd, format!("failed: {}", error.code)),
            };
            (job.state, job.error) = match end {
                JobEnd::Done => (JobState::Done, None),
                JobEnd::Cancelled => (JobState::Cancelled, None),
                JobEnd::Failed(error) => (JobState::Failed, Some(error)),
            };
            job.ended_ms = Some(now_ms);
            job.progress = sums.unwrap_or(job.progress);
            let detail = format!("{} {outcome}", job.work.kind());
            Some(self.job_audit_record(action, job).detail(detail))
        })?;
        match (&ended, sums) {
            (Some(job), _) => self.forget_jobs_of(&job.account)?,
            (None, Some(sums)) => self.settle_job(id, sums)?,
            (None, None) => {}
        }
        Ok(ended)
    }

    /// Stores the final progress of a job that was cancelled while it ran.
    fn settle_job(&self, id: &JobId, sums: JobProgress) -> Result<(), CatalogError> {
        let is_cancelled = |job: &Job| job.state == JobState::Cancelled && job.progress != sums;
        self.alter_job(id, is_cancelled, |job| {
            job.progress = sums;
            None
        })?;
        Ok(())
    }

    /// Deletes jobs that ended long ago.
    pub fn sweep_jobs(&self) -> Result<(), CatalogError> {
        let kept_ms = limits::JOBS_RETENTION.as_millis() as u64;
        let before_ms = self.now_ms().saturating_sub(kept_ms);
        let is_old = |job: &Arc<Job>| job.ended_ms.is_some_and(|ended_ms| ended_ms < before_ms);
        let old = self.jobs().into_iter().filter(is_old).collect();
        self.forget_jobs(old)?;
        self.sweep_imported()
    }

    /// Deletes the oldest ended jobs of an account beyond the limit.
    fn forget_jobs_of(&self, account: &AccountId) -> Result<(), CatalogError> {
        let is_theirs = |job: &Arc<Job>| job.account == *account && !job.state.is_active();
        let mut ended: Vec<_> = self.jobs().into_iter().filter(is_theirs).collect();
        ended.sort_by_key(|job| std::cmp::Reverse(job.ended_ms));
        self.forget_jobs(ended.split_off(ended.len().min(limits::JOBS_ENDED_MAX)))
    }

    fn forget_jobs(&self, jobs: Vec<Arc<Job>>) -> Result<(), CatalogError> {
        for job in jobs {
            let _changing = self.change();
            self.0.store.commit(Batch::new().delete_fact(job.id.fact()?))?;
            self.publish(|tables| tables.jobs.remove(&job.id));
        }
        Ok(())
    }

    /// Changes a job that has not ended.
    pub(super) fn change_job(
        &self,
        id: &JobId,
        change: impl FnOnce(&mut Job) -> Option<AuditRecord>,
    ) -> Result<Option<Arc<Job>>, CatalogError> {
        self.alter_job(id, |job| job.state.is_active(), change)
    }

    /// Changes a job that satisfies a condition.
    fn alter_job(
        &self,
        id: &JobId,
        is_meant: impl FnOnce(&Job) -> bool,
        change: impl FnOnce(&mut Job) -> Option<AuditRecord>,
    ) -> Result<Option<Arc<Job>>, CatalogError> {
        let _changing = self.change();
        let Some(job) = self.job(id).filter(|job| is_meant(job)) else { return Ok(None) };
        let mut job = Job::clone(&job);
        let entry = change(&mut job);
        let fact = job.id.fact()?;
        let mut batch = Batch::new().put_fact(fact.clone(), encode(&fact, &job.stored())?);
        if let Some(entry) = entry {
            batch = self.append_audit(batch, entry)?;
        }
        self.0.store.commit(batch)?;
        Ok(Some(self.show_job(job)))
    }

    fn job_audit_record(&self, action: AuditAction, job: &Job) -> AuditRecord {
        let entry = AuditRecord::new(action).account(&job.account).target(&job.id);
        let Some(name) = job.work.bucket() else { return entry };
        match self.bucket(name) {
            Some(bucket) => entry.bucket(&bucket),
            None => entry.deleted_bucket(name),
        }
    }

    fn show_job(&self, job: Job) -> Arc<Job> {
        let job = Arc::new(job);
        self.publish(|tables| tables.jobs.insert(job.id.clone(), job.clone()));
        job
    }
}
