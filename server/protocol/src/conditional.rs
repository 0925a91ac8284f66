//! Preconditions of a request, evaluated in the order of RFC 9110 section 13.2.2.
//!
//! Pure. Guarantees: `If-Match` and `If-Range` compare strongly, also by date, `If-None-Match` weakly; dates have whole
//! seconds; an invalid date is ignored. Non-goals: status codes, ranges.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::header::{
    self, HeaderMap, HeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE,
    IF_UNMODIFIED_SINCE,
};
use http::{HeaderValue, Method};

/// Validators of one version of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validators {
    /// Strong entity tag, including its quotes.
    etag: String,
    /// Modification time; `None` without a date, in which case date preconditions have no effect.
    modified_ms: Option<u64>,
    /// Whether the date is a strong validator (RFC 9110 section 8.8.2.2).
    is_date_strong: bool,
}

/// Result of the preconditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreconditionResult {
    /// The request proceeds.
    Proceed {
        /// Whether a `Range` header applies; if not, the whole object is sent.
        range: IfRange,
    },
    /// The client already has this version.
    NotModified,
    /// A precondition of the client does not hold.
    PreconditionFailed,
}

/// Applicability of a `Range` header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfRange {
    /// The range applies: `If-Range` is absent, or names this version.
    Matches,
    /// `If-Range` names another version, so the range is ignored.
    Mismatch,
}

impl Validators {
    /// Creates validators from an entity tag of letters, digits and hyphens, without quotes, and a modification time.
    pub fn new(etag: impl fmt::Display, modified_ms: u64) -> Self {
        let etag = format!("\"{etag}\"");
        Self { etag, modified_ms: Some(modified_ms), is_date_strong: true }
    }

    /// Returns the validators of a stored object. An object that replaced another within the same second has the same
    /// date, which is then a weak validator.
    pub fn of_object(etag: impl fmt::Display, created_ms: u64, modified_ms: u64) -> Self {
        Self { is_date_strong: created_ms == modified_ms, ..Self::new(etag, modified_ms) }
    }

    /// Creates validators without a date.
    pub fn etag_only(etag: impl fmt::Display) -> Self {
        Self { etag: format!("\"{etag}\""), modified_ms: None, is_date_strong: false }
    }

    /// Returns the value of `ETag`.
    pub fn etag_header(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(&self.etag).ok()
    }

    /// Returns the value of `Last-Modified`.
    pub fn last_modified_header(&self) -> Option<HeaderValue> {
        HeaderValue::try_from(http_date(self.modified_ms?)).ok()
    }
}

/// Formats a time as an HTTP date.
pub fn http_date(unix_ms: u64) -> String {
    // Years after 9999 have no such form.
    let seconds = (unix_ms / 1_000).min(253_402_300_799);
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds))
}

/// Evaluates a request's preconditions against the current version; `None` if there is none.
pub fn evaluate_preconditions(
    method: &Method,
    headers: &HeaderMap,
    current: Option<&Validators>,
) -> PreconditionResult {
    // Most requests have none of these headers: one pass costs less than five lookups.
    if !headers.keys().any(|name| name.as_str().starts_with("if-")) {
        return PreconditionResult::Proceed { range: IfRange::Matches };
    }
    let is_read = matches!(*method, Method::GET | Method::HEAD);

    if headers.contains_key(IF_MATCH) {
        if !lists(headers, IF_MATCH, current, Compare::Strong) {
            return PreconditionResult::PreconditionFailed;
        }
    } else if let (Some(date), Some(now)) =
        (date_of(headers, IF_UNMODIFIED_SINCE), current.and_then(seconds))
        && now > date
    {
        return PreconditionResult::PreconditionFailed;
    }

    if headers.contains_key(IF_NONE_MATCH) {
        if lists(headers, IF_NONE_MATCH, current, Compare::Weak) {
            return if is_read {
                PreconditionResult::NotModified
            } else {
                PreconditionResult::PreconditionFailed
            };
        }
    } else if let (Some(date), Some(now)) =
        (date_of(headers, IF_MODIFIED_SINCE), current.and_then(seconds))
        && is_read
        && now <= date
    {
        return PreconditionResult::NotModified;
    }

    PreconditionResult::Proceed { range: range_rule(headers, current) }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Compare {
    Strong,
    Weak,
}

/// Returns whether the entity tags of a header match the current version.
fn lists(
    headers: &HeaderMap,
    name: HeaderName,
    current: Option<&Validators>,
    how: Compare,
) -> bool {
    let Some(current) = current else { return false };
    headers.get_all(name).iter().any(|value| list_names(value.as_bytes(), &current.etag, how))
}

/// Parses `"a", W/"b"`; a tag may contain a comma. Malformed input ends the list.
fn list_names(list: &[u8], etag: &str, how: Compare) -> bool {
    let mut rest = list.trim_ascii();
    if rest == b"*" {
        return true;
    }
    loop {
        while let [b',' | b' ' | b'\t', tail @ ..] = rest {
            rest = tail;
        }
        let is_weak = rest.starts_with(b"W/");
        let Some(opened) = rest.get(if is_weak { 2 } else { 0 }..) else { return false };
        let Some(quoted) = opened.strip_prefix(b"\"") else { return false };
        let Some(end) = quoted.iter().position(|byte| *byte == b'"') else { return false };
        let (tag, tail) = opened.split_at(end + 2);
        if tag == etag.as_bytes() && (how == Compare::Weak || !is_weak) {
            return true;
        }
        rest = tail;
    }
}

fn range_rule(headers: &HeaderMap, current: Option<&Validators>) -> IfRange {
    let mut values = headers.get_all(IF_RANGE).iter();
    let Some(value) = values.next() else { return IfRange::Matches };
    let Some(current) = current else { return IfRange::Mismatch };
    let value_bytes = value.as_bytes().trim_ascii();
    let names_this = if value_bytes.starts_with(b"\"") || value_bytes.starts_with(b"W/") {
        value_bytes == current.etag.as_bytes()
    } else {
        let is_exact = || seconds(current).is_some_and(|now| parse_date(value) == Some(now));
        current.is_date_strong && is_exact()
    };
    if names_this && values.next().is_none() { IfRange::Matches } else { IfRange::Mismatch }
}

fn seconds(of: &Validators) -> Option<u64> {
    of.modified_ms.map(|ms| ms / 1_000)
}

/// Returns the date of a header that must occur once.
fn date_of(headers: &HeaderMap, name: HeaderName) -> Option<u64> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => parse_date(value),
        _ => None,
    }
}

fn parse_date(value: &header::HeaderValue) -> Option<u64> {
    let date: SystemTime = httpdate::parse_http_date(value.to_str().ok()?.trim()).ok()?;
    Some(date.duration_since(UNIX_EPOCH).ok()?.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::HeaderName;

    const MODIFIED_MS: u64 = 1_700_000_000_500;
    const EXACT: &str = "Tue, 14 Nov 2023 22:13:20 GMT";
    const LATER: &str = "Tue, 14 Nov 2023 22:13:21 GMT";
    const EARLIER: &str = "Tue, 14 Nov 2023 22:13:19 GMT";
    const GO: PreconditionResult = PreconditionResult::Proceed { range: IfRange::Matches };
    const GO_WHOLE: PreconditionResult = PreconditionResult::Proceed { range: IfRange::Mismatch };

    fn weigh(method: Method, pairs: &[(HeaderName, &str)]) -> PreconditionResult {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name.clone(), value.parse().unwrap());
        }
        let current = Validators::new("abc", MODIFIED_MS);
        evaluate_preconditions(&method, &headers, Some(&current))
    }

    fn get(pairs: &[(HeaderName, &str)]) -> PreconditionResult {
        weigh(Method::GET, pairs)
    }

    #[test]
    fn http_dates_use_imf_fixdate() {
        assert_eq!(http_date(MODIFIED_MS), EXACT);
        assert_eq!(http_date(u64::MAX), "Fri, 31 Dec 9999 23:59:59 GMT");
    }

    #[test]
    fn if_range_rejects_a_weak_date() {
        let headers = HeaderMap::from_iter([(IF_RANGE, HeaderValue::from_static(EXACT))]);
        for (created_ms, rule) in
            [(MODIFIED_MS, IfRange::Matches), (MODIFIED_MS - 1, IfRange::Mismatch)]
        {
            let current = Validators::of_object("abc", created_ms, MODIFIED_MS);
            let outcome = evaluate_preconditions(&Method::GET, &headers, Some(&current));
            assert_eq!(outcome, PreconditionResult::Proceed { range: rule });
            // For the whole object the date remains valid.
            let since =
                HeaderMap::from_iter([(IF_MODIFIED_SINCE, HeaderValue::from_static(EXACT))]);
            assert_eq!(
                evaluate_preconditions(&Method::GET, &since, Some(&current)),
                PreconditionResult::NotModified
            );
        }
    }

    #[test]
    fn if_none_match_compares_weakly() {
        for same in ["\"abc\"", "W/\"abc\"", "*", "\"x\", \"abc\"", "\"a,b\" , W/\"abc\""] {
            assert_eq!(get(&[(IF_NONE_MATCH, same)]), PreconditionResult::NotModified, "{same}");
            assert_eq!(
                weigh(Method::PUT, &[(IF_NONE_MATCH, same)]),
                PreconditionResult::PreconditionFailed
            );
        }
        for other in ["\"abd\"", "abc", "\"abc", "W/abc", "", "\"x\",,\"y\""] {
            assert_eq!(get(&[(IF_NONE_MATCH, other)]), GO, "{other}");
        }
        assert_eq!(
            get(&[(IF_NONE_MATCH, "\"x\""), (IF_NONE_MATCH, "\"abc\"")]),
            PreconditionResult::NotModified
        );
    }

    #[test]
    fn if_match_compares_strongly() {
        for same in ["\"abc\"", "*", "\"x\", \"abc\""] {
            assert_eq!(get(&[(IF_MATCH, same)]), GO, "{same}");
        }
        for other in ["\"abd\"", "W/\"abc\"", ""] {
            assert_eq!(
                get(&[(IF_MATCH, other)]),
                PreconditionResult::PreconditionFailed,
                "{other}"
            );
        }
        let mut headers = HeaderMap::new();
        headers.insert(IF_MATCH, "*".parse().unwrap());
        assert_eq!(
            evaluate_preconditions(&Method::PUT, &headers, None),
            PreconditionResult::PreconditionFailed
        );
    }

    #[test]
    fn date_conditions_yield_to_etag_conditions() {
        assert_eq!(get(&[(IF_MODIFIED_SINCE, EXACT)]), PreconditionResult::NotModified);
        assert_eq!(get(&[(IF_MODIFIED_SINCE, LATER)]), PreconditionResult::NotModified);
        assert_eq!(get(&[(IF_MODIFIED_SINCE, EARLIER)]), GO);
        assert_eq!(get(&[(IF_MODIFIED_SINCE, "yesterday")]), GO);
        assert_eq!(weigh(Method::POST, &[(IF_MODIFIED_SINCE, LATER)]), GO);
        assert_eq!(get(&[(IF_NONE_MATCH, "\"x\""), (IF_MODIFIED_SINCE, LATER)]), GO);
        assert_eq!(get(&[(IF_UNMODIFIED_SINCE, EXACT)]), GO);
        assert_eq!(get(&[(IF_UNMODIFIED_SINCE, EARLIER)]), PreconditionResult::PreconditionFailed);
        assert_eq!(get(&[(IF_MATCH, "\"abc\""), (IF_UNMODIFIED_SINCE, EARLIER)]), GO);
    }

    #[test]
    fn precondition_failed_precedes_not_modified() {
        let both = [(IF_MATCH, "\"x\""), (IF_NONE_MATCH, "\"abc\"")];
        assert_eq!(get(&both), PreconditionResult::PreconditionFailed);
    }

    #[test]
    fn if_range_requires_strong_etag_or_exact_date() {
        for same in ["\"abc\"", EXACT] {
            assert_eq!(get(&[(IF_RANGE, same)]), GO, "{same}");
        }
        for other in ["W/\"abc\"", "\"x\"", LATER, EARLIER, "abc", "*"] {
            assert_eq!(get(&[(IF_RANGE, other)]), GO_WHOLE, "{other}");
        }
    }

    #[test]
    fn no_preconditions_proceed() {
        assert_eq!(get(&[]), GO);
        assert_eq!(evaluate_preconditions(&Method::GET, &HeaderMap::new(), None), GO);
    }
}
