//! In-memory registry of running jobs: their progress and stop requests.
//!
//! Guarantees: readers see the latest progress of a job without reading the store. Non-goals: persistence across
//! restarts (catalog), and the work itself.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::catalog::{JobId, JobSums};

/// Registry of running jobs.
#[derive(Default)]
pub struct JobBoard {
    running: Mutex<HashMap<JobId, Arc<RunningJob>>>,
    changed: Notify,
}

/// Running job.
#[derive(Default)]
pub struct RunningJob {
    sums: Mutex<JobSums>,
    is_stopped: AtomicBool,
    stopped: Notify,
}

impl JobBoard {
    /// Registers a job with its earlier progress.
    pub fn begin(&self, id: JobId, sums: JobSums) -> Arc<RunningJob> {
        let job = Arc::new(RunningJob { sums: Mutex::new(sums), ..RunningJob::default() });
        self.running().insert(id, job.clone());
        job
    }

    /// Removes a job.
    pub fn end(&self, id: &JobId) {
        self.running().remove(id);
        self.changed.notify_one();
    }

    /// Returns a running job.
    pub fn get(&self, id: &JobId) -> Option<Arc<RunningJob>> {
        self.running().get(id).cloned()
    }

    /// Signals that there is a new job, or that one has ended.
    pub fn tell(&self) {
        self.changed.notify_one();
    }

    /// Waits for a signal; one sent since the last wait counts.
    pub fn change(&self) -> Notified<'_> {
        self.changed.notified()
    }

    fn running(&self) -> MutexGuard<'_, HashMap<JobId, Arc<RunningJob>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunningJob {
    /// Returns the progress.
    pub fn sums(&self) -> JobSums {
        *self.locked()
    }

    /// Updates the progress.
    pub fn note(&self, change: impl FnOnce(&mut JobSums)) {
        change(&mut self.locked());
    }

    /// Requests the job to stop.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.stopped.notify_one();
    }

    /// Returns whether the job was requested to stop.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Waits until the job is requested to stop.
    pub async fn stopped(&self) {
        while !self.is_stopped() {
            self.stopped.notified().await;
        }
    }

    fn locked(&self) -> MutexGuard<'_, JobSums> {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
