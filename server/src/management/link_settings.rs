//! Settings of shared links, as requests state them.
//!
//! Guarantees: a link accepts no size and no type that its bucket rejects. Non-goals: hashing of passwords, and the
//! rights of the caller.

use catalog::limits::SHARED_LINK_PATHS_BYTES_MAX;
use catalog::{
    AllowedTypes, AskName, Bucket, LinkKind, LinkLayout, Password, SharedLinkChange, UploadRules,
    UploadRulesChange,
};
use protocol::error::ApiError;
use protocol::object_path::PathInBucket;
use serde::{Deserialize, Serialize};
use service::Config;
use service::limits::LINK_SECONDS_DEFAULT;
use service::object_options::expiry_change;
use utoipa::ToSchema;

use super::settings::present_field;
use crate::limits::{
    LINK_BYTES_DEFAULT, LINK_DOWNLOADS_MAX, LINK_FILES_DEFAULT, LINK_FILES_MAX,
    LINK_MESSAGE_CHARS_MAX, LINK_PATHS_MAX, LINK_TITLE_CHARS_MAX,
};

/// Minimum and maximum length of the password of a link.
const PASSWORD_CHARS: std::ops::RangeInclusive<usize> = 4..=128;

/// Settings of a shared link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct LinkSettings {
    /// Title of the page; the name of its only file or folder if empty.
    #[serde(deserialize_with = "present_field", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, max_length = 100)]
    pub title: Option<String>,
    #[serde(deserialize_with = "present_field", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, max_length = 500)]
    pub message: Option<String>,
    #[serde(deserialize_with = "present_field", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub layout: Option<LinkLayout>,
    /// Whether everything may be downloaded as a zip archive; default `true`. Only of a download link, like `layout`
    /// and `downloadsMax`.
    #[serde(deserialize_with = "present_field", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub zip: Option<bool>,
    /// Lifetime in seconds from now, 60 to 315,360,000; default 604,800 (7 days). `null` for no expiry. The setting
    /// `link_days_max` of the server may allow less.
    #[serde(deserialize_with = "present_field", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>, minimum = 60, maximum = 315_360_000)]
    pub expires_in: Option<Option<u64>>,
    /// Expiry instead of `expiresIn`. `null` for no expiry.
    #[serde(deserialize_with = "present_field", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Option<String>>,
    /// Password of 4 to 128 characters; `null` for none.
    #[serde(deserialize_with = "present_field", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Password, min_length = 4, max_length = 128)]
    pub password: Option<Option<String>>,
    /// Maximum number of downloads, 1 to 1,000,000; `null` for no maximum.
    #[serde(deserialize_with = "present_field", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 1_000_000)]
    pub downloads_max: Option<Option<u64>>,
    /// Maximum number of uploaded files, 1 to 10,000; default 100.
    #[serde(deserialize_with = "present_field", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1, maximum = 10_000)]
    pub files_max: Option<u64>,
    /// Maximum bytes of an uploaded file, at most the limit of the bucket; `null` for that limit.
    #[serde(deserialize_with = "present_field", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>, minimum = 1)]
    pub file_bytes_max: Option<Option<u64>>,
    /// Maximum bytes of all uploaded files together; default 10,000,000,000.
    #[serde(deserialize_with = "present_field", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1)]
    pub bytes_max: Option<u64>,
    /// Media types that may be uploaded, such as `image/png` or `image/*`, all of them accepted by the bucket; empty
    /// for the types of the bucket.
    #[serde(deserialize_with = "present_field", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub allowed_types: Option<Vec<String>>,
    /// Whether the page asks for the name of the person who uploads.
    #[serde(deserialize_with = "present_field", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub ask_name: Option<AskName>,
}

/// Rule about the lifetime of links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkLifetime {
    /// Maximum lifetime in days (setting `link_days_max`); 0 for no maximum.
    pub days_max: u64,
}

impl LinkLifetime {
    /// Returns the rule of a running server.
    pub fn of(config: &Config) -> Self {
        Self { days_max: config.link_days_max }
    }

    /// Returns the default expiry of a new link.
    pub(super) fn default_expiry_ms(self, now_ms: u64) -> u64 {
        let seconds = self.seconds_max().unwrap_or(u64::MAX).min(LINK_SECONDS_DEFAULT);
        now_ms.saturating_add(1_000 * seconds)
    }

    /// Checks an expiry that is given as a field; `None` is no expiry.
    fn check(self, field: &str, now_ms: u64, expires_ms: Option<u64>) -> Result<(), ApiError> {
        let Some(seconds) = self.seconds_max() else { return Ok(()) };
        let latest_ms = now_ms.saturating_add(1_000 * seconds);
        match expires_ms.is_some_and(|expires_ms| expires_ms <= latest_ms) {
            true => Ok(()),
            false => {
                let days = self.days_max;
                let must =
                    format!("must be at most {days} days from now, the limit of this server");
                Err(ApiError::bad_parameter(field, &must))
            }
        }
    }

    fn seconds_max(self) -> Option<u64> {
        (self.days_max > 0).then(|| self.days_max.saturating_mul(24 * 60 * 60))
    }
}

/// Returns the rules of a new link that requests files, before its settings are applied.
pub(super) fn default_upload_rules() -> UploadRules {
    UploadRules {
        files_max: LINK_FILES_DEFAULT,
        bytes_max: LINK_BYTES_DEFAULT,
        file_bytes_max: None,
        allowed_types: AllowedTypes::Any,
        ask_name: AskName::default(),
    }
}

/// Parses the paths of a new link.
pub fn parse_link_paths(kind: LinkKind, paths: &[String]) -> Result<Vec<PathInBucket>, ApiError> {
    let refuse = |must: &str| Err(ApiError::bad_parameter("paths", must));
    if !(1..=LINK_PATHS_MAX).contains(&paths.len()) {
        return refuse("must have 1 to 500 paths");
    }
    let places = paths.iter().map(|path| PathInBucket::parse(path));
    let mut places = places.collect::<Result<Vec<_>, _>>()?;
    places.sort_by(|one, other| one.as_str().cmp(other.as_str()));
    places.dedup();
    let bytes: usize = places.iter().map(|place| place.as_str().len()).sum();
    if bytes > SHARED_LINK_PATHS_BYTES_MAX {
        return refuse("are longer than 49152 bytes in all: share a folder instead");
    }
    match (kind, &places[..]) {
        (LinkKind::Download, _) | (LinkKind::Upload, [PathInBucket::Folder(_)]) => Ok(places),
        (LinkKind::Upload, _) => refuse("must be one folder, which ends in \"/\""),
    }
}

/// Parses settings for a link of a kind in a bucket. The password is not hashed yet, and therefore returned apart.
pub fn link_change(
    now_ms: u64,
    lifetime: LinkLifetime,
    kind: LinkKind,
    bucket: &Bucket,
    settings: LinkSettings,
) -> Result<(SharedLinkChange, Option<Option<Password>>), ApiError> {
    check_kind(kind, &settings)?;
    let field = if settings.expires_in.is_some() { "expiresIn" } else { "expiresAt" };
    let expires_ms = expiry_change(now_ms, settings.expires_in, settings.expires_at)?;
    if let Some(expires_ms) = expires_ms {
        lifetime.check(field, now_ms, expires_ms)?;
    }
    let downloads = 1..=LINK_DOWNLOADS_MAX;
    if settings.downloads_max.flatten().is_some_and(|max| !downloads.contains(&max)) {
        return Err(ApiError::bad_parameter("downloadsMax", "must be from 1 to 1000000, or null"));
    }
    let password =
        settings.password.map(|text| text.map(|text| parse_link_password(&text)).transpose());
    let upload = UploadRulesChange {
        files_max: settings.files_max,
        bytes_max: settings.bytes_max,
        file_bytes_max: settings.file_bytes_max,
        allowed_types: settings.allowed_types.map(parse_types).transpose()?,
        ask_name: settings.ask_name,
    };
    check_upload_rules(bucket, &upload)?;
    let change = SharedLinkChange {
        title: parse_text("title", settings.title, LINK_TITLE_CHARS_MAX, "")?,
        message: parse_text("message", settings.message, LINK_MESSAGE_CHARS_MAX, "\n")?,
        layout: settings.layout,
        zip: settings.zip,
        expires_ms,
        password: None,
        downloads_max: settings.downloads_max,
        upload,
    };
    Ok((change, password.transpose()?))
}

/// Checks that settings are those of a kind.
fn check_kind(kind: LinkKind, settings: &LinkSettings) -> Result<(), ApiError> {
    let download = [
        ("layout", settings.layout.is_some()),
        ("zip", settings.zip.is_some()),
        ("downloadsMax", settings.downloads_max.is_some()),
    ];
    let upload = [
        ("filesMax", settings.files_max.is_some()),
        ("fileBytesMax", settings.file_bytes_max.is_some()),
        ("bytesMax", settings.bytes_max.is_some()),
        ("allowedTypes", settings.allowed_types.is_some()),
        ("askName", settings.ask_name.is_some()),
    ];
    let (foreign, own) = match kind {
        LinkKind::Download => (&upload[..], "upload"),
        LinkKind::Upload => (&download[..], "download"),
    };
    match foreign.iter().find(|(_, is_given)| *is_given) {
        Some((name, _)) => {
            Err(ApiError::bad_parameter(name, &format!("is a setting of {own} links only")))
        }
        None => Ok(()),
    }
}

/// Checks the limits of a link against those of its bucket.
fn check_upload_rules(bucket: &Bucket, rules: &UploadRulesChange) -> Result<(), ApiError> {
    if rules.files_max.is_some_and(|max| !(1..=LINK_FILES_MAX).contains(&max)) {
        let must = format!("must be from 1 to {LINK_FILES_MAX}");
        return Err(ApiError::bad_parameter("filesMax", &must));
    }
    if rules.bytes_max == Some(0) {
        return Err(ApiError::bad_parameter("bytesMax", "must be at least 1"));
    }
    let file_bytes_max = bucket.file_bytes_max.unwrap_or(engine::limits::OBJECT_BYTES_MAX);
    let is_in_bucket = |max: u64| (1..=file_bytes_max).contains(&max);
    if rules.file_bytes_max.flatten().is_some_and(|max| !is_in_bucket(max)) {
        let must = format!("must be from 1 to {file_bytes_max}, the limit of the bucket");
        return Err(ApiError::bad_parameter("fileBytesMax", &must));
    }
    match &rules.allowed_types {
        Some(AllowedTypes::Any) | None => Ok(()),
        Some(types) if bucket.allowed_types.covers(types) => Ok(()),
        Some(_) => {
            let types = bucket.allowed_types.to_list().join(", ");
            let must = format!("must be types that the bucket accepts: {types}");
            Err(ApiError::bad_parameter("allowedTypes", &must))
        }
    }
}

fn parse_types(types: Vec<String>) -> Result<AllowedTypes, ApiError> {
    let refuse = |error: catalog::CatalogError| {
        ApiError::bad_parameter("allowedTypes", &format!("is invalid: {error}"))
    };
    AllowedTypes::parse(&types).map_err(refuse)
}

/// Parses the password of a link.
pub fn parse_link_password(text: &str) -> Result<Password, ApiError> {
    let password = Password::parse_presented(text);
    let password = password.filter(|_| PASSWORD_CHARS.contains(&text.chars().count()));
    password.ok_or_else(|| ApiError::bad_parameter("password", "must have 4 to 128 characters"))
}

/// Parses a text without control characters, except for some.
fn parse_text(
    name: &str,
    text: Option<String>,
    chars_max: usize,
    allowed: &str,
) -> Result<Option<String>, ApiError> {
    let Some(text) = text else { return Ok(None) };
    let is_invalid = |c: char| c.is_control() && !allowed.contains(c);
    if text.chars().count() > chars_max || text.contains(is_invalid) {
        let must = format!("must have at most {chars_max} characters and no control characters");
        return Err(ApiError::bad_parameter(name, &must));
    }
    Ok(Some(text.trim().to_owned()))
}
