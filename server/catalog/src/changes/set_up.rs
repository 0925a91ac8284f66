//! Set-up of a server: an operator with a password, a first bucket, a first API key and a session, in one batch.
//!
//! Guarantees: all of it is stored or nothing; set-up is rejected once an operator has a password. Non-goals: the link
//! that authorizes it.

use std::sync::Arc;

use engine::{Batch, BucketName, Precondition};

use super::super::audit_entry::AuditRecord;
use super::super::record::encode;
use super::super::{
    Access, Account, AccountId, AccountName, ApiKey, AuditAction, Bucket, BucketKind, Catalog,
    CatalogError, ClientInfo, FairUseStanding, IssuedKey, KeyRestrictions, PasswordHash, Role,
    Scope, StartedSession, invitation,
};
use super::sessions::SessionChanges;

/// Name of the first API key.
const KEY_NAME: &str = "first key";
/// Scopes of the first API key: uploads from scripts and tools, no management.
const KEY_SCOPES: &[Scope] =
    &[Scope::Upload, Scope::Delete, Scope::Read, Scope::List, Scope::Presign];

/// Parameters of a set-up.
pub struct NewSetup {
    /// Name of a new account, or of an existing one that becomes an operator.
    pub name: AccountName,
    pub password: PasswordHash,
    /// Optional for an existing account that owns a bucket.
    pub bucket: Option<FirstBucket>,
    pub visitor: ClientInfo,
}

/// First bucket of a server.
pub struct FirstBucket {
    pub name: BucketName,
    pub access: Access,
}

/// Result of a set-up; the only place of the key and of the session's secret.
pub struct SetupResult {
    pub account: Arc<Account>,
    pub bucket: Option<Arc<Bucket>>,
    pub key: IssuedKey,
    pub started: StartedSession,
}

impl Catalog {
    /// Creates the operator, or makes an existing account one, with a password, a bucket, a key and a session.
    pub fn set_up(&self, new: NewSetup) -> Result<SetupResult, CatalogError> {
        let _changing = self.change();
        if !self.needs_set_up() {
            return Err(CatalogError::SetupDone);
        }
        let NewSetup { name, password, bucket, visitor } = new;
        let batch = Batch::new();
        let (batch, account) = self.put_operator(batch, name)?;
        let (batch, bucket) = match bucket {
            Some(bucket) => {
                let (batch, bucket) = self.put_first_bucket(batch, bucket, &account.id)?;
                (batch, Some(bucket))
            }
            None if !self.bucket_names_of(&account.id).is_empty() => (batch, None),
            None => {
                let rule = "required: the account owns no bucket".into();
                return Err(CatalogError::InvalidSetting { setting: "bucketName", rule });
            }
        };
        let limits = KeyRestrictions {
            bucket: bucket.as_ref().map(|bucket| bucket.name.clone()),
            ..KeyRestrictions::default()
        };
        let (rng, now_ms) = (&*self.0.rng, self.0.clock.unix_ms());
        let key = ApiKey::issue(rng, account.id.clone(), KEY_NAME, KEY_SCOPES, limits, now_ms)?;
        let key_fact = key.record.id.fact()?;
        let batch = batch.put_fact(key_fact.clone(), encode(&key_fact, &key.record.stored())?);
        let batch = self.add_password_to_batch(batch, &account.id, &password)?;
        let batch = batch.delete_fact(invitation::fact(&account.id)?);
        let (batch, ended) = self.end_sessions_in_batch(batch, &account.id, None)?;
        let mut sessions = SessionChanges { ended, started: None };
        let (mut batch, started) =
            self.add_session_to_batch(batch, &account, visitor, &mut sessions)?;
        let entry = |action| AuditRecord::new(action).account(&account.id);
        let made = bucket.as_ref().map(|it| entry(AuditAction::BucketCreate).bucket(it));
        let begun = entry(AuditAction::SessionBegin).target(&started.session.id);
        let issued = entry(AuditAction::KeyCreate).key(&key.record);
        for entry in made.into_iter().chain([issued, begun]) {
            batch = self.append_audit(batch, entry)?;
        }
        self.0.store.commit(batch)?;
        let (account, bucket) = (Arc::new(account), bucket.map(Arc::new));
        self.publish(|tables| {
            tables.accounts.insert(account.id.clone(), account.clone());
            tables.passwords.insert(account.id.clone(), Arc::new(password));
            tables.invitations.remove(&account.id);
            if let Some(bucket) = bucket.clone() {
                tables.insert_bucket(bucket);
            }
            tables.insert_api_key(Arc::new(key.record.clone()));
            sessions.publish(tables);
        });
        Ok(SetupResult { account, bucket, key, started })
    }

    /// Adds the account of that name to the batch, as an operator in good standing.
    fn put_operator(
        &self,
        batch: Batch,
        name: AccountName,
    ) -> Result<(Batch, Account), CatalogError> {
        let (batch, account, action, detail) = match self.account_by_name_or_id(name.as_str()) {
            Some(account) => {
                let detail = "role: operator, by set-up".to_owned();
                (batch, Account::clone(&account), AuditAction::AccountChange, detail)
            }
            None => {
                let detail = format!("name: {}, by set-up", name.as_str());
                let id = AccountId::issue(&*self.0.rng);
                let batch = batch.require(Precondition::FactAbsent(id.fact()?));
                let account = Account::with_defaults(id, name, self.0.clock.unix_ms());
                (batch, account, AuditAction::AccountCreate, detail)
            }
        };
        let account = Account { role: Role::Operator, standing: FairUseStanding::Good, ..account };
        let fact = account.id.fact()?;
        let batch = batch.put_fact(fact.clone(), encode(&fact, &account.stored())?);
        let entry =
            AuditRecord::new(action).account(&account.id).target(&account.id).detail(detail);
        Ok((self.append_audit(batch, entry)?, account))
    }

    fn put_first_bucket(
        &self,
        batch: Batch,
        FirstBucket { name, access }: FirstBucket,
        owner: &AccountId,
    ) -> Result<(Batch, Bucket), CatalogError> {
        self.check_new_bucket(&name, owner)?;
        let (lsn, now_ms) = (self.0.store.last_lsn()?, self.0.clock.unix_ms());
        let kind = BucketKind::Standard;
        let bucket = Bucket::with_defaults(name, owner.clone(), None, kind, lsn, now_ms);
        let bucket = Bucket { access, ..bucket };
        let fact = bucket.fact()?;
        let batch = batch
            .require(Precondition::FactAbsent(fact.clone()))
            .put_fact(fact.clone(), encode(&fact, &bucket.stored())?);
        Ok((batch, bucket))
    }
}
