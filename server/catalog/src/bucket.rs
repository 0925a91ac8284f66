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
use super::lifecycle::{LifecycleRule, check_lifecycle};
use super::public_access::PublicAccessBlock;
use super::quota::Quota;
use super::record::Record;
use super::stored_text::{StoredText, optional_text};
use crate::object_attributes::Tags;
use crate::object_lock::BucketLock;
use crate::versions::Versioning;

/// Prefix of the fact names of buckets.
pub(super) const PREFIX: &str = "bucket/";
/// Prefix of the fact names of deleted buckets whose objects are still being removed.
pub(super) const REMOVAL_PREFIX: &str = "bucket-removal/";

/// Named collection of objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bucket {
    #[serde(skip, default = "unnamed")]
    pub name: BucketName,
    /// Account whose plan and quota apply.
    pub owner: AccountId,
    /// Organisation whose members have access as well.
    pub organisation: Option<OrganisationId>,
    pub kind: BucketKind,
    /// Effective anonymous read access: as granted, unless the public access block hides it.
    #[serde(skip)]
    pub access: Access,
    /// Anonymous read access as it was granted.
    #[serde(rename = "access")]
    pub granted_access: Access,
    /// Object that is delivered, with status 404, in place of a missing file: a key of this bucket, or `/bucket/key`
    /// for one of another bucket of the same account.
    pub placeholder: Option<String>,
    /// `Cache-Control` of files whose names are not random, if not the default.
    #[serde(default, with = "optional_text")]
    pub cache_control: Option<CacheControl>,
    /// Origins whose pages may read its files.
    #[serde(default)]
    pub cors_origins: CorsOrigins,
    /// CORS rules that S3 clients set; without any, `cors_origins` applies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cors_rules: Vec<CorsRule>,
    /// Media types that it accepts.
    #[serde(default)]
    pub allowed_types: AllowedTypes,
    /// Largest file that it accepts.
    pub file_bytes_max: Option<u64>,
    /// Quota of the bucket.
    #[serde(default)]
    pub quota: Quota,
    /// Whether HTML is served as HTML.
    pub serve_html: ServeHtml,
    /// Whether uploads create thumbnails of images by default.
    #[serde(default)]
    pub thumbnails: bool,
    /// Whether search engines may index its objects while it is public.
    #[serde(default = "indexed")]
    pub index: bool,
    /// Whether text-like files are delivered compressed to clients that accept it.
    #[serde(default = "compressed")]
    pub compression: bool,
    /// Lifecycle rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lifecycle: Vec<LifecycleRule>,
    /// Tags that S3 clients set.
    #[serde(default, skip_serializing_if = "Tags::is_empty")]
    pub tags: Tags,
    /// Versioning; `None` if it was never enabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versioning: Option<Versioning>,
    /// Object lock, if enabled; it requires enabled versioning and is never disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_lock: Option<BucketLock>,
    /// Public access block, set by S3 clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub public_access_block: Option<PublicAccessBlock>,
    /// Policy with which an S3 client granted public access, verbatim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// LSN up to which log records with this bucket's name belong to an earlier bucket. `None` for buckets that predate
    /// this field.
    pub after_lsn: Option<u64>,
    pub created_ms: u64,
    pub updated_ms: u64,
    /// Usage counters; not a setting, but found together with the bucket.
    #[serde(skip)]
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

/// Returns the default of [`Bucket::index`].
fn indexed() -> bool {
    true
}

/// Returns the default of [`Bucket::compression`].
fn compressed() -> bool {
    true
}

/// Returns the name of a bucket whose name is not set yet; see [`Record::named`].
fn unnamed() -> BucketName {
    BucketName::parse("unnamed").expect("a valid name")
}

impl Record for Bucket {
    fn named(self, name: &str) -> Result<Self, String> {
        check_rules(&self.cors_rules)?;
        check_lifecycle(&self.lifecycle)?;
        let mut bucket = Self { name: BucketName::from_text(name)?, ..self };
        if let Some(text) = &bucket.placeholder {
            parse_placeholder(&bucket.name, text).map_err(|error| error.to_string())?;
        }
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
            compression: compressed(),
            lifecycle: Vec::new(),
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

    /// Returns the object that is delivered in place of a missing file.
    pub fn placeholder_object(&self) -> Option<ObjectName> {
        parse_placeholder(&self.name, self.placeholder.as_deref()?).ok()
    }

    pub(super) fn set_placeholder(&mut self, object: Option<ObjectName>) {
        self.placeholder = object.map(|object| match object.bucket == self.name {
            true => object.key.to_string(),
            false => format!("/{object}"),
        });
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
