//! Deletion of accounts.
//!
//! Guarantees: an account that owns buckets or organisations is deleted only together with them; its API keys,
//! sessions, password and memberships are deleted with it; a deletion that is interrupted can be repeated. Non-goals:
//! the audit log and the usage history, which keep the ID of the account until they expire.

use engine::Batch;

use super::super::audit_entry::AuditRecord;
use super::super::{
    Account, AccountId, ApiKeyId, AuditAction, Catalog, CatalogError, OnNonEmpty, Organisation,
    Role, invitation, last_used, password, standing_history,
};
use super::SessionChanges;

/// Maximum records per batch, below the limit of the engine.
const RECORDS_MAX: usize = 250;

impl Catalog {
    /// Deletes an account. Returns the number of objects that were deleted with its buckets. Blocks on the disk.
    ///
    /// # Errors
    ///
    /// [`CatalogError::OwnsProperty`] if the account owns buckets or organisations, unless `contents` says to delete
    /// them; [`CatalogError::InvalidRequest`] for the only operator.
    pub fn delete_account(
        &self,
        id: &AccountId,
        contents: OnNonEmpty,
    ) -> Result<u64, CatalogError> {
        let account = self.require_account(id)?;
        self.require_other_operator(&account)?;
        let removed = match contents {
            OnNonEmpty::Refuse => 0,
            OnNonEmpty::DeleteToo => self.delete_property(id)?,
        };
        let _changing = self.change();
        let account = self.require_account(id)?;
        self.require_other_operator(&account)?;
        self.require_no_property(&account)?;
        self.delete_api_keys_of(id)?;
        self.leave_organisations(id)?;
        let (batch, ended) = self.end_sessions_in_batch(Batch::new(), id, None)?;
        let batch = batch
            .delete_fact(id.fact()?)
            .delete_fact(standing_history::fact(id)?)
            .delete_fact(password::fact(id)?)
            .delete_fact(invitation::fact(id)?);
        let entry = AuditRecord::new(AuditAction::AccountDelete).account(id).target(id);
        let entry = entry.detail(format!("name: {}", account.name.as_str()));
        self.0.store.commit(self.append_audit(batch, entry)?)?;
        self.publish(|tables| {
            SessionChanges { ended, started: None }.publish(tables);
            tables.accounts.remove(id);
            tables.standings.remove(id);
            tables.passwords.remove(id);
            tables.invitations.remove(id);
        });
        Ok(removed)
    }

    /// Checks that another operator remains.
    fn require_other_operator(&self, account: &Account) -> Result<(), CatalogError> {
        let is_other = |it: &Account| it.role == Role::Operator && it.id != account.id;
        let has_other = self.tables().accounts.values().any(|it| is_other(it));
        match account.role == Role::Operator && !has_other {
            true => Err(CatalogError::InvalidRequest(format!(
                "the account {:?} is the only operator; make another account an operator first",
                account.name.as_str()
            ))),
            false => Ok(()),
        }
    }

    fn owned_organisations(&self, id: &AccountId) -> Vec<std::sync::Arc<Organisation>> {
        self.organisations().into_iter().filter(|it| it.owner == *id).collect()
    }

    fn require_no_property(&self, account: &Account) -> Result<(), CatalogError> {
        let buckets = self.bucket_names_of(&account.id).len();
        let organisations = self.owned_organisations(&account.id).len();
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
        for bucket in self.bucket_names_of(id) {
            self.require_no_locked_objects(&bucket)?;
        }
        for bucket in self.bucket_names_of(id) {
            removed += self.delete_bucket(&bucket, OnNonEmpty::DeleteToo)?.finish()?;
        }
        for organisation in self.owned_organisations(id) {
            self.delete_organisation(&organisation.id)?;
        }
        Ok(removed)
    }

    fn delete_api_keys_of(&self, id: &AccountId) -> Result<(), CatalogError> {
        let keys: Vec<ApiKeyId> = {
            let tables = self.tables();
            let own = tables.api_keys.values().map(|known| &known.api_key);
            own.filter(|it| it.account == *id).map(|it| it.id.clone()).collect()
        };
        for keys in keys.chunks(RECORDS_MAX) {
            let mut batch = Batch::new();
            for key in keys {
                batch = batch.delete_fact(key.fact()?).delete_fact(last_used::fact(key)?);
            }
            let entry = AuditRecord::new(AuditAction::KeyDelete).account(id);
            let entry = entry.detail(format!("keys of the deleted account: {}", keys.len()));
            self.0.store.commit(self.append_audit(batch, entry)?)?;
            self.publish(|tables| keys.iter().for_each(|key| drop(tables.api_keys.remove(key))));
        }
        Ok(())
    }

    fn leave_organisations(&self, id: &AccountId) -> Result<(), CatalogError> {
        for organisation in self.organisations() {
            let mut left = Organisation::clone(&organisation);
            let was_member = left.members.remove(id).is_some();
            if left.invited.remove(id).is_none() && !was_member {
                continue;
            }
            let entry =
                AuditRecord::new(AuditAction::MemberRemove).organisation(&left.id).account(id);
            let entry = entry.target(&left.id).detail(format!("account: {id}"));
            self.put_record(left.id.fact()?, &left.stored(), entry)?;
            self.show_organisation(left);
        }
        Ok(())
    }
}
