//! Bounded password hashing: each hash takes 19 MiB and a tenth of a second of a processor.
//!
//! Guarantees: at most [`PASSWORDS_AT_ONCE_MAX`] hashes run at a time, on the blocking pool, and a bounded number
//! waits; the check of an unknown account or one without a password takes as long as any other. Non-goals: rate limits
//! of attempts.

use std::sync::Arc;

use engine::Entropy;
use tokio::sync::Semaphore;

use crate::bridge::blocking;
use crate::catalog::{CatalogError, Password, PasswordHash};
use crate::limits::{PASSWORDS_AT_ONCE_MAX, PASSWORDS_WAITING_MAX};

/// Password hashing queue.
pub struct PasswordWork {
    turns: Arc<Semaphore>,
    /// Places of running and waiting hashes.
    places: Semaphore,
}

/// Error of a full queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

impl PasswordWork {
    pub fn new() -> Self {
        Self {
            turns: Arc::new(Semaphore::new(PASSWORDS_AT_ONCE_MAX)),
            places: Semaphore::new(PASSWORDS_AT_ONCE_MAX + PASSWORDS_WAITING_MAX),
        }
    }

    /// Verifies a password against a hash. Without a hash the result is false, after the same time.
    pub async fn check(
        &self,
        hash: Option<Arc<PasswordHash>>,
        presented: Option<Password>,
    ) -> Result<bool, Busy> {
        self.in_turn(move || {
            let hash = hash.unwrap_or_else(|| Arc::new(PasswordHash::of_nobody()));
            presented.is_some_and(|presented| hash.is_of(&presented))
        })
        .await
    }

    /// Hashes a new password.
    pub async fn hash(
        &self,
        password: Password,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Result<PasswordHash, CatalogError>, Busy> {
        self.in_turn(move || PasswordHash::of(&password, &*entropy)).await
    }

    async fn in_turn<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Busy> {
        let _place = self.places.try_acquire().map_err(|_| Busy)?;
        let turn = self.turns.clone().acquire_owned().await.map_err(|_| Busy)?;
        let in_turn = move || {
            // Held until the work is done, even if its caller was dropped.
            let _turn = turn;
            work()
        };
        Ok(blocking(in_turn).await)
    }
}

impl Default for PasswordWork {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use engine::SeededEntropy;

    use super::*;

    #[tokio::test]
    async fn a_hash_is_checked_and_nobody_has_a_password() {
        let work = PasswordWork::new();
        let password = || Password::choose("correct horse").unwrap();
        let hash = work.hash(password(), Arc::new(SeededEntropy::new(1))).await.unwrap().unwrap();
        let hash = Some(Arc::new(hash));
        assert_eq!(work.check(hash.clone(), Some(password())).await, Ok(true));
        assert_eq!(work.check(hash.clone(), Password::presented("wrong")).await, Ok(false));
        assert_eq!(work.check(hash, None).await, Ok(false));
        assert_eq!(work.check(None, Some(password())).await, Ok(false));
    }

    #[tokio::test]
    async fn no_more_wait_than_may() {
        let work = Arc::new(PasswordWork::new());
        let (release, held) = std::sync::mpsc::channel::<()>();
        let held = Arc::new(std::sync::Mutex::new(held));
        let all = PASSWORDS_AT_ONCE_MAX + PASSWORDS_WAITING_MAX;
        let tasks: Vec<_> = (0..all)
            .map(|_| {
                let (work, held) = (work.clone(), held.clone());
                tokio::spawn(async move {
                    work.in_turn(move || held.lock().unwrap().recv().is_ok()).await
                })
            })
            .collect();
        while work.places.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(work.in_turn(|| true).await, Err(Busy));
        (0..all).for_each(|_| release.send(()).unwrap());
        for task in tasks {
            assert_eq!(task.await.unwrap(), Ok(true));
        }
        assert_eq!(work.in_turn(|| true).await, Ok(true));
    }
}
