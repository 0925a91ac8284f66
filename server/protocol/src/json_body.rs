//! JSON body of a management request, read field by field or into settings.
//!
//! Guarantees: the body is an object of at most [`limits::MANAGEMENT_BODY_BYTES_MAX`], or another bound of the
//! endpoint; an unknown, mistyped or duplicate field is a 400 that names it. Non-goals: meaning of the fields.

mod unique_keys;

use axum::body::Body;
use axum::extract::FromRequest;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use self::unique_keys::UniqueKeys;
use crate::content_type::essence;
use crate::error::ApiError;
use crate::limits;
use crate::request_body::{BodyLimits, RequestBody};

/// Fields of a body that are not read yet.
#[derive(Debug, Default)]
pub struct JsonBody(Map<String, Value>);

impl JsonBody {
    /// Parses a body.
    fn parse(text: &[u8]) -> Result<Self, ApiError> {
        let refuse = |message| ApiError::new(StatusCode::BAD_REQUEST, "bad_json", message);
        let is_none = "The body is not a JSON object";
        match serde_json::from_slice(text) {
            Ok(UniqueKeys(Value::Object(mut fields))) => {
                fields.values_mut().for_each(float_to_integer);
                Ok(Self(fields))
            }
            Ok(_) => Err(refuse(format!("{is_none}: it has another type"))),
            // Valid JSON with a duplicate key.
            Err(error) if error.is_data() => {
                Err(refuse(format!("The body has a duplicate key: {error}")))
            }
            Err(error) => Err(refuse(format!("{is_none}: {error}"))),
        }
    }

    /// Takes the field of that name; `null` counts as absent.
    pub fn optional<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, ApiError> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match serde_json::from_value(value) {
                Ok(value) => Ok(Some(value)),
                Err(error) => Err(ApiError::bad_parameter(name, &format!("is invalid: {error}"))),
            },
        }
    }

    /// Takes a required field.
    pub fn require<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, ApiError> {
        self.optional(name)?.ok_or_else(|| ApiError::bad_parameter(name, "is required"))
    }

    /// Takes a required text that is secret: the error does not repeat it.
    pub fn require_secret(&mut self, name: &str) -> Result<String, ApiError> {
        match self.0.remove(name) {
            Some(Value::String(text)) => Ok(text),
            None | Some(Value::Null) => Err(ApiError::bad_parameter(name, "is required")),
            Some(_) => Err(ApiError::bad_parameter(name, "must be a string")),
        }
    }

    /// Deserializes all remaining fields.
    pub fn deserialize<T: DeserializeOwned>(self) -> Result<T, ApiError> {
        match serde_json::from_value(Value::Object(self.0.clone())) {
            Ok(settings) => Ok(settings),
            Err(error) => Err(self.culprit::<T>(&error)),
        }
    }

    /// Checks that no field is left.
    pub fn deny_unknown(self) -> Result<(), ApiError> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(name) => Err(unknown(name)),
        }
    }

    /// Returns the error that names the invalid field: the one that fails on its own, or the one that is missing.
    fn culprit<T: DeserializeOwned>(&self, error: &serde_json::Error) -> ApiError {
        // The field of a variant is known only together with the tag, which an empty body misses.
        let of_empty = self.error_of::<T>(&[]);
        let tag = of_empty.as_deref().and_then(missing).filter(|tag| self.is_valid::<T>(tag));
        for name in self.0.keys() {
            match self.error_of::<T>(&[name, tag.unwrap_or(name)]) {
                Some(error) if error.starts_with("unknown field") => return unknown(name),
                Some(error) if missing(&error).is_none() => {
                    return ApiError::bad_parameter(name, &format!("is invalid: {error}"));
                }
                _ => {}
            }
        }
        if let Some(name) = missing(&error.to_string()) {
            return ApiError::bad_parameter(name, "is required");
        }
        ApiError::bad_request(format!("Invalid body: {error}"))
    }

    /// Returns the error of a body that has only these fields.
    fn error_of<T: DeserializeOwned>(&self, names: &[&str]) -> Option<String> {
        let fields = names.iter().filter_map(|name| self.0.get_key_value(*name));
        let fields = fields.map(|(name, value)| (name.clone(), value.clone())).collect();
        serde_json::from_value::<T>(Value::Object(fields)).err().map(|error| error.to_string())
    }

    /// Returns whether the body has a field, whose value is valid on its own.
    fn is_valid<T: DeserializeOwned>(&self, name: &str) -> bool {
        let is_invalid = |error: String| missing(&error).is_none();
        self.0.contains_key(name) && !self.error_of::<T>(&[name]).is_some_and(is_invalid)
    }
}

impl<S: Sync> FromRequest<S> for JsonBody {
    type Rejection = ApiError;

    async fn from_request(request: Request<Body>, _: &S) -> Result<Self, ApiError> {
        Self::receive(request, limits::MANAGEMENT_BODY_BYTES_MAX).await
    }
}

impl JsonBody {
    /// Receives a body of at most `bytes_max`.
    pub async fn receive(request: Request<Body>, bytes_max: u64) -> Result<Self, ApiError> {
        let (head, body) = request.into_parts();
        let content_type = head.headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
        let content_type = String::from_utf8_lossy(content_type);
        // A cross-origin page needs a preflight for this type.
        if !essence(&content_type).eq_ignore_ascii_case("application/json") {
            return Err(ApiError::not_json());
        }
        let limits = BodyLimits::new(bytes_max);
        Self::parse(&RequestBody::new(&head.headers, body, limits)?.collect().await?)
    }
}

/// Returns the field that serde reports as missing.
fn missing(error: &str) -> Option<&str> {
    error.strip_prefix("missing field `")?.split('`').next()
}

/// Largest number up to which every integer has a float of its own: 2 to the 53rd.
const EXACT_INTEGER_MAX: f64 = 9_007_199_254_740_992.0;

/// Converts a float with an integral value to an integer: Lua writes `5.0`.
fn float_to_integer(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(float_to_integer),
        Value::Object(fields) => fields.values_mut().for_each(float_to_integer),
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap_or(f64::NAN);
            if float.fract() == 0.0 && float.abs() <= EXACT_INTEGER_MAX {
                *value = Value::from(float as i64);
            }
        }
        _ => {}
    }
}

fn unknown(name: &str) -> ApiError {
    ApiError::bad_parameter(name, "is not a known field")
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
            Ok(body) => body.deserialize::<Settings>().unwrap_err(),
            Err(refusal) => refusal,
        };
        assert_eq!(refusal.status(), 400);
        (refusal.code(), refusal.body(&Default::default())["parameter"].clone())
    }

    #[test]
    fn invalid_json_field_is_named() {
        assert_eq!(refused(r#"{"name":"a","count":"7"}"#), ("bad_parameter", "count".into()));
        assert_eq!(refused(r#"{"name":"a","plan":"Pro"}"#), ("bad_parameter", "plan".into()));
        for bad in ["", "[]", "null", "{", r#"{"a":1}{}"#, "\u{feff}{}"] {
            assert_eq!(refused(bad), ("bad_json", Value::Null), "{bad}");
        }
    }

    #[test]
    fn invalid_field_of_a_variant_is_named() {
        #[derive(Debug, Deserialize)]
        #[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
        enum Shape {
            Circle {
                #[expect(dead_code, reason = "it is only read")]
                radius: u64,
            },
            Point {},
        }
        for (text, named) in [
            (r#"{"radius":7}"#, "kind"),
            (r#"{"kind":"line"}"#, "kind"),
            (r#"{"kind":"circle"}"#, "radius"),
            (r#"{"kind":"circle","radius":"7"}"#, "radius"),
            (r#"{"kind":"circle","radius":7,"x":1}"#, "x"),
            (r#"{"kind":"point","radius":7}"#, "radius"),
        ] {
            let body = JsonBody::parse(text.as_bytes()).unwrap();
            let refusal = body.deserialize::<Shape>().unwrap_err();
            assert_eq!(refusal.body(&Default::default())["parameter"], named, "{text}");
        }
        let point = JsonBody::parse(br#"{"kind":"point"}"#).unwrap();
        assert!(matches!(point.deserialize(), Ok(Shape::Point {})));
    }

    #[test]
    fn duplicate_json_field_is_rejected_at_any_depth() {
        for (text, named) in [
            (r#"{"name":"a","name":"b"}"#, "name"),
            (r#"{"name":"a","count":1,"na\u006de":"a"}"#, "name"),
            (r#"{"name":[{"x":{"y":1,"y":null}}]}"#, "y"),
        ] {
            let refusal = JsonBody::parse(text.as_bytes()).unwrap_err();
            assert_eq!((refusal.status().as_u16(), refusal.code()), (400, "bad_json"));
            let says = format!("The body has a duplicate key: \"{named}\"");
            assert!(refusal.message().starts_with(&says), "{text}: {}", refusal.message());
        }
        let apart = r#"{"a":{"x":[1,-2,3.5,true,null,"s"]},"b":[{"x":1},{"x":1}]}"#;
        let JsonBody(fields) = JsonBody::parse(apart.as_bytes()).unwrap();
        assert_eq!(Value::Object(fields).to_string(), apart);
    }

    #[test]
    fn missing_json_field_is_named() {
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Both {
            #[expect(dead_code, reason = "it is only read")]
            name: String,
            #[expect(dead_code, reason = "it is only read")]
            count: u64,
        }
        for (text, named) in [
            (r#"{}"#, "name"),
            (r#"{"name":"a"}"#, "count"),
            (r#"{"count":7}"#, "name"),
            (r#"{"count":"7"}"#, "count"),
            (r#"{"name":"a","plan":7}"#, "plan"),
        ] {
            let refusal =
                JsonBody::parse(text.as_bytes()).unwrap().deserialize::<Both>().unwrap_err();
            assert_eq!(refusal.body(&Default::default())["parameter"], named, "{text}");
        }
    }

    #[test]
    fn integers_may_be_written_as_floats() {
        let text = br#"{"a":5.0,"b":1e9,"c":[-2.0],"d":5.5,"e":9007199254740994.0}"#;
        let mut body = JsonBody::parse(text).unwrap();
        assert_eq!(body.optional::<u64>("a").unwrap(), Some(5));
        assert_eq!(body.optional::<u64>("b").unwrap(), Some(1_000_000_000));
        assert_eq!(body.optional::<Vec<i64>>("c").unwrap(), Some(vec![-2]));
        for no in ["d", "e"] {
            assert_eq!(body.optional::<u64>(no).unwrap_err().code(), "bad_parameter", "{no}");
        }
    }

    #[test]
    fn invalid_secret_type_is_not_echoed() {
        let mut body = JsonBody::parse(br#"{"a":"b","c":12345678,"d":null}"#).unwrap();
        assert_eq!(body.require_secret("a").unwrap(), "b");
        for wrong in ["c", "d", "e"] {
            let refusal = body.require_secret(wrong).unwrap_err();
            assert_eq!(refusal.code(), "bad_parameter");
            assert!(!refusal.to_string().contains("1234"), "{refusal}");
        }
    }

    #[test]
    fn json_fields_are_taken_once() {
        let mut body = JsonBody::parse(br#"{"name":"a","count":7,"none":null}"#).unwrap();
        assert_eq!(body.require::<String>("name").unwrap(), "a");
        assert_eq!(body.require::<String>("name").unwrap_err().code(), "bad_parameter");
        assert_eq!(body.optional::<String>("none").unwrap(), None);
        assert_eq!(body.optional::<bool>("count").unwrap_err().code(), "bad_parameter");
        body.deny_unknown().unwrap();
    }
}
