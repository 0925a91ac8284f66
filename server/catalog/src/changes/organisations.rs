//! Creation, editing and deletion of organisations and their memberships.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::Batch;

use super::super::audit_entry::AuditRecord;
use super::super::{
    AccountId, AuditAction, Bucket, Catalog, CatalogError, MemberRole, Organisation,
    OrganisationId, OrganisationName,
};
use super::{check_count, check_total};
use crate::limits::{
    INVITATIONS_PER_ACCOUNT_MAX, MEMBERS_PER_ORGANISATION_MAX, ORGANISATIONS_PER_ACCOUNT_MAX,
};

impl Catalog {
    /// Creates an organisation. The account that owns it is its first member.
    pub fn create_organisation(
        &self,
        name: OrganisationName,
        owner: &AccountId,
    ) -> Result<Arc<Organisation>, CatalogError> {
        let _changing = self.change();
        self.require_account(owner)?;
        check_total(self.tables().organisations.len(), "organisations")?;
        let owned = self.tables().organisations.values().filter(|it| it.owner == *owner).count();
        check_count(owned, ORGANISATIONS_PER_ACCOUNT_MAX, "organisations of the account")?;
        let organisation = Organisation {
            id: OrganisationId::issue(&*self.0.rng),
            name,
            owner: owner.clone(),
            members: BTreeMap::from([(owner.clone(), MemberRole::Owner)]),
            invited: BTreeMap::new(),
            created_ms: self.0.clock.unix_ms(),
        };
        let entry = organisation_audit_record(AuditAction::OrganisationCreate, &organisation);
        let entry = entry.detail(format!("name: {}", organisation.name.as_str()));
        self.add_record(organisation.id.fact()?, &organisation.stored(), entry)?;
        Ok(self.show_organisation(organisation))
    }

    /// Renames an organisation.
    pub fn rename_organisation(
        &self,
        id: &OrganisationId,
        name: OrganisationName,
    ) -> Result<Arc<Organisation>, CatalogError> {
        self.edit_organisation(id, |organisation| {
            organisation.name = name;
            let entry = organisation_audit_record(AuditAction::OrganisationChange, organisation);
            Ok(entry.detail(format!("name: {}", organisation.name.as_str())))
        })
    }

    /// Makes an account a member with a role, or changes the role of a member.
    pub fn set_member(
        &self,
        id: &OrganisationId,
        account: &AccountId,
        role: MemberRole,
    ) -> Result<Arc<Organisation>, CatalogError> {
        self.require_account(account)?;
        self.edit_organisation(id, |organisation| {
            if !organisation.members.contains_key(account) {
                let members = organisation.members.len();
                check_count(members, MEMBERS_PER_ORGANISATION_MAX, "members of the organisation")?;
            }
            put_member(organisation, account, role)
        })
    }

    /// Invites an account, which becomes a member when it accepts; changes the role of a member immediately.
    pub fn invite_member(
        &self,
        id: &OrganisationId,
        account: &AccountId,
        role: MemberRole,
    ) -> Result<Arc<Organisation>, CatalogError> {
        self.require_account(account)?;
        let invitations = self.invitations_of(account).len();
        self.edit_organisation(id, |organisation| {
            if organisation.members.contains_key(account) {
                return put_member(organisation, account, role);
            }
            if !organisation.invited.contains_key(account) {
                let members = organisation.members.len() + organisation.invited.len();
                check_count(members, MEMBERS_PER_ORGANISATION_MAX, "members of the organisation")?;
                check_count(
                    invitations,
                    INVITATIONS_PER_ACCOUNT_MAX,
                    "invitations of the account",
                )?;
            }
            organisation.invited.insert(account.clone(), role);
            let entry =
                organisation_audit_record(AuditAction::MemberInvite, organisation).account(account);
            Ok(entry.detail(format!("account: {account}, role: {}", role.as_str())))
        })
    }

    /// Makes an invited account a member.
    pub fn accept_membership(
        &self,
        id: &OrganisationId,
        account: &AccountId,
    ) -> Result<Arc<Organisation>, CatalogError> {
        self.edit_organisation(id, |organisation| {
            let missing = || CatalogError::NotFound(format!("the invitation of {account}"));
            let role = *organisation.invited.get(account).ok_or_else(missing)?;
            put_member(organisation, account, role)
        })
    }

    /// Returns the organisations that have invited an account.
    pub fn invitations_of(&self, account: &AccountId) -> Vec<Arc<Organisation>> {
        let organisations = self.organisations().into_iter();
        organisations.filter(|organisation| organisation.invited.contains_key(account)).collect()
    }

    /// Removes a member, which immediately loses access to the organisation's buckets, or withdraws an invitation.
    pub fn remove_member(
        &self,
        id: &OrganisationId,
        account: &AccountId,
    ) -> Result<Arc<Organisation>, CatalogError> {
        self.edit_organisation(id, |organisation| {
            if organisation.owner == *account {
                return Err(CatalogError::OwnsOrganisation);
            }
            let invited = organisation.invited.remove(account);
            match organisation.members.remove(account).or(invited) {
                Some(_) => {
                    let entry = organisation_audit_record(AuditAction::MemberRemove, organisation)
                        .account(account);
                    Ok(entry.detail(format!("account: {account}")))
                }
                None => Err(CatalogError::NotFound(format!("the member {account}"))),
            }
        })
    }

    /// Deletes an organisation without buckets.
    pub fn delete_organisation(&self, id: &OrganisationId) -> Result<(), CatalogError> {
        let _changing = self.change();
        let organisation = self.require_organisation(id)?;
        let of_it = |bucket: &&Arc<Bucket>| bucket.organisation.as_ref() == Some(id);
        let buckets = self.tables().buckets.values().filter(of_it).count();
        if buckets > 0 {
            return Err(CatalogError::HasBuckets(id.clone(), buckets));
        }
        let entry = organisation_audit_record(AuditAction::OrganisationDelete, &organisation);
        let entry = entry.detail(format!("name: {}", organisation.name.as_str()));
        self.0.store.commit(self.append_audit(Batch::new().delete_fact(id.fact()?), entry)?)?;
        self.publish(|tables| tables.organisations.remove(id));
        Ok(())
    }

    fn edit_organisation(
        &self,
        id: &OrganisationId,
        edit: impl FnOnce(&mut Organisation) -> Result<AuditRecord, CatalogError>,
    ) -> Result<Arc<Organisation>, CatalogError> {
        let _changing = self.change();
        let mut organisation = Organisation::clone(&*self.require_organisation(id)?);
        let entry = edit(&mut organisation)?;
        self.put_record(id.fact()?, &organisation.stored(), entry)?;
        Ok(self.show_organisation(organisation))
    }

    pub(super) fn show_organisation(&self, organisation: Organisation) -> Arc<Organisation> {
        let organisation = Arc::new(organisation);
        let id = organisation.id.clone();
        self.publish(|tables| tables.organisations.insert(id, organisation.clone()));
        organisation
    }

    pub(super) fn require_organisation(
        &self,
        id: &OrganisationId,
    ) -> Result<Arc<Organisation>, CatalogError> {
        let missing = || CatalogError::NotFound(format!("the organisation {id}"));
        self.organisation(id).ok_or_else(missing)
    }
}

/// Makes an account a member with a role.
fn put_member(
    organisation: &mut Organisation,
    account: &AccountId,
    role: MemberRole,
) -> Result<AuditRecord, CatalogError> {
    if organisation.owner == *account && role != MemberRole::Owner {
        return Err(CatalogError::OwnsOrganisation);
    }
    organisation.invited.remove(account);
    organisation.members.insert(account.clone(), role);
    let entry = organisation_audit_record(AuditAction::MemberAdd, organisation).account(account);
    Ok(entry.detail(format!("account: {account}, role: {}", role.as_str())))
}

/// Returns an audit entry about an organisation, which affects its administrators, and its owner even after its
/// deletion.
fn organisation_audit_record(action: AuditAction, organisation: &Organisation) -> AuditRecord {
    let id = &organisation.id;
    AuditRecord::new(action).organisation(id).account(&organisation.owner).target(id)
}
