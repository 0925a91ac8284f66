//! Set-up of a server: an operator with a password, a first bucket, a first API key and a session, in one batch.
//!
//! Guarantees: all of it is stored or nothing; set-up is rejected once an operator has a password. Non-goals: the link
//! that authorizes it.

use std::sync::Arc;

use engine::BucketName;

use super::audit_entry::AuditRecord;
use super::change::Change;
use super::{
    Access, Account, AccountId, AccountName, AuditAction, Bucket, BucketChange, BucketKind,
    Catalog, CatalogError, ClientInfo, FairUseStanding, IssuedKey, KeyRestrictions, NewApiKey,
    PasswordHash, Role, Scope, StartedSession,
};

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
    /// Returns whether no operator has a password, so that nobody can sign in to manage the server.
    pub fn needs_set_up(&self) -> bool {
        let has_password = |it: &Arc<Account>| self.sessions().password_hash(&it.id).is_some();
        !self.accounts().operators().iter().any(has_password)
    }

    /// Creates the operator, or makes an existing account one, with a password, a bucket, a key and a session.
    pub fn set_up(&self, new: NewSetup) -> Result<SetupResult, CatalogError> {
        let mut change = self.begin();
        if !self.needs_set_up() {
            return Err(CatalogError::SetupDone);
        }
        let NewSetup { name, password, bucket, visitor } = new;
        let account = self.add_operator(&mut change, name)?;
        let bucket = match bucket {
            Some(FirstBucket { name, access }) => {
                self.buckets().check_new(&name, &account.id)?;
                let settings = BucketChange { access: Some(access), ..BucketChange::default() };
                let (owner, kind) = (account.id.clone(), BucketKind::Standard);
                Some(self.buckets().add(&mut change, name, owner, None, kind, settings)?)
            }
            None if !self.buckets().names_of(&account.id).is_empty() => None,
            None => {
                let rule = "required: the account owns no bucket".into();
                return Err(CatalogError::InvalidSetting { setting: "bucketName", rule });
            }
        };
        let limits = KeyRestrictions {
            bucket: bucket.as_ref().map(|bucket| bucket.name.clone()),
            ..KeyRestrictions::default()
        };
        let (name, scopes) = (KEY_NAME.to_owned(), KEY_SCOPES.to_vec());
        let new = NewApiKey { account: account.id.clone(), name, scopes, limits };
        let key = self.api_keys().add(&mut change, new)?;
        self.sessions().add_password(&mut change, &account.id, password)?;
        self.sessions().add_end_of_all(&mut change, &account.id, None)?;
        let started = self.sessions().add(&mut change, &account, visitor)?;
        let entry = |action| AuditRecord::new(action).account(&account.id);
        let made = bucket.as_ref().map(|it| entry(AuditAction::BucketCreate).bucket(it));
        made.into_iter().for_each(|entry| change.audit(entry));
        change.audit(entry(AuditAction::KeyCreate).key(&key.record));
        change.audit(entry(AuditAction::SessionBegin).target(&started.session.id));
        change.commit()?;
        let bucket = bucket.map(|bucket| self.buckets().require(&bucket.name)).transpose()?;
        Ok(SetupResult { account: self.accounts().require(&account.id)?, bucket, key, started })
    }

    /// Adds the account of that name, as an operator in good standing.
    fn add_operator(
        &self,
        change: &mut Change<'_>,
        name: AccountName,
    ) -> Result<Account, CatalogError> {
        let known = self.accounts().find(name.as_str());
        let (account, action, detail) = match &known {
            Some(account) => {
                let detail = "role: operator, by set-up".to_owned();
                (Account::clone(account), AuditAction::AccountChange, detail)
            }
            None => {
                let detail = format!("name: {}, by set-up", name.as_str());
                let id = AccountId::issue(&*self.state.rng);
                let account = Account::with_defaults(id, name, self.now_ms());
                (account, AuditAction::AccountCreate, detail)
            }
        };
        let account = Account { role: Role::Operator, standing: FairUseStanding::Good, ..account };
        match known {
            Some(_) => change.put(account.id.fact()?, &account)?,
            None => change.add(account.id.fact()?, &account)?,
        }
        let entry = AuditRecord::new(action).account(&account.id).target(&account.id);
        change.audit(entry.detail(detail));
        Ok(account)
    }
}
