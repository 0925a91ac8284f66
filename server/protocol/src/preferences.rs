//! Weighted preference headers: `Accept`, `Accept-Encoding` (RFC 9110 section 12.4.2).
//!
//! Pure. Guarantees: an invalid weight counts as 1. Non-goals: wildcards in `Accept`, which say nothing about the age
//! of a client.

use http::header::{ACCEPT_ENCODING, HeaderMap, HeaderName};

/// Returns whether a header names a value, in any case, with a weight other than 0.
pub fn names(headers: &HeaderMap, name: HeaderName, wanted: &str) -> bool {
    weight(headers, name, wanted).is_some_and(|weight| weight > 0)
}

/// Returns the content coding that a client prefers, of those that the server offers; the first of several with the
/// same weight. `None` for the content as it is, also if the client accepts nothing at all.
pub fn preferred_coding<'a>(headers: &HeaderMap, offered: &[&'a str]) -> Option<&'a str> {
    let weight_of = |coding: &str| weight(headers, ACCEPT_ENCODING, coding);
    let others = weight_of("*");
    // Acceptable without being named, but not preferred then.
    let identity = weight_of("identity").unwrap_or_default();
    let weighted = offered.iter().rev().map(|coding| (weight_of(coding).or(others), *coding));
    let acceptable =
        weighted.filter(|(weight, _)| weight.is_some_and(|it| it > 0 && it >= identity));
    acceptable.max_by_key(|(weight, _)| *weight).map(|(_, coding)| coding)
}

/// Returns the highest weight of a value that a header names, in thousandths.
fn weight(headers: &HeaderMap, name: HeaderName, wanted: &str) -> Option<u16> {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    let weights = values.flat_map(|value| value.split(',')).filter_map(|one| {
        let mut parts = one.split(';').map(str::trim);
        let is_named = parts.next().is_some_and(|it| it.eq_ignore_ascii_case(wanted));
        is_named.then(|| parts.find_map(parameter_weight).unwrap_or(1_000))
    });
    weights.max()
}

/// Returns the weight in a parameter, in thousandths.
fn parameter_weight(parameter: &str) -> Option<u16> {
    let weight = parameter.strip_prefix("q=").or(parameter.strip_prefix("Q="))?;
    let weight = weight.trim().parse::<f64>().ok().filter(|weight| weight.is_finite())?;
    Some((weight.clamp(0.0, 1.0) * 1_000.0).round() as u16)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn preferred(accepted: &str) -> Option<&'static str> {
        let value = HeaderValue::from_bytes(accepted.as_bytes()).unwrap();
        let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, value)]);
        preferred_coding(&headers, &["br", "zstd", "gzip"])
    }

    #[test]
    fn preferred_coding_follows_weights_then_the_offer() {
        for (accepted, coding) in [
            ("gzip, deflate, br, zstd", Some("br")),
            ("gzip, zstd", Some("zstd")),
            ("GZip", Some("gzip")),
            ("br;q=0.8, gzip;q=0.9", Some("gzip")),
            ("br; q=0.001, gzip;q=0", Some("br")),
            ("*", Some("br")),
            ("*, br;q=0", Some("zstd")),
            ("*;q=0", None),
            ("*;q=0, gzip;q=0.1", Some("gzip")),
            ("identity", None),
            ("identity, gzip", Some("gzip")),
            ("identity;q=1, gzip;q=0.5", None),
            ("identity;q=0", None),
            ("identity;q=0, *", Some("br")),
            ("br;q=0, zstd;q=0, gzip;q=0, identity;q=0", None),
            ("deflate, compress", None),
            ("", None),
        ] {
            assert_eq!(preferred(accepted), coding, "{accepted:?}");
        }
        assert_eq!(preferred_coding(&HeaderMap::new(), &["br"]), None);
    }

    #[test]
    fn malformed_preferences_do_not_fail() {
        for (accepted, coding) in [
            (",,;;q=,br;q", Some("br")),
            ("br;q=x", Some("br")),
            ("br;q=nan, gzip", Some("br")),
            ("br;q=-1, gzip;q=1e9", Some("gzip")),
            ("br;q=0.0000001", None),
            ("bröt, gzip", None),
            ("b r, gz ip", None),
            ("br=1", None),
        ] {
            assert_eq!(preferred(accepted), coding, "{accepted:?}");
        }
        assert_eq!(preferred(&"br;q=0,".repeat(2_000)), None);
    }

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
