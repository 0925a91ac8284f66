//! The invitation: a link with which the holder of an account chooses its password, once.
//!
//! Its text names the account and holds a secret, `<account>_<secret>`. Promises: an account has one invitation at a
//! time, a new one takes the place of the last; of the secret only a hash is kept. Never here: the address before it.

use engine::{FactName, NameError};
use serde::{Deserialize, Serialize};

use super::AccountId;
use super::record::Stored;
use super::secret::SecretHash;

/// The fact names of invitations start with this; the id of the account follows.
pub(super) const PREFIX: &str = "invitation/";

/// What is known of an invitation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitation {
    pub account: AccountId,
    pub(super) hash: SecretHash,
    pub expires_ms: u64,
}

/// An invitation as its holder gets it; its text is told this once.
pub struct IssuedInvitation {
    pub text: String,
    pub expires_ms: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredInvitation {
    /// Hexadecimal.
    secret_sha256: String,
    expires_ms: u64,
}

impl Stored for StoredInvitation {
    const VERSION: u32 = 1;
}

impl Invitation {
    pub(super) fn stored(&self) -> StoredInvitation {
        StoredInvitation { secret_sha256: self.hash.to_hex(), expires_ms: self.expires_ms }
    }

    pub(super) fn from_stored(account: &str, stored: StoredInvitation) -> Result<Self, String> {
        Ok(Self {
            account: AccountId::parse(account).ok_or("its name does not end in an account id")?,
            hash: SecretHash::of_hex(&stored.secret_sha256)?,
            expires_ms: stored.expires_ms,
        })
    }
}

/// The account that a text names, and the hash of its secret; `None` for what cannot be an invitation.
pub(super) fn parse(text: &str) -> Option<(AccountId, SecretHash)> {
    let (account, secret) = text.split_once('_')?;
    Some((AccountId::parse(account)?, SecretHash::of(secret)?))
}

pub(super) fn fact(id: &AccountId) -> Result<FactName, NameError> {
    FactName::parse(&format!("{PREFIX}{id}"))
}
