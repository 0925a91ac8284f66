//! The bucket: whose it is, who may read it, how its files are delivered.
//!
//! Never here: objects, and who is asking.

use engine::{BucketName, FactName, NameError, ObjectKey};
use serde::{Deserialize, Serialize};

use super::CatalogError;
use super::account::AccountId;
use super::record::Stored;
use crate::limits::CATALOG_TEXT_BYTES_MAX;
use crate::reserved;

/// The fact names of buckets start with this.
pub(super) const PREFIX: &str = "bucket/";
/// And those of buckets whose objects are still being removed with this.
pub(super) const REMOVAL_PREFIX: &str = "bucket-removal/";

/// A named collection of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    pub name: BucketName,
    pub owner: AccountId,
    pub kind: BucketKind,
    pub access: Access,
    /// What is delivered, with status 404, where a file is missing: a key of this bucket.
    pub placeholder: Option<ObjectKey>,
    /// `Cache-Control` of files whose names are not random, where the default does not fit.
    pub cache_control: Option<CacheControl>,
    /// Whether HTML goes out as HTML.
    pub serve_html: ServeHtml,
    pub created_ms: u64,
    pub updated_ms: u64,
}

/// What a bucket is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BucketKind {
    #[default]
    Standard,
    /// For game phones and tablets: lenient about upload paths.
    Phone,
}

/// Who may read files without a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    #[default]
    Public,
    Private,
}

/// How HTML files leave a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServeHtml {
    /// As plain text that no browser runs.
    #[default]
    AsText,
    /// As pages, under the sandbox policy.
    AsPages,
}

/// A value of the header `Cache-Control`: visible ASCII and spaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheControl(String);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredBucket {
    owner: String,
    kind: BucketKind,
    access: Access,
    placeholder: Option<String>,
    cache_control: Option<String>,
    serve_html: ServeHtml,
    created_ms: u64,
    updated_ms: u64,
}

impl Stored for StoredBucket {
    const VERSION: u32 = 1;
}

impl Bucket {
    /// The fact that makes the bucket exist: writes into the bucket require it.
    pub fn fact(&self) -> Result<FactName, NameError> {
        fact(&self.name)
    }

    pub(super) fn stored(&self) -> StoredBucket {
        StoredBucket {
            owner: self.owner.as_str().to_owned(),
            kind: self.kind,
            access: self.access,
            placeholder: self.placeholder.as_ref().map(|key| key.as_str().to_owned()),
            cache_control: self.cache_control.as_ref().map(|value| value.as_str().to_owned()),
            serve_html: self.serve_html,
            created_ms: self.created_ms,
            updated_ms: self.updated_ms,
        }
    }

    pub(super) fn from_stored(name: &str, stored: StoredBucket) -> Result<Self, String> {
        let say = |error: NameError| error.to_string();
        Ok(Self {
            name: BucketName::parse(name).map_err(say)?,
            owner: AccountId::parse(&stored.owner).ok_or("its owner is not an account id")?,
            kind: stored.kind,
            access: stored.access,
            placeholder: match stored.placeholder {
                Some(key) => Some(ObjectKey::parse(&key).map_err(say)?),
                None => None,
            },
            cache_control: match stored.cache_control {
                Some(value) => {
                    Some(CacheControl::parse(&value).map_err(|error| error.to_string())?)
                }
                None => None,
            },
            serve_html: stored.serve_html,
            created_ms: stored.created_ms,
            updated_ms: stored.updated_ms,
        })
    }
}

impl CacheControl {
    /// Checks that the value can stand in a header.
    pub fn parse(value: &str) -> Result<Self, CatalogError> {
        let plain = value.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
        if value.trim().is_empty() || value.len() > CATALOG_TEXT_BYTES_MAX || !plain {
            return Err(CatalogError::Refused(format!(
                "Cache-Control must be 1 to {CATALOG_TEXT_BYTES_MAX} visible ASCII characters"
            )));
        }
        Ok(Self(value.trim().to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Checks a name for a new bucket: legal, and not one that the service keeps for itself.
pub fn new_bucket_name(name: &str) -> Result<BucketName, CatalogError> {
    if reserved::is_reserved(name) {
        return Err(CatalogError::Refused(format!("the bucket name {name:?} is reserved")));
    }
    BucketName::parse(name).map_err(|why| {
        CatalogError::Refused(format!("the bucket name {name:?} is not valid: {why}"))
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
    fn reserved_and_illegal_names_are_refused_with_a_reason() {
        for name in reserved::BUCKET_NAMES {
            assert!(new_bucket_name(name).is_err(), "{name}");
        }
        let why = new_bucket_name("No").unwrap_err().to_string();
        assert!(why.contains("\"No\"") && why.contains("shorter than 3"), "{why}");
        assert_eq!(new_bucket_name("photos").unwrap().as_str(), "photos");
    }

    #[test]
    fn cache_control_cannot_smuggle_a_header() {
        for bad in ["", "  ", "a\r\nX: 1", "é", &"a".repeat(201)] {
            assert!(CacheControl::parse(bad).is_err(), "{bad:?}");
        }
        assert_eq!(CacheControl::parse("no-cache").unwrap().as_str(), "no-cache");
    }
}
