//! The first set-up: an operator with a password, a first bucket, a first key, and a session, in one batch.
//!
//! Promises: all of it is there or nothing, whenever the power goes; there is one first set-up, and none once there is
//! an account. Never here: the link that allows it.

use std::sync::Arc;

use engine::{Batch, BucketName, Precondition};

use super::super::audit::Told;
use super::super::record::encode;
use super::super::{
    Access, Account, AccountId, AccountName, ApiKey, AuditAction, Bucket, BucketKind, Catalog,
    CatalogError, IssuedKey, KeyLimits, PasswordHash, Plan, Role, Scope, StartedSession, Visitor,
};
use super::sessions::SessionChanges;

/// What the first key is called.
const KEY_NAME: &str = "first key";
/// What it may do: upload from scripts and tools, but manage nothing. The session makes others.
const KEY_SCOPES: &[Scope] =
    &[Scope::Upload, Scope::Delete, Scope::Read, Scope::List, Scope::Presign];

/// What is to be set up.
pub struct SetUp {
    pub name: AccountName,
    pub password: PasswordHash,
    pub bucket: FirstBucket,
    pub visitor: Visitor,
}

/// The first bucket.
pub struct FirstBucket {
    pub name: BucketName,
    pub access: Access,
}

/// What was set up. The key and the session's secret are told this once.
pub struct SetUpDone {
    pub account: Arc<Account>,
    pub bucket: Arc<Bucket>,
    pub key: IssuedKey,
    pub started: StartedSession,
}

impl Catalog {
    /// Makes the first account, with all that it needs.
    pub fn set_up(&self, new: SetUp) -> Result<SetUpDone, CatalogError> {
        let _changing = self.change();
        if self.has_accounts() {
            return Err(CatalogError::SetUpDone);
        }
        let SetUp { name, password, bucket, visitor } = new;
        let (entropy, now_ms) = (&*self.0.entropy, self.0.clock.unix_ms());
        let account = Account {
            role: Role::Operator,
            // Nobody pays whoever runs the server.
            plan: Plan::Business,
            ..Account::with_defaults(AccountId::issue(entropy), name, now_ms)
        };
        let owner = account.id.clone();
        let bucket = Bucket {
            access: bucket.access,
            ..Bucket::with_defaults(
                bucket.name,
                owner,
                None,
                BucketKind::Standard,
                self.0.store.last_lsn()?,
                now_ms,
            )
        };
        let limits = KeyLimits { bucket: Some(bucket.name.clone()), ..KeyLimits::default() };
        let owner = account.id.clone();
        let key = ApiKey::issue(entropy, owner, KEY_NAME, KEY_SCOPES, limits, now_ms)?;
        let (account_fact, bucket_fact) = (account.id.fact()?, bucket.fact()?);
        let key_fact = key.record.id.fact()?;
        let batch = Batch::new()
            .require(Precondition::FactAbsent(account_fact.clone()))
            .require(Precondition::FactAbsent(bucket_fact.clone()))
            .put_fact(account_fact.clone(), encode(&account_fact, &account.stored())?)
            .put_fact(bucket_fact.clone(), encode(&bucket_fact, &bucket.stored())?)
            .put_fact(key_fact.clone(), encode(&key_fact, &key.record.stored())?);
        let batch = self.put_password_in(batch, &account.id, &password)?;
        let mut sessions = SessionChanges::default();
        let (batch, started) = self.begin_session(batch, &account, visitor, &mut sessions)?;
        let told = |action| Told::of(action).account(&account.id);
        let detail = format!("name: {}, the first set-up", account.name.as_str());
        let made = told(AuditAction::AccountCreate).target(&account.id).detail(detail);
        let begun = told(AuditAction::SessionBegin).target(&started.session.id);
        let mut batch = batch;
        for told in [
            made,
            told(AuditAction::BucketCreate).bucket(&bucket),
            told(AuditAction::KeyCreate).key(&key.record),
            begun,
        ] {
            batch = self.audited(batch, told)?;
        }
        self.0.store.commit(batch)?;
        let (account, bucket) = (Arc::new(account), Arc::new(bucket));
        self.show(|tables| {
            tables.accounts.insert(account.id.clone(), account.clone());
            tables.passwords.insert(account.id.clone(), Arc::new(password));
            tables.insert_bucket(bucket.clone());
            tables.insert_api_key(Arc::new(key.record.clone()));
            sessions.show(tables);
        });
        Ok(SetUpDone { account, bucket, key, started })
    }
}
