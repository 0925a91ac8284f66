//! 256-bit secret: its text is returned once, and only a SHA-256 of it is stored.
//!
//! Sessions and single-use links are found by such texts. Guarantees: a text is in memory only while it is issued or
//! presented; hashes are compared in constant time. Non-goals: rights and lifetime of a secret.

use std::fmt;

use engine::rng::Rng;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::{base32, hex};

const SECRET_BYTES: usize = 32;
const SECRET_CHARS: usize = 52;

/// Stored hash of a secret.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretHash(#[serde(with = "hex")] [u8; 32]);

/// Newly issued secret.
pub struct IssuedSecret {
    pub text: String,
    pub hash: SecretHash,
}

impl IssuedSecret {
    /// Generates a secret.
    pub fn issue(rng: &dyn Rng) -> Self {
        let mut bytes = [0; SECRET_BYTES];
        rng.fill(&mut bytes);
        let text = base32::encode(&bytes);
        let hash = SecretHash(sha256(&text));
        Self { text, hash }
    }
}

impl SecretHash {
    /// Hashes a presented text; `None` if it is malformed.
    pub fn from_text(text: &str) -> Option<Self> {
        (text.len() == SECRET_CHARS && base32::is_valid(text)).then(|| Self(sha256(text)))
    }

    /// Compares two hashes in constant time.
    pub fn matches(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

/// Prints nothing, so that a secret is never logged by accident.
impl fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretHash")
    }
}

fn sha256(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use engine::rng::SeededRng;

    use super::*;

    #[test]
    fn secret_hash_matches_and_secret_is_not_printed() {
        let rng = SeededRng::new(1);
        let (one, other) = (IssuedSecret::issue(&rng), IssuedSecret::issue(&rng));
        assert_eq!(one.text.len(), SECRET_CHARS);
        let presented = SecretHash::from_text(&one.text).unwrap();
        assert!(presented.matches(&one.hash) && !presented.matches(&other.hash));
        let kept = serde_json::to_string(&one.hash).unwrap();
        assert!(!kept.contains(&one.text));
        assert!(serde_json::from_str::<SecretHash>(&kept).unwrap().matches(&one.hash));
        assert_eq!(format!("{:?}", one.hash), "SecretHash");
        for bad in ["", &one.text[1..], &one.text.to_uppercase(), &format!("{}a", one.text)] {
            assert!(SecretHash::from_text(bad).is_none(), "{bad}");
        }
    }
}
