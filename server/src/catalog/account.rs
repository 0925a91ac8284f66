//! The account: who owns buckets and keys, on which plan, in which standing.
//!
//! Never here: what a plan may do in a minute, and who is asking.

use std::fmt;
use std::sync::Arc;

use engine::{Entropy, FactName, NameError};
use serde::{Deserialize, Serialize};

use super::record::Stored;
use super::{CatalogError, base32};

/// The fact names of accounts start with this.
pub(super) const PREFIX: &str = "account/";

/// Names an account for ever: 16 letters and digits, made by chance.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AccountId(Arc<str>);

/// Who owns buckets and keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub id: AccountId,
    /// What people call it; no two accounts share a name.
    pub name: AccountName,
    pub plan: Plan,
    pub standing: Standing,
    pub created_ms: u64,
}

/// 1 to 100 characters without control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountName(Arc<str>);

/// What the account pays for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Plan {
    #[default]
    Free,
    Starter,
    Pro,
    Business,
}

/// How far fair use has gone wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    #[default]
    Good,
    Notified,
    UpgradeRequested,
    Throttled,
    Suspended,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredAccount {
    name: String,
    plan: Plan,
    standing: Standing,
    created_ms: u64,
}

impl Stored for StoredAccount {
    const VERSION: u32 = 1;
}

const ID_CHARS: usize = 16;
const NAME_CHARS_MAX: usize = 100;

impl AccountId {
    pub(super) fn issue(entropy: &dyn Entropy) -> Self {
        let mut bytes = [0; 10];
        entropy.fill(&mut bytes);
        Self(base32::encode(&bytes).into())
    }

    /// Checks the form of an account id; says nothing about whether there is such an account.
    pub fn parse(id: &str) -> Option<Self> {
        (id.len() == ID_CHARS && base32::is(id)).then(|| Self(id.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn fact(&self) -> Result<FactName, NameError> {
        FactName::parse(&format!("{PREFIX}{self}"))
    }
}

impl fmt::Display for AccountId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AccountName {
    /// Checks a name for an account.
    pub fn parse(name: &str) -> Result<Self, CatalogError> {
        if name.trim().is_empty() {
            return Err(CatalogError::Refused("an account needs a name".into()));
        }
        if name.chars().count() > NAME_CHARS_MAX || name.chars().any(char::is_control) {
            return Err(CatalogError::Refused(format!(
                "an account's name has at most {NAME_CHARS_MAX} characters and no control characters"
            )));
        }
        Ok(Self(name.trim().into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Account {
    pub(super) fn stored(&self) -> StoredAccount {
        StoredAccount {
            name: self.name.as_str().to_owned(),
            plan: self.plan,
            standing: self.standing,
            created_ms: self.created_ms,
        }
    }

    pub(super) fn from_stored(id: &str, stored: StoredAccount) -> Result<Self, String> {
        Ok(Self {
            id: AccountId::parse(id).ok_or("its id is not an account id")?,
            name: AccountName::parse(&stored.name).map_err(|error| error.to_string())?,
            plan: stored.plan,
            standing: stored.standing,
            created_ms: stored.created_ms,
        })
    }
}
