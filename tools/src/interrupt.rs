//! Signals that stop long work in this process.
//!
//! The first SIGINT or SIGTERM asks the work to stop where it may; the second ends the process at once, which loses
//! nothing that was acknowledged. Never here: what the work is.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

use crate::exit::Failure;
use crate::output;

/// Whether a signal has come. Signals are watched for while it lives.
pub(crate) struct Interrupt {
    has_come: Arc<AtomicBool>,
    _runtime: Runtime,
}

/// How a shell numbers a process that SIGINT ended.
const ENDED_AT_ONCE: i32 = 130;

impl Interrupt {
    pub(crate) fn watched() -> Result<Self, Failure> {
        let failed = |error| Failure::failed(format!("cannot handle signals: {error}"));
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(failed)?;
        let has_come = Arc::new(AtomicBool::new(false));
        let (mut interrupt, mut terminate) = {
            let _entered = runtime.enter();
            let interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
            (interrupt, signal(SignalKind::terminate()).map_err(failed)?)
        };
        let tell = Arc::clone(&has_come);
        runtime.spawn(async move {
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                if tell.swap(true, Ordering::Relaxed) {
                    process::exit(ENDED_AT_ONCE);
                }
                output::note("stopping; press Ctrl+C again to stop immediately");
            }
        });
        Ok(Self { has_come, _runtime: runtime })
    }

    pub(crate) fn has_come(&self) -> bool {
        self.has_come.load(Ordering::Relaxed)
    }
}
