//! S3 signing secrets: one for each API key, derived from the key's id and a secret of the store.
//!
//! Only hashes of API keys are stored, but verifying a signature requires the secret. S3 clients therefore get a
//! separate one: the HMAC of the id under 256 random bits, which are generated at first use and stored. Guarantees: the
//! secret of a key never changes; the secret of one key reveals nothing about another's. Non-goals: signatures, and
//! rights of a key.

use std::fmt;

use engine::{Batch, FactName, Precondition};
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use super::record::{CatalogRecord, encode};
use super::{ApiKeyId, Catalog, CatalogError, base32};

/// Prefix of the fact names of such secrets.
pub(super) const PREFIX: &str = "signature-secret/";
const NAME: &str = "signature-secret/s3";
const SECRET_BYTES: usize = 32;

/// Master secret from which the secrets of all keys are derived.
#[derive(Clone)]
pub(super) struct S3MasterSecret([u8; SECRET_BYTES]);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredSignatureSecret {
    secret: String,
}

impl CatalogRecord for StoredSignatureSecret {
    const VERSION: u32 = 1;
}

impl S3MasterSecret {
    pub(super) fn from_stored(stored: &StoredSignatureSecret) -> Result<Self, String> {
        let secret = base32::decode(&stored.secret).and_then(|secret| secret.try_into().ok());
        secret.map(Self).ok_or_else(|| "its secret is not 32 bytes long".to_owned())
    }

    fn of_key(&self, id: &ApiKeyId) -> String {
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

impl Catalog {
    /// Returns the S3 secret of a key. `None` if no master secret could be stored.
    pub fn signature_secret(&self, id: &ApiKeyId) -> Option<String> {
        Some(self.tables().signature_secret.as_ref()?.of_key(id))
    }

    /// Generates the master secret, if it does not exist.
    pub fn ensure_s3_secret(&self) -> Result<(), CatalogError> {
        let _changing = self.change();
        if self.tables().signature_secret.is_some() {
            return Ok(());
        }
        let mut secret = [0; SECRET_BYTES];
        self.0.rng.fill(&mut secret);
        let fact = FactName::parse(NAME)?;
        let stored = encode(&fact, &StoredSignatureSecret { secret: base32::encode(&secret) })?;
        let batch = Batch::new().require(Precondition::FactAbsent(fact.clone()));
        self.0.store.commit(batch.put_fact(fact, stored))?;
        self.publish(|tables| tables.signature_secret = Some(S3MasterSecret(secret)));
        Ok(())
    }
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
        let stored = StoredSignatureSecret { secret: base32::encode(&[7; SECRET_BYTES]) };
        assert_eq!(S3MasterSecret::from_stored(&stored).unwrap().0, [7; SECRET_BYTES]);
        assert!(
            S3MasterSecret::from_stored(&StoredSignatureSecret { secret: "aa".into() }).is_err()
        );
    }
}
