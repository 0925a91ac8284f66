//! Account: the owner of buckets and API keys, with its plan, standing and quota.
//!
//! Non-goals: rate limits of plans, and authentication.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::CatalogError;
use super::id::AccountId;
use super::quota::Quota;
use super::record::Record;
use super::stored_text::text;

/// Owner of buckets and API keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    #[serde(skip, default = "AccountId::unnamed")]
    pub id: AccountId,
    /// Display name, unique among accounts.
    #[serde(with = "text")]
    pub name: AccountName,
    #[serde(default)]
    pub role: Role,
    pub plan: Plan,
    pub standing: FairUseStanding,
    /// Quota of all its buckets together.
    #[serde(default)]
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

impl Record for Account {
    fn named(self, name: &str) -> Result<Self, String> {
        Ok(Self { id: AccountId::read(name)?, ..self })
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
