//! What can be set of buckets and API keys, as the operator writes it.
//!
//! Never here: storing it.

use engine::{NameError, ObjectKey};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{account_id, bucket_name};
use crate::catalog::{
    Access, BucketChange, CacheControl, Catalog, CatalogError, KeyLimits, NewApiKey, Scope,
    ServeHtml, prefix_folder,
};

/// What can be set of a bucket; an absent field stays as it is, an empty text takes the setting away.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct BucketSettings {
    pub access: Option<Access>,
    pub placeholder: Option<String>,
    pub cache_control: Option<String>,
    pub serve_html: Option<bool>,
}

/// What can be set of a new key; without scopes it has all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ApiKeySettings {
    pub name: String,
    pub scopes: Vec<Scope>,
    pub bucket: Option<String>,
    pub prefix: Option<String>,
    /// A date and time as in RFC 3339.
    pub expires_at: Option<String>,
}

pub(super) fn bucket_change(settings: BucketSettings) -> Result<BucketChange, CatalogError> {
    let unless_empty = |text: String| Some(text).filter(|text| !text.is_empty());
    let placeholder = |key: String| -> Result<ObjectKey, CatalogError> {
        let refuse = |why: NameError| {
            CatalogError::Refused(format!("the placeholder {key:?} is not a key: {why}"))
        };
        let parsed = ObjectKey::parse(&crate::target::normalize(&key)).map_err(refuse)?;
        if parsed.is_folder_marker() {
            return Err(CatalogError::Refused(format!("the placeholder {key:?} is a folder")));
        }
        Ok(parsed)
    };
    Ok(BucketChange {
        access: settings.access,
        placeholder: match settings.placeholder {
            Some(key) => Some(unless_empty(key).map(placeholder).transpose()?),
            None => None,
        },
        cache_control: match settings.cache_control {
            Some(text) => {
                Some(unless_empty(text).map(|text| CacheControl::parse(&text)).transpose()?)
            }
            None => None,
        },
        serve_html: settings
            .serve_html
            .map(|pages| if pages { ServeHtml::AsPages } else { ServeHtml::AsText }),
    })
}

pub(super) fn new_api_key(
    catalog: &Catalog,
    account: &str,
    settings: ApiKeySettings,
) -> Result<NewApiKey, CatalogError> {
    let scopes = match settings.scopes {
        scopes if scopes.is_empty() => Scope::ALL.to_vec(),
        scopes => scopes,
    };
    let limits = KeyLimits {
        bucket: settings.bucket.map(|bucket| bucket_name(&bucket)).transpose()?,
        prefix: prefix_folder(&crate::target::normalize(&settings.prefix.unwrap_or_default()))?,
        expires_ms: settings.expires_at.map(|text| unix_ms("expiry", &text)).transpose()?,
    };
    Ok(NewApiKey { account: account_id(catalog, account)?, name: settings.name, scopes, limits })
}

/// Reads a date and time; `what` is what it is called when it is none.
pub(super) fn unix_ms(what: &str, text: &str) -> Result<u64, CatalogError> {
    let refused = || {
        let example = "2030-01-31T12:00:00Z";
        CatalogError::Refused(format!("the {what} {text:?} is not a date and time like {example}"))
    };
    let time: Timestamp = text.parse().map_err(|_| refused())?;
    u64::try_from(time.as_millisecond()).map_err(|_| refused())
}
