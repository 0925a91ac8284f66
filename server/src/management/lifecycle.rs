//! Lifecycle rules of a bucket: JSON, and requests of the operator.

use std::sync::Arc;

use catalog::{
    Bucket, BucketChange, Catalog, CatalogError, Expiration, LifecycleRule, check_lifecycle,
};
use engine::limits::LIST_PAGE_MAX;
use engine::{Object, Store};
use protocol::time_format::iso_time;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::existing_bucket;
use super::reply::AdminResponse;
use super::settings::unix_ms;
use crate::limits::LIFECYCLE_PREVIEW_OBJECTS_MAX;

/// Lifecycle rule: objects whose keys begin with a prefix expire at an age or at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct LifecycleRuleView {
    /// Id, unique in the bucket, of 1 to 255 characters.
    #[schema(min_length = 1, max_length = 255)]
    pub id: String,
    /// Start of the keys to which the rule applies, such as `tmp/`; empty for the whole bucket.
    #[serde(default)]
    #[schema(max_length = 1_024)]
    pub prefix: String,
    /// Age in seconds since the last modification, 60 to 315,360,000. Either this or `expireAt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 60, maximum = 315_360_000)]
    pub expire_after_seconds: Option<u64>,
    /// Expiry time of all these objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub expire_at: Option<String>,
    #[serde(default = "enabled")]
    pub enabled: bool,
}

/// Returns the default of [`LifecycleRuleView::enabled`].
fn enabled() -> bool {
    true
}

impl From<&LifecycleRule> for LifecycleRuleView {
    fn from(rule: &LifecycleRule) -> Self {
        let (expire_after_seconds, expire_at) = match rule.expiration {
            Expiration::AfterSeconds(seconds) => (Some(seconds), None),
            Expiration::AtMs(at_ms) => (None, Some(iso_time(at_ms))),
        };
        Self {
            id: rule.id.clone(),
            prefix: rule.prefix.clone(),
            expire_after_seconds,
            expire_at,
            enabled: rule.enabled,
        }
    }
}

/// Validates the rules of a bucket.
pub fn lifecycle_rules(rules: Vec<LifecycleRuleView>) -> Result<Vec<LifecycleRule>, CatalogError> {
    let rules = rules.into_iter().map(|rule| {
        let expiration = match (rule.expire_after_seconds, rule.expire_at) {
            (Some(seconds), None) => Expiration::AfterSeconds(seconds),
            (None, Some(text)) => Expiration::AtMs(unix_ms("expireAt", &text)?),
            _ => {
                return Err(CatalogError::InvalidRequest(format!(
                    "the rule {:?} must have either expireAfterSeconds or expireAt",
                    rule.id
                )));
            }
        };
        Ok(LifecycleRule { id: rule.id, prefix: rule.prefix, expiration, enabled: rule.enabled })
    });
    let rules = rules.collect::<Result<Vec<_>, _>>()?;
    check_lifecycle(&rules).map_err(CatalogError::InvalidRequest)?;
    Ok(rules)
}

/// Files that expire when rules are saved.
#[derive(Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LifecyclePreview {
    /// Number of files that have expired by the rules, and have not by the current ones.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// Whether all files were read; otherwise there may be more.
    pub is_complete: bool,
}

/// Counts the files of a bucket that have expired by other rules, and have not by its own. Reads at most
/// [`LIFECYCLE_PREVIEW_OBJECTS_MAX`] objects. Blocks on the index.
pub fn preview_lifecycle(
    store: &Store,
    bucket: &Bucket,
    rules: Vec<LifecycleRule>,
    now_ms: u64,
) -> engine::Result<LifecyclePreview> {
    let changed = Bucket { lifecycle: rules, ..bucket.clone() };
    let expires = |bucket: &Bucket, object: &Object| bucket.is_expired(object, || now_ms);
    let mut preview = LifecyclePreview { is_complete: true, ..LifecyclePreview::default() };
    let mut read = 0;
    for prefix in changed.lifecycle_prefixes() {
        let mut after: Option<String> = None;
        loop {
            let page = store.list_keys(&bucket.name, &prefix, after.as_deref(), LIST_PAGE_MAX)?;
            read += page.objects.len();
            for object in &page.objects {
                if expires(&changed, object) && !expires(bucket, object) {
                    preview.files += 1;
                    preview.bytes += object.bytes();
                }
            }
            after = page.objects.last().map(|object| object.name().key.to_string());
            if !page.more || after.is_none() {
                break;
            }
            if read >= LIFECYCLE_PREVIEW_OBJECTS_MAX {
                return Ok(LifecyclePreview { is_complete: false, ..preview });
            }
        }
    }
    Ok(preview)
}

/// Request about the lifecycle rules of a bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum LifecycleRequest {
    List {
        bucket: String,
    },
    /// Adds a rule for a prefix, or replaces those for exactly this prefix.
    Set {
        bucket: String,
        prefix: String,
        after_seconds: u64,
    },
    /// Deletes the rules for exactly this prefix.
    Delete {
        bucket: String,
        prefix: String,
    },
}

/// Lifecycle rules of a bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LifecycleRulesView {
    pub bucket_name: String,
    pub rules: Vec<LifecycleRuleView>,
}

/// Performs a request. Blocks on the disk.
pub(super) fn execute(
    catalog: &Catalog,
    request: LifecycleRequest,
) -> Result<AdminResponse, CatalogError> {
    let bucket = match request {
        LifecycleRequest::List { bucket } => existing_bucket(catalog, &bucket)?,
        LifecycleRequest::Set { bucket, prefix, after_seconds } => {
            let bucket = existing_bucket(catalog, &bucket)?;
            let mut rules = bucket.lifecycle.clone();
            rules.retain(|rule| rule.prefix != prefix);
            let stem = if prefix.is_empty() { bucket.name.to_string() } else { prefix.clone() };
            let is_taken = |id: &String| rules.iter().any(|rule| rule.id == *id);
            let ids = std::iter::once(stem.clone()).chain((2..).map(|at| format!("{stem}-{at}")));
            let id = { ids }.find(|id| !is_taken(id)).unwrap_or(stem);
            let expiration = Expiration::AfterSeconds(after_seconds);
            rules.push(LifecycleRule { id, prefix, expiration, enabled: true });
            set_rules(catalog, &bucket, rules)?
        }
        LifecycleRequest::Delete { bucket, prefix } => {
            let bucket = existing_bucket(catalog, &bucket)?;
            let mut rules = bucket.lifecycle.clone();
            rules.retain(|rule| rule.prefix != prefix);
            if rules.len() == bucket.lifecycle.len() {
                let what = format!("the lifecycle rule for the prefix {prefix:?}");
                return Err(CatalogError::NotFound(what));
            }
            set_rules(catalog, &bucket, rules)?
        }
    };
    Ok(AdminResponse::Lifecycle(LifecycleRulesView {
        bucket_name: bucket.name.to_string(),
        rules: bucket.lifecycle.iter().map(LifecycleRuleView::from).collect(),
    }))
}

fn set_rules(
    catalog: &Catalog,
    bucket: &Bucket,
    rules: Vec<LifecycleRule>,
) -> Result<Arc<Bucket>, CatalogError> {
    check_lifecycle(&rules).map_err(CatalogError::InvalidRequest)?;
    let change = BucketChange { lifecycle: Some(rules), ..BucketChange::default() };
    catalog.buckets().edit(&bucket.name, change)
}
