//! What changes while the server runs: its settings when SIGHUP comes, and the certificate and its key when their files
//! do.
//!
//! Promises: what cannot be used is logged, and what was so goes on, all of it. Never here: what a change does.

use std::io::{self, IsTerminal};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use engine::{Clock, SystemClock};
use server::bridge::blocking;
use server::config::{Reloaded, Running, TlsFiles};
use server::{Change, Config, Stop};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{MissedTickBehavior, interval};

use crate::exit::Failure;
use crate::service_manager;
use crate::settings::{self, Flags};

/// How often it is looked whether the files have changed.
const LOOK_WAIT: Duration = Duration::from_secs(10);

/// What waits for changes.
pub(crate) struct Reload {
    flags: Flags,
    hangup: Signal,
    had_terminal: bool,
    stop: watch::Sender<Stop>,
    changes: mpsc::Sender<Change>,
    /// What is so,
    running: Running,
    /// and what follows from it.
    config: Config,
    /// The files that were looked at last.
    seen: Option<Stamps>,
}

/// Those of the certificate and of the key.
type Stamps = [Option<Stamp>; 2];

/// What a file that is replaced or written has another one of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    written: (i64, i64),
}

impl Reload {
    /// Listens to SIGHUP from now on. What changes goes to the receiver.
    pub(crate) fn begin(
        flags: Flags,
        running: Running,
        config: Config,
        stop: watch::Sender<Stop>,
    ) -> io::Result<(Self, mpsc::Receiver<Change>)> {
        let hangup = signal(SignalKind::hangup())?;
        let had_terminal = io::stderr().is_terminal();
        let (changes, receiver) = mpsc::channel(1);
        let seen = None;
        let this = Self { flags, hangup, had_terminal, stop, changes, running, config, seen };
        Ok((this, receiver))
    }

    /// Waits for changes until nobody wants them any more.
    pub(crate) async fn run(mut self) {
        let mut looks = interval(LOOK_WAIT);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = self.hangup.recv() => {
                    // The system says so, too, when the terminal goes away under a server that was typed into it.
                    if self.had_terminal && !io::stderr().is_terminal() {
                        let _ = self.stop.send(Stop::Drain);
                        return;
                    }
                    self.reload().await;
                }
                _ = looks.tick() => self.look().await,
                () = self.changes.closed() => return,
            }
        }
    }

    /// Reads everything again that the settings come from.
    async fn reload(&mut self) {
        service_manager::reloading();
        let (flags, running, was) = (self.flags.clone(), self.running.clone(), self.config.clone());
        match blocking(move || read_again(&flags, &running, was)).await {
            Ok((reloaded, stamps)) => {
                let Reloaded { running, config, changed, unchanged } = reloaded;
                (self.running, self.seen) = (running, stamps);
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
        service_manager::reloaded();
    }

    /// Takes the certificate and its key again, if their files are not those that were looked at last.
    async fn look(&mut self) {
        let Some(files) = self.config.tls_files.clone() else { return };
        let read = blocking({
            let seen = self.seen;
            move || {
                let stamps = Some(Stamp::of_both(&files));
                (stamps, (stamps != seen).then(|| settings::read_identity(&files)))
            }
        });
        let (stamps, read) = read.await;
        self.seen = stamps;
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

    /// Tells the server what is so now, and waits until it is.
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
        let change = Change { config: self.config.clone(), done };
        if self.changes.send(change).await.is_ok() {
            // Whoever stops does not answer any more.
            let _ = is_done.await;
        }
        if let Some(identity) = self.config.tls.as_ref().filter(|_| is_other) {
            let ends = identity.ends().unwrap_or_default();
            tracing::info!(ends, "certificate reloaded");
        }
    }
}

/// What is so by now, with the files of the certificate as they were when they were read.
fn read_again(
    flags: &Flags,
    running: &Running,
    was: Config,
) -> Result<(Reloaded, Option<Stamps>), Failure> {
    let mut reloaded = running.reload(&flags.sources()?)?;
    let stamps = reloaded.config.tls_files.as_ref().map(Stamp::of_both);
    let files = reloaded.config.tls_files.as_ref();
    reloaded.config.tls = files.map(settings::read_identity).transpose()?;
    // Whom webhooks are sent to, and who gives certificates, is trusted as at the start.
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
