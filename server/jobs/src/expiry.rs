//! Deletion of expired objects.
//!
//! ```text
//! due_objects  objects with an expiry time of their own, from the schedule in the store
//! rules        objects that lifecycle rules expire, found by scans of their prefixes
//! ```
//!
//! Guarantees: an object is deleted within [`EXPIRY_SWEEP_INTERVAL`] and the time of the deletion itself, also after a
//! restart, like by a request: with its thumbnail and a webhook event, and restorable. A version that does not expire
//! is never deleted. Non-goals: reads, which miss an expired object at once.

mod due_objects;
mod rules;

use std::collections::BTreeMap;
use std::sync::Arc;

use catalog::{Bucket, ExpiredObjects, ObjectEvent};
use engine::{BucketName, Object};
use protocol::error::ApiError;
use usage::task::blocking;

use self::rules::RuleScans;
use crate::Context;
use crate::limits::{EXPIRY_AUDIT_INTERVAL_MS, EXPIRY_RETRY_DELAY, EXPIRY_SWEEP_INTERVAL};
use crate::object_operations::{DeleteOutcome, delete_versions};

/// Expired objects that are not in the audit log yet, by bucket and rule; the rule is `None` for expiry times of the
/// objects themselves.
type Unrecorded = BTreeMap<(BucketName, Option<String>), ExpiredObjects>;

/// Deletes expired objects, forever.
pub async fn run_expiry(context: Arc<Context>) {
    let mut sweep = ExpirySweep::new(context.clone());
    loop {
        if !context.is_draining()
            && let Err(error) = sweep.run().await
        {
            tracing::warn!(error = error.message(), "failed to delete expired objects; will retry");
            tokio::time::sleep(EXPIRY_RETRY_DELAY).await;
        }
        tokio::time::sleep(EXPIRY_SWEEP_INTERVAL).await;
    }
}

/// Sweeps that delete expired objects.
pub struct ExpirySweep {
    context: Arc<Context>,
    scans: RuleScans,
    unrecorded: Unrecorded,
    /// Time of the last audit record.
    recorded_ms: u64,
}

impl ExpirySweep {
    /// Prepares the first sweep, which scans the buckets with rules.
    pub fn new(context: Arc<Context>) -> Self {
        let (scans, unrecorded) = (RuleScans::default(), Unrecorded::new());
        Self { context, scans, unrecorded, recorded_ms: 0 }
    }

    /// Deletes the objects that have expired. The first error is returned after all buckets.
    pub async fn run(&mut self) -> Result<(), ApiError> {
        let scheduled = self.delete_scheduled().await;
        let by_rules = self.delete_by_rules().await;
        self.record().await?;
        scheduled.and(by_rules)
    }

    /// Deletes expired versions of a bucket; returns false if one of them was replaced concurrently, and nothing was
    /// deleted.
    async fn delete(
        &mut self,
        bucket: &Bucket,
        rule: Option<String>,
        objects: Vec<Object>,
    ) -> Result<bool, ApiError> {
        match delete_versions(&self.context, bucket, objects, ObjectEvent::expired).await? {
            DeleteOutcome::Changed => Ok(false),
            DeleteOutcome::Files { files, bytes } => {
                let expired = self.unrecorded.entry((bucket.name.clone(), rule)).or_default();
                expired.files += files;
                expired.bytes += bytes;
                Ok(true)
            }
        }
    }

    /// Records the expired objects in the audit log, periodically.
    async fn record(&mut self) -> Result<(), ApiError> {
        let now_ms = self.context.clock.unix_ms();
        self.unrecorded.retain(|_, expired| expired.files > 0);
        if self.unrecorded.is_empty()
            || now_ms.saturating_sub(self.recorded_ms) < EXPIRY_AUDIT_INTERVAL_MS
        {
            return Ok(());
        }
        let (catalog, unrecorded) = (self.context.catalog.clone(), self.unrecorded.clone());
        let record = move || {
            unrecorded.iter().try_for_each(|((bucket, rule), expired)| {
                catalog.audit().record_expired(bucket, rule.as_deref(), *expired)
            })
        };
        blocking(record).await?;
        self.unrecorded.clear();
        self.recorded_ms = now_ms;
        Ok(())
    }
}
