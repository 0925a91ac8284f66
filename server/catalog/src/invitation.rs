//! Invitation: a single-use link for setting the password of an account.
//!
//! Its text names the account and contains a secret, `<account>_<secret>`. Guarantees: an account has at most one
//! invitation, and a new one replaces it; only a hash of the secret is stored. Non-goals: the base URL of the link.

use serde::{Deserialize, Serialize};

use super::AccountId;
use super::record::Record;
use super::secret::SecretHash;

/// Prefix of the fact names of invitations; the account id follows.
pub(super) const PREFIX: &str = "invitation/";

/// Record of an invitation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Invitation {
    #[serde(skip, default = "AccountId::unnamed")]
    pub account: AccountId,
    /// SHA-256 of the secret, hexadecimal.
    #[serde(rename = "secret_sha256")]
    pub(super) hash: SecretHash,
    pub expires_ms: u64,
}

/// Newly issued invitation, whose text is shown only once.
pub struct IssuedInvitation {
    pub text: String,
    pub expires_ms: u64,
}

impl Record for Invitation {
    fn named(self, name: &str) -> Result<Self, String> {
        Ok(Self { account: AccountId::read(name)?, ..self })
    }
}

/// Parses the account and the hash of the secret; `None` for a malformed text.
pub(super) fn parse(text: &str) -> Option<(AccountId, SecretHash)> {
    let (account, secret) = text.split_once('_')?;
    Some((AccountId::parse(account)?, SecretHash::from_text(secret)?))
}
