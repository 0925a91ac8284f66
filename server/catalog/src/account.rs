//! Account: the owner of buckets and API keys, with its plan, standing and quota.
//!
//! Non-goals: rate limits of plans, and authentication.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::CatalogError;
use super::id::AccountId;
use super::quota::Quota;
use super::record::{CatalogRecord, Record};

/// Owner of buckets and API keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub id: AccountId,
    /// Display name, unique among accounts.
    pub name: AccountName,
    pub role: Role,
    pub plan: Plan,
    pub standing: FairUseStanding,
    /// Quota of all its buckets together.
    pub quota: Quota,
    pub created_ms: u64,
}

/// Role of an account; operators manage accounts and the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Nothing.
    #[default]
    User,
    /// Permission to manage accounts.
    Operator,
}

/// Account name: 1 to 100 characters without control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountName(Arc<str>);

/// Plan of an account, which determines its rate limits and fair use; default `Business`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum Plan {
    Free,
    Starter,
    Pro,
    #[default]
    Business,
}

/// Fair-use standing of an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FairUseStanding {
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
    #[serde(default)]
    role: Role,
    plan: Plan,
    standing: FairUseStanding,
    #[serde(default)]
    quota: Quota,
    created_ms: u64,
}

impl CatalogRecord for StoredAccount {}

impl Record for Account {
    type Stored = StoredAccount;

    fn stored(&self) -> StoredAccount {
        StoredAccount {
            name: self.name.as_str().to_owned(),
            role: self.role,
            plan: self.plan,
            standing: self.standing,
            quota: self.quota,
            created_ms: self.created_ms,
        }
    }

    fn from_stored(id: &str, stored: StoredAccount) -> Result<Self, String> {
        Ok(Self {
            id: AccountId::parse(id).ok_or("its id is not an account id")?,
            name: AccountName::parse(&stored.name).map_err(|error| error.to_string())?,
            role: stored.role,
            plan: stored.plan,
            standing: stored.standing,
            quota: stored.quota,
            created_ms: stored.created_ms,
        })
    }
}

const NAME_CHARS_MAX: usize = 100;

impl AccountName {
    /// Validates an account name.
    pub fn parse(name: &str) -> Result<Self, CatalogError> {
        if name.trim().is_empty() {
            return Err(CatalogError::InvalidRequest("an account needs a name".into()));
        }
        if name.chars().count() > NAME_CHARS_MAX || name.chars().any(char::is_control) {
            return Err(CatalogError::InvalidRequest(format!(
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
    /// Creates an account with default settings.
    pub(super) fn with_defaults(id: AccountId, name: AccountName, created_ms: u64) -> Self {
        Self {
            id,
            name,
            role: Role::default(),
            plan: Plan::default(),
            standing: FairUseStanding::default(),
            quota: Quota::default(),
            created_ms,
        }
    }
}
