//! Settings of accounts, buckets, organisations and API keys, in the form of requests.
//!
//! The command line and the HTTP API share these types. An absent field is unchanged; `null`, and an empty text, remove
//! a setting. Guarantees: an invalid setting is reported with its name in JSON. Non-goals: storage, and authorization.

use catalog::limits::BUCKET_LIST_MAX;
use catalog::{
    Access, AccountChange, AccountId, AccountName, AllowedTypes, BucketChange, BucketKind,
    CacheControl, CatalogError, CorsOrigins, FairUseStanding, KeyRestrictions, NewApiKey, Plan,
    QuotaChange, Role, Scope, ServeHtml, parse_placeholder, prefix_folder,
};
use engine::BucketName;
use jiff::Timestamp;
use protocol::object_path::normalize;
use serde::{Deserialize, Deserializer, Serialize};
use service::parameters::bucket_name_schema;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder, Type};
use utoipa::openapi::{Object, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::bucket_name;
use super::lifecycle::{LifecycleRuleView, lifecycle_rules};

/// Account settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct AccountSettings {
    #[serde(deserialize_with = "present_field", skip_serializing_if = "Option::is_none")]
    #[schema(
        nullable = false,
        max_length = 100,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*[^\s\u0000-\u001f\u007f-\u009f][^\u0000-\u001f\u007f-\u009f]*$"
    )]
    pub name: Option<String>,
    #[serde(deserialize_with = "present_field", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub plan: Option<Plan>,
    #[serde(deserialize_with = "present_field", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub standing: Option<FairUseStanding>,
    #[serde(deserialize_with = "present_field", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub role: Option<Role>,
    /// Maximum total bytes of all buckets of the account; `null` removes the limit.
    #[serde(deserialize_with = "present_field", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>)]
    pub storage_bytes_max: Option<Option<u64>>,
    /// Maximum total number of files in all buckets of the account; `null` removes the limit.
    #[serde(deserialize_with = "present_field", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>)]
    pub object_count_max: Option<Option<u64>>,
}

/// Bucket settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct BucketSettings {
    #[serde(deserialize_with = "present_field", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub access: Option<Access>,
    /// Content for missing files: a key of the bucket, or `/bucket/key`.
    #[serde(deserialize_with = "text_or_null", skip_serializing_if = "Option::is_none")]
    pub placeholder: Option<String>,
    #[serde(deserialize_with = "text_or_null", skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 200, pattern = r"^[ -~]*$")]
    pub cache_control: Option<String>,
    #[serde(deserialize_with = "present_field", skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = cors_origins_schema)]
    pub cors_origins: Option<Option<Vec<String>>>,
    #[serde(deserialize_with = "present_field", skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = allowed_types_schema)]
    pub allowed_types: Option<Option<Vec<String>>>,
    #[serde(deserialize_with = "present_field", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>)]
    pub file_bytes_max: Option<Option<u64>>,
    #[serde(deserialize_with = "present_field", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>)]
    pub quota_bytes: Option<Option<u64>>,
    #[serde(deserialize_with = "present_field", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>)]
    pub quota_objects: Option<Option<u64>>,
    #[serde(deserialize_with = "present_field", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub serve_html: Option<bool>,
    #[serde(deserialize_with = "present_field", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub thumbnails: Option<bool>,
    /// Whether search engines may index the objects of a public bucket; true by default.
    #[serde(deserialize_with = "present_field", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub index: Option<bool>,
    /// Whether text-like files are delivered compressed to clients that accept it; true by default.
    #[serde(deserialize_with = "present_field", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub compression: Option<bool>,
    /// All lifecycle rules, at most 100; `null` for none.
    #[serde(deserialize_with = "present_field", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<LifecycleRuleView>>, max_items = 100)]
    pub lifecycle: Option<Option<Vec<LifecycleRuleView>>>,
}

/// Settings of a new account, including its name.
pub struct NewAccountSettings;

/// Settings of a new bucket, including those that cannot be changed later.
pub struct NewBucketSettings;

/// Settings of a new API key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ApiKeySettings {
    #[schema(max_length = 200, pattern = r"^[^\u0000-\u001f\u007f-\u009f]*$")]
    pub name: String,
    #[schema(required, min_items = 1)]
    pub scopes: Vec<Scope>,
    #[serde(rename = "bucketName", alias = "bucket")]
    pub bucket: Option<String>,
    pub prefix: Option<String>,
    /// Expiry time in RFC 3339 format.
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
}

/// Returns the schema of `*` alone, or origins, or null.
fn cors_origins_schema() -> RefOr<Schema> {
    const ORIGIN: &str = r"^[A-Za-z][A-Za-z0-9+.-]*://[A-Za-z0-9._:\[\]-]+$";
    let every = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(["*"]));
    let every = ArrayBuilder::new().items(every).min_items(Some(1)).max_items(Some(1));
    let some = ArrayBuilder::new().items(text(ORIGIN)).min_items(Some(1));
    let some = some.max_items(Some(BUCKET_LIST_MAX));
    OneOfBuilder::new().item(null()).item(every).item(some).into()
}

/// Returns the schema of media types and families of them, or null.
fn allowed_types_schema() -> RefOr<Schema> {
    const MEDIA_TYPE: &str = r"^[A-Za-z0-9!#$&^_.+-]+/(\*|[A-Za-z0-9!#$&^_.+-]+)$";
    let types = ArrayBuilder::new().items(text(MEDIA_TYPE)).max_items(Some(BUCKET_LIST_MAX));
    OneOfBuilder::new().item(null()).item(types).into()
}

fn text(pattern: &str) -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern)).into()
}

fn null() -> Object {
    Object::with_type(Type::Null)
}

impl PartialSchema for NewAccountSettings {
    fn schema() -> RefOr<Schema> {
        with_fields(AccountSettings::schema(), [], "name")
    }
}

impl ToSchema for NewAccountSettings {}

impl PartialSchema for NewBucketSettings {
    fn schema() -> RefOr<Schema> {
        let organisation = Option::<String>::schema();
        let fields = [
            ("bucketName", bucket_name_schema()),
            ("type", Option::<BucketKind>::schema()),
            ("organisation", organisation),
        ];
        with_fields(BucketSettings::schema(), fields, "bucketName")
    }
}

impl ToSchema for NewBucketSettings {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        BucketSettings::schemas(schemas);
        schemas.push((BucketKind::name().into_owned(), BucketKind::schema()));
    }
}

/// Extends a schema of settings by further fields, one of them required.
fn with_fields<const N: usize>(
    mut settings: RefOr<Schema>,
    fields: [(&str, RefOr<Schema>); N],
    required: &str,
) -> RefOr<Schema> {
    if let RefOr::T(Schema::Object(object)) = &mut settings {
        object.required.push(required.to_owned());
        object.properties.extend(fields.map(|(name, schema)| (name.to_owned(), schema)));
    }
    settings
}

/// Deserializes a present field; `null` is valid only if the value is optional.
pub(crate) fn present_field<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// Deserializes a text or `null`; an empty text becomes `None`.
pub(super) fn text_or_null<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Option::<String>::deserialize(from).map(|text| Some(text.unwrap_or_default()))
}

/// Validates a change of an account.
pub fn account_change(settings: AccountSettings) -> Result<AccountChange, CatalogError> {
    let AccountSettings { name, plan, standing, role, storage_bytes_max, object_count_max } =
        settings;
    Ok(AccountChange {
        name: name.map(|name| with_setting("name", AccountName::parse(&name))).transpose()?,
        role,
        plan,
        standing,
        quota: QuotaChange { bytes_max: storage_bytes_max, objects_max: object_count_max },
    })
}

/// Validates a change of a bucket.
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
    let placeholder = |text: &str| parse_placeholder(bucket, &normalize(text));
    let cors_origins = |list: Option<Vec<String>>| match list {
        Some(list) => CorsOrigins::parse(&list),
        None => Ok(CorsOrigins::Any),
    };
    let allowed_types = |list: Option<Vec<String>>| AllowedTypes::parse(&list.unwrap_or_default());
    let lifecycle = settings.lifecycle.map(|rules| lifecycle_rules(rules.unwrap_or_default()));
    let lifecycle = lifecycle.transpose();
    let cors_origins = settings.cors_origins.map(cors_origins).transpose();
    let allowed_types = settings.allowed_types.map(allowed_types).transpose();
    Ok(BucketChange {
        access: settings.access,
        placeholder: with_setting("placeholder", unless_empty(settings.placeholder, placeholder))?,
        cache_control: with_setting(
            "cacheControl",
            unless_empty(settings.cache_control, CacheControl::parse),
        )?,
        cors_origins: with_setting("corsOrigins", cors_origins)?,
        allowed_types: with_setting("allowedTypes", allowed_types)?,
        file_bytes_max: settings.file_bytes_max,
        quota: QuotaChange { bytes_max: settings.quota_bytes, objects_max: settings.quota_objects },
        serve_html: settings
            .serve_html
            .map(|pages| if pages { ServeHtml::AsPages } else { ServeHtml::AsText }),
        thumbnails: settings.thumbnails,
        index: settings.index,
        compression: settings.compression,
        lifecycle: with_setting("lifecycle", lifecycle)?,
        ..BucketChange::default()
    })
}

/// Validates the settings of a new API key.
pub fn new_api_key(
    account: AccountId,
    settings: ApiKeySettings,
) -> Result<NewApiKey, CatalogError> {
    let prefix = normalize(&settings.prefix.unwrap_or_default()).into_owned();
    let expires = settings.expires_at.map(|text| unix_ms("expiry", &text)).transpose();
    let limits = KeyRestrictions {
        bucket: settings.bucket.map(|bucket| bucket_name(&bucket)).transpose()?,
        prefix: with_setting("prefix", prefix_folder(&prefix))?,
        expires_ms: with_setting("expiresAt", expires)?,
    };
    Ok(NewApiKey { account, name: settings.name, scopes: settings.scopes, limits })
}

/// Adds the name of the setting to an error.
pub(super) fn with_setting<T>(
    setting: &'static str,
    read: Result<T, CatalogError>,
) -> Result<T, CatalogError> {
    read.map_err(|error| match error {
        CatalogError::InvalidRequest(rule) => CatalogError::InvalidSetting { setting, rule },
        other => other,
    })
}

/// Parses a date and time; `what` names the value in the error.
pub(super) fn unix_ms(what: &str, text: &str) -> Result<u64, CatalogError> {
    let refused = || {
        let example = "2030-01-31T12:00:00Z";
        CatalogError::InvalidRequest(format!(
            "the {what} {text:?} is not a date and time such as {example}"
        ))
    };
    let time: Timestamp = text.parse().map_err(|_| refused())?;
    u64::try_from(time.as_millisecond()).map_err(|_| refused())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_unsets_a_setting_and_absent_keeps_it() {
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
    fn rejected_setting_is_named() {
        let bucket = BucketName::parse("photos").unwrap();
        let refused = |settings: BucketSettings| match bucket_change(&bucket, settings) {
            Err(CatalogError::InvalidSetting { setting, .. }) => setting,
            _ => "nothing",
        };
        let placeholder = Some("a//b".to_owned());
        assert_eq!(refused(BucketSettings { placeholder, ..Default::default() }), "placeholder");
        let cors_origins = Some(Some(vec!["a".to_owned()]));
        assert_eq!(refused(BucketSettings { cors_origins, ..Default::default() }), "corsOrigins");
        assert_eq!(refused(BucketSettings::default()), "nothing");
    }
}
