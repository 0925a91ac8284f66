//! Shared helpers of the format's unit tests: disk addresses, and a check that every byte is significant.
//!
//! Non-goals: anything outside `cfg(test)`.

use super::checksum::{DiskAddress, SegmentContext};
use super::segment_id::SegmentId;

/// Returns the segment part of test addresses.
pub(super) fn context() -> SegmentContext {
    SegmentContext { salt: 0x5a17_0000_dead_beef, segment: SegmentId::new(7).unwrap() }
}

/// Returns the disk address of `offset` in the test segment.
pub(super) fn test_address(offset: u64) -> DiskAddress {
    context().at(offset)
}

/// Changes each byte of `bytes` to every other value, and truncates the bytes at each length; `accepts` must reject
/// all of them.
pub(super) fn assert_every_byte_is_checked(bytes: &[u8], accepts: impl Fn(&[u8]) -> bool) {
    assert!(accepts(bytes), "unchanged bytes are accepted");
    let mut changed = bytes.to_vec();
    for at in 0..changed.len() {
        let original = changed[at];
        for value in (0..=255).filter(|value| *value != original) {
            changed[at] = value;
            assert!(!accepts(&changed), "byte {at} changed from {original} to {value}");
        }
        changed[at] = original;
    }
    for length in 0..bytes.len() {
        assert!(!accepts(&bytes[..length]), "cut to {length} bytes");
    }
}
