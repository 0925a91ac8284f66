//! Random number source: trait, system and seeded implementations.
//!
//! Salts, store ids and all other unpredictable values come from an [`Rng`]; only [`SystemRng`] uses the
//! generator of the operating system.

use std::sync::Mutex;

use rustix::io::retry_on_intr;
use rustix::rand::{GetRandomFlags, getrandom};

/// Source of random bytes.
pub trait Rng: Send + Sync {
    /// Fills `bytes` with random bytes.
    fn fill(&self, bytes: &mut [u8]);

    /// Returns a random number of 64 bits.
    fn next_u64(&self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// Returns a number from 0 to `bound` - 1; 0 if the bound is 0. Slightly biased: for choices in tests, not for
    /// secrets.
    fn below(&self, bound: u64) -> u64 {
        self.next_u64().checked_rem(bound).unwrap_or(0)
    }

    /// Returns a random (version 4) UUID.
    fn uuid(&self) -> uuid::Uuid {
        let mut bytes = [0; 16];
        self.fill(&mut bytes);
        uuid::Builder::from_random_bytes(bytes).into_uuid()
    }
}

/// Cryptographic generator of the operating system: the system call `getrandom`, which requires no `/dev`.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemRng;

impl Rng for SystemRng {
    #[allow(clippy::disallowed_methods, reason = "this is the one place that asks the machine")]
    #[allow(
        clippy::expect_used,
        reason = "without random bytes nothing that follows would be safe"
    )]
    fn fill(&self, bytes: &mut [u8]) {
        let mut filled = 0;
        while filled < bytes.len() {
            let rest = &mut bytes[filled..];
            let read = retry_on_intr(|| getrandom(&mut *rest, GetRandomFlags::empty()));
            filled += read.expect("getrandom fails on kernels before Linux 3.17 only");
        }
    }
}

/// Deterministic generator (SplitMix64) for tests: the same seed gives the same bytes.
#[derive(Debug)]
pub struct SeededRng(Mutex<u64>);

impl SeededRng {
    /// Creates a generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(seed))
    }
}

impl Rng for SeededRng {
    fn fill(&self, bytes: &mut [u8]) {
        let mut state = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for piece in bytes.chunks_mut(8) {
            *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = *state;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^= mixed >> 31;
            piece.copy_from_slice(&mixed.to_le_bytes()[..piece.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeded_rng_is_deterministic() {
        let (one, two) = (SeededRng::new(7), SeededRng::new(7));
        let numbers: Vec<u64> = (0..4).map(|_| one.next_u64()).collect();
        assert_eq!(numbers, (0..4).map(|_| two.next_u64()).collect::<Vec<_>>());
        assert_ne!(numbers[0], numbers[1]);
    }
}
