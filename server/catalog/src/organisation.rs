//! Organisation: accounts that share buckets, each with a role.
//!
//! Guarantees: the account that owns it is always a member, as an owner; no account is both a member and invited.
//! Non-goals: authentication.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::CatalogError;
use super::api_key::Scope;
use super::id::{AccountId, OrganisationId};
use super::record::Record;
use super::stored_text::text;
use crate::limits::CATALOG_TEXT_BYTES_MAX;

/// Group of accounts that share buckets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Organisation {
    #[serde(skip, default = "OrganisationId::unnamed")]
    pub id: OrganisationId,
    /// Display name, not necessarily unique.
    #[serde(with = "text")]
    pub name: OrganisationName,
    /// Account that owns its buckets, whose plan and quota apply.
    pub owner: AccountId,
    pub members: BTreeMap<AccountId, MemberRole>,
    /// Accounts that become members with these roles when they accept.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub invited: BTreeMap<AccountId, MemberRole>,
    pub created_ms: u64,
}

/// Organisation name: 1 to [`CATALOG_TEXT_BYTES_MAX`] bytes without control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrganisationName(String);

/// Role of a member; each role includes the permissions of the preceding ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum MemberRole {
    /// Reads and lists.
    Viewer,
    /// Uploads, deletes, presigns.
    Member,
    /// Makes, changes and deletes buckets.
    Admin,
    /// Decides who belongs to it, and deletes it.
    Owner,
}

impl Record for Organisation {
    fn named(self, name: &str) -> Result<Self, String> {
        Ok(Self { id: OrganisationId::read(name)?, ..self })
    }
}

impl MemberRole {
    /// Returns whether the role permits a scope.
    pub fn allows(self, scope: Scope) -> bool {
        self >= match scope {
            Scope::Read | Scope::List => Self::Viewer,
            Scope::Upload | Scope::Delete | Scope::Presign => Self::Member,
            Scope::Manage => Self::Admin,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Member => "member",
            Self::Admin => "admin",
            Self::Owner => "owner",
        }
    }
}

impl OrganisationName {
    /// Validates an organisation name.
    pub fn parse(name: &str) -> Result<Self, CatalogError> {
        let name = name.trim();
        if name.is_empty() || name.len() > CATALOG_TEXT_BYTES_MAX || name.contains(char::is_control)
        {
            return Err(CatalogError::InvalidRequest(format!(
                "an organisation's name has 1 to {CATALOG_TEXT_BYTES_MAX} bytes and no control characters"
            )));
        }
        Ok(Self(name.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn member_roles_are_cumulative() {
        let allowed = |role: MemberRole| Scope::ALL.iter().filter(|it| role.allows(**it)).count();
        assert_eq!(allowed(MemberRole::Viewer), 2);
        assert_eq!(allowed(MemberRole::Member), 5);
        assert_eq!(allowed(MemberRole::Admin), 6);
        assert_eq!(allowed(MemberRole::Owner), 6);
        assert!(
            MemberRole::Viewer.allows(Scope::Read) && !MemberRole::Viewer.allows(Scope::Upload)
        );
        assert!(!MemberRole::Member.allows(Scope::Manage));
    }
}
