//! History of an account's standing: time, reason and author of each change.
//!
//! The standing itself is in the account's record; the history is a separate record, written in the same batch.
//! Guarantees: a standing never changes without an entry that states the reason; a suspension ends the account's
//! sessions. Non-goals: the reasons for a change.

use std::sync::Arc;

use bytes::Bytes;
use engine::name::NameError;
use engine::{Batch, FactName};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::audit_entry::{AuditAction, AuditRecord, changed_settings};
use super::changes::SessionChanges;
use super::record::{CatalogRecord, encode};
use super::{Account, AccountId, Catalog, CatalogError, FairUseStanding, Plan, invitation};
use crate::limits::STANDING_CHANGES_MAX;

/// Prefix of the fact names of these records.
pub(super) const PREFIX: &str = "standing/";

/// Changes of an account's standing, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StandingHistory {
    pub changes: Vec<StandingChange>,
}

/// Change of a standing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StandingChange {
    pub at_ms: u64,
    pub from: FairUseStanding,
    pub to: FairUseStanding,
    /// Sentence for the account's owner.
    pub reason: String,
    pub by: ChangedBy,
}

/// Originator of a standing change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangedBy {
    Sweep,
    Operator,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredStanding {
    changes: Vec<StandingChange>,
}

impl CatalogRecord for StoredStanding {
    const VERSION: u32 = 1;
}

impl StandingHistory {
    /// Returns the change that led to the current standing.
    pub fn latest(&self) -> Option<&StandingChange> {
        self.changes.last()
    }

    pub(super) fn from_stored(stored: StoredStanding) -> Self {
        Self { changes: stored.changes }
    }

    /// Returns the history with one more change.
    fn with(&self, change: StandingChange) -> Self {
        let kept = self.changes.len().saturating_sub(STANDING_CHANGES_MAX - 1);
        let changes = self.changes.iter().skip(kept).cloned().chain([change]).collect();
        Self { changes }
    }
}

impl Catalog {
    /// Returns the history of an account's standing; `None` if it was good from the start.
    pub fn standing_history(&self, id: &AccountId) -> Option<Arc<StandingHistory>> {
        self.tables().standings.get(id).cloned()
    }

    /// Escalates the standing of an account on the plan Free. `None` if its standing or plan changed in the meantime.
    pub fn advance_standing(
        &self,
        id: &AccountId,
        from: FairUseStanding,
        to: FairUseStanding,
        reason: &str,
    ) -> Result<Option<Arc<Account>>, CatalogError> {
        let _changing = self.change();
        let mut account = Account::clone(&*self.require_account(id)?);
        if account.standing != from || account.plan != Plan::Free {
            return Ok(None);
        }
        let before = account.clone();
        account.standing = to;
        self.put_account(account, &before, ChangedBy::Sweep, reason).map(Some)
    }

    /// Stores a changed account, with an entry in the history if its standing changed.
    pub(super) fn put_account(
        &self,
        account: Account,
        was: &Account,
        by: ChangedBy,
        reason: &str,
    ) -> Result<Arc<Account>, CatalogError> {
        let (id, to, before) = (account.id.clone(), account.standing, was.standing);
        let mut detail = changed_settings(&was.stored(), &account.stored(), &[]);
        if to != before {
            detail = format!("{detail} ({reason})");
        }
        let entry =
            AuditRecord::new(AuditAction::AccountChange).account(&id).target(&id).detail(detail);
        let fact = id.fact()?;
        let mut batch = Batch::new().put_fact(fact.clone(), encode(&fact, &account.stored())?);
        let mut history = None;
        if to != before {
            let at_ms = self.0.clock.unix_ms();
            let change = StandingChange { at_ms, from: before, to, reason: reason.to_owned(), by };
            let known = self.standing_history(&id).unwrap_or_default().with(change);
            let (fact, bytes) = stored(&id, &known)?;
            batch = batch.put_fact(fact, bytes);
            history = Some(Arc::new(known));
        }
        let mut sessions = SessionChanges::default();
        if to == FairUseStanding::Suspended {
            // A suspension requires a new sign-in and new invitations afterwards.
            (batch, sessions.ended) = self.end_sessions_in_batch(batch, &id, None)?;
            batch = batch.delete_fact(invitation::fact(&id)?);
        }
        self.0.store.commit(self.append_audit(batch, entry)?)?;
        let account = Arc::new(account);
        self.publish(|tables| {
            sessions.publish(tables);
            if to == FairUseStanding::Suspended {
                tables.invitations.remove(&id);
            }
            tables.accounts.insert(id.clone(), account.clone());
            if let Some(history) = history {
                tables.standings.insert(id, history);
            }
        });
        if to != before {
            tracing::warn!(
                account = %account.id,
                from = before.as_str(),
                to = to.as_str(),
                by = by.as_str(),
                "account standing changed: {reason}"
            );
        }
        Ok(account)
    }
}

impl ChangedBy {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sweep => "sweep",
            Self::Operator => "operator",
        }
    }
}

impl FairUseStanding {
    /// Returns the name of the standing, as in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Notified => "notified",
            Self::UpgradeRequested => "upgrade_requested",
            Self::Throttled => "throttled",
            Self::Suspended => "suspended",
        }
    }
}

fn stored(id: &AccountId, history: &StandingHistory) -> Result<(FactName, Bytes), CatalogError> {
    let fact = fact(id)?;
    let bytes = encode(&fact, &StoredStanding { changes: history.changes.clone() })?;
    Ok((fact, bytes))
}

pub(super) fn fact(id: &AccountId) -> Result<FactName, NameError> {
    FactName::parse(&format!("{PREFIX}{id}"))
}
