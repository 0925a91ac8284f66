//! Memory allocator of the binary: mimalloc, which needs fewer instructions per request than the allocator of the
//! system, and returns memory after a burst of connections or uploads.
//!
//! Non-goals: memory limits; each component bounds its own use.

#![allow(unsafe_code, reason = "no crate sets an option of mimalloc behind a safe function")]

use std::env;

use libmimalloc_sys::{mi_option_set, mi_option_t};
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Value of `mi_option_purge_delay` in `mimalloc.h`, in milliseconds. The crate version is pinned because of it.
const PURGE_DELAY: mi_option_t = 15;
const PURGE_DELAY_ENV: &str = "MIMALLOC_PURGE_DELAY";

/// Makes mimalloc return a page to the system as soon as it is unused, unless the environment overrides it.
///
/// With a delay, a page is returned when its thread next allocates, so an idle thread retains its pages. Must be
/// called before other threads are started.
pub(crate) fn return_freed_pages_immediately() {
    if env::var_os(PURGE_DELAY_ENV).is_none() {
        // SAFETY: the option exists in this version, and no other thread can read it concurrently.
        unsafe { mi_option_set(PURGE_DELAY, 0) };
    }
}
