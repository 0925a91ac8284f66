//! Import progress of a job: one fact for each imported URL, in the batch of its file.
//!
//! Guarantees: a URL is imported once, even across restarts; facts of finished jobs are deleted. Non-goals: the import.

use bytes::Bytes;
use engine::name::NameError;
use engine::{Batch, FactName, Precondition};

use super::id::JobId;
use super::job::JobFailure;
use super::{CatalogError, Jobs};
use crate::limits;

const PREFIX: &str = "imported/";

fn fact(job: &JobId, at: usize) -> Result<FactName, NameError> {
    FactName::parse(&format!("{PREFIX}{job}/{at:05}"))
}

impl Jobs<'_> {
    /// Returns whether the URL with this index was imported.
    pub fn is_url_done(&self, job: &JobId, at: usize) -> Result<bool, CatalogError> {
        Ok(self.0.state.store.fact(&fact(job, at)?)?.is_some())
    }

    /// Returns the changes for the batch of the imported file.
    pub fn mark_url_done(&self, job: &JobId, at: usize) -> Result<Batch, CatalogError> {
        let fact = fact(job, at)?;
        let batch = Batch::new().require(Precondition::FactAbsent(fact.clone()));
        Ok(batch.put_fact(fact, Bytes::from_static(b"{}")))
    }

    /// Records the error of a URL, while there is room in the record.
    pub fn record_failure(&self, job: &JobId, at: usize, why: &str) -> Result<(), CatalogError> {
        self.change(job, |job| {
            if job.failures.len() < limits::IMPORT_FAILURES_MAX {
                let error = why.chars().take(limits::IMPORT_FAILURE_CHARS_MAX).collect();
                job.failures.push(JobFailure { at, error });
            }
            None
        })?;
        Ok(())
    }

    /// Deletes the facts of finished jobs, in small batches.
    pub(super) fn sweep_imported(&self) -> Result<(), CatalogError> {
        let facts = self.0.state.store.facts(PREFIX, None, limits::USED_TOKENS_SWEPT_MAX)?;
        let is_over = |fact: &FactName| {
            let id = fact.as_str().strip_prefix(PREFIX).and_then(|rest| rest.split('/').next());
            let job = id.and_then(JobId::parse).and_then(|id| self.get(&id));
            !job.is_some_and(|job| job.state.is_active())
        };
        let over = facts.into_iter().map(|(fact, _)| fact).filter(is_over);
        let batch = over.fold(Batch::new(), Batch::delete_fact);
        match batch.is_empty() {
            true => Ok(()),
            false => Ok(self.0.state.store.commit(batch).map(drop)?),
        }
    }
}
