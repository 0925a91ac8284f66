//! CORS rules of a bucket, as S3 clients set them: which pages may send which requests and read the responses.
//!
//! Pure. Guarantees: an accepted rule can be sent in headers as it is; the first rule that allows all of a request
//! counts. Non-goals: the setting `corsOrigins`, which counts for buckets without rules.

use serde::{Deserialize, Serialize};

use crate::limits::{CORS_RULES_BYTES_MAX, CORS_RULES_MAX};

/// Methods that rules may allow, as S3 has it.
const METHODS: [&str; 5] = ["GET", "PUT", "HEAD", "POST", "DELETE"];
/// Characters of the id of a rule, as S3 has it.
const ID_CHARS_MAX: usize = 255;

/// CORS rule: allows requests of these origins by these methods with these headers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CorsRule {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Origins, with at most one `*` each.
    pub origins: Vec<String>,
    pub methods: Vec<String>,
    /// Request headers, with at most one `*` each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<String>,
    /// Response headers that pages may read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exposed: Vec<String>,
    /// Time for which browsers may cache a preflight response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_age_seconds: Option<u32>,
}

/// Rejects rules beyond the limits of S3; the error says which.
pub fn check_rules(rules: &[CorsRule]) -> Result<(), String> {
    if rules.len() > CORS_RULES_MAX {
        return Err(format!("{} CORS rules: the limit is {CORS_RULES_MAX}", rules.len()));
    }
    for rule in rules {
        rule.check()?;
    }
    let bytes = serde_json::to_vec(rules).map_or(usize::MAX, |encoded| encoded.len());
    if bytes > CORS_RULES_BYTES_MAX {
        return Err(format!(
            "The CORS rules of a bucket may have up to {CORS_RULES_BYTES_MAX} bytes"
        ));
    }
    Ok(())
}

/// Returns the first rule that allows a request of this origin, by this method and with these headers.
pub fn rule_for<'r>(
    rules: &'r [CorsRule],
    origin: &str,
    method: &str,
    headers: &[&str],
) -> Option<&'r CorsRule> {
    rules.iter().find(|rule| {
        rule.origin_for(origin).is_some()
            && rule.methods.iter().any(|allowed| allowed == method)
            && headers.iter().all(|header| rule.allows_header(header))
    })
}

impl CorsRule {
    fn check(&self) -> Result<(), String> {
        if self.id.as_deref().is_some_and(|id| id.chars().count() > ID_CHARS_MAX) {
            return Err(format!("The ID of a CORS rule may have up to {ID_CHARS_MAX} characters"));
        }
        if self.origins.is_empty() || self.methods.is_empty() {
            return Err("A CORS rule requires an AllowedOrigin and an AllowedMethod".to_owned());
        }
        for method in &self.methods {
            if !METHODS.contains(&method.as_str()) {
                return Err(format!(
                    "AllowedMethod {method:?} is not GET, PUT, HEAD, POST or DELETE"
                ));
            }
        }
        let is_plain =
            |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_graphic());
        for pattern in self.origins.iter().chain(&self.headers) {
            if !is_plain(pattern) || pattern.matches('*').count() > 1 {
                return Err(format!("{pattern:?} is not visible ASCII with at most one \"*\""));
            }
        }
        for name in &self.exposed {
            if http::HeaderName::try_from(name).is_err() || name.contains('*') {
                return Err(format!("ExposeHeader {name:?} is not a header name"));
            }
        }
        Ok(())
    }

    /// Returns the allowed origin for a response: the origin itself, or `*` if every origin is allowed. `None` if the
    /// origin is not allowed.
    pub fn origin_for<'o>(&self, origin: &'o str) -> Option<&'o str> {
        if self.origins.iter().any(|pattern| pattern == "*") {
            return Some("*");
        }
        self.origins.iter().any(|pattern| matches(pattern, origin)).then_some(origin)
    }

    fn allows_header(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        self.headers.iter().any(|pattern| matches(&pattern.to_ascii_lowercase(), &name))
    }
}

/// Returns whether a text matches a pattern with at most one `*`.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, end)) => {
            text.len() >= start.len() + end.len() && text.starts_with(start) && text.ends_with(end)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(origins: &[&str], methods: &[&str], headers: &[&str]) -> CorsRule {
        let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let (origins, methods, headers) = (list(origins), list(methods), list(headers));
        CorsRule { origins, methods, headers, ..CorsRule::default() }
    }

    #[test]
    fn cors_origin_allows_a_single_wildcard() {
        let allowed = |pattern: &str, origin: &str| {
            rule(&[pattern], &["GET"], &[]).origin_for(origin).map(str::to_owned)
        };
        assert_eq!(allowed("*", "https://a.example").as_deref(), Some("*"));
        for (pattern, origin, is_allowed) in [
            ("https://a.example", "https://a.example", true),
            ("https://a.example", "https://a.example:8080", false),
            ("https://*.example", "https://a.b.example", true),
            ("https://*.example", "https://.example", true),
            ("https://*.example", "https://a.example.evil", false),
            ("start*end", "startend", true),
            ("start*tend", "startend", false),
        ] {
            let answer = is_allowed.then(|| origin.to_owned());
            assert_eq!(allowed(pattern, origin), answer, "{pattern} {origin}");
        }
    }

    #[test]
    fn first_matching_cors_rule_applies() {
        let rules = [
            rule(&["https://a"], &["GET"], &[]),
            rule(&["https://*"], &["PUT", "GET"], &["x-amz-*", "Content-Type"]),
        ];
        let found = |origin: &str, method: &str, headers: &[&str]| {
            let found = rule_for(&rules, origin, method, headers)?;
            rules.iter().position(|rule| rule == found)
        };
        assert_eq!(found("https://a", "GET", &[]), Some(0));
        assert_eq!(found("https://a", "GET", &["X-Amz-Date", "content-type"]), Some(1));
        assert_eq!(found("https://b", "GET", &[]), Some(1));
        for (origin, method, headers) in [
            ("https://b", "DELETE", &[][..]),
            ("https://b", "get", &[]),
            ("http://b", "GET", &[]),
            ("https://b", "GET", &["authorization"]),
        ] {
            assert_eq!(found(origin, method, headers), None, "{origin} {method} {headers:?}");
        }
    }

    #[test]
    fn cors_rules_beyond_the_limits_are_rejected() {
        let fine = rule(&["*"], &["GET"], &["*"]);
        assert_eq!(check_rules(std::slice::from_ref(&fine)), Ok(()));
        for wrong in [
            rule(&[], &["GET"], &[]),
            rule(&["*"], &[], &[]),
            rule(&["*"], &["OPTIONS"], &[]),
            rule(&["http://*.*"], &["GET"], &[]),
            rule(&["http://a\r\nb"], &["GET"], &[]),
            rule(&["*"], &["GET"], &["x-*-*"]),
            CorsRule { exposed: vec!["*".into()], ..fine.clone() },
            CorsRule { exposed: vec!["a b".into()], ..fine.clone() },
            CorsRule { id: Some("x".repeat(256)), ..fine.clone() },
        ] {
            assert!(check_rules(std::slice::from_ref(&wrong)).is_err(), "{wrong:?}");
        }
        assert!(check_rules(&vec![fine.clone(); CORS_RULES_MAX + 1]).is_err());
        let long = rule(&[&"x".repeat(CORS_RULES_BYTES_MAX)], &["GET"], &[]);
        assert!(check_rules(&[long]).is_err());
    }
}
