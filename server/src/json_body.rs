//! The JSON body of a management request, read field by field or into settings.
//!
//! Promises: it is an object of at most [`limits::MANAGEMENT_BODY_BYTES_MAX`]; a field that is not known, or not of the
//! right kind, is a 400 that names it. Never here: what a field means.

use axum::body::Body;
use axum::extract::FromRequest;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::content_type::essence;
use crate::error::ApiError;
use crate::limits;
use crate::request_body::{BodyLimits, RequestBody};

/// The fields of a body that are not read yet.
#[derive(Debug, Default)]
pub struct JsonBody(Map<String, Value>);

impl JsonBody {
    /// Reads the text of a body.
    fn parse(text: &[u8]) -> Result<Self, ApiError> {
        let refuse = |why: &dyn std::fmt::Display| {
            let message = format!("The body is not a JSON object: {why}");
            ApiError::new(StatusCode::BAD_REQUEST, "bad_json", message)
        };
        match serde_json::from_slice(text) {
            Ok(Value::Object(fields)) => Ok(Self(fields)),
            Ok(_) => Err(refuse(&"it is something else")),
            Err(error) => Err(refuse(&error)),
        }
    }

    /// Takes the field of that name; `null` counts as absent.
    pub fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, ApiError> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match serde_json::from_value(value) {
                Ok(value) => Ok(Some(value)),
                Err(error) => Err(ApiError::bad_parameter(name, &format!("is wrong: {error}"))),
            },
        }
    }

    /// Takes a field that must be there.
    pub fn require<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, ApiError> {
        self.take(name)?.ok_or_else(|| ApiError::bad_parameter(name, "is required"))
    }

    /// Reads all fields that are left. `T` must read each of its fields alone.
    pub fn settings<T: DeserializeOwned>(self) -> Result<T, ApiError> {
        match serde_json::from_value(Value::Object(self.0.clone())) {
            Ok(settings) => Ok(settings),
            Err(error) => Err(self.culprit::<T>(&error)),
        }
    }

    /// Checks that no field is left.
    pub fn finish(self) -> Result<(), ApiError> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(name) => Err(unknown(name)),
        }
    }

    /// The refusal that names the field which is wrong: the one that is wrong alone, too.
    fn culprit<T: DeserializeOwned>(&self, error: &serde_json::Error) -> ApiError {
        for (name, value) in &self.0 {
            let alone = Map::from_iter([(name.clone(), value.clone())]);
            if let Err(error) = serde_json::from_value::<T>(Value::Object(alone)) {
                let error = error.to_string();
                return match error.starts_with("unknown field") {
                    true => unknown(name),
                    false => ApiError::bad_parameter(name, &format!("is wrong: {error}")),
                };
            }
        }
        ApiError::bad_request(format!("The body is wrong: {error}"))
    }
}

impl<S: Sync> FromRequest<S> for JsonBody {
    type Rejection = ApiError;

    async fn from_request(request: Request<Body>, _: &S) -> Result<Self, ApiError> {
        let (head, body) = request.into_parts();
        let content_type = head.headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
        let content_type = String::from_utf8_lossy(content_type);
        // A page of another origin sends no such type without asking first.
        if !essence(&content_type).eq_ignore_ascii_case("application/json") {
            return Err(ApiError::not_json());
        }
        let limits = BodyLimits::new(limits::MANAGEMENT_BODY_BYTES_MAX);
        Self::parse(&RequestBody::new(&head.headers, body, limits)?.collect().await?)
    }
}

fn unknown(name: &str) -> ApiError {
    ApiError::bad_parameter(name, "is not known here")
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Default, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Settings {
        name: Option<String>,
        count: Option<u64>,
    }

    fn refused(text: &str) -> (&'static str, Value) {
        let refusal = match JsonBody::parse(text.as_bytes()) {
            Ok(body) => body.settings::<Settings>().unwrap_err(),
            Err(refusal) => refusal,
        };
        assert_eq!(refusal.status(), 400);
        (refusal.code(), refusal.body(&Default::default())["parameter"].clone())
    }

    #[test]
    fn the_wrong_field_is_named() {
        assert_eq!(refused(r#"{"name":"a","count":"7"}"#), ("bad_parameter", "count".into()));
        assert_eq!(refused(r#"{"name":"a","plan":"Pro"}"#), ("bad_parameter", "plan".into()));
        for bad in ["", "[]", "null", "{", r#"{"a":1}{}"#, "\u{feff}{}"] {
            assert_eq!(refused(bad), ("bad_json", Value::Null), "{bad}");
        }
    }

    #[test]
    fn fields_are_taken_once() {
        let mut body = JsonBody::parse(br#"{"name":"a","count":7,"none":null}"#).unwrap();
        assert_eq!(body.require::<String>("name").unwrap(), "a");
        assert_eq!(body.require::<String>("name").unwrap_err().code(), "bad_parameter");
        assert_eq!(body.take::<String>("none").unwrap(), None);
        assert_eq!(body.take::<bool>("count").unwrap_err().code(), "bad_parameter");
        body.finish().unwrap();
    }
}
