//! Creation and revocation of API keys.

use std::sync::Arc;

use engine::{Batch, Precondition};

use super::super::audit_entry::AuditRecord;
use super::super::last_used;
use super::super::record::encode;
use super::super::{
    AccountId, ApiKey, ApiKeyId, AuditAction, Catalog, CatalogError, IssuedKey, KeyRestrictions,
    Scope,
};
use super::{check_count, check_total};
use crate::limits::API_KEYS_PER_ACCOUNT_MAX;

/// Parameters of a new API key.
pub struct NewApiKey {
    pub account: AccountId,
    pub name: String,
    pub scopes: Vec<Scope>,
    pub limits: KeyRestrictions,
}

impl Catalog {
    /// Issues a key. Its text is only in the result.
    pub fn issue_api_key(&self, new: NewApiKey) -> Result<IssuedKey, CatalogError> {
        let _changing = self.change();
        self.require_account(&new.account)?;
        if let Some(name) = &new.limits.bucket {
            let bucket = self.bucket(name);
            if bucket.and_then(|bucket| self.bucket_role(&new.account, &bucket)).is_none() {
                return Err(CatalogError::BucketNotFound(name.to_string()));
            }
        }
        let now_ms = self.0.clock.unix_ms();
        let gone = self.key_to_evict(&new.account, now_ms)?;
        let rng = &*self.0.rng;
        let issued = ApiKey::issue(rng, new.account, &new.name, &new.scopes, new.limits, now_ms)?;
        let fact = issued.record.id.fact()?;
        let stored = encode(&fact, &issued.record.stored())?;
        let mut batch = Batch::new()
            .require(Precondition::FactAbsent(fact.clone()))
            .put_fact(fact.clone(), stored);
        if let Some(id) = &gone {
            batch = batch.delete_fact(id.fact()?).delete_fact(last_used::fact(id)?);
        }
        let scopes: Vec<_> = issued.record.scopes.iter().map(|scope| scope.as_str()).collect();
        let detail = format!("name: {}, scopes: {}", issued.record.name, scopes.join(" "));
        let entry = AuditRecord::new(AuditAction::KeyCreate).key(&issued.record).detail(detail);
        self.0.store.commit(self.append_audit(batch, entry)?)?;
        let api_key = Arc::new(issued.record.clone());
        self.publish(|tables| {
            gone.map(|id| tables.api_keys.remove(&id));
            tables.insert_api_key(api_key);
        });
        Ok(issued)
    }

    /// Returns the key that a new one replaces: if the account is at its limit, the oldest one that is no longer valid.
    fn key_to_evict(
        &self,
        account: &AccountId,
        now_ms: u64,
    ) -> Result<Option<ApiKeyId>, CatalogError> {
        let tables = self.tables();
        let own = tables.api_keys.values().map(|known| &known.api_key);
        let own: Vec<_> = own.filter(|api_key| api_key.account == *account).collect();
        if own.len() < API_KEYS_PER_ACCOUNT_MAX {
            return check_total(tables.api_keys.len(), "API keys").map(|()| None);
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
    pub fn revoke_api_key(&self, id: &ApiKeyId) -> Result<Arc<ApiKey>, CatalogError> {
        let _changing = self.change();
        let found = self.api_key(id);
        let found = found.ok_or_else(|| CatalogError::NotFound(format!("the API key {id}")))?;
        if found.revoked_ms.is_some() {
            return Ok(found);
        }
        let mut revoked = ApiKey::clone(&found);
        revoked.revoked_ms = Some(self.0.clock.unix_ms());
        let entry = AuditRecord::new(AuditAction::KeyDelete).key(&revoked);
        self.put_record(id.fact()?, &revoked.stored(), entry)?;
        let revoked = Arc::new(revoked);
        self.publish(|tables| tables.insert_api_key(revoked.clone()));
        Ok(revoked)
    }
}
