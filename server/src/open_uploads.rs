//! Who is working on a resumable upload: one request at a time, and the newest wins.
//!
//! A client whose connection broke asks again at once, while the server still waits for the old connection. So who
//! comes later asks the one before to let go, and gets its turn when what had come by then is kept.
//! Promises: one request at a time has an upload; between requests at most a few uploads are held open.
//! Never here: what is done with an upload.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::{ResumableUpload, Staged};
use tokio::sync::Notify;
use tokio::time::timeout;
use uuid::Uuid;

use crate::limits;

/// The uploads that somebody works on, or that wait open for the next request.
#[derive(Clone, Default)]
pub struct OpenUploads(Arc<Mutex<HashMap<Uuid, Seat>>>);

/// An upload between two requests. Dropping it may wait for the disk.
pub enum Waiting {
    /// More of it is to come.
    Growing(Box<ResumableUpload>),
    /// It is whole, and could not be stored yet: itself, and its thumbnail if that is made already.
    Whole(Staged, Option<Staged>),
}

/// The place at an upload.
#[derive(Default)]
struct Seat {
    is_taken: bool,
    /// What is held open for the next request, and when it was put back.
    waiting: Option<(Waiting, u64)>,
    /// The one who has it is asked to let go.
    asked: Arc<Notify>,
    /// Whoever waits is told that it is free.
    freed: Arc<Notify>,
}

/// The right to work on an upload. Dropped, it goes to whoever waits.
pub struct Turn {
    uploads: OpenUploads,
    id: Uuid,
    asked: Arc<Notify>,
}

impl OpenUploads {
    /// Waits for the turn at an upload; `None` when whoever has it does not let go in time.
    pub async fn turn(&self, id: Uuid) -> Option<Turn> {
        let waiting = async {
            loop {
                let freed = {
                    let mut seats = self.seats();
                    let seat = seats.entry(id).or_default();
                    if !seat.is_taken {
                        seat.is_taken = true;
                        return Turn { uploads: self.clone(), id, asked: seat.asked.clone() };
                    }
                    seat.asked.notify_one();
                    seat.freed.clone()
                };
                // One who frees the seat between the look and this leaves a permit behind.
                freed.notified().await;
            }
        };
        timeout(limits::TUS_TURN_WAIT, waiting).await.ok()
    }

    /// Whether somebody works on an upload.
    pub fn is_taken(&self, id: Uuid) -> bool {
        self.seats().get(&id).is_some_and(|seat| seat.is_taken)
    }

    /// Closes what waits open for the next request. Waits for the disk.
    pub fn close(&self, id: Uuid) {
        let closed = take(&mut self.seats(), id);
        drop(closed);
    }

    fn seats(&self) -> MutexGuard<'_, HashMap<Uuid, Seat>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    /// Ends when somebody else waits for the upload.
    pub async fn is_asked_for(&self) {
        self.asked.notified().await;
    }

    /// What the request before left open.
    pub fn take(&self) -> Option<Waiting> {
        self.uploads.seats().get_mut(&self.id)?.waiting.take().map(|(upload, _)| upload)
    }

    /// Leaves the upload open for the next request. What waits longest makes room: it is handed out, to be dropped.
    #[must_use]
    pub fn leave_open(&self, upload: Waiting, now_ms: u64) -> Option<Waiting> {
        let mut seats = self.uploads.seats();
        let mut closed = None;
        let open = seats.values().filter(|seat| seat.waiting.is_some()).count();
        if open >= limits::TUS_OPEN_MAX {
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

/// Takes what waits, and forgets the seat if nobody has it.
fn take(seats: &mut HashMap<Uuid, Seat>, id: Uuid) -> Option<Waiting> {
    let seat = seats.get_mut(&id)?;
    let waiting = seat.waiting.take();
    if !seat.is_taken {
        seats.remove(&id);
    }
    waiting.map(|(upload, _)| upload)
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut seats = self.uploads.seats();
        let Some(seat) = seats.get_mut(&self.id) else { return };
        seat.is_taken = false;
        // A wish that came too late is not for the next one.
        seat.asked = Arc::default();
        seat.freed.notify_one();
        let is_waited_for = Arc::strong_count(&seat.freed) > 1;
        if seat.waiting.is_none() && !is_waited_for {
            seats.remove(&self.id);
        }
    }
}
