//! Bounded password hashing: each hash takes 19 MiB and a tenth of a second of a processor.
//!
//! Guarantees: at most [`PASSWORD_HASHES_CONCURRENT_MAX`] hashes run at a time, on the blocking pool, and a bounded
//! number waits; the check of an unknown account or one without a password takes as long as any other. Non-goals: rate
//! limits of attempts.

use std::sync::Arc;

use catalog::{CatalogError, Password, PasswordHash};
use engine::rng::Rng;
use tokio::sync::Semaphore;
use usage::task::blocking;

use crate::limits::{PASSWORD_HASHES_CONCURRENT_MAX, PASSWORD_HASHES_QUEUED_MAX};

/// Password hashing queue.
pub struct PasswordHasher {
    permits: Arc<Semaphore>,
    /// Places of running and waiting hashes.
    queue_slots: Semaphore,
}

/// Error of a full queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

impl PasswordHasher {
    pub fn new() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(PASSWORD_HASHES_CONCURRENT_MAX)),
            queue_slots: Semaphore::new(
                PASSWORD_HASHES_CONCURRENT_MAX + PASSWORD_HASHES_QUEUED_MAX,
            ),
        }
    }

    /// Verifies a password against a hash. Without a hash the result is false, after the same time.
    pub async fn check(
        &self,
        hash: Option<Arc<PasswordHash>>,
        presented: Option<Password>,
    ) -> Result<bool, Busy> {
        self.run_queued(move || {
            let hash = hash.unwrap_or_else(|| Arc::new(PasswordHash::dummy()));
            presented.is_some_and(|presented| hash.verify(&presented))
        })
        .await
    }

    /// Hashes a new password.
    pub async fn hash(
        &self,
        password: Password,
        rng: Arc<dyn Rng>,
    ) -> Result<Result<PasswordHash, CatalogError>, Busy> {
        self.run_queued(move || PasswordHash::from_password(&password, &*rng)).await
    }

    async fn run_queued<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Busy> {
        let _place = self.queue_slots.try_acquire().map_err(|_| Busy)?;
        let turn = self.permits.clone().acquire_owned().await.map_err(|_| Busy)?;
        let in_turn = move || {
            // Held until the work is done, even if its caller was dropped.
            let _turn = turn;
            work()
        };
        Ok(blocking(in_turn).await)
    }
}

impl Default for PasswordHasher {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use engine::rng::SeededRng;

    use super::*;

    #[tokio::test]
    async fn dummy_hash_never_verifies() {
        let work = PasswordHasher::new();
        let password = || Password::new_checked("correct horse").unwrap();
        let hash = work.hash(password(), Arc::new(SeededRng::new(1))).await.unwrap().unwrap();
        let hash = Some(Arc::new(hash));
        assert_eq!(work.check(hash.clone(), Some(password())).await, Ok(true));
        assert_eq!(work.check(hash.clone(), Password::parse_presented("wrong")).await, Ok(false));
        assert_eq!(work.check(hash, None).await, Ok(false));
        assert_eq!(work.check(None, Some(password())).await, Ok(false));
    }

    #[tokio::test]
    async fn password_hash_queue_is_bounded() {
        let work = Arc::new(PasswordHasher::new());
        let (release, held) = std::sync::mpsc::channel::<()>();
        let held = Arc::new(std::sync::Mutex::new(held));
        let all = PASSWORD_HASHES_CONCURRENT_MAX + PASSWORD_HASHES_QUEUED_MAX;
        let tasks: Vec<_> = (0..all)
            .map(|_| {
                let (work, held) = (work.clone(), held.clone());
                tokio::spawn(async move {
                    work.run_queued(move || held.lock().unwrap().recv().is_ok()).await
                })
            })
            .collect();
        while work.queue_slots.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(work.run_queued(|| true).await, Err(Busy));
        (0..all).for_each(|_| release.send(()).unwrap());
        for task in tasks {
            assert_eq!(task.await.unwrap(), Ok(true));
        }
        assert_eq!(work.run_queued(|| true).await, Ok(true));
    }
}
