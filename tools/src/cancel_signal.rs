//! Signals that stop long work in this process.
//!
//! The first SIGINT or SIGTERM requests cancellation; the second ends the process immediately, which loses no
//! acknowledged data.
//!
//! Non-goals: the work itself.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

use crate::exit::Failure;
use crate::output;

/// Interrupt flag. Signals are handled while it exists.
pub(crate) struct Interrupt {
    has_come: Arc<AtomicBool>,
    _runtime: Runtime,
}

/// Exit code of a process ended by SIGINT, as in shells.
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
                output::print_note("stopping; press Ctrl+C again to stop immediately");
            }
        });
        Ok(Self { has_come, _runtime: runtime })
    }

    pub(crate) fn has_come(&self) -> bool {
        self.has_come.load(Ordering::Relaxed)
    }
}
