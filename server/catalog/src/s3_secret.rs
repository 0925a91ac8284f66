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

use super::record::{CatalogRecord, Record};
use super::{ApiKeyId, base32};

/// Prefix of the fact names of such secrets.
pub(super) const PREFIX: &str = "signature-secret/";
const NAME: &str = "signature-secret/s3";
const SECRET_BYTES: usize = 32;

/// Master secret from which the secrets of all keys are derived.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct S3MasterSecret([u8; SECRET_BYTES]);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredSignatureSecret {
    secret: String,
}

impl CatalogRecord for StoredSignatureSecret {}

impl Record for S3MasterSecret {
    type Stored = StoredSignatureSecret;

    fn stored(&self) -> StoredSignatureSecret {
        StoredSignatureSecret { secret: base32::encode(&self.0) }
    }

    fn from_stored(_: &str, stored: StoredSignatureSecret) -> Result<Self, String> {
        let secret = base32::decode(&stored.secret).and_then(|secret| secret.try_into().ok());
        secret.map(Self).ok_or_else(|| "its secret is not 32 bytes long".to_owned())
    }
}

impl S3MasterSecret {
    pub(super) fn issue(rng: &dyn Rng) -> Self {
        let mut secret = [0; SECRET_BYTES];
        rng.fill(&mut secret);
        Self(secret)
    }

    pub(super) fn of_key(&self, id: &ApiKeyId) -> String {
        // HMAC accepts a key of any length, so this never fails.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else { return String::new() };
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
        let secret = S3MasterSecret([7; SECRET_BYTES]);
        let id = |text: &str| ApiKeyId::parse(text).unwrap();
        let one = secret.of_key(&id("aaaaaaaaaaaaaaaa"));
        assert_eq!(one.len(), 52);
        assert_eq!(one, secret.of_key(&id("aaaaaaaaaaaaaaaa")));
        assert_ne!(one, secret.of_key(&id("aaaaaaaaaaaaaaab")));
        assert_ne!(one, S3MasterSecret([8; SECRET_BYTES]).of_key(&id("aaaaaaaaaaaaaaaa")));
        assert_eq!(format!("{secret:?}"), "S3MasterSecret");
    }

    #[test]
    fn s3_secret_record_round_trips() {
        let stored = S3MasterSecret([7; SECRET_BYTES]).stored();
        assert_eq!(stored.secret, base32::encode(&[7; SECRET_BYTES]));
        assert_eq!(S3MasterSecret::from_stored("s3", stored).unwrap().0, [7; SECRET_BYTES]);
        let short = StoredSignatureSecret { secret: "aa".into() };
        assert!(S3MasterSecret::from_stored("s3", short).is_err());
    }
}
