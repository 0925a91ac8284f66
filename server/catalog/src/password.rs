//! Password of an account: validation and hashing.
//!
//! The hash is Argon2id, with the minimum parameters of OWASP (19 MiB, two passes); the parameters are stored with it,
//! so that later changes do not invalidate stored hashes. Guarantees: a password is never printed; a check takes the
//! same time wherever it fails, and a dummy hash that nothing matches makes it as slow for accounts without a password.
//! Non-goals: authentication, rate limits, and scheduling: hashing takes a tenth of a second and 19 MiB.

use std::fmt;

use argon2::{Algorithm, Argon2, Params, Version};
use engine::rng::Rng;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use subtle::ConstantTimeEq;
use unicode_normalization::UnicodeNormalization;

use super::record::Record;
use super::{CatalogError, base32, hex};
use crate::limits::{PASSWORD_BYTES_MAX, PASSWORD_CHARS_MIN};

/// Prefix of the fact names of passwords; the account id follows.
pub(super) const PREFIX: &str = "password/";

/// OWASP, Password Storage: Argon2id.
const MEMORY_KIB: u32 = 19 * 1_024;
const PASSES: u32 = 2;
const LANES: u32 = 1;
/// Maximum memory of a stored hash, beyond which it is rejected.
const MEMORY_KIB_MAX: u32 = 256 * 1_024;
const PASSES_MAX: u32 = 16;
const LANES_MAX: u32 = 8;
const SALT_BYTES: usize = 16;

/// Password as entered, in Unicode's composed form.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

/// Stored password hash.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PasswordHash {
    #[serde(deserialize_with = "bounded::<_, MEMORY_KIB_MAX>")]
    memory_kib: u32,
    #[serde(deserialize_with = "bounded::<_, PASSES_MAX>")]
    passes: u32,
    #[serde(deserialize_with = "bounded::<_, LANES_MAX>")]
    lanes: u32,
    #[serde(with = "base32")]
    salt: [u8; SALT_BYTES],
    /// Argon2id hash.
    #[serde(rename = "argon2id", with = "hex")]
    hash: [u8; 32],
}

#[derive(PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredPassword {
    pub(super) hash: PasswordHash,
    pub(super) changed_ms: u64,
}

impl Record for StoredPassword {}

impl Password {
    /// Validates a new password: at least [`PASSWORD_CHARS_MIN`] characters and at most [`PASSWORD_BYTES_MAX`] bytes.
    pub fn new_checked(text: &str) -> Result<Self, CatalogError> {
        let password = Self::parse_presented(text).ok_or_else(|| {
            let rule = format!("a password has at most {PASSWORD_BYTES_MAX} bytes");
            CatalogError::InvalidRequest(rule)
        })?;
        if password.0.chars().count() < PASSWORD_CHARS_MIN {
            let rule = format!("a password has at least {PASSWORD_CHARS_MIN} characters");
            return Err(CatalogError::InvalidRequest(rule));
        }
        Ok(password)
    }

    /// Returns a presented password; `None` if it is longer than any valid one.
    pub fn parse_presented(text: &str) -> Option<Self> {
        // No composed character takes this many bytes, so a longer text is too long in any form.
        if text.len() > 8 * PASSWORD_BYTES_MAX {
            return None;
        }
        let composed: String = text.nfc().collect();
        (composed.len() <= PASSWORD_BYTES_MAX).then_some(Self(composed))
    }
}

impl PasswordHash {
    /// Hashes a password. Takes a tenth of a second.
    pub fn from_password(password: &Password, rng: &dyn Rng) -> Result<Self, CatalogError> {
        let mut salt = [0; SALT_BYTES];
        rng.fill(&mut salt);
        let mut hash = Self { salt, ..Self::dummy() };
        hash.hash = hash.computed(password).map_err(|error| {
            CatalogError::InvalidRequest(format!("the password cannot be hashed: {error}"))
        })?;
        Ok(hash)
    }

    /// Returns a dummy hash without a known password, for accounts that have none.
    pub fn dummy() -> Self {
        let (salt, hash) = ([0; SALT_BYTES], [0; 32]);
        Self { memory_kib: MEMORY_KIB, passes: PASSES, lanes: LANES, salt, hash }
    }

    /// Verifies a password. Takes a tenth of a second.
    pub fn verify(&self, password: &Password) -> bool {
        // Verification fails when memory is short.
        self.computed(password).is_ok_and(|hash| bool::from(hash.ct_eq(&self.hash)))
    }

    fn computed(&self, password: &Password) -> Result<[u8; 32], argon2::Error> {
        let figures = Params::new(self.memory_kib, self.passes, self.lanes, Some(32))?;
        argon2id(figures, password.0.as_bytes(), &self.salt)
    }
}

fn argon2id(figures: Params, password: &[u8], salt: &[u8]) -> Result<[u8; 32], argon2::Error> {
    let mut hash = [0; 32];
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, figures);
    argon2.hash_password_into(password, salt, &mut hash)?;
    Ok(hash)
}

/// Reads a parameter of a stored hash.
fn bounded<'de, D: Deserializer<'de>, const MAX: u32>(from: D) -> Result<u32, D::Error> {
    let value = u32::deserialize(from)?;
    let error = || D::Error::custom(format_args!("hash parameter {value} is not from 1 to {MAX}"));
    (1..=MAX).contains(&value).then_some(value).ok_or_else(error)
}

/// Prints nothing, so that a password is never logged by accident.
impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordHash")
    }
}

#[cfg(test)]
mod tests {
    use engine::rng::SeededRng;

    use super::*;

    fn hash_of(text: &str) -> PasswordHash {
        PasswordHash::from_password(&Password::new_checked(text).unwrap(), &SeededRng::new(1))
            .unwrap()
    }

    #[test]
    fn password_verification_normalizes_unicode() {
        let hash = hash_of("caf\u{e9} au lait");
        assert!(hash.verify(&Password::parse_presented("cafe\u{301} au lait").unwrap()));
        for wrong in ["cafe au lait", "caf\u{e9} au lait ", "", "CAF\u{c9} AU LAIT"] {
            assert!(!hash.verify(&Password::parse_presented(wrong).unwrap()), "{wrong}");
        }
        assert!(!PasswordHash::dummy().verify(&Password::parse_presented("").unwrap()));
        assert_ne!(hash, PasswordHash::dummy());
    }

    #[test]
    fn password_hash_is_argon2id() {
        // Vector of the reference implementation: two iterations, 256 KiB.
        let figures = Params::new(256, 2, 1, Some(32)).unwrap();
        let hash = argon2id(figures, b"password", b"somesalt").unwrap();
        let expected = "9dfeb910e80bad0311fee20f9c0e2b12c17987b4cac90c2ef54d5b3021c68bfe";
        assert_eq!(hex::encode(&hash), expected);
    }

    #[test]
    fn password_length_is_validated() {
        for bad in ["", "123456789", "\u{e9}\u{e9}\u{e9}", &"x".repeat(129), &"x".repeat(100_000)] {
            let refused = Password::new_checked(bad).unwrap_err();
            assert!(refused.to_string().starts_with("a password has at "), "{refused}");
        }
        assert!(Password::new_checked(&"\u{e9}".repeat(10)).is_ok());
        assert!(Password::new_checked(&"x".repeat(128)).is_ok());
        // 64 letters of two bytes, sent decomposed as three.
        assert!(Password::new_checked(&"e\u{301}".repeat(64)).is_ok());
        assert!(Password::new_checked(&"e\u{301}".repeat(65)).is_err());
    }

    #[test]
    fn password_hash_round_trips_and_costly_one_is_rejected() {
        let hash = hash_of("correct horse");
        let text = serde_json::to_string(&hash).unwrap();
        assert_eq!(serde_json::from_str::<PasswordHash>(&text).unwrap(), hash);
        let greedy = text.replace("19456", "4000000000");
        assert!(serde_json::from_str::<PasswordHash>(&greedy).is_err(), "{greedy}");
        assert!(!text.contains("horse"));
        assert_eq!(
            format!("{hash:?} {:?}", Password::new_checked("correct horse").unwrap()),
            "PasswordHash Password"
        );
    }
}
