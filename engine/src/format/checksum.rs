//! CRC-32 checksum bound to the disk address of its bytes.
//!
//! `of(bytes)` is the CRC-32 of zip and PNG (polynomial 0xEDB88320, reflected, initial value and final XOR
//! 0xFFFFFFFF). `at(place)` XORs it with the CRC-32 of the 24 bytes of the disk address:
//!
//! | offset | size | field   | meaning                                   |
//! | ------ | ---- | ------- | ----------------------------------------- |
//! | 0      | 8    | salt    | the segment's random salt                 |
//! | 8      | 8    | segment | the segment's id                          |
//! | 16     | 8    | offset  | of the first covered byte, in the segment |
//!
//! Misdirected writes and reads therefore do not match: two addresses have the same mask with a probability of
//! 1 in 2^32, and never if they differ only within 32 adjacent bits. Binding twice to the same address cancels
//! out, so an upload can compute `of(body)` early and the committer binds it later with one XOR.
//!
//! Guarantees: [`compare`] is the only comparison of checksums in the engine.
//! Non-goals: the reaction to a mismatch.

use super::malformed::Malformed;
use super::segment_id::SegmentId;

/// Encoded size of a disk address in bytes.
pub const DISK_ADDRESS_BYTES: usize = 24;

/// CRC-32 checksum, bound to a disk address or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Checksum(pub u32);

/// Disk address of stored bytes: segment, its salt, and offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskAddress {
    /// Salt of the segment.
    pub salt: u64,
    /// Id of the segment.
    pub segment: SegmentId,
    /// Offset of the first byte in the file.
    pub offset: u64,
}

/// Segment and salt: the part of a disk address that all addresses in one segment share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentContext {
    /// Salt of the segment.
    pub salt: u64,
    /// Id of the segment.
    pub segment: SegmentId,
}

/// Class of bytes that a checksum protects; the mutation check disables the checksums of one class at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckClass {
    /// `STORE` file and segment headers.
    Header,
    /// Group headers, frame headers and group trailers.
    Group,
    /// Record heads.
    Head,
    /// Blocks of bodies and of fact values.
    Block,
    /// Footers of sealed log segments and of big segments.
    Footer,
    /// Index values.
    Entry,
}

impl CheckClass {
    /// All classes.
    pub const ALL: [Self; 6] =
        [Self::Header, Self::Group, Self::Head, Self::Block, Self::Footer, Self::Entry];
}

impl Checksum {
    /// Computes the checksum of `bytes`, not bound to an address.
    pub fn of(bytes: &[u8]) -> Self {
        Self(crc32fast::hash(bytes))
    }

    /// Computes the checksum of the concatenation of `parts`, not bound to an address.
    pub fn of_parts(parts: &[&[u8]]) -> Self {
        let mut running = RunningChecksum::new();
        for part in parts {
            running.update(part);
        }
        running.finish()
    }

    /// Binds the checksum to an address, or unbinds it from the same address.
    #[must_use]
    pub fn bind(self, place: DiskAddress) -> Self {
        let named: [[u8; 8]; DISK_ADDRESS_BYTES / 8] =
            [place.salt, place.segment.get(), place.offset].map(u64::to_le_bytes);
        Self(self.0 ^ Self::of(named.as_flattened()).0)
    }

    /// Verifies that this is the checksum of `bytes` at `place`.
    pub fn verify(
        self,
        class: CheckClass,
        bytes: &[u8],
        place: DiskAddress,
    ) -> Result<(), Malformed> {
        compare(class, self, Self::of(bytes).bind(place))
    }
}

/// Compares the stored checksum `expected` with the computed checksum `found`. All comparisons go through this
/// function.
///
/// With the feature `sim`, the mutation check can disable the comparison of one class to prove that some test
/// then fails.
pub fn compare(class: CheckClass, expected: Checksum, found: Checksum) -> Result<(), Malformed> {
    #[cfg(feature = "sim")]
    if mutation::is_ignored(class) {
        return Ok(());
    }
    let _ = class;
    if expected == found { Ok(()) } else { Err(Malformed::Checksum) }
}

/// Incremental checksum.
#[derive(Clone, Debug, Default)]
pub struct RunningChecksum(crc32fast::Hasher);

impl RunningChecksum {
    /// Creates the checksum of no bytes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Adds the next `bytes` bytes, of which only their checksum is known, not bound to an address.
    pub fn append(&mut self, checksum: Checksum, bytes: u64) {
        self.0.combine(&crc32fast::Hasher::new_with_initial_len(checksum.0, bytes));
    }

    /// Returns the checksum of all bytes added.
    pub fn finish(self) -> Checksum {
        Checksum(self.0.finalize())
    }
}

impl DiskAddress {
    /// Returns the address that is `bytes` bytes further.
    #[must_use]
    pub fn plus(self, bytes: u64) -> Self {
        Self { offset: self.offset.saturating_add(bytes), ..self }
    }

    /// Returns the segment part of the address.
    pub fn context(self) -> SegmentContext {
        SegmentContext { salt: self.salt, segment: self.segment }
    }
}

impl SegmentContext {
    /// Returns the address of `offset` in this segment.
    pub fn at(self, offset: u64) -> DiskAddress {
        DiskAddress { salt: self.salt, segment: self.segment, offset }
    }
}

/// Switch that disables checksum comparisons, to check that the tests notice it (mutation check).
#[cfg(feature = "sim")]
pub mod mutation {
    use std::cell::Cell;

    use super::CheckClass;

    thread_local! {
        static IGNORED: Cell<Option<CheckClass>> = const { Cell::new(None) };
    }

    /// Calls `run` with comparisons of `class` on this thread always successful.
    ///
    /// Other threads, such as the background threads of a store, still compare: step the store by hand inside.
    pub fn ignoring<T>(class: CheckClass, run: impl FnOnce() -> T) -> T {
        struct Restore(Option<CheckClass>);
        impl Drop for Restore {
            fn drop(&mut self) {
                IGNORED.set(self.0);
            }
        }
        let _restore = Restore(IGNORED.replace(Some(class)));
        run()
    }

    pub(super) fn is_ignored(class: CheckClass) -> bool {
        IGNORED.get() == Some(class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::test_address;

    #[test]
    fn checksum_is_crc32_of_zip() {
        assert_eq!(Checksum::of(b"123456789"), Checksum(0xCBF4_3926));
        assert_eq!(Checksum::of(b""), Checksum(0));
        assert_eq!(Checksum::of_parts(&[b"1234", b"", b"56789"]), Checksum::of(b"123456789"));
    }

    #[test]
    fn checksum_is_bound_to_its_disk_address() {
        let here = test_address(4096);
        let checksum = Checksum::of(b"body").bind(here);
        assert_eq!(checksum.verify(CheckClass::Block, b"body", here), Ok(()));
        let elsewhere = [
            DiskAddress { offset: 4097, ..here },
            DiskAddress { salt: here.salt ^ 1, ..here },
            DiskAddress { segment: here.segment.next(), ..here },
        ];
        for other in elsewhere {
            assert_eq!(
                checksum.verify(CheckClass::Block, b"body", other),
                Err(Malformed::Checksum)
            );
        }
        assert_eq!(checksum.bind(here), Checksum::of(b"body"), "binding twice is not binding");
    }

    #[cfg(feature = "sim")]
    #[test]
    fn ignoring_one_check_class_is_scoped() {
        let wrong = |class| compare(class, Checksum(1), Checksum(2));
        for ignored in CheckClass::ALL {
            mutation::ignoring(ignored, || {
                for class in CheckClass::ALL {
                    assert_eq!(wrong(class).is_ok(), class == ignored);
                }
            });
            assert_eq!(wrong(ignored), Err(Malformed::Checksum));
        }
        let panicked =
            std::panic::catch_unwind(|| mutation::ignoring(CheckClass::Head, || panic!()));
        assert!(panicked.is_err());
        assert_eq!(wrong(CheckClass::Head), Err(Malformed::Checksum));
    }
}
