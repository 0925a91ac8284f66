//! Panics of redb as errors.
//!
//! redb trusts its file, and may panic on bytes that it never wrote. Such a panic is corruption of the file, so the
//! default message is not printed. Panics of other code are printed.
//!
//! Non-goals: panics of other threads; binaries that abort on panics.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::path::Path;
use std::sync::Once;
use std::thread;

use super::tables::damaged;
use crate::error::Result;
use crate::format::Malformed;

thread_local! {
    /// Whether the panics of this thread are caught.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Runs work that reads redb, and returns a panic as corruption of the index.
pub(super) fn catch<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    static HOOK: Once = Once::new();
    // A hook cannot be set by a thread that is panicking.
    if !thread::panicking() {
        HOOK.call_once(hide_caught);
    }
    let was_caught = IS_CAUGHT.replace(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(work));
    IS_CAUGHT.set(was_caught);
    outcome.unwrap_or_else(|_| Err(damaged(Malformed::Structure)))
}

/// Wraps the panic hook of the process.
fn hide_caught() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !(IS_CAUGHT.get() && is_of_redb(info)) {
            print(info);
        }
    }));
}

fn is_of_redb(info: &PanicHookInfo<'_>) -> bool {
    let is_crate = |folder: &str| folder == "redb" || folder.starts_with("redb-");
    info.location().is_some_and(|location| {
        Path::new(location.file())
            .components()
            .any(|part| part.as_os_str().to_str().is_some_and(is_crate))
    })
}
