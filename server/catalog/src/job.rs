//! Job: background work that outlives its request and restarts.
//!
//! Guarantees: a job affects only what existed when it was requested, as identified by an LSN, so that a rerun repeats
//! nothing. Non-goals: the work, and authorization.

use engine::{BucketName, FolderKey};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::grant::Issuer;
use super::id::{AccountId, JobId};
use super::record::Record;
use super::stored_text::text;

/// Long-running background work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    #[serde(skip, default = "JobId::unnamed")]
    pub id: JobId,
    /// Account of the job.
    pub account: AccountId,
    /// API key or account that started the job, whose current rights limit the job.
    #[serde(with = "text")]
    pub issuer: Issuer,
    pub work: JobSpec,
    pub state: JobState,
    /// LSN of the last log record when the job was requested.
    pub began_lsn: u64,
    pub created_ms: u64,
    pub started_ms: Option<u64>,
    pub ended_ms: Option<u64>,
    #[serde(rename = "sums")]
    pub progress: JobProgress,
    /// Code and message of a failure.
    pub error: Option<JobError>,
    /// Errors of the first URLs that failed.
    #[serde(default)]
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
    DeleteFolder {
        #[serde(with = "text")]
        bucket: BucketName,
        #[serde(with = "text")]
        folder: FolderKey,
    },
    EmptyBucket {
        #[serde(with = "text")]
        bucket: BucketName,
    },
    MoveFolder {
        #[serde(with = "text")]
        bucket: BucketName,
        #[serde(with = "text")]
        folder: FolderKey,
        #[serde(with = "text")]
        to: FolderKey,
        on_taken: OnConflict,
    },
    UndeleteFolder {
        #[serde(with = "text")]
        bucket: BucketName,
        #[serde(with = "text")]
        folder: FolderKey,
        since_ms: u64,
    },
    ImportUrls {
        #[serde(with = "text")]
        bucket: BucketName,
        #[serde(with = "text")]
        folder: FolderKey,
        urls: Vec<String>,
        on_taken: OnConflict,
    },
    Compact {
        dead_percent_min: u8,
    },
    Scrub,
}

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

impl Record for Job {
    fn named(self, name: &str) -> Result<Self, String> {
        Ok(Self { id: JobId::read(name)?, ..self })
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
            | Self::UndeleteFolder { bucket, .. } => Some(bucket),
            Self::Compact { .. } | Self::Scrub => None,
        }
    }

    /// Returns the folders of the job, the main one first.
    pub fn folders(&self) -> Vec<FolderKey> {
        match self {
            Self::DeleteFolder { folder, .. }
            | Self::UndeleteFolder { folder, .. }
            | Self::ImportUrls { folder, .. } => {
                vec![folder.clone()]
            }
            Self::MoveFolder { folder, to, .. } => vec![folder.clone(), to.clone()],
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
    /// Returns the sort key: the time of the request.
    pub fn creation_order(&self) -> (u64, &str) {
        (self.created_ms, self.id.as_str())
    }
}
