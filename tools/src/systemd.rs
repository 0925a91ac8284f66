//! Notifications to systemd: ready, reloading, stopping, and watchdog keep-alives (`WatchdogSec=`).
//!
//! Without `NOTIFY_SOCKET` nothing is sent. The server starts no programs that could notify in its name.
//!
//! Guarantees: a keep-alive means that the store responded and that a newly spawned task ran; a hanging server sends
//! none.
//! Non-goals: what is served.

use std::time::Duration;

use catalog::commit::commit;
use engine::{Batch, Store};
use listener::accept::Shutdown;
use sd_notify::NotifyState;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

/// Minimum interval of keep-alives, regardless of the configuration.
const LEAST_WAIT: Duration = Duration::from_millis(10);

/// Reports that requests are accepted.
pub(crate) fn ready(address: &str) {
    let status = format!("serving {address}");
    notify(&[NotifyState::Ready, NotifyState::Status(&status)]);
}

/// Reports that settings are being reloaded.
pub(crate) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => notify(&[NotifyState::Reloading, now]),
        Err(_) => notify(&[NotifyState::Reloading]),
    }
}

/// Reports that settings were reloaded.
pub(crate) fn reloaded() {
    notify(&[NotifyState::Ready]);
}

/// Reports when the server begins to stop.
pub(crate) async fn notify_stopping(mut stop: watch::Receiver<Shutdown>) {
    let _ = stop.wait_for(|it| *it != Shutdown::Running).await;
    let status = "stopping: draining requests in flight";
    notify(&[NotifyState::Stopping, NotifyState::Status(status)]);
}

/// Sends keep-alives, twice per watchdog period.
pub(crate) async fn send_watchdog_keepalives(store: Store) {
    let Some(patience) = sd_notify::watchdog_enabled() else { return };
    let mut looks = interval((patience / 2).max(LEAST_WAIT));
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        if works(&store).await {
            notify(&[NotifyState::Watchdog]);
        }
    }
}

/// Waits until the server has done some work, forever if it hangs. A store that returns errors, because its disk
/// failed or it is closed, counts as working: a restart would not repair it.
async fn works(store: &Store) -> bool {
    // An empty batch writes nothing, but waits in the queue like others.
    let _ = commit(store, Batch::new()).await;
    tokio::spawn(async {}).await.is_ok()
}

fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "sd_notify failed");
    }
}
