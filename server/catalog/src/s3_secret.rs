//! S3 signing secrets: one for each API key, derived from the key's id and a secret of the store.
//!
//! Only hashes of API keys are stored, but verifying a signature requires the secret. S3 clients therefore get a
//! separate one: the HMAC of the id under 256 random bits, which are generated at first use and stored. Guarantees: the
//! secret of a key never changes; the secret of one key reveals nothing about another's. Non-goals: signatures, and
//! rights of a key.

use std::fmt;

use engine::FactName;
use engine::name::NameError;
use engine::rng::Rng;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use super::record::Record;
use super::{ApiKeyId, base32};

/// Prefix of the fact names of such secrets.
pub(super) const PREFIX: &str = "signature-secret/";
const NAME: &str = "signature-secret/s3";
const SECRET_BYTES: usize = 32;

/// Master secret from which the secrets of all keys are derived.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct S3MasterSecret {
    #[serde(with = "base32")]
    secret: [u8; SECRET_BYTES],
}

impl Record for S3MasterSecret {}

impl S3MasterSecret {
    pub(super) fn issue(rng: &dyn Rng) -> Self {
        let mut secret = [0; SECRET_BYTES];
        rng.fill(&mut secret);
        Self { secret }
    }

    pub(super) fn of_key(&self, id: &ApiKeyId) -> String {
        // HMAC accepts a key of any length, so this never fails.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.secret) else {
            return String::new();
        };
        mac.update(b"s3");
        mac.update(id.as_str().as_bytes());
        base32::encode(&mac.finalize().into_bytes())
    }
}

/// Prints nothing, so that a secret is never logged by accident.
impl fmt::Debug for S3MasterSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("S3MasterSecret")
    }
}

pub(super) fn fact() -> Result<FactName, NameError> {
    FactName::parse(NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s3_secret_is_deterministic_per_key() {
        let secret = S3MasterSecret { secret: [7; SECRET_BYTES] };
        let id = |text: &str| ApiKeyId::parse(text).unwrap();
        let one = secret.of_key(&id("aaaaaaaaaaaaaaaa"));
        assert_eq!(one.len(), 52);
        assert_eq!(one, secret.of_key(&id("aaaaaaaaaaaaaaaa")));
        assert_ne!(one, secret.of_key(&id("aaaaaaaaaaaaaaab")));
        assert_ne!(
            one,
            S3MasterSecret { secret: [8; SECRET_BYTES] }.of_key(&id("aaaaaaaaaaaaaaaa"))
        );
        assert_eq!(format!("{secret:?}"), "S3MasterSecret");
    }
}
