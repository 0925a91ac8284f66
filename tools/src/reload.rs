//! Reload of a running server: settings on SIGHUP, and certificate and key when their files change.
//!
//! Guarantees: an invalid configuration is logged and ignored as a whole; the current one remains in effect.
//! Non-goals: the effect of a change.

use std::io::{self, IsTerminal};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use engine::clock::{Clock, SystemClock};
use listener::accept::Shutdown;
use server::ConfigChange;
use service::Config;
use service::config::{ActiveConfig, Reloaded, TlsFiles};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{MissedTickBehavior, interval};
use usage::task::blocking;

use crate::exit::Failure;
use crate::settings::{self, Flags};
use crate::systemd;

/// Interval between checks for changed files.
const FILE_CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// Watcher of configuration changes.
pub(crate) struct Reload {
    flags: Flags,
    hangup: Signal,
    had_terminal: bool,
    stop: watch::Sender<Shutdown>,
    changes: mpsc::Sender<ConfigChange>,
    /// Settings in effect.
    running: ActiveConfig,
    /// Configuration derived from the settings.
    config: Config,
    /// Stamps of the files at the last check.
    last_stamps: Option<Stamps>,
}

/// Stamps of the certificate and the key.
type Stamps = [Option<Stamp>; 2];

/// File attributes that differ after a file was replaced or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    written: (i64, i64),
}

impl Reload {
    /// Registers for SIGHUP. Changes are sent to the receiver.
    pub(crate) fn begin(
        flags: Flags,
        running: ActiveConfig,
        config: Config,
        stop: watch::Sender<Shutdown>,
    ) -> io::Result<(Self, mpsc::Receiver<ConfigChange>)> {
        let hangup = signal(SignalKind::hangup())?;
        let had_terminal = io::stderr().is_terminal();
        let (changes, receiver) = mpsc::channel(1);
        let seen = None;
        let this =
            Self { flags, hangup, had_terminal, stop, changes, running, config, last_stamps: seen };
        Ok((this, receiver))
    }

    /// Waits for changes until the receiver is dropped.
    pub(crate) async fn run(mut self) {
        let mut looks = interval(FILE_CHECK_INTERVAL);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = self.hangup.recv() => {
                    // The system also sends SIGHUP when the terminal of a server started from it is closed.
                    if self.had_terminal && !io::stderr().is_terminal() {
                        let _ = self.stop.send(Shutdown::Drain);
                        return;
                    }
                    self.reload().await;
                }
                _ = looks.tick() => self.check_files().await,
                () = self.changes.closed() => return,
            }
        }
    }

    /// Reads all sources of settings again.
    async fn reload(&mut self) {
        systemd::reloading();
        let (flags, running, was) = (self.flags.clone(), self.running.clone(), self.config.clone());
        match blocking(move || read_again(&flags, &running, was)).await {
            Ok((reloaded, stamps)) => {
                let Reloaded { running, config, changed, unchanged } = reloaded;
                (self.running, self.last_stamps) = (running, stamps);
                self.change(config).await;
                tracing::info!(changed = changed.join(", "), "settings reloaded");
                if !unchanged.is_empty() {
                    let settings = unchanged.join(", ");
                    tracing::warn!(
                        settings,
                        "restart required for changed settings; keeping current values"
                    );
                }
            }
            Err(failure) => {
                tracing::error!("invalid settings; keeping current values: {failure}");
            }
        }
        systemd::reloaded();
    }

    /// Reads certificate and key again if their files changed since the last check.
    async fn check_files(&mut self) {
        let Some(files) = self.config.tls_files.clone() else { return };
        let read = blocking({
            let seen = self.last_stamps;
            move || {
                let stamps = Some(Stamp::of_both(&files));
                (stamps, (stamps != seen).then(|| settings::read_identity(&files)))
            }
        });
        let (stamps, read) = read.await;
        self.last_stamps = stamps;
        match read {
            Some(Ok(identity)) => {
                self.change(Config { tls: Some(identity), ..self.config.clone() }).await;
            }
            Some(Err(failure)) => {
                tracing::error!(
                    "certificate reload failed; keeping current certificate: {failure}"
                );
            }
            None => {}
        }
    }

    /// Sends the new configuration to the server and waits until it is applied.
    async fn change(&mut self, config: Config) {
        if config == self.config {
            return;
        }
        let is_other = config.tls != self.config.tls;
        self.config = config;
        for warning in settings::warnings(&self.config, SystemClock::new().unix_ms()) {
            tracing::warn!("{warning}");
        }
        let (done, is_done) = oneshot::channel();
        let change = ConfigChange { config: self.config.clone(), done };
        if self.changes.send(change).await.is_ok() {
            // A stopping server does not respond.
            let _ = is_done.await;
        }
        if let Some(identity) = self.config.tls.as_ref().filter(|_| is_other) {
            let ends = identity.not_after_text().unwrap_or_default();
            tracing::info!(ends, "certificate reloaded");
        }
    }
}

/// Reads the configuration, with the stamps of the certificate files as they were when read.
fn read_again(
    flags: &Flags,
    running: &ActiveConfig,
    was: Config,
) -> Result<(Reloaded, Option<Stamps>), Failure> {
    let mut reloaded = running.reload(&flags.sources()?)?;
    let stamps = reloaded.config.tls_files.as_ref().map(Stamp::of_both);
    let files = reloaded.config.tls_files.as_ref();
    reloaded.config.tls = files.map(settings::read_identity).transpose()?;
    // Trusted roots of webhooks and the ACME configuration require a restart.
    reloaded.config.webhook_roots = was.webhook_roots;
    reloaded.config.acme = was.acme;
    Ok((reloaded, stamps))
}

impl Stamp {
    fn of_both(files: &TlsFiles) -> Stamps {
        [Self::of(&files.certificates), Self::of(&files.key)]
    }

    #[allow(clippy::disallowed_methods, reason = "certificates are no files of the store")]
    fn of(path: &Path) -> Option<Self> {
        let found = std::fs::metadata(path).ok()?;
        let written = (found.mtime(), found.mtime_nsec());
        Some(Self { device: found.dev(), inode: found.ino(), bytes: found.len(), written })
    }
}
