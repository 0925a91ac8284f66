//! Sessions, and the passwords and invitations that start them.
//!
//! Guarantees: an operation that ends sessions returns after they are ended in the store; a verified password starts no
//! session if it was changed in the meantime. Non-goals: hashing, which is slow and done by the caller.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::Batch;
use unicode_normalization::UnicodeNormalization;

use super::super::audit_entry::AuditRecord;
use super::super::last_used::{HOUR_MS, LastUsed};
use super::super::record::encode;
use super::super::secret::{IssuedSecret, SecretHash};
use super::super::session::{ClientInfo, Session, SessionInfo, StartedSession};
use super::super::{
    Account, AccountId, AuditAction, Catalog, CatalogError, FairUseStanding, Invitation,
    IssuedInvitation, PasswordHash, SessionId, Tables, invitation, password,
};
use super::check_total;
use crate::limits::{INVITATION_LIFETIME, SESSIONS_BATCH, SESSIONS_PER_ACCOUNT_MAX};

/// Changes of sessions in a batch, published when it is durable.
#[derive(Default)]
pub(in super::super) struct SessionChanges {
    pub(in super::super) ended: Vec<SessionId>,
    pub(super) started: Option<(Arc<Session>, u64)>,
}

impl SessionChanges {
    pub(in super::super) fn publish(self, tables: &mut Tables) {
        for id in &self.ended {
            tables.remove_session(id);
        }
        if let Some((session, hour)) = self.started {
            tables.insert_session(session, LastUsed::at(hour));
        }
    }
}

/// Lookup of sessions.
impl Catalog {
    /// Returns the account with the name that was entered at sign-in, and its password hash. Ids are not accepted.
    pub fn account_by_sign_in_name(
        &self,
        name: &str,
    ) -> Option<(Arc<Account>, Option<Arc<PasswordHash>>)> {
        let name: String = name.trim().nfc().collect();
        let is_called = |account: &Account| {
            let known = account.name.as_str();
            known == name || (!known.is_ascii() && known.nfc().eq(name.chars()))
        };
        let tables = self.tables();
        let mut found = None;
        // Scans all accounts, so that the timing does not reveal whether the name exists.
        for account in tables.accounts.values() {
            if is_called(account) {
                found = Some(account);
            }
        }
        let account = found?;
        Some((account.clone(), tables.passwords.get(&account.id).cloned()))
    }

    /// Returns the password hash of an account, if it has a password.
    pub fn password_hash_of(&self, account: &AccountId) -> Option<Arc<PasswordHash>> {
        self.tables().passwords.get(account).cloned()
    }

    /// Returns the valid session with a presented secret, and records its use.
    pub fn find_session_by_secret(&self, presented: &SecretHash) -> Option<Arc<Session>> {
        let now_ms = self.0.clock.unix_ms();
        let (session, last_use) = {
            let tables = self.tables();
            let known = tables.sessions.get(tables.session_secrets.get(presented)?)?;
            (known.session.clone(), known.last_use.clone())
        };
        let seen_ms = last_use.hour().saturating_mul(HOUR_MS);
        if !session.hash.matches(presented) || now_ms >= session.ends_ms(seen_ms) {
            return None;
        }
        self.0.unwritten_sessions.record_use(&session.id, &last_use, now_ms);
        Some(session)
    }

    /// Returns the valid session with this id.
    pub fn session(&self, id: &SessionId) -> Option<SessionInfo> {
        let state = state_of(self.tables().sessions.get(id)?);
        (self.0.clock.unix_ms() < state.ends_ms).then_some(state)
    }

    /// Returns the valid sessions of an account, the most recently used first.
    pub fn sessions_of(&self, account: &AccountId) -> Vec<SessionInfo> {
        let now_ms = self.0.clock.unix_ms();
        let tables = self.tables();
        let own = tables.sessions.values().filter(|known| known.session.account == *account);
        let mut own: Vec<_> = own.map(state_of).filter(|state| now_ms < state.ends_ms).collect();
        own.sort_by_key(|state| std::cmp::Reverse((state.last_seen_ms, state.session.created_ms)));
        own
    }

    /// Returns the invitation of a text, expired or not.
    pub fn invitation(&self, text: &str) -> Option<Arc<Invitation>> {
        let (account, hash) = invitation::parse(text)?;
        let found = self.tables().invitations.get(&account).cloned();
        found.filter(|invitation| invitation.hash.matches(&hash))
    }
}

/// Start and end of sessions.
impl Catalog {
    /// Starts a session after the password was verified against this hash; ends the previous session of the same
    /// browser.
    pub fn sign_in(
        &self,
        account: &AccountId,
        checked: &Arc<PasswordHash>,
        visitor: ClientInfo,
        instead_of: Option<&SessionId>,
    ) -> Result<StartedSession, CatalogError> {
        let _changing = self.change();
        let account = self.require_account(account)?;
        if !self.password_hash_of(&account.id).is_some_and(|now| Arc::ptr_eq(&now, checked)) {
            return Err(CatalogError::PasswordChanged);
        }
        let mut batch = Batch::new();
        let mut changes = SessionChanges::default();
        if let Some(id) = instead_of {
            batch = batch.delete_fact(id.fact()?);
            changes.ended.push(id.clone());
        }
        let (batch, started) = self.add_session_to_batch(batch, &account, visitor, &mut changes)?;
        let entry = AuditRecord::new(AuditAction::SessionBegin).account(&account.id);
        let batch = self.append_audit(batch, entry.target(&started.session.id))?;
        self.0.store.commit(batch)?;
        self.publish(|tables| changes.publish(tables));
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
        let _changing = self.change();
        self.require_account(account)?;
        if let Some(checked) = checked
            && !self.password_hash_of(account).is_some_and(|now| Arc::ptr_eq(&now, checked))
        {
            return Err(CatalogError::PasswordChanged);
        }
        let (batch, ended) = self.end_sessions_in_batch(Batch::new(), account, but)?;
        let batch = self.add_password_to_batch(batch, account, &hash)?;
        let batch = batch.delete_fact(invitation::fact(account)?);
        let count = ended.len();
        let entry = AuditRecord::new(AuditAction::PasswordChange).account(account).target(account);
        let entry = entry.detail(format!("sessions that end: {count}"));
        self.0.store.commit(self.append_audit(batch, entry)?)?;
        let changes = SessionChanges { ended, started: None };
        self.publish(|tables| {
            changes.publish(tables);
            tables.passwords.insert(account.clone(), Arc::new(hash));
            tables.invitations.remove(account);
        });
        Ok(count)
    }

    /// Ends a session permanently. No effect on one that has ended.
    pub fn end_session(&self, id: &SessionId) -> Result<(), CatalogError> {
        let _changing = self.change();
        let known = self.tables().sessions.get(id).map(|known| known.session.account.clone());
        let Some(account) = known else { return Ok(()) };
        let entry = AuditRecord::new(AuditAction::SessionEnd).account(&account).target(id);
        self.0.store.commit(self.append_audit(Batch::new().delete_fact(id.fact()?), entry)?)?;
        self.publish(|tables| tables.remove_session(id));
        Ok(())
    }

    /// Ends all sessions of an account; returns their number.
    pub fn end_sessions_of(&self, account: &AccountId) -> Result<usize, CatalogError> {
        let _changing = self.change();
        let (batch, ended) = self.end_sessions_in_batch(Batch::new(), account, None)?;
        if ended.is_empty() {
            return Ok(0);
        }
        let count = ended.len();
        let entry = AuditRecord::new(AuditAction::SessionEnd).account(account);
        let entry = entry.detail(format!("all sessions of the account: {count}"));
        self.0.store.commit(self.append_audit(batch, entry)?)?;
        self.publish(|tables| SessionChanges { ended, started: None }.publish(tables));
        Ok(count)
    }

    /// Creates an invitation for an account, replacing an earlier one. Its text is only in the result.
    pub fn invite(&self, account: &AccountId) -> Result<IssuedInvitation, CatalogError> {
        let _changing = self.change();
        let account = self.require_account(account)?;
        if account.standing == FairUseStanding::Suspended {
            return Err(CatalogError::Suspended);
        }
        let IssuedSecret { text, hash } = IssuedSecret::issue(&*self.0.rng);
        let life_ms = u64::try_from(INVITATION_LIFETIME.as_millis()).unwrap_or(u64::MAX);
        let expires_ms = self.0.clock.unix_ms().saturating_add(life_ms);
        let id = account.id.clone();
        let invitation = Invitation { account: id.clone(), hash, expires_ms };
        let entry = AuditRecord::new(AuditAction::AccountInvite).account(&id).target(&id);
        self.put_record(invitation::fact(&id)?, &invitation.stored(), entry)?;
        self.publish(|tables| tables.invitations.insert(id.clone(), Arc::new(invitation)));
        Ok(IssuedInvitation { text: format!("{id}_{text}"), expires_ms })
    }

    /// Uses up an invitation: sets the password of its account, ends its sessions, and starts a new one.
    pub fn accept_invitation(
        &self,
        invitation: &Arc<Invitation>,
        hash: PasswordHash,
        visitor: ClientInfo,
    ) -> Result<StartedSession, CatalogError> {
        let _changing = self.change();
        let id = &invitation.account;
        let account = self.require_account(id)?;
        let now = self.tables().invitations.get(id).cloned();
        let is_live = self.0.clock.unix_ms() < invitation.expires_ms;
        if !is_live || !now.is_some_and(|now| Arc::ptr_eq(&now, invitation)) {
            return Err(CatalogError::LinkInvalid);
        }
        let (batch, ended) = self.end_sessions_in_batch(Batch::new(), id, None)?;
        let batch = self.add_password_to_batch(batch, id, &hash)?;
        let batch = batch.delete_fact(invitation::fact(id)?);
        let mut changes = SessionChanges { ended, started: None };
        let (batch, started) = self.add_session_to_batch(batch, &account, visitor, &mut changes)?;
        let entry = |action| AuditRecord::new(action).account(id);
        let password = entry(AuditAction::PasswordChange).target(id).detail("by invitation");
        let batch = self.append_audit(batch, password)?;
        let begun = entry(AuditAction::SessionBegin).target(&started.session.id);
        self.0.store.commit(self.append_audit(batch, begun)?)?;
        self.publish(|tables| {
            changes.publish(tables);
            tables.passwords.insert(id.clone(), Arc::new(hash));
            tables.invitations.remove(id);
        });
        Ok(started)
    }
}

/// Parts of the batches of other changes.
impl Catalog {
    /// Adds a new session of an account to a batch. At the limit of sessions the least recently used one ends.
    pub(in super::super) fn add_session_to_batch(
        &self,
        mut batch: Batch,
        account: &Account,
        visitor: ClientInfo,
        changes: &mut SessionChanges,
    ) -> Result<(Batch, StartedSession), CatalogError> {
        if account.standing == FairUseStanding::Suspended {
            return Err(CatalogError::Suspended);
        }
        let crowded_out = {
            let tables = self.tables();
            let own = tables.sessions.values().filter(|known| known.session.account == account.id);
            let mut own: Vec<_> =
                own.filter(|known| !changes.ended.contains(&known.session.id)).collect();
            own.sort_by_key(|known| (known.last_use.hour(), known.session.created_ms));
            let over = (own.len() + 1).saturating_sub(SESSIONS_PER_ACCOUNT_MAX);
            if over == 0 && changes.ended.is_empty() {
                check_total(tables.sessions.len(), "sessions")?;
            }
            own.iter().take(over).map(|known| known.session.id.clone()).collect::<Vec<_>>()
        };
        for id in crowded_out {
            batch = batch.delete_fact(id.fact()?);
            changes.ended.push(id);
        }
        let IssuedSecret { text: secret, hash } = IssuedSecret::issue(&*self.0.rng);
        let created_ms = self.0.clock.unix_ms();
        let id = SessionId::issue(&*self.0.rng);
        let session = Session { id, account: account.id.clone(), hash, created_ms, visitor };
        let (fact, hour) = (session.fact()?, created_ms / HOUR_MS);
        let batch = batch.put_fact(fact.clone(), encode(&fact, &session.stored(hour))?);
        changes.started = Some((Arc::new(session.clone()), hour));
        Ok((batch, StartedSession { session, secret }))
    }

    /// Adds the end of an account's sessions, except one, to a batch; returns the ended sessions.
    pub(in super::super) fn end_sessions_in_batch(
        &self,
        mut batch: Batch,
        account: &AccountId,
        but: Option<&SessionId>,
    ) -> Result<(Batch, Vec<SessionId>), CatalogError> {
        let ended: Vec<SessionId> = {
            let tables = self.tables();
            let own = tables.sessions.values().map(|known| &known.session);
            let own = own.filter(|it| it.account == *account && Some(&it.id) != but);
            own.map(|session| session.id.clone()).collect()
        };
        for id in &ended {
            batch = batch.delete_fact(id.fact()?);
        }
        Ok((batch, ended))
    }

    /// Adds a password to a batch.
    pub(in super::super) fn add_password_to_batch(
        &self,
        batch: Batch,
        account: &AccountId,
        hash: &PasswordHash,
    ) -> Result<Batch, CatalogError> {
        let fact = password::fact(account)?;
        let changed_ms = self.0.clock.unix_ms();
        let stored = password::StoredPassword { hash: hash.clone(), changed_ms };
        let stored = encode(&fact, &stored)?;
        Ok(batch.put_fact(fact, stored))
    }
}

/// Periodic maintenance.
impl Catalog {
    /// Persists the last-used times of sessions. Failed writes are retried the next time.
    pub fn write_session_uses(&self) -> Result<(), CatalogError> {
        // Otherwise a session that ends concurrently would be stored again.
        let _changing = self.change();
        self.0.unwritten_sessions.write_batches(SESSIONS_BATCH, |ids| self.write_session_batch(ids))
    }

    fn write_session_batch(&self, ids: &BTreeSet<SessionId>) -> Result<(), CatalogError> {
        let mut batch = Batch::new();
        for id in ids {
            let known = {
                let tables = self.tables();
                tables.sessions.get(id).map(|it| (it.session.clone(), it.last_use.hour()))
            };
            let Some((session, hour)) = known else { continue };
            let fact = session.fact()?;
            batch = batch.put_fact(fact.clone(), encode(&fact, &session.stored(hour))?);
        }
        if !batch.is_empty() {
            self.0.store.commit(batch)?;
        }
        Ok(())
    }

    /// Deletes expired sessions and invitations; returns their number.
    pub fn sweep_sessions(&self) -> Result<usize, CatalogError> {
        let mut swept = 0;
        loop {
            let _changing = self.change();
            let now_ms = self.0.clock.unix_ms();
            let (sessions, invitations) = {
                let tables = self.tables();
                let over = tables.sessions.values().map(state_of);
                let over = over.filter(|state| now_ms >= state.ends_ms);
                let sessions = over.map(|state| state.session.id.clone());
                let sessions: Vec<_> = sessions.take(SESSIONS_BATCH).collect();
                let over = tables.invitations.values().filter(|it| now_ms >= it.expires_ms);
                let room = SESSIONS_BATCH - sessions.len();
                let invitations = over.map(|it| it.account.clone());
                (sessions, invitations.take(room).collect::<Vec<_>>())
            };
            let count = sessions.len() + invitations.len();
            if count == 0 {
                return Ok(swept);
            }
            let mut batch = Batch::new();
            for id in &sessions {
                batch = batch.delete_fact(id.fact()?);
            }
            for account in &invitations {
                batch = batch.delete_fact(invitation::fact(account)?);
            }
            self.0.store.commit(batch)?;
            self.publish(|tables| {
                SessionChanges { ended: sessions, started: None }.publish(tables);
                invitations.iter().for_each(|it| drop(tables.invitations.remove(it)));
            });
            swept += count;
        }
    }
}

fn state_of(known: &super::super::CachedSession) -> SessionInfo {
    let seen_ms = known.last_use.hour().saturating_mul(HOUR_MS).max(known.session.created_ms);
    let ends_ms = known.session.ends_ms(seen_ms);
    SessionInfo { session: known.session.clone(), last_seen_ms: seen_ms, ends_ms }
}
