//! What is known of running jobs, in memory: how far each has come, and whether it is to stop.
//!
//! Promises: whoever looks sees the last word of the job, without asking the store. Never here: what is kept across
//! restarts, which the catalog does, and the work.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::catalog::{JobId, JobSums};

/// The running jobs.
#[derive(Default)]
pub struct JobBoard {
    running: Mutex<HashMap<JobId, Arc<RunningJob>>>,
    changed: Notify,
}

/// A job at work.
#[derive(Default)]
pub struct RunningJob {
    sums: Mutex<JobSums>,
    is_stopped: AtomicBool,
    stopped: Notify,
}

impl JobBoard {
    /// A job begins, which had come so far before.
    pub fn begin(&self, id: JobId, sums: JobSums) -> Arc<RunningJob> {
        let job = Arc::new(RunningJob { sums: Mutex::new(sums), ..RunningJob::default() });
        self.running().insert(id, job.clone());
        job
    }

    /// A job works no more.
    pub fn end(&self, id: &JobId) {
        self.running().remove(id);
        self.changed.notify_one();
    }

    /// A job, while it works.
    pub fn get(&self, id: &JobId) -> Option<Arc<RunningJob>> {
        self.running().get(id).cloned()
    }

    /// There is a new job, or one has ended.
    pub fn tell(&self) {
        self.changed.notify_one();
    }

    /// Waits until there is something new; what came since the last wait counts.
    pub fn change(&self) -> Notified<'_> {
        self.changed.notified()
    }

    fn running(&self) -> MutexGuard<'_, HashMap<JobId, Arc<RunningJob>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunningJob {
    /// How far it has come.
    pub fn sums(&self) -> JobSums {
        *self.locked()
    }

    /// Notes how far it has come.
    pub fn note(&self, change: impl FnOnce(&mut JobSums)) {
        change(&mut self.locked());
    }

    /// Tells it to stop.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.stopped.notify_one();
    }

    /// Whether it is to stop.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Waits until it is told to stop.
    pub async fn stopped(&self) {
        while !self.is_stopped() {
            self.stopped.notified().await;
        }
    }

    fn locked(&self) -> MutexGuard<'_, JobSums> {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
