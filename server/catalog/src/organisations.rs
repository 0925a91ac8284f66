//! Creation, editing and deletion of organisations and their memberships.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::FactName;

use super::audit_entry::AuditRecord;
use super::change::{Change, Table, apply_record, check_count, check_total};
use super::id::{IdKind, OfOrganisation};
use super::{
    AccountId, AuditAction, Bucket, CatalogError, MemberRole, Organisation, OrganisationId,
    OrganisationName, Organisations,
};
use crate::limits::{
    INVITATIONS_PER_ACCOUNT_MAX, MEMBERS_PER_ORGANISATION_MAX, ORGANISATIONS_PER_ACCOUNT_MAX,
};

/// All organisations.
#[derive(Debug, Default)]
pub(super) struct OrganisationTable(BTreeMap<OrganisationId, Arc<Organisation>>);

impl Table for OrganisationTable {
    const PREFIXES: &'static [&'static str] = &[OfOrganisation::PREFIX];

    fn apply(&mut self, fact: &FactName, value: Option<&[u8]>) -> Result<(), CatalogError> {
        apply_record(&mut self.0, fact, value)
    }
}

impl Organisations<'_> {
    /// Returns the organisation with this id.
    pub fn get(&self, id: &OrganisationId) -> Option<Arc<Organisation>> {
        self.0.state.organisations.read().0.get(id).cloned()
    }

    /// Returns every organisation, by id.
    pub fn all(&self) -> Vec<Arc<Organisation>> {
        self.0.state.organisations.read().0.values().cloned().collect()
    }

    /// Creates an organisation. The account that owns it is its first member.
    pub fn create(
        &self,
        name: OrganisationName,
        owner: &AccountId,
    ) -> Result<Arc<Organisation>, CatalogError> {
        let mut change = self.0.begin();
        self.0.accounts().require(owner)?;
        check_total(self.0.state.organisations.read().0.len(), "organisations")?;
        let owned = self.owned_by(owner).len();
        check_count(owned, ORGANISATIONS_PER_ACCOUNT_MAX, "organisations of the account")?;
        let organisation = Organisation {
            id: OrganisationId::issue(&*self.0.state.rng),
            name,
            owner: owner.clone(),
            members: BTreeMap::from([(owner.clone(), MemberRole::Owner)]),
            invited: BTreeMap::new(),
            created_ms: self.0.now_ms(),
        };
        let entry = organisation_audit_record(AuditAction::OrganisationCreate, &organisation);
        change.audit(entry.detail(format!("name: {}", organisation.name.as_str())));
        change.add(organisation.id.fact()?, &organisation)?;
        change.commit()?;
        self.require(&organisation.id)
    }

    /// Renames an organisation.
    pub fn rename(
        &self,
        id: &OrganisationId,
        name: OrganisationName,
    ) -> Result<Arc<Organisation>, CatalogError> {
        self.change(id, |organisation| {
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
        self.0.accounts().require(account)?;
        self.change(id, |organisation| {
            if !organisation.members.contains_key(account) {
                let members = organisation.members.len();
                check_count(members, MEMBERS_PER_ORGANISATION_MAX, "members of the organisation")?;
            }
            put_member(organisation, account, role)
        })
    }

    /// Invites an account, which becomes a member when it accepts; changes the role of a member immediately.
    pub fn invite(
        &self,
        id: &OrganisationId,
        account: &AccountId,
        role: MemberRole,
    ) -> Result<Arc<Organisation>, CatalogError> {
        self.0.accounts().require(account)?;
        let invitations = self.invitations_of(account).len();
        self.change(id, |organisation| {
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
    pub fn accept(
        &self,
        id: &OrganisationId,
        account: &AccountId,
    ) -> Result<Arc<Organisation>, CatalogError> {
        self.change(id, |organisation| {
            let missing = || CatalogError::NotFound(format!("the invitation of {account}"));
            let role = *organisation.invited.get(account).ok_or_else(missing)?;
            put_member(organisation, account, role)
        })
    }

    /// Returns the organisations that have invited an account.
    pub fn invitations_of(&self, account: &AccountId) -> Vec<Arc<Organisation>> {
        let organisations = self.all().into_iter();
        organisations.filter(|organisation| organisation.invited.contains_key(account)).collect()
    }

    /// Removes a member, which immediately loses access to the organisation's buckets, or withdraws an invitation.
    pub fn remove_member(
        &self,
        id: &OrganisationId,
        account: &AccountId,
    ) -> Result<Arc<Organisation>, CatalogError> {
        self.change(id, |organisation| {
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
    pub fn delete(&self, id: &OrganisationId) -> Result<(), CatalogError> {
        let mut change = self.0.begin();
        let organisation = self.require(id)?;
        let of_it = |bucket: &&Arc<Bucket>| bucket.organisation.as_ref() == Some(id);
        let buckets = self.0.buckets().all().iter().filter(of_it).count();
        if buckets > 0 {
            return Err(CatalogError::HasBuckets(id.clone(), buckets));
        }
        let entry = organisation_audit_record(AuditAction::OrganisationDelete, &organisation);
        change.audit(entry.detail(format!("name: {}", organisation.name.as_str())));
        change.delete(id.fact()?);
        change.commit()
    }

    fn change(
        &self,
        id: &OrganisationId,
        edit: impl FnOnce(&mut Organisation) -> Result<AuditRecord, CatalogError>,
    ) -> Result<Arc<Organisation>, CatalogError> {
        let mut change = self.0.begin();
        let mut organisation = Organisation::clone(&*self.require(id)?);
        change.audit(edit(&mut organisation)?);
        change.put(id.fact()?, &organisation)?;
        change.commit()?;
        self.require(id)
    }

    /// Returns the organisations that an account owns.
    pub(super) fn owned_by(&self, owner: &AccountId) -> Vec<Arc<Organisation>> {
        self.all().into_iter().filter(|it| it.owner == *owner).collect()
    }

    /// Removes an account from all organisations, as a member and as an invited account.
    pub(super) fn leave_all(
        &self,
        change: &mut Change<'_>,
        account: &AccountId,
    ) -> Result<(), CatalogError> {
        for organisation in self.all() {
            let mut left = Organisation::clone(&organisation);
            let was_member = left.members.remove(account).is_some();
            if left.invited.remove(account).is_none() && !was_member {
                continue;
            }
            let entry = AuditRecord::new(AuditAction::MemberRemove).organisation(&left.id);
            let entry = entry.account(account).target(&left.id);
            change.audit(entry.detail(format!("account: {account}")));
            change.put(left.id.fact()?, &left)?;
            change.commit()?;
        }
        Ok(())
    }

    pub(super) fn require(&self, id: &OrganisationId) -> Result<Arc<Organisation>, CatalogError> {
        let missing = || CatalogError::NotFound(format!("the organisation {id}"));
        self.get(id).ok_or_else(missing)
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
