//! Weighted preference headers: `Accept`, `Accept-Encoding` (RFC 9110 section 12.4.2).
//!
//! Pure. Non-goals: wildcards, which say nothing about the age of a client.

use http::header::{HeaderMap, HeaderName};

/// Returns whether a header names a value, in any case, with a weight other than 0.
pub fn names(headers: &HeaderMap, name: HeaderName, wanted: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|one| {
        let mut parts = one.split(';').map(str::trim);
        let is_named = parts.next().is_some_and(|it| it.eq_ignore_ascii_case(wanted));
        is_named && !parts.any(is_refusal)
    })
}

/// Returns whether a parameter is a weight of 0.
fn is_refusal(parameter: &str) -> bool {
    let weight = parameter.strip_prefix("q=").or(parameter.strip_prefix("Q="));
    weight.and_then(|it| it.parse::<f64>().ok()).is_some_and(|weight| weight <= 0.0)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::ACCEPT_ENCODING;

    use super::*;

    #[test]
    fn preference_requires_name_and_nonzero_weight() {
        let accepts = |value: &'static str| {
            let headers =
                HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(value))]);
            names(&headers, ACCEPT_ENCODING, "gzip")
        };
        assert!(accepts("gzip") && accepts("deflate, GZIP;q=0.5, br") && accepts("br,gzip"));
        for refused in ["br", "gzip;q=0", "gzip; q=0.0", "gzip;Q=0", "*", ""] {
            assert!(!accepts(refused), "{refused}");
        }
        assert!(!names(&HeaderMap::new(), ACCEPT_ENCODING, "gzip"));
    }
}
