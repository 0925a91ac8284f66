//! The checksum: CRC-32, bound to the place where the bytes lie.
//!
//! `of(bytes)` is the CRC-32 of zip and PNG (polynomial 0xEDB88320, reflected, initial value and final XOR 0xFFFFFFFF).
//! `at(place)` XORs it with the CRC-32 of the 24 bytes that name the place:
//!
//! | offset | size | field   | meaning                                   |
//! | ------ | ---- | ------- | ----------------------------------------- |
//! | 0      | 8    | salt    | the segment's random salt                 |
//! | 8      | 8    | segment | the segment's id                          |
//! | 16     | 8    | offset  | of the first covered byte, in the segment |
//!
//! So bytes that were written to, or are read from, the wrong place do not match: two places have the same mask with a
//! chance of 1 in 2^32, and never when they differ within 32 neighbouring bits only. Binding twice is not binding at
//! all, so who knows `of(body)` early (an upload) lets the committer bind it late, with one XOR.
//!
//! Promises: [`compare`] is the only comparison of checksums in the engine. Never here: what to do when it fails.

use super::malformed::Malformed;
use super::segment_header::SegmentId;

/// How many bytes name a place.
pub const PLACE_BYTES: usize = 24;

/// A CRC-32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Checksum(pub u32);

/// Where bytes lie: which incarnation of which segment, and how far in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The salt of the segment.
    pub salt: u64,
    /// The segment.
    pub segment: SegmentId,
    /// The offset of the first byte, in the file.
    pub offset: u64,
}

/// The segment whose bytes are read or written: what every place in it has in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentContext {
    /// The salt of the segment.
    pub salt: u64,
    /// The segment.
    pub segment: SegmentId,
}

/// What a checksum protects; named so that the mutation check can take out one kind at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckClass {
    /// The `STORE` file and segment headers.
    Header,
    /// Group headers, frame headers and group trailers.
    Group,
    /// Record heads.
    Head,
    /// Blocks of bodies and of fact values.
    Block,
    /// Footers of sealed segments and of big segments.
    Footer,
    /// Values in the index.
    Entry,
}

impl CheckClass {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Header, Self::Group, Self::Head, Self::Block, Self::Footer, Self::Entry];
}

impl Checksum {
    /// The checksum of some bytes, bound to no place.
    pub fn of(bytes: &[u8]) -> Self {
        Self(crc32fast::hash(bytes))
    }

    /// The checksum of several pieces as if they were one.
    pub fn of_parts(parts: &[&[u8]]) -> Self {
        let mut running = RunningChecksum::new();
        for part in parts {
            running.update(part);
        }
        running.finish()
    }

    /// Binds to a place, or takes the binding to the same place off again.
    #[must_use]
    pub fn at(self, place: Place) -> Self {
        let named: [[u8; 8]; PLACE_BYTES / 8] =
            [place.salt, place.segment.get(), place.offset].map(u64::to_le_bytes);
        Self(self.0 ^ Self::of(named.as_flattened()).0)
    }

    /// Checks that this is the checksum of `bytes` at `place`.
    pub fn verify(self, class: CheckClass, bytes: &[u8], place: Place) -> Result<(), Malformed> {
        compare(class, self, Self::of(bytes).at(place))
    }
}

/// The one comparison: `expected` stands on the disk, `found` was computed from the bytes there.
///
/// Under the feature `sim` the mutation check can make it look away from one class, to prove that some test then fails.
pub fn compare(class: CheckClass, expected: Checksum, found: Checksum) -> Result<(), Malformed> {
    #[cfg(feature = "sim")]
    if mutation::is_ignored(class) {
        return Ok(());
    }
    let _ = class;
    if expected == found { Ok(()) } else { Err(Malformed::Checksum) }
}

/// A checksum of bytes that come piece by piece.
#[derive(Clone, Debug, Default)]
pub struct RunningChecksum(crc32fast::Hasher);

impl RunningChecksum {
    /// Starts with no bytes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes in.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of everything taken in.
    pub fn finish(self) -> Checksum {
        Checksum(self.0.finalize())
    }
}

impl Place {
    /// The place `bytes` further on.
    #[must_use]
    pub fn plus(self, bytes: u64) -> Self {
        Self { offset: self.offset.saturating_add(bytes), ..self }
    }

    /// The segment that the place is in.
    pub fn context(self) -> SegmentContext {
        SegmentContext { salt: self.salt, segment: self.segment }
    }
}

impl SegmentContext {
    /// The place at `offset` of this segment.
    pub fn at(self, offset: u64) -> Place {
        Place { salt: self.salt, segment: self.segment, offset }
    }
}

/// The mutation check's switch: it exists to prove that the tests notice a checksum that is not compared.
#[cfg(feature = "sim")]
pub mod mutation {
    use std::cell::Cell;

    use super::CheckClass;

    thread_local! {
        static IGNORED: Cell<Option<CheckClass>> = const { Cell::new(None) };
    }

    /// Runs `run` while comparisons of `class` on this thread always succeed. Other threads, such as those of a store
    /// opened with threads, compare as ever: step the store by hand inside.
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
    use crate::format::testing::place;

    #[test]
    fn the_checksum_is_the_crc_32_of_zip() {
        assert_eq!(Checksum::of(b"123456789"), Checksum(0xCBF4_3926));
        assert_eq!(Checksum::of(b""), Checksum(0));
        assert_eq!(Checksum::of_parts(&[b"1234", b"", b"56789"]), Checksum::of(b"123456789"));
    }

    #[test]
    fn a_checksum_holds_at_its_place_only() {
        let here = place(4096);
        let checksum = Checksum::of(b"body").at(here);
        assert_eq!(checksum.verify(CheckClass::Block, b"body", here), Ok(()));
        let elsewhere = [
            Place { offset: 4097, ..here },
            Place { salt: here.salt ^ 1, ..here },
            Place { segment: here.segment.next(), ..here },
        ];
        for other in elsewhere {
            assert_eq!(
                checksum.verify(CheckClass::Block, b"body", other),
                Err(Malformed::Checksum)
            );
        }
        assert_eq!(checksum.at(here), Checksum::of(b"body"), "binding twice is not binding");
    }

    #[cfg(feature = "sim")]
    #[test]
    fn the_mutation_switch_ignores_one_class_and_switches_itself_off() {
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
