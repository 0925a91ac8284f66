//! Creation and editing of buckets. `removal.rs` deletes them.

use std::sync::Arc;

use engine::{BucketName, ObjectName};

use super::super::audit_entry::{AuditRecord, changed_settings};
use super::super::{
    Access, AccountId, AllowedTypes, AuditAction, Bucket, BucketKind, CacheControl, Catalog,
    CatalogError, CorsOrigins, CorsRule, OrganisationId, PublicAccessBlock, ServeHtml,
};
use super::{QuotaChange, check_count, check_total};
use crate::limits::BUCKETS_PER_ACCOUNT_MAX;
use crate::object_attributes::Tags;
use crate::object_lock::BucketLock;
use crate::versions::{Versioning, VersioningState};

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

impl Catalog {
    /// Creates a bucket.
    pub fn create_bucket(&self, new: NewBucket) -> Result<Arc<Bucket>, CatalogError> {
        let _changing = self.change();
        let (owner, organisation) = match new.owner {
            NewBucketOwner::Account(id) => (id, None),
            NewBucketOwner::Organisation(id) => {
                (self.require_organisation(&id)?.owner.clone(), Some(id))
            }
        };
        self.require_account(&owner)?;
        self.check_new_bucket(&new.name, &owner)?;
        let now_ms = self.0.clock.unix_ms();
        let after_lsn = self.0.store.last_lsn()?;
        let mut bucket =
            Bucket::with_defaults(new.name, owner, organisation, new.kind, after_lsn, now_ms);
        self.check_placeholder(&bucket, &new.settings)?;
        set_versions(&mut bucket, &new.settings, after_lsn)?;
        new.settings.apply(&mut bucket);
        let entry = AuditRecord::new(AuditAction::BucketCreate).bucket(&bucket);
        self.add_record(bucket.fact()?, &bucket.stored(), entry)?;
        Ok(self.show_bucket(bucket))
    }

    /// Edits a bucket.
    pub fn edit_bucket(
        &self,
        name: &BucketName,
        change: BucketChange,
    ) -> Result<Arc<Bucket>, CatalogError> {
        let _changing = self.change();
        let before = self.require_bucket(name)?;
        let mut bucket = Bucket::clone(&before);
        self.check_placeholder(&bucket, &change)?;
        let is_granting = change.access == Some(Access::Public) && bucket.access == Access::Private;
        let block = bucket.public_access_block;
        let is_rejected = block.is_some_and(|it| it.rejects_grants(change.may_be_hidden));
        if is_granting && is_rejected {
            let rule = "the bucket blocks public access: an S3 client removes that (DeletePublicAccessBlock)";
            return Err(CatalogError::InvalidSetting { setting: "access", rule: rule.to_owned() });
        }
        set_versions(&mut bucket, &change, self.0.store.last_lsn()?)?;
        change.apply(&mut bucket);
        bucket.updated_ms = self.0.clock.unix_ms();
        let detail = changed_settings(&before.stored(), &bucket.stored(), &[]);
        let entry = AuditRecord::new(AuditAction::BucketChange).bucket(&bucket).detail(detail);
        self.put_record(bucket.fact()?, &bucket.stored(), entry)?;
        Ok(self.show_bucket(bucket))
    }

    /// Checks that the name is free, and the limits on the number of buckets.
    pub(super) fn check_new_bucket(
        &self,
        name: &BucketName,
        owner: &AccountId,
    ) -> Result<(), CatalogError> {
        let what = format!("the bucket {name}");
        if self.bucket(name).is_some() {
            return Err(CatalogError::AlreadyExists(what));
        }
        if self.tables().removals.contains_key(name) {
            return Err(CatalogError::AlreadyExists(format!("{what} is being deleted: it")));
        }
        check_total(self.tables().buckets.len(), "buckets")?;
        let owned = self.bucket_names_of(owner).len();
        check_count(owned, BUCKETS_PER_ACCOUNT_MAX, "buckets of the account")
    }

    fn show_bucket(&self, bucket: Bucket) -> Arc<Bucket> {
        let bucket = Arc::new(bucket);
        self.publish(|tables| tables.insert_bucket(bucket.clone()));
        bucket
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
        match self.bucket(&placeholder.bucket) {
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

impl BucketChange {
    fn apply(self, bucket: &mut Bucket) {
        bucket.granted_access = self.access.unwrap_or(bucket.granted_access);
        bucket.policy = self.policy.unwrap_or(bucket.policy.take());
        bucket.public_access_block = self.public_access_block.unwrap_or(bucket.public_access_block);
        bucket.settle_access();
        bucket.serve_html = self.serve_html.unwrap_or(bucket.serve_html);
        bucket.thumbnails = self.thumbnails.unwrap_or(bucket.thumbnails);
        bucket.index = self.index.unwrap_or(bucket.index);
        bucket.file_bytes_max = self.file_bytes_max.unwrap_or(bucket.file_bytes_max);
        self.quota.apply(&mut bucket.quota);
        if let Some(placeholder) = self.placeholder {
            bucket.placeholder = placeholder;
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
        if let Some(tags) = self.tags {
            bucket.tags = tags;
        }
        if let Some(allowed_types) = self.allowed_types {
            bucket.allowed_types = allowed_types;
        }
    }
}
