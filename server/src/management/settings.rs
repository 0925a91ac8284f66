//! What can be set of accounts, buckets, organisations and API keys, as people and programs write it.
//!
//! The command line and the HTTP API read the same types. An absent field stays as it is; `null`, and an empty text,
//! take a setting away. Promises: a setting that is wrong is refused by its name in JSON.
//! Never here: storing it, and who may.

use engine::BucketName;
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};

use super::bucket_name;
use crate::catalog::{
    Access, AccountChange, AccountId, AccountName, AllowedTypes, BucketChange, CacheControl,
    CatalogError, CorsOrigins, KeyLimits, NewApiKey, Plan, QuotaChange, Role, Scope, ServeHtml,
    Standing, placeholder_of, prefix_folder,
};
use crate::target::normalize;

/// What can be set of an account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct AccountSettings {
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub standing: Option<Standing>,
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Most bytes of all its buckets together.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub storage_bytes_max: Option<Option<u64>>,
    /// Most files of all its buckets together.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub object_count_max: Option<Option<u64>>,
}

/// What can be set of a bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct BucketSettings {
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// A key of the bucket, or `/bucket/key`.
    #[serde(deserialize_with = "text_or_null", skip_serializing_if = "Option::is_none")]
    pub placeholder: Option<String>,
    #[serde(deserialize_with = "text_or_null", skip_serializing_if = "Option::is_none")]
    pub cache_control: Option<String>,
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub cors_origins: Option<Option<Vec<String>>>,
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub allowed_types: Option<Option<Vec<String>>>,
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub file_bytes_max: Option<Option<u64>>,
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub quota_bytes: Option<Option<u64>>,
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub quota_objects: Option<Option<u64>>,
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub serve_html: Option<bool>,
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub thumbnails: Option<bool>,
}

/// What can be set of a new key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ApiKeySettings {
    pub name: String,
    pub scopes: Vec<Scope>,
    #[serde(alias = "bucketName")]
    pub bucket: Option<String>,
    pub prefix: Option<String>,
    /// A date and time as in RFC 3339.
    pub expires_at: Option<String>,
}

/// A field that is there, whatever its value: `null` counts only where the value may be nothing.
pub(super) fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// A text, or `null` for an empty one.
pub(super) fn text_or_null<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Option::<String>::deserialize(from).map(|text| Some(text.unwrap_or_default()))
}

/// Reads what is to change of an account.
pub fn account_change(settings: AccountSettings) -> Result<AccountChange, CatalogError> {
    let AccountSettings { name, plan, standing, role, storage_bytes_max, object_count_max } =
        settings;
    Ok(AccountChange {
        name: name.map(|name| named("name", AccountName::parse(&name))).transpose()?,
        role,
        plan,
        standing,
        quota: QuotaChange { bytes_max: storage_bytes_max, objects_max: object_count_max },
    })
}

/// Reads what is to change of a bucket.
pub fn bucket_change(
    bucket: &BucketName,
    settings: BucketSettings,
) -> Result<BucketChange, CatalogError> {
    fn unless_empty<T>(
        text: Option<String>,
        read: impl FnOnce(&str) -> Result<T, CatalogError>,
    ) -> Result<Option<Option<T>>, CatalogError> {
        let Some(text) = text else { return Ok(None) };
        if text.is_empty() { Ok(Some(None)) } else { read(&text).map(|value| Some(Some(value))) }
    }
    let placeholder = |text: &str| placeholder_of(bucket, &normalize(text));
    let cors_origins = |list: Option<Vec<String>>| match list {
        Some(list) => CorsOrigins::parse(&list),
        None => Ok(CorsOrigins::Every),
    };
    let allowed_types = |list: Option<Vec<String>>| AllowedTypes::parse(&list.unwrap_or_default());
    let cors_origins = settings.cors_origins.map(cors_origins).transpose();
    let allowed_types = settings.allowed_types.map(allowed_types).transpose();
    Ok(BucketChange {
        access: settings.access,
        placeholder: named("placeholder", unless_empty(settings.placeholder, placeholder))?,
        cache_control: named(
            "cacheControl",
            unless_empty(settings.cache_control, CacheControl::parse),
        )?,
        cors_origins: named("corsOrigins", cors_origins)?,
        allowed_types: named("allowedTypes", allowed_types)?,
        file_bytes_max: settings.file_bytes_max,
        quota: QuotaChange { bytes_max: settings.quota_bytes, objects_max: settings.quota_objects },
        serve_html: settings
            .serve_html
            .map(|pages| if pages { ServeHtml::AsPages } else { ServeHtml::AsText }),
        thumbnails: settings.thumbnails,
    })
}

/// Reads what a new key is to open.
pub fn new_api_key(
    account: AccountId,
    settings: ApiKeySettings,
) -> Result<NewApiKey, CatalogError> {
    let prefix = normalize(&settings.prefix.unwrap_or_default()).into_owned();
    let expires = settings.expires_at.map(|text| unix_ms("expiry", &text)).transpose();
    let limits = KeyLimits {
        bucket: settings.bucket.map(|bucket| bucket_name(&bucket)).transpose()?,
        prefix: named("prefix", prefix_folder(&prefix))?,
        expires_ms: named("expiresAt", expires)?,
    };
    Ok(NewApiKey { account, name: settings.name, scopes: settings.scopes, limits })
}

/// Gives a refusal the name of the setting that it is about.
pub(super) fn named<T>(
    setting: &'static str,
    read: Result<T, CatalogError>,
) -> Result<T, CatalogError> {
    read.map_err(|error| match error {
        CatalogError::Refused(rule) => CatalogError::BadSetting { setting, rule },
        other => other,
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_stays_null_takes_away_and_both_survive_the_control_socket() {
        let read = |text: &str| serde_json::from_str::<BucketSettings>(text);
        let none = read("{}").unwrap();
        assert_eq!(none, BucketSettings::default());
        assert_eq!(serde_json::to_string(&none).unwrap(), "{}");
        let away = read(r#"{"placeholder":null,"quotaBytes":null,"corsOrigins":null}"#).unwrap();
        assert_eq!(away.placeholder.as_deref(), Some(""));
        assert_eq!((away.quota_bytes, away.quota_objects), (Some(None), None));
        let again = serde_json::to_string(&away).unwrap();
        assert_eq!(read(&again).unwrap(), away);
        let set = read(r#"{"quotaBytes":7,"corsOrigins":["https://a.b"]}"#).unwrap();
        assert_eq!(set.quota_bytes, Some(Some(7)));
        for bad in [
            r#"{"access":null}"#,
            r#"{"thumbnails":null}"#,
            r#"{"quotaBytes":-1}"#,
            r#"{"owner":"x"}"#,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_refused_is_named() {
        let bucket = BucketName::parse("photos").unwrap();
        let refused = |settings: BucketSettings| match bucket_change(&bucket, settings) {
            Err(CatalogError::BadSetting { setting, .. }) => setting,
            _ => "nothing",
        };
        let placeholder = Some("a//b".to_owned());
        assert_eq!(refused(BucketSettings { placeholder, ..Default::default() }), "placeholder");
        let cors_origins = Some(Some(vec!["a".to_owned()]));
        assert_eq!(refused(BucketSettings { cors_origins, ..Default::default() }), "corsOrigins");
        assert_eq!(refused(BucketSettings::default()), "nothing");
    }
}
