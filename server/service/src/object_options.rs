//! Options that describe an object: media type, response headers, user metadata and expiry, set by an upload or changed
//! later.
//!
//! Guarantees: what is accepted fits in the attributes of an object, and its headers and metadata can be sent as they
//! are, to S3 clients too. Non-goals: whether the content has the media type.

use std::collections::BTreeMap;

use catalog::limits::{EXPIRY_SECONDS_MAX, EXPIRY_SECONDS_MIN};
use catalog::object_attributes::StoredAttributes;
use jiff::Timestamp;
use protocol::error::ApiError;
use protocol::query::Query;

use crate::limits::{
    HEADER_VALUE_CHARS_MAX, METADATA_BYTES_MAX, METADATA_ENTRIES_MAX, METADATA_KEY_CHARS_MAX,
};

/// User metadata by key.
pub type UserMetadata = BTreeMap<String, String>;

/// Options of an object; `None` leaves the default or, in a change, the current value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectOptions {
    pub content_type: Option<String>,
    /// `Some(None)` removes the header.
    pub cache_control: Option<Option<String>>,
    /// `Some(None)` removes the header.
    pub content_disposition: Option<Option<String>>,
    /// All user metadata.
    pub metadata: Option<UserMetadata>,
    /// Expiry time in milliseconds since 1970; `Some(None)` for none.
    pub expires_ms: Option<Option<u64>>,
}

impl ObjectOptions {
    /// Parses the options in the query of an upload.
    pub fn from_query(query: &Query, now_ms: u64) -> Result<Self, ApiError> {
        match query.is_empty() {
            true => Ok(Self::default()),
            false => Self::from_texts(|name| query.string(&[name]), now_ms),
        }
    }

    /// Parses options from the texts of `contentType`, `cacheControl`, `contentDisposition`, `metadata`, `expiresIn`
    /// and `expiresAt`.
    pub fn from_texts(
        text: impl Fn(&'static str) -> Result<Option<String>, ApiError>,
        now_ms: u64,
    ) -> Result<Self, ApiError> {
        let seconds = text("expiresIn")?.map(|seconds| {
            let seconds = seconds.parse();
            seconds.map_err(|_| ApiError::bad_parameter("expiresIn", "must be a number of seconds"))
        });
        let metadata = text("metadata")?.map(|json| parse_metadata(json.as_bytes())).transpose()?;
        let options = Self {
            content_type: text("contentType")?,
            cache_control: text("cacheControl")?.map(Some),
            content_disposition: text("contentDisposition")?.map(Some),
            metadata,
            expires_ms: expiry_time(now_ms, seconds.transpose()?, text("expiresAt")?.as_deref())?
                .map(Some),
        };
        options.check()?;
        Ok(options)
    }

    /// Checks names and values.
    pub fn check(&self) -> Result<(), ApiError> {
        for (name, value) in [
            ("contentType", self.content_type.as_deref()),
            ("cacheControl", self.cache_control.as_ref().and_then(Option::as_deref)),
            ("contentDisposition", self.content_disposition.as_ref().and_then(Option::as_deref)),
        ] {
            if let Some(value) = value {
                check_header(name, value)?;
            }
        }
        self.metadata.as_ref().map_or(Ok(()), check_metadata)
    }

    /// Returns attributes with these options; fails if they do not fit in an object. The media type is left out.
    pub fn apply(&self, mut attributes: StoredAttributes) -> Result<StoredAttributes, ApiError> {
        if *self == Self::default() {
            return Ok(attributes);
        }
        let headers = &mut attributes.headers;
        headers.cache_control = self.cache_control.clone().unwrap_or(headers.cache_control.take());
        headers.content_disposition =
            self.content_disposition.clone().unwrap_or(headers.content_disposition.take());
        if let Some(metadata) = &self.metadata {
            let mut s3 = attributes.s3.take().unwrap_or_default();
            s3.metadata.clone_from(metadata);
            attributes.s3 = Some(s3).filter(|s3| *s3 != Default::default());
        }
        attributes.expires_ms = self.expires_ms.unwrap_or(attributes.expires_ms);
        match attributes == StoredAttributes::default() || attributes.encoded().is_some() {
            true => Ok(attributes),
            false => Err(ApiError::metadata_too_large()),
        }
    }
}

/// Returns the expiry time that a lifetime in seconds or a time determines, in milliseconds since 1970; `None` without
/// either.
pub fn expiry_time(
    now_ms: u64,
    expires_in: Option<u64>,
    expires_at: Option<&str>,
) -> Result<Option<u64>, ApiError> {
    let allowed = format!("allowed: {EXPIRY_SECONDS_MIN} to {EXPIRY_SECONDS_MAX} seconds");
    match (expires_in, expires_at) {
        (Some(_), Some(_)) => {
            Err(ApiError::bad_parameter("expiresAt", "cannot be combined with \"expiresIn\""))
        }
        (None, None) => Ok(None),
        (Some(seconds), None) => match (EXPIRY_SECONDS_MIN..=EXPIRY_SECONDS_MAX).contains(&seconds)
        {
            true => Ok(Some(now_ms.saturating_add(seconds * 1_000))),
            false => Err(ApiError::bad_parameter("expiresIn", &format!("is {seconds}; {allowed}"))),
        },
        (None, Some(text)) => {
            let time = text.parse::<Timestamp>().ok();
            let at_ms = time.and_then(|time| u64::try_from(time.as_millisecond()).ok());
            let range = EXPIRY_SECONDS_MIN * 1_000..=EXPIRY_SECONDS_MAX * 1_000;
            let at_ms = at_ms.filter(|at_ms| range.contains(&at_ms.saturating_sub(now_ms)));
            let must = format!("must be a time in the form of RFC 3339; {allowed} from now");
            at_ms.map(Some).ok_or_else(|| ApiError::bad_parameter("expiresAt", &must))
        }
    }
}

/// Returns the change of an expiry time that a lifetime or a time in a body determines; `Some(None)` removes it.
pub fn expiry_change(
    now_ms: u64,
    expires_in: Option<Option<u64>>,
    expires_at: Option<Option<String>>,
) -> Result<Option<Option<u64>>, ApiError> {
    match (expires_in, expires_at) {
        (Some(None), None) | (None, Some(None)) => Ok(Some(None)),
        (Some(_), Some(_)) => {
            Err(ApiError::bad_parameter("expiresAt", "cannot be combined with \"expiresIn\""))
        }
        (seconds, text) => {
            let at_ms = expiry_time(now_ms, seconds.flatten(), text.flatten().as_deref())?;
            Ok(at_ms.map(Some))
        }
    }
}

/// Parses user metadata: a JSON object with text values.
fn parse_metadata(json: &[u8]) -> Result<UserMetadata, ApiError> {
    let metadata = serde_json::from_slice(json).map_err(|_| {
        ApiError::bad_parameter("metadata", "must be a JSON object whose values are texts")
    })?;
    check_metadata(&metadata)?;
    Ok(metadata)
}

fn check_metadata(metadata: &UserMetadata) -> Result<(), ApiError> {
    let refuse = |must: String| Err(ApiError::bad_parameter("metadata", &must));
    if metadata.len() > METADATA_ENTRIES_MAX {
        return refuse(format!(
            "has {} entries; the limit is {METADATA_ENTRIES_MAX}",
            metadata.len()
        ));
    }
    for (key, value) in metadata {
        let is_allowed = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '.' | '_' | '-');
        if !(1..=METADATA_KEY_CHARS_MAX).contains(&key.len()) || !key.chars().all(is_allowed) {
            let allowed = format!("1 to {METADATA_KEY_CHARS_MAX} of a-z, 0-9, \".\", \"_\", \"-\"");
            return refuse(format!("has the key {key:?}; allowed: {allowed}"));
        }
        if value.chars().any(char::is_control) || value.trim() != value {
            return refuse(format!(
                "has a value of {key:?} with control characters or outer spaces"
            ));
        }
    }
    let bytes: usize = metadata.iter().map(|(key, value)| key.len() + value.len()).sum();
    match bytes <= METADATA_BYTES_MAX {
        true => Ok(()),
        false => refuse(format!("is {bytes} bytes; the limit is {METADATA_BYTES_MAX}")),
    }
}

/// Returns whether a text can be the value of a header that every client reads alike: visible ASCII, and spaces inside.
fn is_header_text(text: &str) -> bool {
    text.trim() == text && text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

fn check_header(name: &'static str, value: &str) -> Result<(), ApiError> {
    let is_valid = is_header_text(value) && (1..=HEADER_VALUE_CHARS_MAX).contains(&value.len());
    let must = format!("must be 1 to {HEADER_VALUE_CHARS_MAX} visible ASCII characters");
    if is_valid { Ok(()) } else { Err(ApiError::bad_parameter(name, &must)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: u64 = 1_700_000_000_000;

    fn options(pairs: &[(&str, &str)]) -> Result<ObjectOptions, ApiError> {
        let text = |name: &'static str| {
            Ok(pairs.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned()))
        };
        ObjectOptions::from_texts(text, NOW_MS)
    }

    #[test]
    fn object_options_are_checked_with_the_limits() {
        let parsed = options(&[
            ("cacheControl", "no-store"),
            ("metadata", r#"{"a.b_c-1":"x y"}"#),
            ("expiresIn", "60"),
        ]);
        let attributes = parsed.unwrap().apply(StoredAttributes::default()).unwrap();
        assert_eq!(attributes.headers.cache_control.as_deref(), Some("no-store"));
        assert_eq!(attributes.s3.unwrap().metadata["a.b_c-1"], "x y");
        assert_eq!(attributes.expires_ms, Some(NOW_MS + 60_000));
        let long = "x".repeat(2_049);
        for (name, text) in [
            ("expiresIn", "59"),
            ("expiresIn", "315360001"),
            ("expiresIn", "1d"),
            ("expiresAt", "tomorrow"),
            ("expiresAt", "2001-01-01T00:00:00Z"),
            ("expiresAt", "2099-01-01T00:00:00Z"),
            ("cacheControl", "a\r\nb"),
            ("cacheControl", ""),
            ("contentDisposition", &long),
            ("contentType", "text/é"),
            ("metadata", "[]"),
            ("metadata", r#"{"a":1}"#),
            ("metadata", r#"{"":"a"}"#),
            ("metadata", r#"{"A":"a"}"#),
            ("metadata", r#"{"a":"x\ny"}"#),
            ("metadata", &format!(r#"{{"a":"{long}"}}"#)),
        ] {
            assert_eq!(options(&[(name, text)]).unwrap_err().status(), 400, "{name}: {text}");
        }
        let both = options(&[("expiresIn", "60"), ("expiresAt", "2023-12-01T00:00:00Z")]);
        assert!(both.unwrap_err().message().contains("cannot be combined"));
    }

    #[test]
    fn removed_options_leave_no_attributes() {
        let set = options(&[("cacheControl", "no-store"), ("metadata", r#"{"a":"b"}"#)]).unwrap();
        let stored = set.apply(StoredAttributes::default()).unwrap();
        let removed = ObjectOptions {
            cache_control: Some(None),
            metadata: Some(UserMetadata::new()),
            expires_ms: Some(None),
            ..ObjectOptions::default()
        };
        assert_eq!(removed.apply(stored).unwrap(), StoredAttributes::default());
    }
}
