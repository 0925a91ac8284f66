//! Policy documents of POST Object: what a signed form may upload.
//!
//! Pure. Guarantees: every field of an accepted form is named by the policy, except those that S3 exempts; an unknown
//! condition, operator or type of value is an error, never ignored. Non-goals: signatures, the file itself.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use s3s::{S3Error, S3ErrorCode, S3Result};
use serde_json::Value;

/// Text fields of a form, by name in lower case.
pub(super) type Fields = BTreeMap<String, String>;

/// Returns the value of a field that a form must have.
pub(super) fn field<'f>(fields: &'f Fields, name: &'static str) -> S3Result<&'f str> {
    fields.get(name).map(String::as_str).ok_or_else(|| {
        let message = format!("The form has no field \"{name}\" before its file");
        S3Error::with_message(S3ErrorCode::InvalidArgument, message)
    })
}

/// Fields that no condition has to name.
const EXEMPT: [&str; 5] = ["policy", "x-amz-signature", "awsaccesskeyid", "signature", "file"];
/// Name prefixes of other fields that no condition has to name. A checksum can only reject the file.
const EXEMPT_PREFIXES: [&str; 2] = ["x-ignore-", "x-amz-checksum-"];

/// Policy document.
#[derive(Debug)]
pub(super) struct Policy {
    expires_ms: u64,
    conditions: Vec<Condition>,
}

/// Condition of a policy; names of fields are in lower case.
#[derive(Debug, PartialEq, Eq)]
enum Condition {
    Equal { field: String, value: String },
    StartsWith { field: String, prefix: String },
    Length { min: u64, max: u64 },
}

impl Policy {
    /// Parses the field `policy`: JSON in base64.
    pub(super) fn parse(field: &str) -> S3Result<Self> {
        let decoded = STANDARD.decode(field.trim());
        let decoded = decoded.map_err(|_| invalid("it is not base64"))?;
        let document: Value =
            serde_json::from_slice(&decoded).map_err(|_| invalid("it is not JSON"))?;
        let document = document.as_object().ok_or_else(|| invalid("it is not a JSON object"))?;
        let expiration = document.get("expiration").and_then(Value::as_str);
        let expiration = expiration.ok_or_else(|| invalid("it has no \"expiration\""))?;
        let expires: jiff::Timestamp = expiration.parse().map_err(|_| {
            invalid("\"expiration\" is not a time such as \"2030-01-31T12:00:00.000Z\"")
        })?;
        let conditions = document.get("conditions").and_then(Value::as_array);
        let conditions = conditions.ok_or_else(|| invalid("it has no list \"conditions\""))?;
        let conditions = conditions.iter().map(parse_condition).collect::<S3Result<Vec<_>>>()?;
        Ok(Self {
            expires_ms: u64::try_from(expires.as_millisecond()).unwrap_or(0),
            conditions: conditions.into_iter().flatten().collect(),
        })
    }

    /// Checks the fields of a form for a bucket. The length of the file remains to be checked.
    pub(super) fn check(&self, bucket: &str, fields: &Fields, now_ms: u64) -> S3Result<()> {
        if now_ms >= self.expires_ms {
            return Err(denied("the policy has expired"));
        }
        for condition in &self.conditions {
            let value = |field: &str| match field {
                "bucket" => bucket,
                _ => fields.get(field).map_or("", String::as_str),
            };
            let is_met = match condition {
                Condition::Equal { field, value: wanted } => value(field) == wanted,
                Condition::StartsWith { field, prefix } => starts_with(field, value(field), prefix),
                Condition::Length { .. } => true,
            };
            if !is_met {
                return Err(denied(&format!("the condition {condition} failed")));
            }
        }
        for (field, value) in fields {
            let is_exempt = EXEMPT.contains(&field.as_str())
                || EXEMPT_PREFIXES.iter().any(|prefix| field.starts_with(prefix));
            if !is_exempt && !self.conditions.iter().any(|condition| condition.names(field)) {
                return Err(denied(&format!("no condition covers the field \"{field}\"")));
            }
            if field == "bucket" && value != bucket {
                return Err(denied("the field \"bucket\" names another bucket"));
            }
        }
        Ok(())
    }

    /// Returns the bounds of the length of the file, in bytes.
    pub(super) fn length_bounds(&self) -> (u64, u64) {
        let mut bounds = (0, u64::MAX);
        for condition in &self.conditions {
            if let Condition::Length { min, max } = condition {
                bounds = (bounds.0.max(*min), bounds.1.min(*max));
            }
        }
        bounds
    }
}

/// Returns whether a field has a prefix. A value of `Content-Type` may be a list, each value of which must have the
/// prefix.
fn starts_with(field: &str, value: &str, prefix: &str) -> bool {
    match field {
        "content-type" if !prefix.contains(',') => {
            value.split(',').all(|value| value.trim().starts_with(prefix))
        }
        _ => value.starts_with(prefix),
    }
}

impl Condition {
    fn names(&self, field: &str) -> bool {
        match self {
            Self::Equal { field: named, .. } | Self::StartsWith { field: named, .. } => {
                named == field
            }
            Self::Length { .. } => false,
        }
    }
}

impl std::fmt::Display for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Equal { field, value } => write!(f, "[\"eq\", \"${field}\", {value:?}]"),
            Self::StartsWith { field, prefix } => {
                write!(f, "[\"starts-with\", \"${field}\", {prefix:?}]")
            }
            Self::Length { min, max } => write!(f, "[\"content-length-range\", {min}, {max}]"),
        }
    }
}

/// Parses `{"field": "value"}`, `["operator", "$field", "value"]` or `["content-length-range", min, max]`.
fn parse_condition(condition: &Value) -> S3Result<Vec<Condition>> {
    match condition {
        Value::Object(pairs) if !pairs.is_empty() => {
            let equal = |(field, value): (&String, &Value)| {
                let value =
                    value.as_str().ok_or_else(|| invalid("a condition has no string value"))?;
                let field = field.to_ascii_lowercase();
                Ok(Condition::Equal { field, value: value.to_owned() })
            };
            pairs.iter().map(equal).collect()
        }
        Value::Array(parts) => match parts.as_slice() {
            [Value::String(operator), one, other] => {
                parse_operator(operator, one, other).map(|condition| vec![condition])
            }
            _ => Err(invalid("a condition is not a list of an operator and two values")),
        },
        _ => Err(invalid("a condition is neither an object with a field nor a list")),
    }
}

fn parse_operator(operator: &str, one: &Value, other: &Value) -> S3Result<Condition> {
    let operator = operator.to_ascii_lowercase();
    if operator == "content-length-range" {
        let message = "\"content-length-range\" requires two byte counts";
        let bound = |value: &Value| match value {
            Value::String(text) => text.parse().ok(),
            value => value.as_u64(),
        };
        let bounds = bound(one).zip(bound(other)).filter(|(min, max)| min <= max);
        let (min, max) = bounds.ok_or_else(|| invalid(message))?;
        return Ok(Condition::Length { min, max });
    }
    let message = "a condition requires a field such as \"$key\" and a string";
    let field = one.as_str().and_then(|it| it.strip_prefix('$')).filter(|it| !it.is_empty());
    let (Some(field), Some(value)) = (field, other.as_str()) else { return Err(invalid(message)) };
    let (field, value) = (field.to_ascii_lowercase(), value.to_owned());
    match operator.as_str() {
        "eq" => Ok(Condition::Equal { field, value }),
        "starts-with" => Ok(Condition::StartsWith { field, prefix: value }),
        _ => Err(invalid(
            "unknown operator: use \"eq\", \"starts-with\" or \"content-length-range\"",
        )),
    }
}

fn invalid(why: &str) -> S3Error {
    let message = format!("Invalid policy document: {why}");
    S3Error::with_message(S3ErrorCode::InvalidPolicyDocument, message)
}

fn denied(why: &str) -> S3Error {
    let why: String = why.chars().take(400).collect();
    let message = format!("The form does not meet its policy: {why}");
    S3Error::with_message(S3ErrorCode::AccessDenied, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPIRES_MS: u64 = 1_893_456_000_000;

    fn parse(conditions: &str) -> S3Result<Policy> {
        let document =
            format!(r#"{{"expiration": "2030-01-01T00:00:00.000Z", "conditions": {conditions}}}"#);
        Policy::parse(&STANDARD.encode(document))
    }

    fn code<T>(outcome: S3Result<T>) -> String {
        outcome.err().map_or("ok".to_owned(), |error| error.code().as_str().to_owned())
    }

    fn check(conditions: &str, fields: &[(&str, &str)], now_ms: u64) -> String {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let checked = parse(conditions).and_then(|it| it.check("pics", &fields.collect(), now_ms));
        code(checked)
    }

    #[test]
    fn invalid_policy_documents_are_rejected() {
        for conditions in [
            "{}",
            "[{}]",
            "[7]",
            r#"[{"key": 7}]"#,
            r#"[["eq", "key", "a"]]"#,
            r#"[["eq", "$", "a"]]"#,
            r#"[["eq", "$key"]]"#,
            r#"[["eq", "$key", "a", "b"]]"#,
            r#"[["matches", "$key", "a"]]"#,
            r#"[["content-length-range", 0]]"#,
            r#"[["content-length-range", -1, 0]]"#,
            r#"[["content-length-range", 2, 1]]"#,
            r#"[["content-length-range", 0, 1.5]]"#,
        ] {
            assert_eq!(code(parse(conditions)), "InvalidPolicyDocument", "{conditions}");
        }
        for document in [
            "",
            "[]",
            r#"{"conditions": []}"#,
            r#"{"expiration": "2030-01-01T00:00:00Z"}"#,
            r#"{"expiration": "tomorrow", "conditions": []}"#,
            r#"{"EXPIRATION": "2030-01-01T00:00:00Z", "conditions": []}"#,
            r#"{"expiration": "2030-01-01T00:00:00Z", "CONDITIONS": []}"#,
        ] {
            let parsed = Policy::parse(&STANDARD.encode(document));
            assert_eq!(code(parsed), "InvalidPolicyDocument", "{document}");
        }
        assert_eq!(code(Policy::parse("%")), "InvalidPolicyDocument");
    }

    #[test]
    fn policy_conditions_apply_to_each_field() {
        let conditions =
            r#"[{"bUcKeT": "pics"}, ["StArTs-WiTh", "$KeY", "a/"], {"acl": "private"}]"#;
        let (key, acl) = (("key", "a/b"), ("acl", "private"));
        let before = EXPIRES_MS - 1;
        assert_eq!(check(conditions, &[key, acl, ("policy", "x")], before), "ok");
        for exempt in ["x-ignore-a", "x-amz-checksum-sha256"] {
            assert_eq!(check(conditions, &[key, acl, (exempt, "b")], before), "ok");
        }
        for (fields, now_ms) in [
            (&[key, acl][..], EXPIRES_MS),
            (&[("key", "b/a"), acl], before),
            (&[key, ("acl", "Private")], before),
            (&[key], before),
            (&[key, acl, ("x-amz-meta-a", "b")], before),
            (&[key, acl, ("bucket", "other")], before),
        ] {
            assert_eq!(check(conditions, fields, now_ms), "AccessDenied", "{fields:?}");
        }
        assert_eq!(check(r#"[{"bucket": "other"}]"#, &[], before), "AccessDenied");
        assert_eq!(
            check(r#"[["starts-with", "$Content-Type", "image/"]]"#, &[], before),
            "AccessDenied"
        );
    }

    #[test]
    fn content_type_lists_match_value_by_value() {
        let conditions = r#"[["starts-with", "$Content-Type", "image/"]]"#;
        let check = |value| check(conditions, &[("content-type", value)], 0);
        assert_eq!(check("image/png"), "ok");
        assert_eq!(check("image/png, image/gif"), "ok");
        assert_eq!(check("image/png,text/html"), "AccessDenied");
    }

    #[test]
    fn narrowest_content_length_range_applies() {
        let policy = parse(
            r#"[["content-length-range", 1, 9], ["content-length-range", "2", "20"], {"key": "a"}]"#,
        );
        assert_eq!(policy.unwrap().length_bounds(), (2, 9));
        assert_eq!(parse("[]").unwrap().length_bounds(), (0, u64::MAX));
    }
}
