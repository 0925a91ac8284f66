//! Quota reservation for objects about to be stored.
//!
//! Guarantees: a reservation is held until the batch is stored or rejected, even if the client disconnects; no request
//! waits longer than [`limits::QUOTA_WAIT_TIMEOUT`]. Non-goals: quotas themselves.

use engine::{Batch, BucketName, CommitInfo, Object};
use protocol::error::ApiError;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};
use usage::spans::child_span;
use usage::task::{blocking, run_to_completion};
use uuid::Uuid;

use super::commit::ObjectBatch;
use super::{Bucket, Catalog, ObjectEvent, QuotaDecision, QuotaReservation, StoredAmount, limits};

/// Growth of a bucket by a batch, net of the objects that it replaces.
#[derive(Default)]
pub struct QuotaDelta {
    objects: i128,
    bytes: i128,
}

impl QuotaDelta {
    /// Counts a file and the object that it replaces.
    pub fn count(&mut self, bytes: u64, replaces: Option<&Object>) {
        self.objects += 1;
        self.bytes += i128::from(bytes);
        if let Some(old) = replaces.filter(|old| !old.is_derived()) {
            self.objects -= 1;
            self.bytes -= i128::from(old.bytes());
        }
    }

    /// Returns the amount to reserve; zero if the usage shrinks.
    pub fn amount(&self) -> StoredAmount {
        let at_least_nothing = |number: i128| u64::try_from(number.max(0)).unwrap_or(u64::MAX);
        StoredAmount {
            objects: at_least_nothing(self.objects),
            bytes: at_least_nothing(self.bytes),
        }
    }
}

impl Catalog {
    /// Reserves room in the quotas of a bucket and its owner. If the result depends on uploads in flight, waits for
    /// them. `completes` is the unfinished upload that is being stored.
    ///
    /// # Errors
    ///
    /// The exceeded quota; `overloaded` after [`limits::QUOTA_WAIT_TIMEOUT`].
    pub async fn reserve_quota(
        &self,
        bucket: &Bucket,
        amount: StoredAmount,
        completes: Option<Uuid>,
    ) -> Result<QuotaReservation, ApiError> {
        let deadline = Instant::now() + limits::QUOTA_WAIT_TIMEOUT;
        loop {
            let mut released = std::pin::pin!(self.quotas().released());
            // Registered first, so that a change during the reservation is noticed.
            released.as_mut().enable();
            let decision = if self.quotas().is_limited(bucket) {
                let (catalog, bucket) = (self.clone(), bucket.clone());
                blocking(move || catalog.quotas().reserve(&bucket, amount, completes)).await
            } else {
                // Without a quota this does not access the index.
                self.quotas().reserve(bucket, amount, completes)
            };
            match decision? {
                QuotaDecision::Granted(reservation) => return Ok(reservation),
                QuotaDecision::Exceeded(exceeded) => return Err(exceeded.into()),
                QuotaDecision::Pending => {
                    let too_late = |_| ApiError::overloaded(1);
                    timeout_at(deadline, released).await.map_err(too_late)?;
                }
            }
        }
    }

    /// Commits a batch with its reservation and its webhook events, even if the caller is dropped.
    pub async fn commit_reserved(
        &self,
        bucket: &BucketName,
        batch: Batch,
        events: Vec<ObjectEvent>,
        mut reservation: QuotaReservation,
    ) -> engine::Result<CommitInfo> {
        if self.buckets().version_rules(bucket).is_some() {
            let (catalog, bucket) = (self.clone(), bucket.clone());
            return run_to_completion(async move {
                let committed = catalog.commit(ObjectBatch::new(&bucket, batch, &events)).await;
                if committed.is_ok() {
                    reservation.settle();
                }
                committed
            })
            .await;
        }
        let (answer, answered) = oneshot::channel();
        self.submit(ObjectBatch::new(bucket, batch, &events), move |result| {
            if result.is_ok() {
                reservation.settle();
            }
            // The reservation ends in the task that receives it, since the committer serves all uploads.
            drop(answer.send((result, reservation)));
        });
        let committed = child_span("store.commit", answered).await;
        committed.map_or(Err(engine::Error::Closed), |(result, _)| result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quota_delta_is_zero_when_shrinking() {
        let mut growth = QuotaDelta::default();
        growth.count(7, None);
        assert_eq!(growth.amount(), StoredAmount { objects: 1, bytes: 7 });
        growth.bytes -= 10;
        assert_eq!(growth.amount(), StoredAmount { objects: 1, bytes: 0 });
        growth.count(5, None);
        assert_eq!(growth.amount(), StoredAmount { objects: 2, bytes: 2 });
    }
}
