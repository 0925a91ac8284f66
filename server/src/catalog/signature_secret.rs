//! The secrets with which clients of S3 sign: one for each API key, made of the key's id and of a secret of the store.
//!
//! Of API keys only hashes are kept, and a signature can only be checked by who has the secret. So clients of S3 get
//! another secret: the HMAC of the id under 256 random bits that are made at first need and stay in the store.
//! Promises: the same key has the same secret for ever; whoever knows that of one key knows nothing of another's.
//! Never here: signatures, and what a key opens.

use std::fmt;

use engine::{Batch, FactName, Precondition};
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use super::record::{Stored, encode};
use super::{ApiKeyId, Catalog, CatalogError, base32};

/// The fact names of such secrets start with this.
pub(super) const PREFIX: &str = "signature-secret/";
const NAME: &str = "signature-secret/s3";
const SECRET_BYTES: usize = 32;

/// What the secrets of all keys are made of.
#[derive(Clone)]
pub(super) struct SignatureSecret([u8; SECRET_BYTES]);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredSignatureSecret {
    secret: String,
}

impl Stored for StoredSignatureSecret {
    const VERSION: u32 = 1;
}

impl SignatureSecret {
    pub(super) fn from_stored(stored: &StoredSignatureSecret) -> Result<Self, String> {
        let secret = base32::decode(&stored.secret).and_then(|secret| secret.try_into().ok());
        secret.map(Self).ok_or_else(|| "its secret is not 32 bytes long".to_owned())
    }

    fn of_key(&self, id: &ApiKeyId) -> String {
        // A key of any length is fine, so this is never without one.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else { return String::new() };
        mac.update(b"s3");
        mac.update(id.as_str().as_bytes());
        base32::encode(&mac.finalize().into_bytes())
    }
}

/// Nothing of a secret is printed, not even by accident.
impl fmt::Debug for SignatureSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SignatureSecret")
    }
}

impl Catalog {
    /// The secret with which the holder of a key signs. `None` while nothing could be stored to make it of.
    pub fn signature_secret(&self, id: &ApiKeyId) -> Option<String> {
        Some(self.tables().signature_secret.as_ref()?.of_key(id))
    }

    /// Makes what the secrets are made of, where that is not there yet.
    pub fn make_signature_secret(&self) -> Result<(), CatalogError> {
        let _changing = self.change();
        if self.tables().signature_secret.is_some() {
            return Ok(());
        }
        let mut secret = [0; SECRET_BYTES];
        self.0.entropy.fill(&mut secret);
        let fact = FactName::parse(NAME)?;
        let stored = encode(&fact, &StoredSignatureSecret { secret: base32::encode(&secret) })?;
        let batch = Batch::new().require(Precondition::FactAbsent(fact.clone()));
        self.0.store.commit(batch.put_fact(fact, stored))?;
        self.show(|tables| tables.signature_secret = Some(SignatureSecret(secret)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_its_own_secret_and_always_the_same() {
        let secret = SignatureSecret([7; SECRET_BYTES]);
        let id = |text: &str| ApiKeyId::parse(text).unwrap();
        let one = secret.of_key(&id("aaaaaaaaaaaaaaaa"));
        assert_eq!(one.len(), 52);
        assert_eq!(one, secret.of_key(&id("aaaaaaaaaaaaaaaa")));
        assert_ne!(one, secret.of_key(&id("aaaaaaaaaaaaaaab")));
        assert_ne!(one, SignatureSecret([8; SECRET_BYTES]).of_key(&id("aaaaaaaaaaaaaaaa")));
        assert_eq!(format!("{secret:?}"), "SignatureSecret");
    }

    #[test]
    fn what_is_stored_reads_back() {
        let stored = StoredSignatureSecret { secret: base32::encode(&[7; SECRET_BYTES]) };
        assert_eq!(SignatureSecret::from_stored(&stored).unwrap().0, [7; SECRET_BYTES]);
        assert!(
            SignatureSecret::from_stored(&StoredSignatureSecret { secret: "aa".into() }).is_err()
        );
    }
}
