//! Who hands out memory in this binary: mimalloc, which takes fewer instructions for each request than the system's
//! allocator, and gives back what a burst of connections or uploads has freed.
//!
//! Never here: how much anything may allocate; each part bounds its own.

#![allow(unsafe_code, reason = "no crate sets an option of mimalloc behind a safe function")]

use std::env;

use libmimalloc_sys::{mi_option_set, mi_option_t};
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// `mi_option_purge_delay` of `mimalloc.h`, in milliseconds. The version of the crate is fixed for its sake.
const PURGE_DELAY: mi_option_t = 15;
const PURGE_DELAY_ENV: &str = "MIMALLOC_PURGE_DELAY";

/// Gives memory back to the system as soon as nothing of a page is in use, unless the environment says otherwise.
///
/// With a delay, a page goes back when its thread next asks for memory: a thread that has nothing to do keeps it all.
/// Called before there are other threads.
pub(crate) fn give_back_at_once() {
    if env::var_os(PURGE_DELAY_ENV).is_none() {
        // SAFETY: the option is one of this version, and no other thread is there to read it.
        unsafe { mi_option_set(PURGE_DELAY, 0) };
    }
}
