//! Creation and editing of accounts.

use std::sync::Arc;

use super::super::audit_entry::AuditRecord;
use super::super::{
    Account, AccountId, AccountName, AuditAction, Catalog, CatalogError, ChangedBy,
    FairUseStanding, Plan, Role,
};
use super::{QuotaChange, check_total};

/// Parameters of a new account.
pub struct NewAccount {
    pub name: AccountName,
    pub settings: AccountChange,
}

/// Change of an account; `None` leaves a field unchanged.
#[derive(Default)]
pub struct AccountChange {
    pub name: Option<AccountName>,
    pub role: Option<Role>,
    pub plan: Option<Plan>,
    pub standing: Option<FairUseStanding>,
    pub quota: QuotaChange,
}

impl Catalog {
    /// Creates an account.
    pub fn create_account(&self, new: NewAccount) -> Result<Arc<Account>, CatalogError> {
        let _changing = self.change();
        self.require_free_name(&new.name, None)?;
        check_total(self.tables().accounts.len(), "accounts")?;
        let (id, now_ms) = (AccountId::issue(&*self.0.rng), self.0.clock.unix_ms());
        let is_first = self.tables().accounts.is_empty();
        let mut account = Account::with_defaults(id, new.name, now_ms);
        account.role = if is_first { Role::Operator } else { Role::User };
        new.settings.apply(&mut account);
        let entry =
            AuditRecord::new(AuditAction::AccountCreate).account(&account.id).target(&account.id);
        let entry = entry.detail(format!("name: {}", account.name.as_str()));
        self.add_record(account.id.fact()?, &account.stored(), entry)?;
        let account = Arc::new(account);
        self.publish(|tables| tables.accounts.insert(account.id.clone(), account.clone()));
        Ok(account)
    }

    /// Edits an account.
    pub fn edit_account(
        &self,
        id: &AccountId,
        change: AccountChange,
    ) -> Result<Arc<Account>, CatalogError> {
        let _changing = self.change();
        let mut account = Account::clone(&*self.require_account(id)?);
        if let Some(name) = &change.name {
            self.require_free_name(name, Some(id))?;
        }
        let before = account.clone();
        change.apply(&mut account);
        self.put_account(account, &before, ChangedBy::Operator, "set by the operator")
    }

    fn require_free_name(
        &self,
        name: &AccountName,
        besides: Option<&AccountId>,
    ) -> Result<(), CatalogError> {
        match self.account_by_name_or_id(name.as_str()) {
            Some(other) if Some(&other.id) != besides => {
                Err(CatalogError::AlreadyExists(format!("the account {:?}", name.as_str())))
            }
            _ => Ok(()),
        }
    }
}

impl AccountChange {
    fn apply(self, account: &mut Account) {
        if let Some(name) = self.name {
            account.name = name;
        }
        account.role = self.role.unwrap_or(account.role);
        account.plan = self.plan.unwrap_or(account.plan);
        account.standing = self.standing.unwrap_or(account.standing);
        self.quota.apply(&mut account.quota);
    }
}
