//! Starts kernel write-back of a file range without waiting; contains `unsafe` code.
//!
//! Guarantees: errors are not lost: the file retains a write-back error until `fdatasync` reports it.
//! Non-goals: durability, which needs a sync.

#![allow(unsafe_code, reason = "no crate with types for it: rustix leaves this call out")]

use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};

/// Starts write-back of a range, if supported (Linux, `sync_file_range`).
pub(super) fn start_write_back(file: impl AsFd, range: Range<u64>) {
    let file = file.as_fd();
    let bytes = range.end.saturating_sub(range.start);
    let (Ok(start), Ok(bytes)) = (i64::try_from(range.start), i64::try_from(bytes)) else { return };
    // SAFETY: the call takes only numbers, and the descriptor belongs to an open file. Its result is ignored: the
    // next sync writes what this call did not.
    unsafe { libc::sync_file_range(file.as_raw_fd(), start, bytes, libc::SYNC_FILE_RANGE_WRITE) };
}
