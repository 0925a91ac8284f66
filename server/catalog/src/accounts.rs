//! Accounts: lookup, creation and editing, and changes of their standing.
//!
//! Guarantees: a standing never changes without an entry that states the reason; a suspension ends the account's
//! sessions. Non-goals: the reasons for a change of a standing.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::FactName;
use unicode_normalization::UnicodeNormalization;

use super::audit_entry::{AuditRecord, changed_settings};
use super::change::{Change, Table, apply_record, check_total, split};
use super::id::{IdKind, OfAccount};
use super::{
    Account, AccountId, AccountName, Accounts, AuditAction, CatalogError, ChangedBy,
    FairUseStanding, Plan, QuotaChange, Role, StandingChange, StandingHistory, invitation,
    standing_history,
};

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

/// All accounts, and the histories of their standings.
#[derive(Debug, Default)]
pub(super) struct AccountTable {
    accounts: BTreeMap<AccountId, Arc<Account>>,
    standings: BTreeMap<AccountId, Arc<StandingHistory>>,
}

impl Table for AccountTable {
    const PREFIXES: &'static [&'static str] = &[OfAccount::PREFIX, standing_history::PREFIX];

    fn apply(&mut self, fact: &FactName, value: Option<&[u8]>) -> Result<(), CatalogError> {
        match split(fact).0 {
            OfAccount::PREFIX => apply_record(&mut self.accounts, fact, value),
            _ => apply_record(&mut self.standings, fact, value),
        }
    }
}

/// Lookup.
impl Accounts<'_> {
    /// Returns the account with this id.
    pub fn get(&self, id: &AccountId) -> Option<Arc<Account>> {
        self.0.state.accounts.read().accounts.get(id).cloned()
    }

    /// Returns the account with this name or id.
    pub fn find(&self, name_or_id: &str) -> Option<Arc<Account>> {
        let by_id = AccountId::parse(name_or_id).and_then(|id| self.get(&id));
        let by_name = || {
            let table = self.0.state.accounts.read();
            table.accounts.values().find(|account| account.name.as_str() == name_or_id).cloned()
        };
        by_id.or_else(by_name)
    }

    /// Returns the account with the name that was entered at sign-in. Ids are not accepted.
    pub(super) fn named(&self, name: &str) -> Option<Arc<Account>> {
        let name: String = name.trim().nfc().collect();
        let is_called = |account: &Account| {
            let known = account.name.as_str();
            known == name || (!known.is_ascii() && known.nfc().eq(name.chars()))
        };
        // Scans all accounts, so that the timing does not reveal whether the name exists.
        let table = self.0.state.accounts.read();
        let mut found = None;
        for account in table.accounts.values() {
            found = if is_called(account) { Some(account) } else { found };
        }
        found.cloned()
    }

    /// Returns every account, by id.
    pub fn all(&self) -> Vec<Arc<Account>> {
        self.0.state.accounts.read().accounts.values().cloned().collect()
    }

    /// Returns the accounts with the role of an operator, by id.
    pub(super) fn operators(&self) -> Vec<Arc<Account>> {
        let table = self.0.state.accounts.read();
        table.accounts.values().filter(|it| it.role == Role::Operator).cloned().collect()
    }

    /// Returns the history of an account's standing; `None` if it was good from the start.
    pub fn standing_history(&self, id: &AccountId) -> Option<Arc<StandingHistory>> {
        self.0.state.accounts.read().standings.get(id).cloned()
    }

    pub(super) fn require(&self, id: &AccountId) -> Result<Arc<Account>, CatalogError> {
        self.get(id).ok_or_else(|| CatalogError::NotFound(format!("the account {id}")))
    }
}

/// Changes.
impl Accounts<'_> {
    /// Creates an account.
    pub fn create(&self, new: NewAccount) -> Result<Arc<Account>, CatalogError> {
        let mut change = self.0.begin();
        self.require_free_name(&new.name, None)?;
        let count = self.0.state.accounts.read().accounts.len();
        check_total(count, "accounts")?;
        let (id, now_ms) = (AccountId::issue(&*self.0.state.rng), self.0.now_ms());
        let mut account = Account::with_defaults(id, new.name, now_ms);
        account.role = if count == 0 { Role::Operator } else { Role::User };
        new.settings.apply(&mut account);
        let entry =
            AuditRecord::new(AuditAction::AccountCreate).account(&account.id).target(&account.id);
        change.audit(entry.detail(format!("name: {}", account.name.as_str())));
        change.add(account.id.fact()?, &account)?;
        change.commit()?;
        self.require(&account.id)
    }

    /// Edits an account.
    pub fn edit(
        &self,
        id: &AccountId,
        settings: AccountChange,
    ) -> Result<Arc<Account>, CatalogError> {
        let change = self.0.begin();
        let before = self.require(id)?;
        if let Some(name) = &settings.name {
            self.require_free_name(name, Some(id))?;
        }
        let mut account = Account::clone(&before);
        settings.apply(&mut account);
        self.put_account(change, account, &before, ChangedBy::Operator, "set by the operator")
    }

    /// Escalates the standing of an account on the plan Free. `None` if its standing or plan changed in the meantime.
    pub fn advance_standing(
        &self,
        id: &AccountId,
        from: FairUseStanding,
        to: FairUseStanding,
        reason: &str,
    ) -> Result<Option<Arc<Account>>, CatalogError> {
        let change = self.0.begin();
        let before = self.require(id)?;
        if before.standing != from || before.plan != Plan::Free {
            return Ok(None);
        }
        let account = Account { standing: to, ..Account::clone(&before) };
        self.put_account(change, account, &before, ChangedBy::Sweep, reason).map(Some)
    }

    /// Commits a changed account, with an entry in the history if its standing changed.
    fn put_account(
        &self,
        mut change: Change<'_>,
        account: Account,
        was: &Account,
        by: ChangedBy,
        reason: &str,
    ) -> Result<Arc<Account>, CatalogError> {
        let (id, to, before) = (&account.id, account.standing, was.standing);
        let mut detail = changed_settings(was, &account, &[]);
        change.put(id.fact()?, &account)?;
        if to != before {
            detail = format!("{detail} ({reason})");
            let at_ms = self.0.now_ms();
            let step = StandingChange { at_ms, from: before, to, reason: reason.to_owned(), by };
            let history = self.standing_history(id).unwrap_or_default().with(step);
            change.put(id.fact_at(standing_history::PREFIX)?, &history)?;
        }
        if to == FairUseStanding::Suspended {
            // A suspension requires a new sign-in and new invitations afterwards.
            self.0.sessions().add_end_of_all(&mut change, id, None)?;
            change.delete(id.fact_at(invitation::PREFIX)?);
        }
        let entry = AuditRecord::new(AuditAction::AccountChange).account(id).target(id);
        change.audit(entry.detail(detail));
        change.commit()?;
        if to != before {
            tracing::warn!(
                account = %account.id,
                from = before.as_str(),
                to = to.as_str(),
                by = by.as_str(),
                "account standing changed: {reason}"
            );
        }
        self.require(&account.id)
    }

    fn require_free_name(
        &self,
        name: &AccountName,
        besides: Option<&AccountId>,
    ) -> Result<(), CatalogError> {
        match self.find(name.as_str()) {
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
