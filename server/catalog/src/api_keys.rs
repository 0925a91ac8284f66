//! API keys: lookup, creation and revocation, last-used times, and S3 secrets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::FactName;

use super::audit_entry::AuditRecord;
use super::change::{Change, Table, check_count, check_total, set, split};
use super::id::{IdKind, OfApiKey};
use super::last_used::{self, HOUR_MS, StoredLastUse};
use super::record::decode;
use super::s3_secret::{self, S3MasterSecret};
use super::{
    AccountId, ApiKey, ApiKeyId, ApiKeys, AuditAction, CatalogError, IssuedKey, KeyRestrictions,
    PresentedKey, Scope,
};
use crate::limits::API_KEYS_PER_ACCOUNT_MAX;

/// Keys that are deleted in one batch, below the limit of the engine.
const DELETED_KEYS_BATCH: usize = 250;

/// Parameters of a new API key.
pub struct NewApiKey {
    pub account: AccountId,
    pub name: String,
    pub scopes: Vec<Scope>,
    pub limits: KeyRestrictions,
}

/// All keys, and the secret of their S3 secrets.
#[derive(Debug, Default)]
pub(super) struct ApiKeyTable {
    keys: BTreeMap<ApiKeyId, Arc<ApiKey>>,
    s3_master: Option<S3MasterSecret>,
}

impl Table for ApiKeyTable {
    const PREFIXES: &'static [&'static str] =
        &[OfApiKey::PREFIX, last_used::PREFIX, s3_secret::PREFIX];

    fn apply(&mut self, fact: &FactName, value: Option<&[u8]>) -> Result<(), CatalogError> {
        let (prefix, name) = split(fact);
        let id = ApiKeyId::parse(name);
        match (prefix, value) {
            (OfApiKey::PREFIX, Some(value)) => self.put(decode(fact, value)?),
            (OfApiKey::PREFIX, None) => drop(id.and_then(|id| self.keys.remove(&id))),
            // The last use of a deleted key is ignored.
            (last_used::PREFIX, Some(value)) => {
                let stored: StoredLastUse = decode(fact, value)?;
                let known = id.and_then(|id| self.keys.get(&id));
                known.into_iter().for_each(|known| known.last_use.advance_to(stored.hour));
            }
            (s3_secret::PREFIX, Some(value)) => self.s3_master = Some(decode(fact, value)?),
            (s3_secret::PREFIX, None) => self.s3_master = None,
            _ => {}
        }
        Ok(())
    }
}

impl ApiKeyTable {
    /// Puts a key, which retains its last-used time.
    fn put(&mut self, mut api_key: ApiKey) {
        if let Some(known) = self.keys.get(&api_key.id) {
            api_key.last_use = known.last_use.clone();
        }
        set(&mut self.keys, api_key.id.clone(), api_key);
    }

    fn of_account(&self, account: &AccountId) -> impl Iterator<Item = &Arc<ApiKey>> {
        self.keys.values().filter(|it| it.account == *account)
    }
}

/// Lookup.
impl ApiKeys<'_> {
    /// Returns the key with this id, valid or not.
    pub fn get(&self, id: &ApiKeyId) -> Option<Arc<ApiKey>> {
        self.0.state.api_keys.read().keys.get(id).cloned()
    }

    /// Returns every key, including revoked ones, by id.
    pub fn all(&self) -> Vec<Arc<ApiKey>> {
        self.0.state.api_keys.read().keys.values().cloned().collect()
    }

    /// Returns the record of a presented key, if its secret matches and it is valid, and records its use.
    pub fn authenticate(&self, presented: &PresentedKey) -> Option<Arc<ApiKey>> {
        let api_key = self.active(presented.id()).filter(|api_key| api_key.matches(presented))?;
        self.record_use(&api_key);
        Some(api_key)
    }

    /// Returns the record of a key whose secret signed a request, if it is valid, and records its use.
    pub fn authenticate_signed(&self, id: &ApiKeyId) -> Option<Arc<ApiKey>> {
        let api_key = self.active(id)?;
        self.record_use(&api_key);
        Some(api_key)
    }

    fn record_use(&self, api_key: &ApiKey) {
        self.0.state.unwritten.record_use(&api_key.id, &api_key.last_use, self.0.now_ms());
    }

    /// Returns the record of a valid key.
    pub fn active(&self, id: &ApiKeyId) -> Option<Arc<ApiKey>> {
        self.get(id).filter(|api_key| api_key.is_active(self.0.now_ms()))
    }

    /// Returns the start of the hour in which a key was last used.
    pub fn last_use_ms(&self, id: &ApiKeyId) -> Option<u64> {
        self.get(id)?.last_use.ms()
    }

    /// Returns the S3 secret of a key. `None` if no master secret could be stored.
    pub fn s3_secret(&self, id: &ApiKeyId) -> Option<String> {
        Some(self.0.state.api_keys.read().s3_master.as_ref()?.of_key(id))
    }
}

/// Changes.
impl ApiKeys<'_> {
    /// Issues a key. Its text is only in the result.
    pub fn issue(&self, new: NewApiKey) -> Result<IssuedKey, CatalogError> {
        let mut change = self.0.begin();
        self.0.accounts().require(&new.account)?;
        if let Some(name) = &new.limits.bucket {
            let bucket = self.0.buckets().get(name);
            if bucket.and_then(|bucket| self.0.buckets().role(&new.account, &bucket)).is_none() {
                return Err(CatalogError::BucketNotFound(name.to_string()));
            }
        }
        let evicted = self.key_to_evict(&new.account, self.0.now_ms())?;
        let issued = self.add(&mut change, new)?;
        if let Some(id) = evicted {
            change.delete(id.fact()?);
            change.delete(id.fact_at(last_used::PREFIX)?);
        }
        let scopes: Vec<_> = issued.record.scopes.iter().map(|scope| scope.as_str()).collect();
        let detail = format!("name: {}, scopes: {}", issued.record.name, scopes.join(" "));
        change.audit(AuditRecord::new(AuditAction::KeyCreate).key(&issued.record).detail(detail));
        change.commit()?;
        Ok(issued)
    }

    /// Adds a new key to a change.
    pub(super) fn add(
        &self,
        change: &mut Change<'_>,
        new: NewApiKey,
    ) -> Result<IssuedKey, CatalogError> {
        let NewApiKey { account, name, scopes, limits } = new;
        let (rng, now_ms) = (&*self.0.state.rng, self.0.now_ms());
        let issued = ApiKey::issue(rng, account, &name, &scopes, limits, now_ms)?;
        change.add(issued.record.id.fact()?, &issued.record)?;
        Ok(issued)
    }

    /// Returns the key that a new one replaces: if the account is at its limit, the oldest one that is no longer valid.
    fn key_to_evict(
        &self,
        account: &AccountId,
        now_ms: u64,
    ) -> Result<Option<ApiKeyId>, CatalogError> {
        let table = self.0.state.api_keys.read();
        let own: Vec<_> = table.of_account(account).collect();
        if own.len() < API_KEYS_PER_ACCOUNT_MAX {
            return check_total(table.keys.len(), "API keys").map(|()| None);
        }
        let dead = own.iter().filter(|api_key| !api_key.is_active(now_ms));
        match dead.min_by_key(|api_key| api_key.created_ms) {
            Some(api_key) => Ok(Some(api_key.id.clone())),
            None => {
                let what = "API keys of the account";
                check_count(own.len(), API_KEYS_PER_ACCOUNT_MAX, what).map(|()| None)
            }
        }
    }

    /// Revokes a key permanently. A key that is already revoked is unchanged.
    pub fn revoke(&self, id: &ApiKeyId) -> Result<Arc<ApiKey>, CatalogError> {
        let mut change = self.0.begin();
        let found = self.get(id);
        let found = found.ok_or_else(|| CatalogError::NotFound(format!("the API key {id}")))?;
        if found.revoked_ms.is_some() {
            return Ok(found);
        }
        let mut revoked = ApiKey::clone(&found);
        revoked.revoked_ms = Some(self.0.now_ms());
        change.audit(AuditRecord::new(AuditAction::KeyDelete).key(&revoked));
        change.put(id.fact()?, &revoked)?;
        change.commit()?;
        Ok(self.get(id).unwrap_or(found))
    }

    /// Deletes the keys of a deleted account.
    pub(super) fn delete_all_of(
        &self,
        change: &mut Change<'_>,
        account: &AccountId,
    ) -> Result<(), CatalogError> {
        let own =
            self.0.state.api_keys.read().of_account(account).map(|it| it.id.clone()).collect();
        let own: Vec<ApiKeyId> = own;
        for ids in own.chunks(DELETED_KEYS_BATCH) {
            for id in ids {
                change.delete(id.fact()?);
                change.delete(id.fact_at(last_used::PREFIX)?);
            }
            let entry = AuditRecord::new(AuditAction::KeyDelete).account(account);
            change.audit(entry.detail(format!("keys of the deleted account: {}", ids.len())));
            change.commit()?;
        }
        Ok(())
    }

    /// Generates the master secret of S3 secrets, if it does not exist.
    pub fn ensure_s3_secret(&self) -> Result<(), CatalogError> {
        let mut change = self.0.begin();
        if self.0.state.api_keys.read().s3_master.is_some() {
            return Ok(());
        }
        change.add(s3_secret::fact()?, &S3MasterSecret::issue(&*self.0.state.rng))?;
        change.commit()
    }

    /// Persists the recorded last-used times. Failed writes are retried the next time.
    pub fn write_uses(&self) -> Result<(), CatalogError> {
        // Otherwise a key that is deleted concurrently would leave its fact behind.
        let mut change = self.0.begin();
        self.0.state.unwritten.write_batches(last_used::BATCH_FACTS, |ids: &BTreeSet<ApiKeyId>| {
            for id in ids {
                let Some(ms) = self.last_use_ms(id) else { continue };
                change
                    .put(id.fact_at(last_used::PREFIX)?, &StoredLastUse { hour: ms / HOUR_MS })?;
            }
            change.commit_any()
        })
    }
}
