//! Asks the kernel to bring a range of a file to the disk, without waiting for it.
//!
//! Promises: nothing is durable by it, and no error is lost by it: one of writing back stays with the file until
//! `fdatasync` tells it. Never here: syncing.

#![allow(unsafe_code, reason = "no crate with types for it: rustix leaves this call out")]

use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};

/// Has the kernel begin to write a range back, where it knows how to (Linux, `sync_file_range`).
pub(super) fn begin(file: impl AsFd, range: Range<u64>) {
    let file = file.as_fd();
    let bytes = range.end.saturating_sub(range.start);
    let (Ok(start), Ok(bytes)) = (i64::try_from(range.start), i64::try_from(bytes)) else { return };
    // SAFETY: the call takes numbers only, and the descriptor is that of an open file. What it answers changes nothing:
    // the sync that follows writes what this did not.
    unsafe { libc::sync_file_range(file.as_raw_fd(), start, bytes, libc::SYNC_FILE_RANGE_WRITE) };
}
