//! Bucket: owner, access, accepted files, and delivery settings.
//!
//! Non-goals: objects, and authentication.

use std::sync::Arc;

use engine::name::NameError;
use engine::{BucketName, FactName, ObjectKey, ObjectName};
use protocol::reserved_paths;
use serde::{Deserialize, Serialize};
use usage::bucket_counters::BucketCounters;
use utoipa::ToSchema;

use super::CatalogError;
use super::bucket_rules::{AllowedTypes, CacheControl, CorsOrigins};
use super::cors_rules::{CorsRule, check_rules};
use super::id::{AccountId, OrganisationId};
use super::public_access::PublicAccessBlock;
use super::quota::Quota;
use super::record::{CatalogRecord, Record};
use crate::object_attributes::Tags;
use crate::object_lock::BucketLock;
use crate::versions::Versioning;

/// Prefix of the fact names of buckets.
pub(super) const PREFIX: &str = "bucket/";
/// Prefix of the fact names of deleted buckets whose objects are still being removed.
pub(super) const REMOVAL_PREFIX: &str = "bucket-removal/";

/// Named collection of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    pub name: BucketName,
    /// Account whose plan and quota apply.
    pub owner: AccountId,
    /// Organisation whose members have access as well.
    pub organisation: Option<OrganisationId>,
    pub kind: BucketKind,
    /// Effective anonymous read access: as granted, unless the public access block hides it.
    pub access: Access,
    /// Anonymous read access as it was granted.
    pub granted_access: Access,
    /// Public access block, set by S3 clients.
    pub public_access_block: Option<PublicAccessBlock>,
    /// Policy with which an S3 client granted public access, verbatim.
    pub policy: Option<String>,
    /// Object that is delivered, with status 404, in place of a missing file: of this bucket, or of another one of the
    /// same account.
    pub placeholder: Option<ObjectName>,
    /// `Cache-Control` of files whose names are not random, if not the default.
    pub cache_control: Option<CacheControl>,
    /// Origins whose pages may read its files.
    pub cors_origins: CorsOrigins,
    /// CORS rules that S3 clients set; without any, `cors_origins` applies.
    pub cors_rules: Vec<CorsRule>,
    /// Media types that it accepts.
    pub allowed_types: AllowedTypes,
    /// Largest file that it accepts.
    pub file_bytes_max: Option<u64>,
    /// Quota of the bucket.
    pub quota: Quota,
    /// Whether HTML is served as HTML.
    pub serve_html: ServeHtml,
    /// Whether uploads create thumbnails of images by default.
    pub thumbnails: bool,
    /// Whether search engines may index its objects while it is public.
    pub index: bool,
    /// Tags that S3 clients set.
    pub tags: Tags,
    /// Versioning; `None` if it was never enabled.
    pub versioning: Option<Versioning>,
    /// Object lock, if enabled; it requires enabled versioning and is never disabled.
    pub object_lock: Option<BucketLock>,
    /// LSN up to which log records with this bucket's name belong to an earlier bucket. `None` for buckets that predate
    /// this field.
    pub after_lsn: Option<u64>,
    pub created_ms: u64,
    pub updated_ms: u64,
    /// Usage counters; not a setting, but found together with the bucket.
    pub traffic: Arc<BucketCounters>,
}

/// Bucket type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum BucketKind {
    #[default]
    Standard,
    /// For game phones and tablets: lenient about upload paths.
    Phone,
}

/// Read access to files without an API key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    #[default]
    Public,
    Private,
}

/// Delivery of HTML files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServeHtml {
    /// As plain text that no browser runs.
    #[default]
    AsText,
    /// As pages, with the sandbox policy.
    AsPages,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredBucket {
    owner: String,
    #[serde(default)]
    organisation: Option<String>,
    kind: BucketKind,
    access: Access,
    placeholder: Option<String>,
    cache_control: Option<String>,
    /// `None` for every origin.
    #[serde(default)]
    cors_origins: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    cors_rules: Vec<CorsRule>,
    /// Empty for every type.
    #[serde(default)]
    allowed_types: Vec<String>,
    #[serde(default)]
    file_bytes_max: Option<u64>,
    #[serde(default)]
    quota: Quota,
    serve_html: ServeHtml,
    #[serde(default)]
    thumbnails: bool,
    #[serde(default = "indexed")]
    index: bool,
    #[serde(default, skip_serializing_if = "Tags::is_empty")]
    tags: Tags,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    versioning: Option<Versioning>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    object_lock: Option<BucketLock>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    public_access_block: Option<PublicAccessBlock>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    policy: Option<String>,
    #[serde(default)]
    after_lsn: Option<u64>,
    created_ms: u64,
    updated_ms: u64,
}

/// Returns the default of [`Bucket::index`].
fn indexed() -> bool {
    true
}

impl CatalogRecord for StoredBucket {}

impl Record for Bucket {
    type Stored = StoredBucket;

    fn stored(&self) -> StoredBucket {
        StoredBucket {
            owner: self.owner.to_string(),
            organisation: self.organisation.as_ref().map(ToString::to_string),
            kind: self.kind,
            access: self.granted_access,
            public_access_block: self.public_access_block,
            policy: self.policy.clone(),
            placeholder: self.placeholder_text(),
            cache_control: self.cache_control.as_ref().map(|value| value.as_str().to_owned()),
            cors_origins: match &self.cors_origins {
                CorsOrigins::Any => None,
                CorsOrigins::Only(origins) => Some(origins.clone()),
            },
            cors_rules: self.cors_rules.clone(),
            allowed_types: self.allowed_types.to_list(),
            file_bytes_max: self.file_bytes_max,
            quota: self.quota,
            serve_html: self.serve_html,
            thumbnails: self.thumbnails,
            index: self.index,
            tags: self.tags.clone(),
            versioning: self.versioning,
            object_lock: self.object_lock,
            after_lsn: self.after_lsn,
            created_ms: self.created_ms,
            updated_ms: self.updated_ms,
        }
    }

    fn from_stored(name: &str, stored: StoredBucket) -> Result<Self, String> {
        let say = |error: CatalogError| error.to_string();
        let name = BucketName::parse(name).map_err(|error| error.to_string())?;
        let organisation = |id: String| {
            OrganisationId::parse(&id).ok_or("its organisation is not the id of an organisation")
        };
        let placeholder = |text: String| parse_placeholder(&name, &text).map_err(say);
        let cache_control = |value: String| CacheControl::parse(&value).map_err(say);
        check_rules(&stored.cors_rules)?;
        let cors_origins = |list: Vec<String>| CorsOrigins::parse(&list).map_err(say);
        let mut bucket = Self {
            owner: AccountId::parse(&stored.owner).ok_or("its owner is not an account id")?,
            organisation: stored.organisation.map(organisation).transpose()?,
            kind: stored.kind,
            access: stored.access,
            granted_access: stored.access,
            public_access_block: stored.public_access_block,
            policy: stored.policy,
            placeholder: stored.placeholder.map(placeholder).transpose()?,
            cache_control: stored.cache_control.map(cache_control).transpose()?,
            cors_origins: stored.cors_origins.map(cors_origins).transpose()?.unwrap_or_default(),
            cors_rules: stored.cors_rules,
            allowed_types: AllowedTypes::parse(&stored.allowed_types).map_err(say)?,
            file_bytes_max: stored.file_bytes_max,
            quota: stored.quota,
            serve_html: stored.serve_html,
            thumbnails: stored.thumbnails,
            index: stored.index,
            tags: stored.tags,
            versioning: stored.versioning,
            object_lock: stored.object_lock,
            after_lsn: stored.after_lsn,
            created_ms: stored.created_ms,
            updated_ms: stored.updated_ms,
            traffic: Arc::default(),
            name,
        };
        bucket.settle_access();
        Ok(bucket)
    }
}

impl Bucket {
    /// Creates a bucket with default settings.
    pub(super) fn with_defaults(
        name: BucketName,
        owner: AccountId,
        organisation: Option<OrganisationId>,
        kind: BucketKind,
        after_lsn: u64,
        now_ms: u64,
    ) -> Self {
        Self {
            name,
            owner,
            organisation,
            kind,
            access: Access::default(),
            granted_access: Access::default(),
            public_access_block: None,
            policy: None,
            placeholder: None,
            cache_control: None,
            cors_origins: CorsOrigins::default(),
            cors_rules: Vec::new(),
            allowed_types: AllowedTypes::default(),
            file_bytes_max: None,
            quota: Quota::default(),
            serve_html: ServeHtml::default(),
            thumbnails: kind == BucketKind::Phone,
            index: indexed(),
            tags: Tags::new(),
            versioning: None,
            object_lock: None,
            after_lsn: Some(after_lsn),
            created_ms: now_ms,
            updated_ms: now_ms,
            traffic: Arc::default(),
        }
    }

    /// Returns the fact whose existence makes the bucket exist: writes into the bucket require it.
    pub fn fact(&self) -> Result<FactName, NameError> {
        fact(&self.name)
    }

    /// Formats the placeholder: a key of this bucket, or `/bucket/key`.
    pub fn placeholder_text(&self) -> Option<String> {
        self.placeholder.as_ref().map(|object| match object.bucket == self.name {
            true => object.key.to_string(),
            false => format!("/{}/{}", object.bucket, object.key),
        })
    }
}

/// Parses the placeholder of a bucket. A key never starts with `/`, so a text that does names its bucket.
pub fn parse_placeholder(bucket: &BucketName, text: &str) -> Result<ObjectName, CatalogError> {
    let refuse = |why: &dyn std::fmt::Display| {
        CatalogError::InvalidRequest(format!(
            "the placeholder {text:?} is neither a key nor an address such as \"/bucket/key\": {why}"
        ))
    };
    let (bucket, key) = match text.strip_prefix('/') {
        None => (bucket.clone(), text),
        Some(rest) => {
            let (name, key) = rest.split_once('/').unwrap_or((rest, ""));
            (BucketName::parse(name).map_err(|why| refuse(&why))?, key)
        }
    };
    let key = ObjectKey::parse(key).map_err(|why| refuse(&why))?;
    if key.is_folder_marker() {
        return Err(refuse(&"it is a folder"));
    }
    Ok(ObjectName::new(bucket, key))
}

/// Validates the name of a new bucket: well-formed and not reserved.
pub fn new_bucket_name(name: &str) -> Result<BucketName, CatalogError> {
    if reserved_paths::is_reserved(name) {
        return Err(CatalogError::InvalidRequest(format!("the bucket name {name:?} is reserved")));
    }
    BucketName::parse(name).map_err(|why| {
        CatalogError::InvalidRequest(format!("the bucket name {name:?} is not valid: {why}"))
    })
}

pub(super) fn fact(name: &BucketName) -> Result<FactName, NameError> {
    FactName::parse(&format!("{PREFIX}{name}"))
}

pub(super) fn removal_fact(name: &BucketName) -> Result<FactName, NameError> {
    FactName::parse(&format!("{REMOVAL_PREFIX}{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_bucket_names_are_rejected_with_a_reason() {
        for name in reserved_paths::BUCKET_NAMES {
            assert!(new_bucket_name(name).is_err(), "{name}");
        }
        let why = new_bucket_name("No").unwrap_err().to_string();
        assert!(why.contains("\"No\"") && why.contains("shorter than 3"), "{why}");
        assert_eq!(new_bucket_name("photos").unwrap().as_str(), "photos");
    }

    #[test]
    fn placeholder_is_an_object_key_or_url() {
        let bucket = BucketName::parse("photos").unwrap();
        let read = |text: &str| parse_placeholder(&bucket, text).map(|it| it.to_string());
        assert_eq!(read("img/none.png").unwrap(), "photos/img/none.png");
        assert_eq!(read("/other/none.png").unwrap(), "other/none.png");
        for bad in ["", "/", "/other", "/other/", "/NO/a", "a//b", "a/", "../a"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
