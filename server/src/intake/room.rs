//! Room in the quotas for what is about to be stored.
//!
//! Promises: room that was found is kept until the batch is stored or refused, also when the client goes away
//! meanwhile; nobody waits longer than [`limits::QUOTA_WAIT`]. Never here: what a quota is.

use engine::{Batch, BucketName, Committed, Object};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use crate::bridge::blocking;
use crate::catalog::{Amount, Bucket, Happening, Reservation, Room};
use crate::error::ApiError;
use crate::limits;
use crate::state::AppState;
use crate::traces::carried;

/// By how much a batch makes a bucket grow; what it replaces counts against it.
#[derive(Default)]
pub struct Growth {
    objects: i128,
    bytes: i128,
}

impl Growth {
    /// Counts a file of so many bytes, and the object in whose place it is put.
    pub fn count(&mut self, bytes: u64, replaces: Option<&Object>) {
        self.objects += 1;
        self.bytes += i128::from(bytes);
        if let Some(old) = replaces.filter(|old| !old.is_derived()) {
            self.objects -= 1;
            self.bytes -= i128::from(old.bytes());
        }
    }

    /// What room is needed for; none for what shrinks.
    pub fn amount(&self) -> Amount {
        let at_least_nothing = |number: i128| u64::try_from(number.max(0)).unwrap_or(u64::MAX);
        Amount { objects: at_least_nothing(self.objects), bytes: at_least_nothing(self.bytes) }
    }
}

/// Finds room for so much. Where it depends on uploads that are not stored yet, waits for them. `completes` is the
/// unfinished upload that is stored in it.
pub async fn make_room(
    app: &AppState,
    bucket: &Bucket,
    amount: Amount,
    completes: Option<Uuid>,
) -> Result<Reservation, ApiError> {
    let deadline = Instant::now() + limits::QUOTA_WAIT;
    loop {
        let mut changes = std::pin::pin!(app.catalog.room_changes());
        // From here on a change is noticed, also one while the question is asked.
        changes.as_mut().enable();
        let asked = if app.catalog.is_limited(bucket) {
            let (app, bucket) = (app.clone(), bucket.clone());
            blocking(move || app.catalog.reserve(&bucket, amount, completes)).await
        } else {
            // Then it asks the index nothing.
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

/// Commits a batch in room that was found for it, and with it that webhooks are told.
pub async fn commit_in(
    app: &AppState,
    bucket: &BucketName,
    batch: Batch,
    happenings: Vec<Happening>,
    room: Reservation,
) -> engine::Result<Committed> {
    let (catalog, bucket) = (app.catalog.clone(), bucket.clone());
    // A task of its own goes on when the client goes away: the batch is stored all the same.
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
