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
use super::record::{CatalogRecord, Record};
use crate::limits::CATALOG_TEXT_BYTES_MAX;

/// Group of accounts that share buckets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Organisation {
    pub id: OrganisationId,
    /// Display name, not necessarily unique.
    pub name: OrganisationName,
    /// Account that owns its buckets, whose plan and quota apply.
    pub owner: AccountId,
    pub members: BTreeMap<AccountId, MemberRole>,
    /// Accounts that become members with these roles when they accept.
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

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredOrganisation {
    name: String,
    owner: String,
    members: BTreeMap<String, MemberRole>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    invited: BTreeMap<String, MemberRole>,
    created_ms: u64,
}

impl CatalogRecord for StoredOrganisation {}

impl Record for Organisation {
    type Stored = StoredOrganisation;

    fn stored(&self) -> StoredOrganisation {
        let stored = |accounts: &BTreeMap<AccountId, MemberRole>| {
            accounts.iter().map(|(id, role)| (id.to_string(), *role)).collect()
        };
        StoredOrganisation {
            name: self.name.as_str().to_owned(),
            owner: self.owner.to_string(),
            members: stored(&self.members),
            invited: stored(&self.invited),
            created_ms: self.created_ms,
        }
    }

    fn from_stored(id: &str, stored: StoredOrganisation) -> Result<Self, String> {
        let account = |id: &str| AccountId::parse(id).ok_or("it contains an invalid account id");
        let accounts = |stored: &BTreeMap<String, MemberRole>| {
            stored.iter().map(|(id, role)| Ok((account(id)?, *role))).collect::<Result<_, &str>>()
        };
        Ok(Self {
            id: OrganisationId::parse(id).ok_or("its id is not the id of an organisation")?,
            name: OrganisationName::parse(&stored.name).map_err(|error| error.to_string())?,
            owner: account(&stored.owner)?,
            members: accounts(&stored.members)?,
            invited: accounts(&stored.invited)?,
            created_ms: stored.created_ms,
        })
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
