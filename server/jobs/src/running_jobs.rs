//! In-memory registry of running jobs: their progress and stop requests.
//!
//! Guarantees: readers see the latest progress of a job without reading the store. Non-goals: persistence across
//! restarts (catalog), and the work itself.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use catalog::{JobId, JobProgress};

/// Registry of running jobs.
#[derive(Default)]
pub struct RunningJobs {
    running: Mutex<HashMap<JobId, Arc<RunningJob>>>,
    changed: Notify,
}

/// Running job.
#[derive(Default)]
pub struct RunningJob {
    progress: Mutex<JobProgress>,
    is_stopped: AtomicBool,
    stopped: Notify,
}

impl RunningJobs {
    /// Registers a job with its earlier progress.
    pub(crate) fn register(&self, id: JobId, progress: JobProgress) -> Arc<RunningJob> {
        let job = Arc::new(RunningJob { progress: Mutex::new(progress), ..RunningJob::default() });
        self.running().insert(id, job.clone());
        job
    }

    /// Removes a job.
    pub(crate) fn unregister(&self, id: &JobId) {
        self.running().remove(id);
        self.changed.notify_one();
    }

    /// Returns a running job.
    pub fn get(&self, id: &JobId) -> Option<Arc<RunningJob>> {
        self.running().get(id).cloned()
    }

    /// Signals that there is a new job, or that one has ended.
    pub fn notify(&self) {
        self.changed.notify_one();
    }

    /// Waits for a signal; one sent since the last wait counts.
    pub(crate) fn change(&self) -> Notified<'_> {
        self.changed.notified()
    }

    fn running(&self) -> MutexGuard<'_, HashMap<JobId, Arc<RunningJob>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunningJob {
    /// Returns the progress.
    pub fn progress(&self) -> JobProgress {
        *self.locked()
    }

    /// Updates the progress.
    pub(crate) fn set_progress(&self, change: impl FnOnce(&mut JobProgress)) {
        change(&mut self.locked());
    }

    /// Requests the job to stop.
    pub(crate) fn cancel(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.stopped.notify_one();
    }

    /// Returns whether the job was requested to stop.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Waits until the job is requested to stop.
    pub(crate) async fn cancelled(&self) {
        while !self.is_cancelled() {
            self.stopped.notified().await;
        }
    }

    fn locked(&self) -> MutexGuard<'_, JobProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
