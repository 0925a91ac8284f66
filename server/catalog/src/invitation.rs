//! Invitation: a single-use link for setting the password of an account.
//!
//! Its text names the account and contains a secret, `<account>_<secret>`. Guarantees: an account has at most one
//! invitation, and a new one replaces it; only a hash of the secret is stored. Non-goals: the base URL of the link.

use engine::FactName;
use engine::name::NameError;
use serde::{Deserialize, Serialize};

use super::AccountId;
use super::record::{CatalogRecord, Record};
use super::secret::SecretHash;

/// Prefix of the fact names of invitations; the account id follows.
pub(super) const PREFIX: &str = "invitation/";

/// Record of an invitation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitation {
    pub account: AccountId,
    pub(super) hash: SecretHash,
    pub expires_ms: u64,
}

/// Newly issued invitation, whose text is shown only once.
pub struct IssuedInvitation {
    pub text: String,
    pub expires_ms: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredInvitation {
    /// SHA-256 of the secret, hexadecimal.
    secret_sha256: String,
    expires_ms: u64,
}

impl CatalogRecord for StoredInvitation {}

impl Record for Invitation {
    type Stored = StoredInvitation;

    fn stored(&self) -> StoredInvitation {
        StoredInvitation { secret_sha256: self.hash.to_hex(), expires_ms: self.expires_ms }
    }

    fn from_stored(account: &str, stored: StoredInvitation) -> Result<Self, String> {
        Ok(Self {
            account: AccountId::parse(account).ok_or("its name does not end in an account id")?,
            hash: SecretHash::from_hex(&stored.secret_sha256)?,
            expires_ms: stored.expires_ms,
        })
    }
}

/// Parses the account and the hash of the secret; `None` for a malformed text.
pub(super) fn parse(text: &str) -> Option<(AccountId, SecretHash)> {
    let (account, secret) = text.split_once('_')?;
    Some((AccountId::parse(account)?, SecretHash::from_text(secret)?))
}

pub(super) fn fact(id: &AccountId) -> Result<FactName, NameError> {
    FactName::parse(&format!("{PREFIX}{id}"))
}
