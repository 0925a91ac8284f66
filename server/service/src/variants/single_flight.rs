//! Single-flight: one job for concurrent requests of the same key.
//!
//! Guarantees: requests for the key of a running job wait for it; the job knows when all waiters are gone; a panicking
//! job wakes all waiters. The loaders of `quick_cache` and `moka` end with the request that started them, and the next
//! waiter starts again (`abandoned_render_is_cancelled`). Non-goals: the job, and caching of its result.

use std::collections::HashMap;
use std::future::Future;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use usage::spans::with_current_span;

/// Running jobs.
pub(super) struct SingleFlight<K, V>(Arc<Mutex<Running<K, V>>>);

type Running<K, V> = HashMap<K, watch::Sender<Option<V>>>;

/// Interest in a job's result. Cheap to clone.
#[derive(Clone)]
pub(super) struct WaiterToken<V>(watch::Sender<Option<V>>);

impl<V> WaiterToken<V> {
    /// Returns whether all waiters are gone.
    pub(super) fn is_abandoned(&self) -> bool {
        self.0.is_closed()
    }

    /// Waits until all waiters are gone.
    pub(super) async fn abandoned(&self) {
        self.0.closed().await;
    }
}

impl<K, V> SingleFlight<K, V>
where
    K: Eq + Hash + Clone + Send + 'static,
    V: Clone + Send + Sync + 'static,
{
    pub(super) fn new() -> Self {
        Self(Arc::default())
    }

    /// Returns the number of running jobs.
    pub(super) fn count(&self) -> usize {
        lock(&self.0).len()
    }

    /// Returns whether a job for `key` runs.
    pub(super) fn is_running(&self, key: &K) -> bool {
        lock(&self.0).contains_key(key)
    }

    /// Returns the result of the job for `key`, starting `job` if none runs. `None` if it panicked.
    pub(super) async fn join<F>(&self, key: K, job: impl FnOnce(WaiterToken<V>) -> F) -> Option<V>
    where
        F: Future<Output = V> + Send + 'static,
    {
        let mut landed = {
            let mut running = lock(&self.0);
            match running.get(&key) {
                Some(sender) => sender.subscribe(),
                None => {
                    let (sender, receiver) = watch::channel(None);
                    running.insert(key.clone(), sender.clone());
                    let landing = RemoveOnDrop { running: self.0.clone(), key };
                    let work = job(WaiterToken(sender.clone()));
                    tokio::spawn(with_current_span(async move {
                        // Its drop wakes the waiters, even after a panic.
                        let landing = landing;
                        let value = work.await;
                        drop(landing);
                        sender.send_replace(Some(value));
                    }));
                    receiver
                }
            }
        };
        let value = landed.wait_for(Option::is_some).await.ok()?;
        value.clone()
    }
}

/// Guard that removes a job.
struct RemoveOnDrop<K: Eq + Hash, V> {
    running: Arc<Mutex<Running<K, V>>>,
    key: K,
}

impl<K: Eq + Hash, V> Drop for RemoveOnDrop<K, V> {
    fn drop(&mut self) {
        lock(&self.running).remove(&self.key);
    }
}

fn lock<K, V>(running: &Mutex<Running<K, V>>) -> MutexGuard<'_, Running<K, V>> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn single_flight_coalesces_requests() {
        let flights = SingleFlight::<u8, usize>::new();
        let (jobs, go) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let join = |key: u8| {
            let (jobs, go) = (jobs.clone(), go.clone());
            flights.join(key, move |_| async move {
                let number = jobs.fetch_add(1, Ordering::SeqCst);
                go.notified().await;
                number
            })
        };
        let all = async { tokio::join!(join(1), join(1), join(1), join(2)) };
        let release = async {
            tokio::task::yield_now().await;
            go.notify_waiters();
        };
        let ((a, b, c, d), ()) = tokio::join!(all, release);
        assert_eq!((a, a, a.is_some()), (b, c, true));
        assert_ne!(a, d);
        assert_eq!(jobs.load(Ordering::SeqCst), 2);
        go.notify_one();
        assert_eq!(join(1).await, Some(2), "what has landed is made again when it is asked for");
    }

    #[tokio::test]
    async fn abandoned_render_is_cancelled() {
        let flights = Arc::new(SingleFlight::<u8, ()>::new());
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let asking = {
            let flights = flights.clone();
            tokio::spawn(async move {
                let job = |interest: WaiterToken<()>| async move {
                    while !interest.is_abandoned() {
                        tokio::task::yield_now().await;
                    }
                    let _ = sender.send(());
                };
                flights.join(1, job).await
            })
        };
        tokio::task::yield_now().await;
        asking.abort();
        receiver.await.unwrap();
    }

    #[tokio::test]
    async fn panicked_render_wakes_all_waiters() {
        let flights = SingleFlight::<u8, ()>::new();
        assert_eq!(flights.join(1, |_| async { panic!("on purpose") }).await, None);
        assert_eq!(flights.join(1, |_| async {}).await, Some(()));
    }
}
