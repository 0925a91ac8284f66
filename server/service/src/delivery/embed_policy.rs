//! Fetch Metadata policy for users' files that pages of this origin load.
//!
//! The dashboard and users' files share an origin, so a browser would let the dashboard run any file that a user
//! stored. Guarantees: a same-origin load, as stated by Fetch Metadata, is rejected unless its destination only
//! displays the file or reads it as data; unknown destinations are rejected. Non-goals: pages of other origins, and
//! non-browser clients, which get every file; the dashboard's own Content-Security-Policy, which forbids the same on
//! its side; `Vary`, which `protocol::response_headers` sends.

use http::header::HeaderMap;

use protocol::error::ApiError;

/// Request destinations that give a file no power over the page that loads it. Fetch standard, section 2.2.5.
const HARMLESS: &[&[u8]] =
    &[b"audio", b"document", b"empty", b"font", b"frame", b"iframe", b"image", b"track", b"video"];

/// Rejects a request for a file that a page of this origin would run or apply.
pub(super) fn reject_active_embeds(headers: &HeaderMap) -> Result<(), ApiError> {
    let (mut is_worker, mut is_harmful, mut is_same_origin) = (false, false, false);
    // One pass costs less than three lookups, which hash each name.
    for (name, value) in headers {
        match name.as_str() {
            // A request for a service worker script has its own header, whatever the page's origin.
            "service-worker" => is_worker |= value == "script",
            "sec-fetch-dest" => is_harmful |= !HARMLESS.contains(&value.as_bytes()),
            "sec-fetch-site" => is_same_origin |= value == "same-origin",
            _ => {}
        }
    }
    if is_worker || (is_harmful && is_same_origin) {
        return Err(ApiError::forbidden(
            "Blocked: user files are not served as scripts, styles, workers or plugins to pages \
            of this origin",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn is_let_through(pairs: &[(&'static str, &'static str)]) -> bool {
        let pairs = pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        reject_active_embeds(&pairs.collect()).is_ok()
    }

    #[test]
    fn powerful_destinations_of_own_origin_are_refused() {
        for destination in [
            "audioworklet",
            "embed",
            "fencedframe",
            "json",
            "manifest",
            "object",
            "paintworklet",
            "report",
            "script",
            "serviceworker",
            "sharedworker",
            "speculationrules",
            "style",
            "webidentity",
            "worker",
            "xslt",
            "not-specified-yet",
        ] {
            let dest = ("sec-fetch-dest", destination);
            assert!(!is_let_through(&[dest, ("sec-fetch-site", "same-origin")]), "{destination}");
            assert!(is_let_through(&[dest, ("sec-fetch-site", "cross-site")]), "{destination}");
            assert!(is_let_through(&[dest, ("sec-fetch-site", "same-site")]), "{destination}");
            assert!(is_let_through(&[dest]), "{destination}");
        }
        assert!(!is_let_through(&[("service-worker", "script")]));
    }

    #[test]
    fn passive_fetch_destinations_are_allowed() {
        let site = ("sec-fetch-site", "same-origin");
        for destination in HARMLESS {
            let destination = std::str::from_utf8(destination).unwrap();
            assert!(is_let_through(&[("sec-fetch-dest", destination), site]), "{destination}");
        }
        assert!(is_let_through(&[]) && is_let_through(&[site]));
    }
}
