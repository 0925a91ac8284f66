//! Sessions, and the passwords and invitations that start them.
//!
//! Guarantees: an operation that ends sessions returns after they are ended in the store; a verified password starts no
//! session if it was changed in the meantime. Non-goals: hashing, which is slow and done by the caller.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::FactName;

use super::audit_entry::AuditRecord;
use super::change::{Change, Table, apply_record, check_total, set, split};
use super::id::{IdKind, OfSession};
use super::last_used::{HOUR_MS, LastUsed};
use super::record::{corrupt_record, decode};
use super::secret::{IssuedSecret, SecretHash};
use super::session::{ClientInfo, Session, SessionInfo, StartedSession};
use super::{
    Account, AccountId, AuditAction, CatalogError, FairUseStanding, Invitation, IssuedInvitation,
    PasswordHash, SessionId, Sessions, invitation, password,
};
use crate::limits::{INVITATION_LIFETIME, SESSIONS_BATCH, SESSIONS_PER_ACCOUNT_MAX, millis};

/// All sessions, passwords and invitations.
#[derive(Debug, Default)]
pub(super) struct SessionTable {
    sessions: BTreeMap<SessionId, Arc<Session>>,
    /// Sessions by the hash of their secret.
    by_secret: BTreeMap<SecretHash, SessionId>,
    passwords: BTreeMap<AccountId, Arc<PasswordHash>>,
    invitations: BTreeMap<AccountId, Arc<Invitation>>,
}

impl Table for SessionTable {
    const PREFIXES: &'static [&'static str] =
        &[password::PREFIX, invitation::PREFIX, OfSession::PREFIX];

    fn apply(&mut self, fact: &FactName, value: Option<&[u8]>) -> Result<(), CatalogError> {
        let (prefix, name) = split(fact);
        match (prefix, value) {
            (OfSession::PREFIX, Some(value)) => self.put_session(decode(fact, value)?),
            (OfSession::PREFIX, None) => {
                SessionId::parse(name).into_iter().for_each(|id| self.remove_session(&id));
            }
            (password::PREFIX, Some(value)) => {
                let stored: password::StoredPassword = decode(fact, value)?;
                let account = AccountId::read(name).map_err(|why| corrupt_record(fact, &why))?;
                set(&mut self.passwords, account, stored.hash);
            }
            (password::PREFIX, None) => {
                AccountId::parse(name).map(|account| self.passwords.remove(&account));
            }
            _ => apply_record(&mut self.invitations, fact, value)?,
        }
        Ok(())
    }
}

impl SessionTable {
    fn put_session(&mut self, session: Session) {
        if let Some(known) = self.sessions.get(&session.id)
            && **known == session
        {
            return known.last_use.advance_to(session.last_use.hour());
        }
        self.remove_session(&session.id);
        self.by_secret.insert(session.hash.clone(), session.id.clone());
        self.sessions.insert(session.id.clone(), Arc::new(session));
    }

    fn remove_session(&mut self, id: &SessionId) {
        if let Some(session) = self.sessions.remove(id) {
            self.by_secret.remove(&session.hash);
        }
    }

    fn of_account(&self, account: &AccountId) -> impl Iterator<Item = &Arc<Session>> {
        self.sessions.values().filter(|session| session.account == *account)
    }
}

/// Lookup of sessions.
impl Sessions<'_> {
    /// Returns the account with the name that was entered at sign-in, and its password hash. Ids are not accepted.
    pub fn find_account(&self, name: &str) -> Option<(Arc<Account>, Option<Arc<PasswordHash>>)> {
        let account = self.0.accounts().named(name)?;
        let hash = self.password_hash(&account.id);
        Some((account, hash))
    }

    /// Returns the password hash of an account, if it has a password.
    pub fn password_hash(&self, account: &AccountId) -> Option<Arc<PasswordHash>> {
        self.0.state.sessions.read().passwords.get(account).cloned()
    }

    /// Returns the valid session with a presented secret, and records its use.
    pub fn authenticate(&self, presented: &SecretHash) -> Option<Arc<Session>> {
        let now_ms = self.0.now_ms();
        let session = {
            let table = self.0.state.sessions.read();
            table.sessions.get(table.by_secret.get(presented)?)?.clone()
        };
        let seen_ms = session.last_use.hour().saturating_mul(HOUR_MS);
        if !session.hash.matches(presented) || now_ms >= session.ends_ms(seen_ms) {
            return None;
        }
        self.0.state.unwritten_sessions.record_use(&session.id, &session.last_use, now_ms);
        Some(session)
    }

    /// Returns the valid session with this id.
    pub fn get(&self, id: &SessionId) -> Option<SessionInfo> {
        let state = state_of(self.0.state.sessions.read().sessions.get(id)?);
        (self.0.now_ms() < state.ends_ms).then_some(state)
    }

    /// Returns the valid sessions of an account, the most recently used first.
    pub fn of_account(&self, account: &AccountId) -> Vec<SessionInfo> {
        let now_ms = self.0.now_ms();
        let table = self.0.state.sessions.read();
        let own = table.of_account(account).map(state_of);
        let mut own: Vec<_> = own.filter(|state| now_ms < state.ends_ms).collect();
        own.sort_by_key(|state| std::cmp::Reverse((state.last_seen_ms, state.session.created_ms)));
        own
    }

    /// Returns the invitation of a text, expired or not.
    pub fn invitation(&self, text: &str) -> Option<Arc<Invitation>> {
        let (account, hash) = invitation::parse(text)?;
        let found = self.0.state.sessions.read().invitations.get(&account).cloned();
        found.filter(|invitation| invitation.hash.matches(&hash))
    }
}

/// Start and end of sessions.
impl Sessions<'_> {
    /// Starts a session after the password was verified against this hash; ends the previous session of the same
    /// browser.
    pub fn sign_in(
        &self,
        account: &AccountId,
        checked: &Arc<PasswordHash>,
        visitor: ClientInfo,
        instead_of: Option<&SessionId>,
    ) -> Result<StartedSession, CatalogError> {
        let mut change = self.0.begin();
        let account = self.0.accounts().require(account)?;
        self.require_password(&account.id, checked)?;
        if let Some(id) = instead_of {
            change.delete(id.fact()?);
        }
        let started = self.add(&mut change, &account, visitor)?;
        let entry = AuditRecord::new(AuditAction::SessionBegin).account(&account.id);
        change.audit(entry.target(&started.session.id));
        change.commit()?;
        Ok(started)
    }

    /// Sets the password of an account. Ends all its sessions but one, and its invitation; returns the number of ended
    /// sessions. If a verified hash is given, it must still be the account's.
    pub fn set_password(
        &self,
        account: &AccountId,
        checked: Option<&Arc<PasswordHash>>,
        hash: PasswordHash,
        but: Option<&SessionId>,
    ) -> Result<usize, CatalogError> {
        let mut change = self.0.begin();
        self.0.accounts().require(account)?;
        checked.map_or(Ok(()), |checked| self.require_password(account, checked))?;
        let count = self.add_end_of_all(&mut change, account, but)?;
        self.add_password(&mut change, account, hash)?;
        let entry = AuditRecord::new(AuditAction::PasswordChange).account(account).target(account);
        change.audit(entry.detail(format!("sessions that end: {count}")));
        change.commit()?;
        Ok(count)
    }

    /// Checks that a verified password hash is still that of the account.
    fn require_password(
        &self,
        account: &AccountId,
        checked: &Arc<PasswordHash>,
    ) -> Result<(), CatalogError> {
        let is_current = |now: Arc<PasswordHash>| Arc::ptr_eq(&now, checked);
        let is_current = self.password_hash(account).is_some_and(is_current);
        is_current.then_some(()).ok_or(CatalogError::PasswordChanged)
    }

    /// Ends a session permanently. No effect on one that has ended.
    pub fn end(&self, id: &SessionId) -> Result<(), CatalogError> {
        let mut change = self.0.begin();
        let known = self.0.state.sessions.read().sessions.get(id).cloned();
        let Some(session) = known else { return Ok(()) };
        change
            .audit(AuditRecord::new(AuditAction::SessionEnd).account(&session.account).target(id));
        change.delete(id.fact()?);
        change.commit()
    }

    /// Ends all sessions of an account; returns their number.
    pub fn end_all(&self, account: &AccountId) -> Result<usize, CatalogError> {
        let mut change = self.0.begin();
        let count = self.add_end_of_all(&mut change, account, None)?;
        if count > 0 {
            let entry = AuditRecord::new(AuditAction::SessionEnd).account(account);
            change.audit(entry.detail(format!("all sessions of the account: {count}")));
            change.commit()?;
        }
        Ok(count)
    }

    /// Creates an invitation for an account, replacing an earlier one. Its text is only in the result.
    pub fn invite(&self, account: &AccountId) -> Result<IssuedInvitation, CatalogError> {
        let mut change = self.0.begin();
        let account = self.0.accounts().require(account)?;
        if account.standing == FairUseStanding::Suspended {
            return Err(CatalogError::Suspended);
        }
        let IssuedSecret { text, hash } = IssuedSecret::issue(&*self.0.state.rng);
        let expires_ms = self.0.now_ms().saturating_add(millis(INVITATION_LIFETIME));
        let id = account.id.clone();
        let invitation = Invitation { account: id.clone(), hash, expires_ms };
        change.audit(AuditRecord::new(AuditAction::AccountInvite).account(&id).target(&id));
        change.put(id.fact_at(invitation::PREFIX)?, &invitation)?;
        change.commit()?;
        Ok(IssuedInvitation { text: format!("{id}_{text}"), expires_ms })
    }

    /// Uses up an invitation: sets the password of its account, ends its sessions, and starts a new one.
    pub fn accept_invitation(
        &self,
        invitation: &Arc<Invitation>,
        hash: PasswordHash,
        visitor: ClientInfo,
    ) -> Result<StartedSession, CatalogError> {
        let mut change = self.0.begin();
        let id = &invitation.account;
        let account = self.0.accounts().require(id)?;
        let now = self.0.state.sessions.read().invitations.get(id).cloned();
        let is_live = self.0.now_ms() < invitation.expires_ms;
        if !is_live || !now.is_some_and(|now| Arc::ptr_eq(&now, invitation)) {
            return Err(CatalogError::LinkInvalid);
        }
        self.add_end_of_all(&mut change, id, None)?;
        self.add_password(&mut change, id, hash)?;
        let started = self.add(&mut change, &account, visitor)?;
        let entry = |action| AuditRecord::new(action).account(id);
        change.audit(entry(AuditAction::PasswordChange).target(id).detail("by invitation"));
        change.audit(entry(AuditAction::SessionBegin).target(&started.session.id));
        change.commit()?;
        Ok(started)
    }
}

/// Parts of changes.
impl Sessions<'_> {
    /// Adds a new session of an account. At the limit of sessions the least recently used one ends.
    pub(super) fn add(
        &self,
        change: &mut Change<'_>,
        account: &Account,
        visitor: ClientInfo,
    ) -> Result<StartedSession, CatalogError> {
        if account.standing == FairUseStanding::Suspended {
            return Err(CatalogError::Suspended);
        }
        let crowded_out = {
            let table = self.0.state.sessions.read();
            let mut own: Vec<_> =
                table.of_account(&account.id).map(|it| (it, it.id.fact())).collect();
            let is_ended = |fact: &FactName| change.deleted().any(|it| it == fact);
            own.retain(|(_, fact)| !fact.as_ref().is_ok_and(is_ended));
            let has_ended = change.deleted().any(|it| split(it).0 == OfSession::PREFIX);
            own.sort_by_key(|(it, _)| (it.last_use.hour(), it.created_ms));
            let over = (own.len() + 1).saturating_sub(SESSIONS_PER_ACCOUNT_MAX);
            if over == 0 && !has_ended {
                check_total(table.sessions.len(), "sessions")?;
            }
            own.into_iter().take(over).map(|(_, fact)| fact).collect::<Result<Vec<_>, _>>()?
        };
        crowded_out.into_iter().for_each(|fact| change.delete(fact));
        let IssuedSecret { text: secret, hash } = IssuedSecret::issue(&*self.0.state.rng);
        let created_ms = self.0.now_ms();
        let id = SessionId::issue(&*self.0.state.rng);
        let (account, last_use) = (account.id.clone(), LastUsed::at(created_ms / HOUR_MS));
        let session = Session { id, account, hash, created_ms, last_use, visitor };
        change.put(session.id.fact()?, &session)?;
        Ok(StartedSession { session, secret })
    }

    /// Adds the end of an account's sessions, except one; returns the number of ended sessions.
    pub(super) fn add_end_of_all(
        &self,
        change: &mut Change<'_>,
        account: &AccountId,
        but: Option<&SessionId>,
    ) -> Result<usize, CatalogError> {
        let table = self.0.state.sessions.read();
        let own = table.of_account(account).map(|session| &session.id);
        let mut count = 0;
        for id in own.filter(|id| Some(*id) != but) {
            change.delete(id.fact()?);
            count += 1;
        }
        Ok(count)
    }

    /// Adds a new password, and the end of the invitation of the account.
    pub(super) fn add_password(
        &self,
        change: &mut Change<'_>,
        account: &AccountId,
        hash: PasswordHash,
    ) -> Result<(), CatalogError> {
        let stored = password::StoredPassword { hash, changed_ms: self.0.now_ms() };
        change.put(account.fact_at(password::PREFIX)?, &stored)?;
        change.delete(account.fact_at(invitation::PREFIX)?);
        Ok(())
    }
}

/// Periodic maintenance.
impl Sessions<'_> {
    /// Persists the last-used times of sessions. Failed writes are retried the next time.
    pub fn write_uses(&self) -> Result<(), CatalogError> {
        // Otherwise a session that ends concurrently would be stored again.
        let mut change = self.0.begin();
        self.0.state.unwritten_sessions.write_batches(
            SESSIONS_BATCH,
            |ids: &BTreeSet<SessionId>| {
                for id in ids {
                    let known = self.0.state.sessions.read().sessions.get(id).cloned();
                    let Some(session) = known else { continue };
                    change.put(session.id.fact()?, &*session)?;
                }
                change.commit_any()
            },
        )
    }

    /// Deletes expired sessions and invitations; returns their number.
    pub fn sweep(&self) -> Result<usize, CatalogError> {
        let mut swept = 0;
        loop {
            let mut change = self.0.begin();
            let now_ms = self.0.now_ms();
            let facts = {
                let table = self.0.state.sessions.read();
                let over = table.sessions.values().map(state_of);
                let over = over.filter(|state| now_ms >= state.ends_ms);
                let sessions = over.map(|state| state.session.id.fact());
                let over = table.invitations.values().filter(|it| now_ms >= it.expires_ms);
                let invitations = over.map(|it| it.account.fact_at(invitation::PREFIX));
                sessions.chain(invitations).take(SESSIONS_BATCH).collect::<Result<Vec<_>, _>>()?
            };
            if facts.is_empty() {
                return Ok(swept);
            }
            swept += facts.len();
            facts.into_iter().for_each(|fact| change.delete(fact));
            change.commit()?;
        }
    }
}

fn state_of(session: &Arc<Session>) -> SessionInfo {
    let last_seen_ms = session.last_use.hour().saturating_mul(HOUR_MS).max(session.created_ms);
    let ends_ms = session.ends_ms(last_seen_ms);
    SessionInfo { session: session.clone(), last_seen_ms, ends_ms }
}
