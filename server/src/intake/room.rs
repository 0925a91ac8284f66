//! Quota reservation for objects about to be stored.
//!
//! Guarantees: a reservation is held until the batch is stored or rejected, even if the client disconnects; no request
//! waits longer than [`limits::QUOTA_WAIT`]. Non-goals: quotas themselves.

use engine::{Batch, BucketName, Committed, Object};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use crate::bridge::blocking;
use crate::catalog::{Amount, Bucket, Happening, Reservation, Room};
use crate::error::ApiError;
use crate::limits;
use crate::state::AppState;
use crate::traces::carried;

/// Growth of a bucket by a batch, net of the objects that it replaces.
#[derive(Default)]
pub struct Growth {
    objects: i128,
    bytes: i128,
}

impl Growth {
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
    pub fn amount(&self) -> Amount {
        let at_least_nothing = |number: i128| u64::try_from(number.max(0)).unwrap_or(u64::MAX);
        Amount { objects: at_least_nothing(self.objects), bytes: at_least_nothing(self.bytes) }
    }
}

/// Reserves room. If the result depends on uploads in flight, waits for them. `completes` is the unfinished upload that
/// is being stored.
pub async fn make_room(
    app: &AppState,
    bucket: &Bucket,
    amount: Amount,
    completes: Option<Uuid>,
) -> Result<Reservation, ApiError> {
    let deadline = Instant::now() + limits::QUOTA_WAIT;
    loop {
        let mut changes = std::pin::pin!(app.catalog.room_changes());
        // Registered first, so that a change during the reservation is noticed.
        changes.as_mut().enable();
        let asked = if app.catalog.is_limited(bucket) {
            let (app, bucket) = (app.clone(), bucket.clone());
            blocking(move || app.catalog.reserve(&bucket, amount, completes)).await
        } else {
            // Without a quota this does not access the index.
            app.catalog.reserve(bucket, amount, completes)
        };
        match asked? {
            Room::Granted(reservation) => return Ok(reservation),
            Room::Exceeded(exceeded) => return Err(ApiError::quota_exceeded(exceeded)),
            Room::Depends => {
                let too_late = |_| ApiError::overloaded(1);
                timeout_at(deadline, changes).await.map_err(too_late)?;
            }
        }
    }
}

/// Commits a batch with its reservation and its webhook events.
pub async fn commit_in(
    app: &AppState,
    bucket: &BucketName,
    batch: Batch,
    happenings: Vec<Happening>,
    room: Reservation,
) -> engine::Result<Committed> {
    let (catalog, bucket) = (app.catalog.clone(), bucket.clone());
    // A separate task continues after a client disconnect, so that the batch is stored regardless.
    let committing = tokio::spawn(carried(async move {
        let committed = catalog.commit_telling(&bucket, batch, &happenings).await;
        match &committed {
            Ok(_) => room.settle(),
            Err(_) => drop(room),
        }
        committed
    }));
    committing.await.unwrap_or(Err(engine::Error::Closed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shrinks_needs_no_room() {
        let mut growth = Growth::default();
        growth.count(7, None);
        assert_eq!(growth.amount(), Amount { objects: 1, bytes: 7 });
        growth.bytes -= 10;
        assert_eq!(growth.amount(), Amount { objects: 1, bytes: 0 });
        growth.count(5, None);
        assert_eq!(growth.amount(), Amount { objects: 2, bytes: 2 });
    }
}
