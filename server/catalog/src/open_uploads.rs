//! Exclusive access to resumable uploads: one request at a time, and the newest wins.
//!
//! A client whose connection broke retries at once, while the server still waits for the old connection. A later
//! request therefore asks the current one to yield, and gets its turn when the data received so far is saved.
//! Guarantees: an upload has at most one request at a time; between requests a bounded number of uploads stays open.
//! Non-goals: processing of uploads.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::StagedBody;
use engine::upload::ResumableUpload;
use tokio::sync::Notify;
use tokio::time::timeout;
use uuid::Uuid;

use crate::limits;

/// Uploads that are in use, or held open for the next request.
#[derive(Clone, Default)]
pub struct UploadLocks(Arc<Mutex<HashMap<Uuid, LockEntry>>>);

/// Upload held open between two requests. Dropping it may wait for the disk.
pub enum SuspendedUpload {
    /// Incomplete upload.
    Partial(Box<ResumableUpload>),
    /// Complete upload that could not be stored yet: its content, and its thumbnail if already rendered.
    Complete(StagedBody, Option<StagedBody>),
}

/// Access slot of an upload.
#[derive(Default)]
struct LockEntry {
    is_taken: bool,
    /// Upload held open for the next request, and the time it was put back.
    waiting: Option<(SuspendedUpload, u64)>,
    /// Asks the current holder to yield.
    preempt: Arc<Notify>,
    /// Wakes a waiter when the slot is free.
    freed: Arc<Notify>,
}

/// Exclusive right to work on an upload. Dropping it wakes a waiter.
pub struct UploadLock {
    uploads: UploadLocks,
    id: Uuid,
    preempt: Arc<Notify>,
}

impl UploadLocks {
    /// Waits for the turn at an upload; `None` if its holder does not yield in time.
    pub async fn acquire(&self, id: Uuid) -> Option<UploadLock> {
        let waiting = async {
            loop {
                let freed = {
                    let mut seats = self.seats();
                    let seat = seats.entry(id).or_default();
                    if !seat.is_taken {
                        seat.is_taken = true;
                        return UploadLock {
                            uploads: self.clone(),
                            id,
                            preempt: seat.preempt.clone(),
                        };
                    }
                    seat.preempt.notify_one();
                    seat.freed.clone()
                };
                // A holder that frees the slot between the check and this wait leaves a permit behind.
                freed.notified().await;
            }
        };
        timeout(limits::TUS_LOCK_TIMEOUT, waiting).await.ok()
    }

    /// Returns whether a request works on an upload.
    pub fn is_locked(&self, id: Uuid) -> bool {
        self.seats().get(&id).is_some_and(|seat| seat.is_taken)
    }

    /// Closes an upload that is held open. Blocks on the disk.
    pub fn close(&self, id: Uuid) {
        let closed = take(&mut self.seats(), id);
        drop(closed);
    }

    fn seats(&self) -> MutexGuard<'_, HashMap<Uuid, LockEntry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UploadLock {
    /// Resolves when another request waits for the upload.
    pub async fn preempted(&self) {
        self.preempt.notified().await;
    }

    /// Takes the upload that the previous request left open.
    pub fn take(&self) -> Option<SuspendedUpload> {
        self.uploads.seats().get_mut(&self.id)?.waiting.take().map(|(upload, _)| upload)
    }

    /// Holds the upload open for the next request. At the limit the oldest one is evicted and returned, for the caller
    /// to drop.
    #[must_use]
    pub fn suspend(&self, upload: SuspendedUpload, now_ms: u64) -> Option<SuspendedUpload> {
        let mut seats = self.uploads.seats();
        let mut closed = None;
        let open = seats.values().filter(|seat| seat.waiting.is_some()).count();
        if open >= limits::TUS_SUSPENDED_MAX {
            let oldest =
                seats.iter().filter_map(|(id, seat)| Some((seat.waiting.as_ref()?.1, *id))).min();
            if let Some((_, id)) = oldest {
                closed = take(&mut seats, id);
            }
        }
        if let Some(seat) = seats.get_mut(&self.id) {
            seat.waiting = Some((upload, now_ms));
        }
        closed
    }
}

/// Takes the upload that is held open, and removes an unused slot.
fn take(seats: &mut HashMap<Uuid, LockEntry>, id: Uuid) -> Option<SuspendedUpload> {
    let seat = seats.get_mut(&id)?;
    let waiting = seat.waiting.take();
    if !seat.is_taken {
        seats.remove(&id);
    }
    waiting.map(|(upload, _)| upload)
}

impl Drop for UploadLock {
    fn drop(&mut self) {
        let mut seats = self.uploads.seats();
        let Some(seat) = seats.get_mut(&self.id) else { return };
        seat.is_taken = false;
        // A late request to yield does not apply to the next holder.
        seat.preempt = Arc::default();
        seat.freed.notify_one();
        let is_waited_for = Arc::strong_count(&seat.freed) > 1;
        if seat.waiting.is_none() && !is_waited_for {
            seats.remove(&self.id);
        }
    }
}
