//! Authorization of a running job, checked before it starts, and before each of its batches.
//!
//! Guarantees: a job loses the rights that its key, its account, or the owner of the bucket loses. Non-goals: the
//! rules, which are those of every request.

use std::sync::Arc;

use catalog::{Bucket, Catalog, Job, JobSpec, Scope};
use protocol::error::ApiError;

use crate::auth::Caller;
use crate::job_board::RunningJob;
use crate::state::AppState;

/// Job and its authorization.
pub(super) struct JobAuthorization {
    app: AppState,
    job: Arc<Job>,
    board: Arc<RunningJob>,
}

/// Returns the scopes that a job needs in a bucket.
pub(super) fn required_scopes(work: &JobSpec) -> &'static [Scope] {
    match work {
        JobSpec::ImportUrls { .. } => &[Scope::Upload],
        JobSpec::DeleteFolder { .. } | JobSpec::EmptyBucket { .. } => &[Scope::Delete],
        JobSpec::MoveFolder { .. } | JobSpec::UndeleteFolder { .. } => {
            &[Scope::Upload, Scope::Delete]
        }
        JobSpec::Compact { .. } | JobSpec::Scrub => &[Scope::Manage],
    }
}

impl JobAuthorization {
    pub(super) fn new(app: AppState, job: Arc<Job>, board: Arc<RunningJob>) -> Self {
        Self { app, job, board }
    }

    /// Returns whether the job may continue: not if it was requested to stop, or the server is draining.
    pub(super) fn check_continue(&self) -> Result<bool, ApiError> {
        if self.board.is_cancelled() || self.app.is_draining() {
            return Ok(false);
        }
        self.check().map(|()| true)
    }

    /// Checks that its credential and accounts still permit the job.
    pub(super) fn check(&self) -> Result<(), ApiError> {
        check_allowed(&self.app, &self.caller()?, &self.job.work).map(drop)
    }

    /// Returns the caller that started the job, with its current rights.
    pub(super) fn caller(&self) -> Result<Caller, ApiError> {
        let caller = Caller::from_issuer(&self.app.catalog, &self.job.issuer);
        caller.ok_or_else(|| {
            ApiError::forbidden(
                "The API key or account that started this job is no longer authorized",
            )
        })
    }

    /// Returns the catalog on behalf of the caller that started the job.
    pub(super) fn catalog(&self) -> Catalog {
        let catalog = &self.app.catalog;
        match Caller::from_issuer(catalog, &self.job.issuer) {
            Some(caller) => catalog.acting_as(caller.actor()),
            None => catalog.clone(),
        }
    }

    /// Returns the current record of the bucket.
    pub(super) fn bucket(&self) -> Result<Arc<Bucket>, ApiError> {
        let name = self.job.work.bucket().ok_or_else(ApiError::bucket_not_found)?;
        self.app.catalog.bucket(name).ok_or_else(ApiError::bucket_not_found)
    }
}

/// Checks that a caller may run such a job.
pub fn check_allowed(app: &AppState, caller: &Caller, work: &JobSpec) -> Result<(), ApiError> {
    let Some(bucket) = work.bucket() else {
        return caller.require_operator("begins jobs for the whole store");
    };
    for scope in required_scopes(work) {
        caller.bucket(&app.catalog, bucket, *scope)?;
    }
    work.folders().iter().try_for_each(|folder| caller.require_folder_access(folder))
}
