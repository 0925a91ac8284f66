//! What changes while the server runs: the certificate and its key, when their files do or SIGHUP comes.
//!
//! Promises: what cannot be used is logged, and what was so goes on. Never here: what a change does.

use std::io::{self, IsTerminal};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use engine::{Clock, SystemClock};
use server::bridge::blocking;
use server::config::TlsFiles;
use server::{Change, Config, Stop};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{MissedTickBehavior, interval};

use crate::settings;

/// How often it is looked whether the files have changed.
const LOOK_WAIT: Duration = Duration::from_secs(10);

/// What waits for changes.
pub(crate) struct Reload {
    hangup: Signal,
    had_terminal: bool,
    stop: watch::Sender<Stop>,
    changes: mpsc::Sender<Change>,
    /// What is so.
    config: Config,
    /// The files that were looked at last.
    seen: Option<[Option<Stamp>; 2]>,
}

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
        config: Config,
        stop: watch::Sender<Stop>,
    ) -> io::Result<(Self, mpsc::Receiver<Change>)> {
        let hangup = signal(SignalKind::hangup())?;
        let had_terminal = io::stderr().is_terminal();
        let (changes, receiver) = mpsc::channel(1);
        Ok((Self { hangup, had_terminal, stop, changes, config, seen: None }, receiver))
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
                    self.seen = None;
                    self.look().await;
                }
                _ = looks.tick() => self.look().await,
                () = self.changes.closed() => return,
            }
        }
    }

    /// Takes the certificate and its key again, if their files are not those that were looked at last.
    async fn look(&mut self) {
        let Some(files) = self.config.tls_files.clone() else { return };
        let read = blocking({
            let seen = self.seen;
            move || {
                let stamps = Some(stamps(&files));
                (stamps, (stamps != seen).then(|| settings::read_identity(&files)))
            }
        });
        let (stamps, read) = read.await;
        self.seen = stamps;
        match read {
            Some(Ok(identity)) if self.config.tls.as_ref() != Some(&identity) => {
                let ends = identity.ends().unwrap_or_default();
                self.config.tls = Some(identity);
                self.change().await;
                tracing::info!(ends, "another certificate is in use");
            }
            Some(Err(failure)) => {
                tracing::error!("the certificate that was in use stays so: {failure}");
            }
            _ => {}
        }
    }

    /// Tells the server what is so now, and waits until it is.
    async fn change(&self) {
        for warning in settings::warnings(&self.config, SystemClock::new().unix_ms()) {
            tracing::warn!("{warning}");
        }
        let (done, is_done) = oneshot::channel();
        let change = Change { config: self.config.clone(), done };
        if self.changes.send(change).await.is_ok() {
            // Whoever stops does not answer any more.
            let _ = is_done.await;
        }
    }
}

fn stamps(files: &TlsFiles) -> [Option<Stamp>; 2] {
    [Stamp::of(&files.certificates), Stamp::of(&files.key)]
}

impl Stamp {
    #[allow(clippy::disallowed_methods, reason = "certificates are no files of the store")]
    fn of(path: &Path) -> Option<Self> {
        let found = std::fs::metadata(path).ok()?;
        let written = (found.mtime(), found.mtime_nsec());
        Some(Self { device: found.dev(), inode: found.ino(), bytes: found.len(), written })
    }
}
