//! What systemd is told: that requests are taken, that settings are read again, that the server stops; and again and
//! again that it works, where it wants to know (`WatchdogSec=`).
//!
//! Without `NOTIFY_SOCKET` nobody is told anything. The server starts no programs that could speak in its name.
//! Promises: it works means that the store has answered, and a task has run that was begun for it; what hangs is never
//! said to work. Never here: what is served.

use std::time::Duration;

use engine::{Batch, Store};
use sd_notify::NotifyState;
use server::Stop;
use server::bridge::commit;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

/// Nobody is told more often, whatever is asked for.
const LEAST_WAIT: Duration = Duration::from_millis(10);

/// Requests are taken.
pub(crate) fn ready(address: &str) {
    let status = format!("serving {address}");
    tell(&[NotifyState::Ready, NotifyState::Status(&status)]);
}

/// Settings are read again from now on.
pub(crate) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(_) => tell(&[NotifyState::Reloading]),
    }
}

/// They have been read.
pub(crate) fn reloaded() {
    tell(&[NotifyState::Ready]);
}

/// Says when the server begins to stop.
pub(crate) async fn tell_of_stop(mut stop: watch::Receiver<Stop>) {
    let _ = stop.wait_for(|it| *it != Stop::Running).await;
    let status = "stopping: draining requests in flight";
    tell(&[NotifyState::Stopping, NotifyState::Status(status)]);
}

/// Says that the server works, twice in the time after which it would be ended.
pub(crate) async fn tell_of_work(store: Store) {
    let Some(patience) = sd_notify::watchdog_enabled() else { return };
    let mut looks = interval((patience / 2).max(LEAST_WAIT));
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        if works(&store).await {
            tell(&[NotifyState::Watchdog]);
        }
    }
}

/// Waits until the server has done something: for ever where it does nothing any more. A store that answers by an
/// error, since its disk has failed or it is closed, is not mended by who ends the server.
async fn works(store: &Store) -> bool {
    // Nothing is written for a batch of nothing, but it waits its turn among the others.
    let _ = commit(store, Batch::new()).await;
    tokio::spawn(async {}).await.is_ok()
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "sd_notify failed");
    }
}
