//! Jobs of the server.
//!
//! Guarantees: a job is durable before it is reported, and until it has ended. Non-goals: the work, and authorization.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::FactName;

use super::audit_entry::{AuditAction, AuditRecord};
use super::change::{Table, apply_record};
use super::id::{AccountId, IdKind, JobId, OfJob};
use super::job::{Job, JobEnd, JobProgress, JobState, NewJob};
use super::{CatalogError, Jobs};
use crate::limits;

/// Retained jobs.
#[derive(Debug, Default)]
pub(super) struct JobTable(BTreeMap<JobId, Arc<Job>>);

impl Table for JobTable {
    const PREFIXES: &'static [&'static str] = &[OfJob::PREFIX];

    fn apply(&mut self, fact: &FactName, value: Option<&[u8]>) -> Result<(), CatalogError> {
        apply_record(&mut self.0, fact, value)
    }

    /// A job that was running waits for a rerun.
    fn recover(&mut self) {
        for job in self.0.values_mut().filter(|job| job.state == JobState::Running) {
            Arc::make_mut(job).state = JobState::Waiting;
        }
    }
}

impl Jobs<'_> {
    /// Returns every retained job, in arbitrary order.
    pub fn all(&self) -> Vec<Arc<Job>> {
        self.0.state.jobs.read().0.values().cloned().collect()
    }

    /// Returns the job with this id.
    pub fn get(&self, id: &JobId) -> Option<Arc<Job>> {
        self.0.state.jobs.read().0.get(id).cloned()
    }

    /// Creates a job. `None` at the limit of the account or the server.
    pub fn add(&self, new: NewJob) -> Result<Option<Arc<Job>>, CatalogError> {
        let mut change = self.0.begin();
        let (mine, all) = {
            let table = self.0.state.jobs.read();
            let active = table.0.values().filter(|job| job.state.is_active());
            active.fold((0, 0), |(mine, all), job| {
                (mine + usize::from(job.account == new.account), all + 1)
            })
        };
        if mine >= limits::JOBS_PER_ACCOUNT_MAX || all >= limits::JOBS_MAX {
            return Ok(None);
        }
        let job = Job {
            id: JobId::issue(&*self.0.state.rng),
            account: new.account,
            issuer: new.issuer,
            work: new.work,
            state: JobState::Waiting,
            began_lsn: self.0.state.store.last_lsn()?,
            created_ms: self.0.now_ms(),
            started_ms: None,
            ended_ms: None,
            progress: JobProgress::default(),
            error: None,
            failures: Vec::new(),
        };
        change.add(job.id.fact()?, &job)?;
        let folders: Vec<_> = job.work.folders().iter().map(ToString::to_string).collect();
        let detail = format!("{} {}", job.work.kind(), folders.join(" to "));
        let entry = self.audit_record(AuditAction::JobBegin, &job);
        change.audit(entry.detail(detail.trim_end()));
        change.commit()?;
        Ok(self.get(&job.id))
    }

    /// Marks a job as running. `None` if it has ended.
    pub fn start(&self, id: &JobId) -> Result<Option<Arc<Job>>, CatalogError> {
        let now_ms = self.0.now_ms();
        self.change(id, |job| {
            job.state = JobState::Running;
            job.failures.clear();
            job.started_ms.get_or_insert(now_ms);
            None
        })
    }

    /// Persists the progress of a job. `None` if it has ended.
    pub fn save(&self, id: &JobId, sums: JobProgress) -> Result<Option<Arc<Job>>, CatalogError> {
        self.change(id, |job| {
            job.progress = sums;
            None
        })
    }

    /// Ends a job. `None` if it has already ended: then only the final progress of a cancelled job is stored.
    pub fn end(
        &self,
        id: &JobId,
        end: JobEnd,
        sums: Option<JobProgress>,
    ) -> Result<Option<Arc<Job>>, CatalogError> {
        let now_ms = self.0.now_ms();
        let ended = self.change(id, |job| {
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
            Some(self.audit_record(action, job).detail(detail))
        })?;
        match (&ended, sums) {
            (Some(job), _) => self.forget_of(&job.account)?,
            (None, Some(sums)) => self.settle(id, sums)?,
            (None, None) => {}
        }
        Ok(ended)
    }

    /// Stores the final progress of a job that was cancelled while it ran.
    fn settle(&self, id: &JobId, sums: JobProgress) -> Result<(), CatalogError> {
        let is_cancelled = |job: &Job| job.state == JobState::Cancelled && job.progress != sums;
        self.alter(id, is_cancelled, |job| {
            job.progress = sums;
            None
        })?;
        Ok(())
    }

    /// Deletes jobs that ended long ago.
    pub fn sweep(&self) -> Result<(), CatalogError> {
        let before_ms = self.0.now_ms().saturating_sub(limits::millis(limits::JOBS_RETENTION));
        let is_old = |job: &Arc<Job>| job.ended_ms.is_some_and(|ended_ms| ended_ms < before_ms);
        let old = self.all().into_iter().filter(is_old).collect();
        self.forget(old)?;
        self.sweep_imported()
    }

    /// Deletes the oldest ended jobs of an account beyond the limit.
    fn forget_of(&self, account: &AccountId) -> Result<(), CatalogError> {
        let is_theirs = |job: &Arc<Job>| job.account == *account && !job.state.is_active();
        let mut ended: Vec<_> = self.all().into_iter().filter(is_theirs).collect();
        ended.sort_by_key(|job| std::cmp::Reverse(job.ended_ms));
        self.forget(ended.split_off(ended.len().min(limits::JOBS_ENDED_MAX)))
    }

    fn forget(&self, jobs: Vec<Arc<Job>>) -> Result<(), CatalogError> {
        for job in jobs {
            let mut change = self.0.begin();
            change.delete(job.id.fact()?);
            change.commit()?;
        }
        Ok(())
    }

    /// Changes a job that has not ended.
    pub(super) fn change(
        &self,
        id: &JobId,
        edit: impl FnOnce(&mut Job) -> Option<AuditRecord>,
    ) -> Result<Option<Arc<Job>>, CatalogError> {
        self.alter(id, |job| job.state.is_active(), edit)
    }

    /// Changes a job that satisfies a condition.
    fn alter(
        &self,
        id: &JobId,
        is_meant: impl FnOnce(&Job) -> bool,
        edit: impl FnOnce(&mut Job) -> Option<AuditRecord>,
    ) -> Result<Option<Arc<Job>>, CatalogError> {
        let mut change = self.0.begin();
        let Some(job) = self.get(id).filter(|job| is_meant(job)) else { return Ok(None) };
        let mut job = Job::clone(&job);
        edit(&mut job).into_iter().for_each(|entry| change.audit(entry));
        change.put(id.fact()?, &job)?;
        change.commit()?;
        Ok(self.get(id))
    }

    fn audit_record(&self, action: AuditAction, job: &Job) -> AuditRecord {
        let entry = AuditRecord::new(action).account(&job.account).target(&job.id);
        match job.work.bucket() {
            Some(name) => entry.bucket_named(name, self.0),
            None => entry,
        }
    }
}
