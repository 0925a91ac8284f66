//! Deletion of accounts.
//!
//! Guarantees: an account that owns buckets or organisations is deleted only together with them; its API keys,
//! sessions, password and memberships are deleted with it; a deletion that is interrupted can be repeated. Non-goals:
//! the audit log and the usage history, which keep the ID of the account until they expire.

use super::audit_entry::AuditRecord;
use super::{
    Account, AccountId, Accounts, AuditAction, CatalogError, OnNonEmpty, Role, invitation,
    password, standing_history,
};

impl Accounts<'_> {
    /// Deletes an account. Returns the number of objects that were deleted with its buckets. Blocks on the disk.
    ///
    /// # Errors
    ///
    /// [`CatalogError::OwnsProperty`] if the account owns buckets or organisations, unless `contents` says to delete
    /// them; [`CatalogError::InvalidRequest`] for the only operator.
    pub fn delete(&self, id: &AccountId, contents: OnNonEmpty) -> Result<u64, CatalogError> {
        let account = self.require(id)?;
        self.require_other_operator(&account)?;
        let removed = match contents {
            OnNonEmpty::Refuse => 0,
            OnNonEmpty::DeleteToo => self.delete_property(id)?,
        };
        let mut change = self.0.begin();
        let account = self.require(id)?;
        self.require_other_operator(&account)?;
        self.require_no_property(&account)?;
        self.0.api_keys().delete_all_of(&mut change, id)?;
        self.0.organisations().leave_all(&mut change, id)?;
        self.0.sessions().add_end_of_all(&mut change, id, None)?;
        change.delete(id.fact()?);
        for prefix in [standing_history::PREFIX, password::PREFIX, invitation::PREFIX] {
            change.delete(id.fact_at(prefix)?);
        }
        let entry = AuditRecord::new(AuditAction::AccountDelete).account(id).target(id);
        change.audit(entry.detail(format!("name: {}", account.name.as_str())));
        change.commit()?;
        drop(change);
        self.0.shared_links().delete_all_by(id)?;
        Ok(removed)
    }

    /// Checks that another operator remains.
    fn require_other_operator(&self, account: &Account) -> Result<(), CatalogError> {
        let has_other = self.operators().iter().any(|it| it.id != account.id);
        match account.role == Role::Operator && !has_other {
            true => Err(CatalogError::InvalidRequest(format!(
                "the account {:?} is the only operator; make another account an operator first",
                account.name.as_str()
            ))),
            false => Ok(()),
        }
    }

    fn require_no_property(&self, account: &Account) -> Result<(), CatalogError> {
        let buckets = self.0.buckets().names_of(&account.id).len();
        let organisations = self.0.organisations().owned_by(&account.id).len();
        match buckets + organisations {
            0 => Ok(()),
            _ => Err(CatalogError::OwnsProperty {
                account: account.name.as_str().to_owned(),
                buckets,
                organisations,
            }),
        }
    }

    fn delete_property(&self, id: &AccountId) -> Result<u64, CatalogError> {
        let mut removed = 0;
        for bucket in self.0.buckets().names_of(id) {
            self.0.buckets().require_no_locked_objects(&bucket)?;
        }
        for bucket in self.0.buckets().names_of(id) {
            removed += self.0.buckets().delete(&bucket, OnNonEmpty::DeleteToo)?.finish()?;
        }
        for organisation in self.0.organisations().owned_by(id) {
            self.0.organisations().delete(&organisation.id)?;
        }
        Ok(removed)
    }
}
