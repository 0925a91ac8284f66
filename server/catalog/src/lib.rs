//! Catalog: the server's own records, typed, in memory, and always current.
//!
//! A single process owns the store, so the records read at the start and changed with every commit since are
//! authoritative: no request reads or decodes a fact. Guarantees: a change is durable before it is visible; a failed
//! change is never visible; a deleted bucket never reappears with old objects in it. Non-goals: authorization of
//! changes, and JSON for clients.
//!
//! Every change of the catalog blocks on the disk.

mod account;
mod account_activity;
mod api_error;
mod api_key;
mod audit_entry;
mod audit_log;
mod base32;
mod bucket;
mod bucket_deletion;
mod bucket_rules;
mod changes;
pub mod claims;
pub mod commit;
mod cors_rules;
mod dead_letters;
mod event;
mod event_delivery;
mod grant;
mod hex;
mod id;
mod import_progress;
mod invitation;
mod job;
mod last_backup;
mod last_used;
pub mod limits;
mod multipart_upload;
pub mod object_attributes;
pub mod object_lock;
pub mod open_uploads;
mod organisation;
mod outbox;
mod password;
mod pending_upload;
mod public_access;
mod quota;
mod quota_reservation;
mod record;
mod s3_secret;
mod secret;
mod session;
mod signing_keys;
mod staging;
mod standing_history;
mod usage_history;
mod usage_records;
mod version_locks;
pub mod versions;
mod webhook;
mod webhook_secret;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

use engine::clock::Clock;
use engine::rng::Rng;
use engine::{BucketName, FactName, Store};

use self::audit_log::AuditLog;
use self::bucket_deletion::PendingDeletion;
use self::id::IdKind as _;
use self::last_used::{LastUsed, UnwrittenUses};
use self::outbox::Outbox;
use self::quota::QuotaLedger;
use self::signing_keys::SigningKey;
use self::usage_history::UsageHistory;
use self::version_locks::VersionLocks;

pub use self::account::{Account, AccountName, FairUseStanding, Plan, Role};
pub use self::account_activity::{AccountActivity, ActivityDay};
pub use self::api_key::{ApiKey, IssuedKey, KeyRestrictions, PresentedKey, Scope, prefix_folder};
pub use self::audit_entry::{Actor, ActorKind, AuditAction, AuditEntry};
pub use self::audit_log::AuditPage;
pub use self::bucket::{Access, Bucket, BucketKind, ServeHtml, new_bucket_name, parse_placeholder};
pub use self::bucket_deletion::{BucketDeletion, OnNonEmpty};
pub use self::bucket_rules::{AllowedTypes, CacheControl, CorsOrigins};
pub use self::changes::{
    AccountChange, BucketChange, FirstBucket, NewAccount, NewApiKey, NewBucket, NewBucketOwner,
    NewSetup, NewWebhook, QuotaChange, SetupResult, WebhookChange,
};
pub use self::cors_rules::{CorsRule, check_rules, rule_for};
pub use self::event::{
    DeadLetter, DeliveryState, EventContent, EventKind, EventPattern, ObjectEvent, QueuedEvent,
};
pub use self::event_delivery::{DeliveryFailure, DeliveryLease, DueEvent, NextAttempt};
pub use self::grant::{Grant, Issuer, Purpose, ThumbnailChoice, TokenId, UploadParams};
pub use self::id::{AccountId, ApiKeyId, JobId, OrganisationId, SessionId, WebhookId};
pub use self::invitation::{Invitation, IssuedInvitation};
pub use self::job::{
    Job, JobEnd, JobError, JobFailure, JobProgress, JobSpec, JobState, NewJob, OnConflict,
    StoredFolder, StoredName,
};
pub use self::last_backup::LastBackup;
pub use self::multipart_upload::{MultipartUpload, UploadChecksum, UploadedPart};
pub use self::organisation::{MemberRole, Organisation, OrganisationName};
pub use self::outbox::{EventCounts, OutboxTotals};
pub use self::password::{Password, PasswordHash};
pub use self::pending_upload::PendingUpload;
pub use self::public_access::PublicAccessBlock;
pub use self::quota::{Quota, QuotaDecision, QuotaExceeded, QuotaReservation, StoredAmount};
pub use self::quota_reservation::QuotaDelta;
pub use self::secret::{IssuedSecret, SecretHash};
pub use self::session::{ClientInfo, Session, SessionInfo, StartedSession};
pub use self::staging::{StagedTotals, StagedUpload, Staging};
pub use self::standing_history::{ChangedBy, StandingChange, StandingHistory};
pub use self::usage_history::{UsagePoint, UsageScope, UsageStep};
pub use self::webhook::{Webhook, parse_event_patterns};
pub use self::webhook_secret::WebhookSecret;

/// Catalog, with the author of changes through it: the server itself if there is none.
#[derive(Clone)]
pub struct Catalog(Arc<Inner>, Option<Arc<Actor>>);

struct Inner {
    store: Store,
    clock: Arc<dyn Clock>,
    rng: Arc<dyn Rng>,
    /// Recent account activity, which is not persisted.
    activity: Arc<AccountActivity>,
    /// Held from reading the current state until the change is published, so that concurrent changes of one record are
    /// serialized. Taken before `tables`, never inside it.
    write_lock: Mutex<()>,
    tables: RwLock<Tables>,
    ledger: QuotaLedger,
    /// Unfinished uploads.
    staging: Staging,
    unwritten: UnwrittenUses<ApiKeyId>,
    /// Sessions whose last use is not persisted yet.
    unwritten_sessions: UnwrittenUses<SessionId>,
    /// Pending webhook events.
    outbox: Outbox,
    /// Locks for changes of versions.
    version_locks: VersionLocks,
    usage_history: UsageHistory,
    /// Audit log.
    audit: AuditLog,
}

#[derive(Default)]
struct Tables {
    buckets: BTreeMap<BucketName, Arc<Bucket>>,
    /// Buckets by owner.
    owned: BTreeMap<AccountId, BTreeSet<BucketName>>,
    /// Deleted buckets whose objects are still being removed: their names are not free yet.
    removals: BTreeMap<BucketName, PendingDeletion>,
    accounts: BTreeMap<AccountId, Arc<Account>>,
    organisations: BTreeMap<OrganisationId, Arc<Organisation>>,
    api_keys: BTreeMap<ApiKeyId, CachedKey>,
    /// Signing keys by number; the last one signs.
    signing_keys: BTreeMap<u32, SigningKey>,
    signature_secret: Option<s3_secret::S3MasterSecret>,
    standings: BTreeMap<AccountId, Arc<StandingHistory>>,
    webhooks: BTreeMap<WebhookId, Arc<Webhook>>,
    /// Webhooks by bucket.
    bucket_webhooks: BTreeMap<BucketName, BTreeSet<WebhookId>>,
    jobs: BTreeMap<JobId, Arc<Job>>,
    passwords: BTreeMap<AccountId, Arc<PasswordHash>>,
    invitations: BTreeMap<AccountId, Arc<Invitation>>,
    sessions: BTreeMap<SessionId, CachedSession>,
    /// Sessions by the hash of their secret.
    session_secrets: BTreeMap<SecretHash, SessionId>,
}

struct CachedKey {
    api_key: Arc<ApiKey>,
    last_use: Arc<LastUsed>,
}

struct CachedSession {
    session: Arc<Session>,
    last_use: Arc<LastUsed>,
}

/// Error of a catalog operation.
#[derive(Clone, Debug)]
pub enum CatalogError {
    /// The store failed.
    Store(engine::Error),
    /// A fact cannot be read by this build.
    CorruptRecord { fact: FactName, why: String },
    /// A record of that name already exists: its description.
    AlreadyExists(String),
    /// The record does not exist: its description.
    NotFound(String),
    /// The bucket does not exist: its name.
    BucketNotFound(String),
    /// The request violates a rule: its description.
    InvalidRequest(String),
    /// A setting is invalid: its name in JSON, and the rule.
    InvalidSetting { setting: &'static str, rule: String },
    /// The bucket still holds this many objects.
    NotEmpty(BucketName, u64),
    /// The organisation still has this many buckets.
    HasBuckets(OrganisationId, usize),
    /// The account owns buckets or organisations.
    OwnsProperty { account: String, buckets: usize, organisations: usize },
    /// The account owns the organisation, and remains its owner.
    OwnsOrganisation,
    /// An account exists already, so the first set-up is over.
    SetupDone,
    /// The link was used or replaced.
    LinkInvalid,
    /// The verified password was changed in the meantime.
    PasswordChanged,
    /// The account is suspended.
    Suspended,
}

impl Catalog {
    /// Loads all facts. [`Catalog::resume_deletions`] completes interrupted operations.
    pub fn open(
        store: Store,
        clock: Arc<dyn Clock>,
        rng: Arc<dyn Rng>,
    ) -> Result<Self, CatalogError> {
        let mut tables = Tables::default();
        each_fact(&store, bucket::PREFIX, |fact, name, bytes| {
            let bucket = Bucket::from_stored(name, record::decode(fact, bytes)?)
                .map_err(|why| record::corrupt_record(fact, &why))?;
            tables.insert_bucket(Arc::new(bucket));
            Ok(())
        })?;
        each_fact(&store, bucket::REMOVAL_PREFIX, |fact, name, bytes| {
            let unfinished = PendingDeletion::from_stored(name, record::decode(fact, bytes)?)
                .map_err(|why| record::corrupt_record(fact, &why))?;
            let name = BucketName::parse(name).map_err(|why| record::corrupt_record(fact, &why))?;
            tables.removals.insert(name, unfinished);
            Ok(())
        })?;
        each_fact(&store, id::OfAccount::PREFIX, |fact, id, bytes| {
            let account = Account::from_stored(id, record::decode(fact, bytes)?)
                .map_err(|why| record::corrupt_record(fact, &why))?;
            tables.accounts.insert(account.id.clone(), Arc::new(account));
            Ok(())
        })?;
        each_fact(&store, id::OfOrganisation::PREFIX, |fact, id, bytes| {
            let organisation = Organisation::from_stored(id, record::decode(fact, bytes)?)
                .map_err(|why| record::corrupt_record(fact, &why))?;
            tables.organisations.insert(organisation.id.clone(), Arc::new(organisation));
            Ok(())
        })?;
        each_fact(&store, signing_keys::PREFIX, |fact, number, bytes| {
            let key = SigningKey::from_stored(number, record::decode(fact, bytes)?)
                .map_err(|why| record::corrupt_record(fact, &why))?;
            tables.signing_keys.insert(key.number, key);
            Ok(())
        })?;
        each_fact(&store, s3_secret::PREFIX, |fact, _, bytes| {
            let secret = s3_secret::S3MasterSecret::from_stored(&record::decode(fact, bytes)?)
                .map_err(|why| record::corrupt_record(fact, &why))?;
            tables.signature_secret = Some(secret);
            Ok(())
        })?;
        each_fact(&store, id::OfApiKey::PREFIX, |fact, id, bytes| {
            let api_key = ApiKey::from_stored(id, record::decode(fact, bytes)?)
                .map_err(|why| record::corrupt_record(fact, &why))?;
            tables.insert_api_key(Arc::new(api_key));
            Ok(())
        })?;
        each_fact(&store, last_used::PREFIX, |fact, id, bytes| {
            let last_use = Arc::new(LastUsed::from_stored(&record::decode(fact, bytes)?));
            // The last use of a deleted key is ignored.
            if let Some(known) = ApiKeyId::parse(id).and_then(|id| tables.api_keys.get_mut(&id)) {
                known.last_use = last_use;
            }
            Ok(())
        })?;
        each_fact(&store, standing_history::PREFIX, |fact, id, bytes| {
            let history = StandingHistory::from_stored(record::decode(fact, bytes)?);
            let id = AccountId::parse(id)
                .ok_or_else(|| record::corrupt_record(fact, &"its id is not an account id"))?;
            tables.standings.insert(id, Arc::new(history));
            Ok(())
        })?;
        each_fact(&store, password::PREFIX, |fact, id, bytes| {
            let stored: password::StoredPassword = record::decode(fact, bytes)?;
            let id = AccountId::parse(id).ok_or_else(|| {
                record::corrupt_record(fact, &"its name does not end in an account id")
            })?;
            tables.passwords.insert(id, Arc::new(stored.hash));
            Ok(())
        })?;
        each_fact(&store, invitation::PREFIX, |fact, id, bytes| {
            let invitation = Invitation::from_stored(id, record::decode(fact, bytes)?)
                .map_err(|why| record::corrupt_record(fact, &why))?;
            tables.invitations.insert(invitation.account.clone(), Arc::new(invitation));
            Ok(())
        })?;
        each_fact(&store, id::OfSession::PREFIX, |fact, id, bytes| {
            let stored: session::StoredSession = record::decode(fact, bytes)?;
            let last_use = LastUsed::at(stored.seen_hour);
            let session = Session::from_stored(id, stored)
                .map_err(|why| record::corrupt_record(fact, &why))?;
            tables.insert_session(Arc::new(session), last_use);
            Ok(())
        })?;
        each_fact(&store, id::OfWebhook::PREFIX, |fact, id, bytes| {
            let webhook = Webhook::from_stored(id, record::decode(fact, bytes)?)
                .map_err(|why| record::corrupt_record(fact, &why))?;
            tables.insert_webhook(Arc::new(webhook));
            Ok(())
        })?;
        each_fact(&store, id::OfJob::PREFIX, |fact, id, bytes| {
            let job = Job::from_stored(id, record::decode(fact, bytes)?)
                .map_err(|why| record::corrupt_record(fact, &why))?;
            tables.jobs.insert(job.id.clone(), Arc::new(job));
            Ok(())
        })?;
        let outbox = commit::load_outbox(&store, &tables)?;
        let audit = AuditLog::open(&store)?;
        let staging = Staging::open(&store)?;
        let inner = Inner {
            audit,
            usage_history: UsageHistory::new(clock.unix_ms()),
            activity: Arc::new(AccountActivity::new(clock.clone())),
            store,
            clock,
            rng,
            write_lock: Mutex::new(()),
            tables: RwLock::new(tables),
            ledger: QuotaLedger::default(),
            staging,
            unwritten: UnwrittenUses::default(),
            unwritten_sessions: UnwrittenUses::default(),
            outbox,
            version_locks: VersionLocks::default(),
        };
        Ok(Self(Arc::new(inner), None))
    }

    /// Returns the unfinished uploads.
    pub fn staging(&self) -> &Staging {
        &self.0.staging
    }

    /// Returns the bucket with this name.
    pub fn bucket(&self, name: &BucketName) -> Option<Arc<Bucket>> {
        self.tables().buckets.get(name).cloned()
    }

    /// Returns the account with this id.
    pub fn account(&self, id: &AccountId) -> Option<Arc<Account>> {
        self.tables().accounts.get(id).cloned()
    }

    /// Returns the account with this name or id.
    pub fn account_by_name_or_id(&self, name_or_id: &str) -> Option<Arc<Account>> {
        let by_id = AccountId::parse(name_or_id).and_then(|id| self.account(&id));
        let by_name = || {
            let tables = self.tables();
            tables.accounts.values().find(|account| account.name.as_str() == name_or_id).cloned()
        };
        by_id.or_else(by_name)
    }

    /// Returns the organisation with this id.
    pub fn organisation(&self, id: &OrganisationId) -> Option<Arc<Organisation>> {
        self.tables().organisations.get(id).cloned()
    }

    /// Returns the key with this id, valid or not.
    pub fn api_key(&self, id: &ApiKeyId) -> Option<Arc<ApiKey>> {
        self.tables().api_keys.get(id).map(|known| known.api_key.clone())
    }

    /// Returns the record of a presented key, if its secret matches and it is valid, and records its use.
    pub fn authenticate_key(&self, presented: &PresentedKey) -> Option<Arc<ApiKey>> {
        let now_ms = self.0.clock.unix_ms();
        let (api_key, last_use) = {
            let tables = self.tables();
            let known = tables.api_keys.get(presented.id())?;
            (known.api_key.clone(), known.last_use.clone())
        };
        if !api_key.matches(presented) || !api_key.is_active(now_ms) {
            return None;
        }
        self.0.unwritten.record_use(&api_key.id, &last_use, now_ms);
        Some(api_key)
    }

    /// Returns the record of a key whose secret signed a request, if it is valid, and records its use.
    pub fn authenticate_signed(&self, id: &ApiKeyId) -> Option<Arc<ApiKey>> {
        let api_key = self.active_api_key(id)?;
        let last_use = self.tables().api_keys.get(id)?.last_use.clone();
        self.0.unwritten.record_use(id, &last_use, self.0.clock.unix_ms());
        Some(api_key)
    }

    /// Returns the record of a valid key.
    pub fn active_api_key(&self, id: &ApiKeyId) -> Option<Arc<ApiKey>> {
        self.api_key(id).filter(|api_key| api_key.is_active(self.0.clock.unix_ms()))
    }

    /// Returns the role of an account in a bucket: its owner, or a member of its organisation.
    ///
    /// The single decision about access to a bucket. It is evaluated for each request, so that a removed member loses
    /// access immediately.
    pub fn bucket_role(&self, account: &AccountId, bucket: &Bucket) -> Option<MemberRole> {
        if bucket.owner == *account {
            return Some(MemberRole::Owner);
        }
        let organisation = self.organisation(bucket.organisation.as_ref()?)?;
        organisation.members.get(account).copied()
    }

    /// Returns every bucket, by name.
    pub fn buckets(&self) -> Vec<Arc<Bucket>> {
        self.tables().buckets.values().cloned().collect()
    }

    /// Returns the names of the buckets that an account owns.
    pub fn bucket_names_of(&self, owner: &AccountId) -> Vec<BucketName> {
        self.tables().owned.get(owner).into_iter().flatten().cloned().collect()
    }

    /// Returns every account, by id.
    pub fn accounts(&self) -> Vec<Arc<Account>> {
        self.tables().accounts.values().cloned().collect()
    }

    /// Returns every organisation, by id.
    pub fn organisations(&self) -> Vec<Arc<Organisation>> {
        self.tables().organisations.values().cloned().collect()
    }

    /// Returns the webhook with this id.
    pub fn webhook(&self, id: &WebhookId) -> Option<Arc<Webhook>> {
        self.tables().webhooks.get(id).cloned()
    }

    /// Returns the webhooks of a bucket, by id; most buckets have none.
    pub fn webhooks_of(&self, bucket: &BucketName) -> Vec<Arc<Webhook>> {
        self.tables().webhooks_of(bucket).cloned().collect()
    }

    /// Returns every key, including revoked ones, by id.
    pub fn api_keys(&self) -> Vec<Arc<ApiKey>> {
        self.tables().api_keys.values().map(|known| known.api_key.clone()).collect()
    }

    /// Returns the timestamp of changes.
    pub fn now_ms(&self) -> u64 {
        self.0.clock.unix_ms()
    }

    /// Returns the recent account activity.
    pub fn account_activity(&self) -> &Arc<AccountActivity> {
        &self.0.activity
    }

    /// Returns whether no operator has a password, so that nobody can sign in to manage the server.
    pub fn needs_set_up(&self) -> bool {
        let tables = self.tables();
        let role_of = |id| tables.accounts.get(id).map(|account| account.role);
        !tables.passwords.keys().any(|id| role_of(id) == Some(Role::Operator))
    }

    fn tables(&self) -> RwLockReadGuard<'_, Tables> {
        self.0.tables.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tables {
    fn insert_bucket(&mut self, bucket: Arc<Bucket>) {
        self.owned.entry(bucket.owner.clone()).or_default().insert(bucket.name.clone());
        self.buckets.insert(bucket.name.clone(), bucket);
    }

    fn remove_bucket(&mut self, name: &BucketName) {
        let Some(bucket) = self.buckets.remove(name) else { return };
        if let Some(owned) = self.owned.get_mut(&bucket.owner) {
            owned.remove(name);
        }
    }

    fn insert_webhook(&mut self, webhook: Arc<Webhook>) {
        self.bucket_webhooks.entry(webhook.bucket.clone()).or_default().insert(webhook.id.clone());
        self.webhooks.insert(webhook.id.clone(), webhook);
    }

    fn remove_webhook(&mut self, id: &WebhookId) {
        let Some(webhook) = self.webhooks.remove(id) else { return };
        if let Some(ids) = self.bucket_webhooks.get_mut(&webhook.bucket) {
            ids.remove(id);
            if ids.is_empty() {
                self.bucket_webhooks.remove(&webhook.bucket);
            }
        }
    }

    /// Returns the owner of a deleted bucket that may be restored.
    fn removed_owner(&self, bucket: &BucketName) -> Option<AccountId> {
        let removal = self.removals.get(bucket)?;
        removal.must_be_empty.as_ref().map(|bucket| bucket.owner.clone())
    }

    fn webhooks_of(&self, bucket: &BucketName) -> impl Iterator<Item = &Arc<Webhook>> {
        let ids = self.bucket_webhooks.get(bucket);
        ids.into_iter().flatten().filter_map(|id| self.webhooks.get(id))
    }

    fn insert_session(&mut self, session: Arc<Session>, last_use: LastUsed) {
        self.session_secrets.insert(session.hash.clone(), session.id.clone());
        let known = CachedSession { session, last_use: Arc::new(last_use) };
        self.sessions.insert(known.session.id.clone(), known);
    }

    fn remove_session(&mut self, id: &SessionId) {
        if let Some(known) = self.sessions.remove(id) {
            self.session_secrets.remove(&known.session.hash);
        }
    }

    fn insert_api_key(&mut self, api_key: Arc<ApiKey>) {
        let last_use = self.api_keys.get(&api_key.id).map(|known| known.last_use.clone());
        let last_use = last_use.unwrap_or_default();
        self.api_keys.insert(api_key.id.clone(), CachedKey { api_key, last_use });
    }
}

fn each_fact(
    store: &Store,
    prefix: &str,
    mut take: impl FnMut(&FactName, &str, &[u8]) -> Result<(), CatalogError>,
) -> Result<(), CatalogError> {
    let mut after: Option<FactName> = None;
    loop {
        let page = store.facts(prefix, after.as_ref(), limits::CATALOG_PAGE_FACTS)?;
        let is_last = page.len() < limits::CATALOG_PAGE_FACTS;
        for (fact, bytes) in &page {
            take(fact, fact.as_str().strip_prefix(prefix).unwrap_or_default(), bytes)?;
        }
        after = page.into_iter().next_back().map(|(fact, _)| fact);
        if is_last || after.is_none() {
            return Ok(());
        }
    }
}

impl From<engine::Error> for CatalogError {
    fn from(error: engine::Error) -> Self {
        Self::Store(error)
    }
}

impl From<engine::name::NameError> for CatalogError {
    fn from(why: engine::name::NameError) -> Self {
        Self::InvalidRequest(why.to_string())
    }
}

impl fmt::Display for CatalogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::CorruptRecord { fact, why } => write!(f, "the fact {fact} cannot be read: {why}"),
            Self::AlreadyExists(what) => write!(f, "{what} already exists"),
            Self::NotFound(what) => write!(f, "{what} does not exist"),
            Self::BucketNotFound(name) => write!(f, "the bucket {name:?} does not exist"),
            Self::InvalidRequest(rule) => f.write_str(rule),
            Self::InvalidSetting { rule, .. } => f.write_str(rule),
            Self::NotEmpty(bucket, objects) => {
                write!(f, "the bucket {bucket} is not empty: {objects} objects")
            }
            Self::HasBuckets(id, buckets) => {
                write!(f, "the organisation {id} is not empty: {buckets} buckets")
            }
            Self::OwnsProperty { account, buckets, organisations } => {
                write!(f, "the account {account:?} owns {buckets} buckets")?;
                match organisations {
                    0 => Ok(()),
                    _ => write!(f, " and {organisations} organisations"),
                }
            }
            Self::OwnsOrganisation => {
                f.write_str("the owner of an organisation cannot leave it or change role")
            }
            Self::SetupDone => f.write_str("this server is already set up"),
            Self::LinkInvalid => {
                f.write_str("the link was already used or replaced by a newer one")
            }
            Self::PasswordChanged => f.write_str("the password was changed concurrently"),
            Self::Suspended => f.write_str("the account is suspended"),
        }
    }
}

impl std::error::Error for CatalogError {}
