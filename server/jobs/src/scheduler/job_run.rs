//! Running job, with its authorization, which is checked before it starts and before each of its batches.
//!
//! Guarantees: a job loses the rights that its key, its account, or the owner of the bucket loses. Non-goals: the
//! rules, which are those of every request.

use std::sync::Arc;

use catalog::{Bucket, Job};
use protocol::error::ApiError;
use usage::task::blocking;

use crate::Context;
use crate::object_operations::CancelCheck;
use crate::running_jobs::RunningJob;
use crate::services::{JobPrincipal, Services};

/// Running job. Cheap to clone.
#[derive(Clone)]
pub(super) struct JobRun {
    pub(super) context: Arc<Context>,
    pub(super) services: Arc<dyn Services>,
    pub(super) job: Arc<Job>,
    /// Progress and cancellation.
    pub(super) running: Arc<RunningJob>,
}

impl JobRun {
    /// Returns whether the job was cancelled, or the server is draining.
    pub(super) fn is_stopped(&self) -> bool {
        self.running.is_cancelled() || self.context.is_draining()
    }

    /// Marks the job as running in the catalog.
    pub(super) async fn start(&self) -> Result<(), ApiError> {
        let (catalog, id) = (self.context.catalog.clone(), self.job.id.clone());
        blocking(move || catalog.jobs().start(&id)).await?;
        Ok(())
    }

    /// Returns the cancellation check of object operations.
    pub(super) fn cancel_check(&self) -> CancelCheck {
        let run = self.clone();
        Arc::new(move || run.is_stopped())
    }

    /// Returns the result of a stopped job, which has not ended if the server is draining.
    pub(super) fn stopped_result(&self) -> Result<(), ApiError> {
        match self.running.is_cancelled() {
            true => Ok(()),
            false => Err(engine::Error::Closed.into()),
        }
    }

    /// Returns whether the job may continue: not if it was cancelled, or the server is draining.
    ///
    /// # Errors
    ///
    /// Those of [`Services::authorize`].
    pub(super) fn check_continue(&self) -> Result<bool, ApiError> {
        if self.is_stopped() {
            return Ok(false);
        }
        self.authorize().map(|_| true)
    }

    /// Checks that its credential and accounts still permit the job.
    pub(super) fn authorize(&self) -> Result<JobPrincipal, ApiError> {
        self.services.authorize(&self.job)
    }

    /// Returns the context on behalf of the principal that started the job.
    pub(super) fn authored_context(&self) -> Result<Arc<Context>, ApiError> {
        Ok(self.context.acting_as(self.authorize()?.actor))
    }

    /// Returns the current record of the bucket.
    pub(super) fn bucket(&self) -> Result<Arc<Bucket>, ApiError> {
        let name = self.job.work.bucket().ok_or_else(ApiError::bucket_not_found)?;
        self.context.catalog.buckets().get(name).ok_or_else(ApiError::bucket_not_found)
    }
}
