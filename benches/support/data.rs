//! Data that is the same on every machine: bytes and names from a seed.

use engine::{BucketName, ObjectKey, ObjectName};

/// A splitmix64 generator: fast, seeded, and not for secrets.
#[derive(Clone)]
pub struct SeededRng(u64);

impl SeededRng {
    /// Creates the generator of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next_u64() % bound.max(1)
    }
}

/// Returns incompressible bytes.
pub fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut seeded = SeededRng::new(seed);
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        bytes.extend_from_slice(&seeded.next_u64().to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// Returns a key like those of a photo archive: 40 bytes or so, in 256 folders.
pub fn key(seed: u64, number: u64) -> String {
    let mixed = SeededRng::new(seed ^ number.rotate_left(32)).next_u64();
    format!("archive/{:02x}/IMG_{number:08}_{:08x}.jpg", mixed & 0xFF, mixed >> 32)
}

/// Returns the object with that key, in the bucket of all benches.
///
/// # Panics
///
/// When the engine rejects such names.
pub fn name(seed: u64, number: u64) -> ObjectName {
    let bucket = BucketName::parse("bench").expect("a valid bucket name");
    let key = ObjectKey::parse(&key(seed, number)).expect("a valid key");
    ObjectName::new(bucket, key)
}
