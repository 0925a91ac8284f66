//! Conditional requests of S3: reads, copy sources, writes and deletions.
//!
//! Entity tags match with and without quotes: SDKs strip the quotes, and applications send back what they got.
//! Guarantees: a conditional write fails if the object changes between the check and the commit. Non-goals: ranges.

use catalog::object_attributes::last_modified_ms;
use engine::{Batch, Object, ObjectName, Precondition};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode, header};
use protocol::conditional::{PreconditionResult, Validators, evaluate_preconditions};
use protocol::error::ApiError;
use s3s::dto::ETagCondition;
use service::state::AppState;

use super::objects::{etag_of, matches_sent_key};

/// Conditions of a copy source, with the corresponding headers of a read.
const OF_SOURCE: [(&str, HeaderName); 4] = [
    ("x-amz-copy-source-if-match", header::IF_MATCH),
    ("x-amz-copy-source-if-none-match", header::IF_NONE_MATCH),
    ("x-amz-copy-source-if-modified-since", header::IF_MODIFIED_SINCE),
    ("x-amz-copy-source-if-unmodified-since", header::IF_UNMODIFIED_SINCE),
];

/// Returns the headers with quotes around each entity tag.
pub(super) fn quoted(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    for name in [header::IF_MATCH, header::IF_NONE_MATCH] {
        let Some(Ok(value)) = headers.get(&name).map(HeaderValue::to_str) else { continue };
        if value.trim() == "*" || value.contains('"') {
            continue;
        }
        let quoted: Vec<_> = value.split(',').map(|tag| format!("\"{}\"", tag.trim())).collect();
        if let Ok(value) = HeaderValue::try_from(quoted.join(", ")) {
            headers.insert(name, value);
        }
    }
    headers
}

/// Fails with 412 if a copy source does not meet its conditions.
pub(super) fn check_source(headers: &HeaderMap, source: &Object) -> Result<(), ApiError> {
    let as_read = OF_SOURCE.into_iter().filter_map(|(of_source, of_read)| {
        headers.get(of_source).map(|value| (of_read, value.clone()))
    });
    let validators = Validators::new(etag_of(source), last_modified_ms(source));
    match evaluate_preconditions(&Method::GET, &quoted(&as_read.collect()), Some(&validators)) {
        PreconditionResult::Proceed { .. } => Ok(()),
        PreconditionResult::NotModified | PreconditionResult::PreconditionFailed => {
            Err(ApiError::precondition_failed())
        }
    }
}

/// Conditions of a write.
#[derive(Clone, Debug, Default)]
pub(super) struct WriteConditions {
    pub(super) if_match: Option<ETagCondition>,
    pub(super) if_none_match: Option<ETagCondition>,
}

impl WriteConditions {
    /// Parses the headers of a request whose input type in `s3s` lacks them.
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, ApiError> {
        let read = |name: HeaderName| {
            let value = headers.get(&name).map(HeaderValue::as_bytes);
            value.map(ETagCondition::parse_http_header).transpose().map_err(|_| {
                ApiError::bad_request(format!("The header {name} must be an ETag or *"))
            })
        };
        Ok(Self { if_match: read(header::IF_MATCH)?, if_none_match: read(header::IF_NONE_MATCH)? })
    }

    pub(super) fn are_none(&self) -> bool {
        self.if_match.is_none() && self.if_none_match.is_none()
    }

    /// Returns a batch with the preconditions of the write. Fails if an object exists under another Unicode
    /// normalization form of the key, which to S3 is another object.
    pub(super) async fn batch(
        &self,
        app: &AppState,
        name: &ObjectName,
        sent_key: &str,
    ) -> Result<Batch, ApiError> {
        let mut batch = Batch::new();
        // ASCII keys have a single normalization form.
        if self.are_none() && sent_key.is_ascii() {
            return Ok(batch);
        }
        let there = app.store.get(name)?;
        if there.as_ref().is_some_and(|there| !matches_sent_key(there, sent_key)) {
            let why = "a key that differs only in its Unicode normalization form exists";
            return Err(ApiError::bad_path(why));
        }
        let is_normal = sent_key == name.key.as_str();
        if let Some(condition) = &self.if_match {
            let there = there.as_ref().ok_or_else(ApiError::file_not_found)?;
            if !names(condition, there) {
                return Err(ApiError::precondition_failed());
            }
            batch = batch.require(Precondition::KeyHasLsn(name.clone(), there.lsn()));
        }
        match (&self.if_none_match, &there) {
            (Some(condition), Some(there)) if names(condition, there) => {
                return Err(ApiError::precondition_failed());
            }
            (Some(_), None) => batch = batch.require(Precondition::KeyAbsent(name.clone())),
            (None, None) if !is_normal => {
                batch = batch.require(Precondition::KeyAbsent(name.clone()));
            }
            (None, Some(there)) if !is_normal => {
                batch = batch.require(Precondition::KeyHasLsn(name.clone(), there.lsn()));
            }
            _ => {}
        }
        Ok(batch)
    }

    /// Maps a commit conflict to 412 if the request had conditions.
    pub(super) fn explain(&self, error: ApiError) -> ApiError {
        match error.status() {
            StatusCode::CONFLICT if !self.are_none() => ApiError::precondition_failed(),
            _ => error,
        }
    }
}

/// Returns whether a condition matches the object.
pub(super) fn names(condition: &ETagCondition, object: &Object) -> bool {
    condition.as_etag().is_none_or(|etag| etag.value() == etag_of(object))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unquoted_etags_are_quoted() {
        for (sent, read) in [
            ("5d41", "\"5d41\""),
            ("5d41, ab-2", "\"5d41\", \"ab-2\""),
            ("\"5d41\"", "\"5d41\""),
            ("W/\"5d41\"", "W/\"5d41\""),
            ("*", "*"),
        ] {
            let headers =
                HeaderMap::from_iter([(header::IF_MATCH, HeaderValue::from_static(sent))]);
            assert_eq!(quoted(&headers)[header::IF_MATCH], read, "{sent}");
        }
    }
}
