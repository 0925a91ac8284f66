//! Which addresses of a job were taken already: a fact for each, in the batch of its file.
//!
//! Promises: an address is taken once, whatever happens to the server in between; nothing is left of jobs that ended.
//! Never here: taking them.

use bytes::Bytes;
use engine::{Batch, FactName, NameError, Precondition};

use super::id::JobId;
use super::job::JobFailure;
use super::{Catalog, CatalogError};
use crate::limits;

const PREFIX: &str = "imported/";

fn fact(job: &JobId, at: usize) -> Result<FactName, NameError> {
    FactName::parse(&format!("{PREFIX}{job}/{at:05}"))
}

impl Catalog {
    /// Whether the address with this number was taken.
    pub fn is_imported(&self, job: &JobId, at: usize) -> Result<bool, CatalogError> {
        Ok(self.0.store.fact(&fact(job, at)?)?.is_some())
    }

    /// What belongs into the batch of its file.
    pub fn importing(&self, job: &JobId, at: usize) -> Result<Batch, CatalogError> {
        let fact = fact(job, at)?;
        let batch = Batch::new().require(Precondition::FactAbsent(fact.clone()));
        Ok(batch.put_fact(fact, Bytes::from_static(b"{}")))
    }

    /// Notes why an address was not taken, as far as there is room for it.
    pub fn note_failure(&self, job: &JobId, at: usize, why: &str) -> Result<(), CatalogError> {
        self.change_job(job, |job| {
            if job.failures.len() < limits::IMPORT_FAILURES_MAX {
                let error = why.chars().take(limits::IMPORT_FAILURE_CHARS_MAX).collect();
                job.failures.push(JobFailure { at, error });
            }
            None
        })?;
        Ok(())
    }

    /// Forgets what was taken by jobs that have ended, some at a time.
    pub(super) fn sweep_imported(&self) -> Result<(), CatalogError> {
        let facts = self.0.store.facts(PREFIX, None, limits::USED_TOKENS_SWEPT_MAX)?;
        let is_over = |fact: &FactName| {
            let id = fact.as_str().strip_prefix(PREFIX).and_then(|rest| rest.split('/').next());
            let job = id.and_then(JobId::parse).and_then(|id| self.job(&id));
            !job.is_some_and(|job| job.state.is_active())
        };
        let over = facts.into_iter().map(|(fact, _)| fact).filter(is_over);
        let batch = over.fold(Batch::new(), Batch::delete_fact);
        match batch.is_empty() {
            true => Ok(()),
            false => Ok(self.0.store.commit(batch).map(drop)?),
        }
    }
}
