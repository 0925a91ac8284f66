//! Buckets: lookup, access, creation and editing. `bucket_deletion.rs` deletes them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::limits::FACT_BYTES_MAX;
use engine::{BucketName, FactName, ObjectName};
use usage::bucket_counters::BucketCounters;

use super::audit_entry::{AuditRecord, changed_settings};
use super::bucket_deletion::PendingDeletion;
use super::change::{Change, Table, check_count, check_total, split};
use super::record::{corrupt_record, decode, encode};
use super::{
    Access, AccountId, AllowedTypes, AuditAction, Bucket, BucketKind, Buckets, CacheControl,
    CatalogError, CorsOrigins, CorsRule, LifecycleRule, MemberRole, OrganisationId,
    PublicAccessBlock, QuotaChange, ServeHtml, bucket,
};
use crate::limits::BUCKETS_PER_ACCOUNT_MAX;
use crate::object_attributes::Tags;
use crate::object_lock::BucketLock;
use crate::versions::{Rules, Versioning, VersioningState};

/// Parameters of a new bucket.
pub struct NewBucket {
    pub name: BucketName,
    pub owner: NewBucketOwner,
    pub kind: BucketKind,
    pub settings: BucketChange,
}

/// Owner of a new bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewBucketOwner {
    Account(AccountId),
    /// An organisation; the bucket counts for the account that owns it.
    Organisation(OrganisationId),
}

/// Change of a bucket; `None` leaves a field unchanged.
#[derive(Default)]
pub struct BucketChange {
    pub access: Option<Access>,
    /// `Some(None)` removes the placeholder.
    pub placeholder: Option<Option<ObjectName>>,
    /// `Some(None)` restores the default.
    pub cache_control: Option<Option<CacheControl>>,
    pub cors_origins: Option<CorsOrigins>,
    pub cors_rules: Option<Vec<CorsRule>>,
    pub allowed_types: Option<AllowedTypes>,
    /// `Some(None)` removes the limit.
    pub file_bytes_max: Option<Option<u64>>,
    pub quota: QuotaChange,
    pub serve_html: Option<ServeHtml>,
    pub thumbnails: Option<bool>,
    pub index: Option<bool>,
    pub compression: Option<bool>,
    pub lifecycle: Option<Vec<LifecycleRule>>,
    pub tags: Option<Tags>,
    pub versioning: Option<VersioningState>,
    /// Enables object lock, or replaces its default retention.
    pub object_lock: Option<BucketLock>,
    /// `Some(None)` removes the block.
    pub public_access_block: Option<Option<PublicAccessBlock>>,
    pub policy: Option<Option<String>>,
    /// Whether a grant of public access is accepted that the public access block of the bucket hides (S3 API).
    pub may_be_hidden: bool,
}

/// All buckets, and deleted ones whose objects are still being removed.
#[derive(Debug, Default)]
pub(super) struct BucketTable {
    buckets: BTreeMap<BucketName, Arc<Bucket>>,
    /// Buckets by owner.
    owned: BTreeMap<AccountId, BTreeSet<BucketName>>,
    /// Deletions in progress: their names are not free yet.
    deletions: BTreeMap<BucketName, PendingDeletion>,
    /// Counters of deleted buckets that requests in flight may still use.
    orphaned: Vec<OrphanedCounters>,
}

#[derive(Debug)]
struct OrphanedCounters {
    name: BucketName,
    after_lsn: Option<u64>,
    counters: Arc<BucketCounters>,
}

impl Table for BucketTable {
    const PREFIXES: &'static [&'static str] = &[bucket::PREFIX, bucket::REMOVAL_PREFIX];

    fn apply(&mut self, fact: &FactName, value: Option<&[u8]>) -> Result<(), CatalogError> {
        let (prefix, name) = split(fact);
        let name = BucketName::parse(name).map_err(|why| corrupt_record(fact, &why))?;
        match (prefix == bucket::PREFIX, value) {
            (true, Some(value)) => self.put(decode(fact, value)?),
            (true, None) => self.remove(&name),
            (false, Some(value)) => {
                let deletion: PendingDeletion = decode(fact, value)?;
                let is_claimed = self.deletions.get(&name).is_some_and(|it| it.is_claimed);
                self.deletions.insert(name, PendingDeletion { is_claimed, ..deletion });
            }
            (false, None) => drop(self.deletions.remove(&name)),
        }
        Ok(())
    }
}

impl BucketTable {
    /// Puts a bucket, which retains its counters when it is edited, and when its deletion is undone.
    fn put(&mut self, mut bucket: Bucket) {
        match self.buckets.get(&bucket.name) {
            Some(known) if **known == bucket => return,
            Some(known) if known.after_lsn == bucket.after_lsn => {
                bucket.traffic = known.traffic.clone();
            }
            Some(_) => self.remove(&bucket.name),
            None => {}
        }
        let is_it =
            |it: &OrphanedCounters| it.name == bucket.name && it.after_lsn == bucket.after_lsn;
        if let Some(at) = self.orphaned.iter().position(is_it) {
            bucket.traffic = self.orphaned.swap_remove(at).counters;
        }
        self.owned.entry(bucket.owner.clone()).or_default().insert(bucket.name.clone());
        self.buckets.insert(bucket.name.clone(), Arc::new(bucket));
    }

    /// Removes a bucket. Its unwritten counts are left to the server-wide history.
    fn remove(&mut self, name: &BucketName) {
        let Some(bucket) = self.buckets.remove(name) else { return };
        if let Some(owned) = self.owned.get_mut(&bucket.owner) {
            owned.remove(name);
            if owned.is_empty() {
                self.owned.remove(&bucket.owner);
            }
        }
        let (name, counters) = (bucket.name.clone(), bucket.traffic.clone());
        self.orphaned.push(OrphanedCounters { name, after_lsn: bucket.after_lsn, counters });
    }

    /// Returns the owner of a bucket, also while its deletion may be undone.
    pub(super) fn owner_of(&self, name: &BucketName) -> Option<AccountId> {
        let deleted = || self.deletions.get(name)?.must_be_empty.as_ref();
        let bucket = self.buckets.get(name).map(|bucket| &**bucket).or_else(deleted)?;
        Some(bucket.owner.clone())
    }

    pub(super) fn has_orphaned(&self) -> bool {
        !self.orphaned.is_empty()
    }

    /// Moves the counts of deleted buckets, until no request uses their counters.
    pub(super) fn merge_orphaned(&mut self, into: &BucketCounters, now_ms: u64) {
        self.orphaned.retain_mut(|it| {
            // Checked first: a request that has released the counters by then has counted.
            let is_used = Arc::get_mut(&mut it.counters).is_none();
            into.merge_from(&it.counters, now_ms);
            is_used
        });
    }

    /// Claims a deletion: this one, or any that is unclaimed.
    pub(super) fn claim_deletion(
        &mut self,
        name: Option<&BucketName>,
    ) -> Option<(BucketName, Option<Bucket>)> {
        let is_meant = |it: &BucketName| name.is_none_or(|name| name == it);
        let mut unclaimed = self.deletions.iter_mut().filter(|(_, it)| !it.is_claimed);
        let (name, deletion) = unclaimed.find(|(name, _)| is_meant(name))?;
        deletion.is_claimed = true;
        Some((name.clone(), deletion.must_be_empty.clone()))
    }

    pub(super) fn release_deletion(&mut self, name: &BucketName) {
        if let Some(deletion) = self.deletions.get_mut(name) {
            deletion.is_claimed = false;
        }
    }
}

/// Lookup and access.
impl Buckets<'_> {
    /// Returns the bucket with this name.
    pub fn get(&self, name: &BucketName) -> Option<Arc<Bucket>> {
        self.0.state.buckets.read().buckets.get(name).cloned()
    }

    /// Returns every bucket, by name.
    pub fn all(&self) -> Vec<Arc<Bucket>> {
        self.0.state.buckets.read().buckets.values().cloned().collect()
    }

    /// Returns the names of the buckets that an account owns.
    pub fn names_of(&self, owner: &AccountId) -> Vec<BucketName> {
        self.0.state.buckets.read().owned.get(owner).into_iter().flatten().cloned().collect()
    }

    /// Returns the role of an account in a bucket: its owner, or a member of its organisation.
    ///
    /// The single decision about access to a bucket. It is evaluated for each request, so that a removed member loses
    /// access immediately.
    pub fn role(&self, account: &AccountId, bucket: &Bucket) -> Option<MemberRole> {
        if bucket.owner == *account {
            return Some(MemberRole::Owner);
        }
        let organisation = self.0.organisations().get(bucket.organisation.as_ref()?)?;
        organisation.members.get(account).copied()
    }

    /// Returns the rules for new versions of a bucket; `None` if it was never versioned.
    pub fn version_rules(&self, bucket: &BucketName) -> Option<Rules> {
        let bucket = self.get(bucket)?;
        let retention = bucket.object_lock.and_then(|lock| lock.default_retention);
        let retention = retention.map(|it| it.starting_at(self.0.now_ms()));
        Some(Rules { versioning: bucket.versioning?, retention })
    }

    pub(super) fn require(&self, name: &BucketName) -> Result<Arc<Bucket>, CatalogError> {
        self.get(name).ok_or_else(|| CatalogError::BucketNotFound(name.to_string()))
    }
}

/// Changes.
impl Buckets<'_> {
    /// Creates a bucket.
    pub fn create(&self, new: NewBucket) -> Result<Arc<Bucket>, CatalogError> {
        let mut change = self.0.begin();
        let (owner, organisation) = match new.owner {
            NewBucketOwner::Account(id) => (id, None),
            NewBucketOwner::Organisation(id) => {
                (self.0.organisations().require(&id)?.owner.clone(), Some(id))
            }
        };
        self.0.accounts().require(&owner)?;
        self.check_new(&new.name, &owner)?;
        let (name, kind, settings) = (new.name, new.kind, new.settings);
        let bucket = self.add(&mut change, name, owner, organisation, kind, settings)?;
        change.audit(AuditRecord::new(AuditAction::BucketCreate).bucket(&bucket));
        change.commit()?;
        self.require(&bucket.name)
    }

    /// Adds a new bucket to a change.
    pub(super) fn add(
        &self,
        change: &mut Change<'_>,
        name: BucketName,
        owner: AccountId,
        organisation: Option<OrganisationId>,
        kind: BucketKind,
        settings: BucketChange,
    ) -> Result<Bucket, CatalogError> {
        let (after_lsn, now_ms) = (self.0.state.store.last_lsn()?, self.0.now_ms());
        let mut bucket = Bucket::with_defaults(name, owner, organisation, kind, after_lsn, now_ms);
        self.check_placeholder(&bucket, &settings)?;
        set_versions(&mut bucket, &settings, after_lsn)?;
        settings.apply(&mut bucket);
        check_bytes(&bucket)?;
        change.add(bucket.fact()?, &bucket)?;
        Ok(bucket)
    }

    /// Edits a bucket.
    pub fn edit(
        &self,
        name: &BucketName,
        settings: BucketChange,
    ) -> Result<Arc<Bucket>, CatalogError> {
        let mut change = self.0.begin();
        let before = self.require(name)?;
        let mut bucket = Bucket::clone(&before);
        self.check_placeholder(&bucket, &settings)?;
        let is_granting =
            settings.access == Some(Access::Public) && bucket.access == Access::Private;
        let block = bucket.public_access_block;
        let is_rejected = block.is_some_and(|it| it.rejects_grants(settings.may_be_hidden));
        if is_granting && is_rejected {
            let rule = "the bucket blocks public access: an S3 client removes that (DeletePublicAccessBlock)";
            return Err(CatalogError::InvalidSetting { setting: "access", rule: rule.to_owned() });
        }
        set_versions(&mut bucket, &settings, self.0.state.store.last_lsn()?)?;
        settings.apply(&mut bucket);
        check_bytes(&bucket)?;
        bucket.updated_ms = self.0.now_ms();
        let detail = changed_settings(&*before, &bucket, &[]);
        change.audit(AuditRecord::new(AuditAction::BucketChange).bucket(&bucket).detail(detail));
        change.put(bucket.fact()?, &bucket)?;
        change.commit()?;
        self.require(name)
    }

    /// Checks that the name is free, and the limits on the number of buckets.
    pub(super) fn check_new(
        &self,
        name: &BucketName,
        owner: &AccountId,
    ) -> Result<(), CatalogError> {
        let what = format!("the bucket {name}");
        if self.get(name).is_some() {
            return Err(CatalogError::AlreadyExists(what));
        }
        if self.0.state.buckets.read().deletions.contains_key(name) {
            return Err(CatalogError::AlreadyExists(format!("{what} is being deleted: it")));
        }
        check_total(self.0.state.buckets.read().buckets.len(), "buckets")?;
        let owned = self.names_of(owner).len();
        check_count(owned, BUCKETS_PER_ACCOUNT_MAX, "buckets of the account")
    }

    /// Checks that a placeholder is in the bucket, or in another one of the same account. It need not exist yet.
    fn check_placeholder(
        &self,
        bucket: &Bucket,
        change: &BucketChange,
    ) -> Result<(), CatalogError> {
        let Some(Some(placeholder)) = &change.placeholder else { return Ok(()) };
        if placeholder.bucket == bucket.name {
            return Ok(());
        }
        match self.get(&placeholder.bucket) {
            Some(other) if other.owner == bucket.owner => Ok(()),
            _ => Err(CatalogError::InvalidSetting {
                setting: "placeholder",
                rule: format!("the account has no bucket {}", placeholder.bucket),
            }),
        }
    }
}

/// Changes versioning and object lock, which requires enabled versioning.
fn set_versions(
    bucket: &mut Bucket,
    change: &BucketChange,
    last_lsn: u64,
) -> Result<(), CatalogError> {
    if let Some(state) = change.versioning {
        let after_lsn = bucket.versioning.map_or(last_lsn, |it| it.after_lsn);
        bucket.versioning = Some(Versioning { state, after_lsn });
    }
    bucket.object_lock = change.object_lock.or(bucket.object_lock);
    let is_enabled = bucket.versioning.is_some_and(|it| it.state == VersioningState::Enabled);
    match bucket.object_lock.is_some() && !is_enabled {
        true => Err(CatalogError::InvalidSetting {
            setting: "versioning",
            rule: "object lock requires enabled versioning".to_owned(),
        }),
        false => Ok(()),
    }
}

/// Checks that the record of a bucket fits in a fact.
fn check_bytes(bucket: &Bucket) -> Result<(), CatalogError> {
    let (bytes, bytes_max) = (encode(&bucket.fact()?, bucket)?.len(), FACT_BYTES_MAX);
    match bytes <= bytes_max {
        true => Ok(()),
        false => Err(CatalogError::InvalidRequest(format!(
            "the settings of the bucket have {bytes} bytes; the limit is {bytes_max}: shorten its rules or lists"
        ))),
    }
}

impl BucketChange {
    fn apply(self, bucket: &mut Bucket) {
        bucket.granted_access = self.access.unwrap_or(bucket.granted_access);
        bucket.policy = self.policy.unwrap_or(bucket.policy.take());
        bucket.public_access_block = self.public_access_block.unwrap_or(bucket.public_access_block);
        bucket.settle_access();
        bucket.serve_html = self.serve_html.unwrap_or(bucket.serve_html);
        bucket.thumbnails = self.thumbnails.unwrap_or(bucket.thumbnails);
        bucket.index = self.index.unwrap_or(bucket.index);
        bucket.compression = self.compression.unwrap_or(bucket.compression);
        bucket.file_bytes_max = self.file_bytes_max.unwrap_or(bucket.file_bytes_max);
        self.quota.apply(&mut bucket.quota);
        if let Some(placeholder) = self.placeholder {
            bucket.set_placeholder(placeholder);
        }
        if let Some(cache_control) = self.cache_control {
            bucket.cache_control = cache_control;
        }
        if let Some(cors_origins) = self.cors_origins {
            bucket.cors_origins = cors_origins;
        }
        if let Some(cors_rules) = self.cors_rules {
            bucket.cors_rules = cors_rules;
        }
        if let Some(lifecycle) = self.lifecycle {
            bucket.lifecycle = lifecycle;
        }
        if let Some(tags) = self.tags {
            bucket.tags = tags;
        }
        if let Some(allowed_types) = self.allowed_types {
            bucket.allowed_types = allowed_types;
        }
    }
}
