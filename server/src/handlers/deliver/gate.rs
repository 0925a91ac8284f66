//! What a page of this origin may load of users' files.
//!
//! The dashboard and the files of users share an origin, so a browser would let the dashboard run any file that
//! somebody stored. Promises: a browser that says that it loads a file of its own origin to run or obey it gets none;
//! pictures, sound, film, frames and what a script reads as data go out, and so does everything to pages of other
//! origins and to whoever is no browser. Never here: the dashboard's own policy, which forbids the same on its side.

use http::header::{HeaderMap, HeaderName};

use crate::error::ApiError;

const SERVICE_WORKER: HeaderName = HeaderName::from_static("service-worker");
const FETCH_DESTINATION: HeaderName = HeaderName::from_static("sec-fetch-dest");
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// What a file would be to the page that loads it, where that gives the file power over the page.
const POWERFUL: &[&[u8]] = &[
    b"script",
    b"style",
    b"worker",
    b"sharedworker",
    b"serviceworker",
    b"manifest",
    b"object",
    b"embed",
];

/// Refuses what a page of this origin would run or obey.
pub(super) fn check(headers: &HeaderMap) -> Result<(), ApiError> {
    let is = |name: HeaderName, value: &[u8]| headers.get(name).is_some_and(|it| it == value);
    // Whoever asks for a worker's script says so, wherever the page lies.
    let is_worker = is(SERVICE_WORKER, b"script");
    let destination = headers.get(FETCH_DESTINATION);
    let is_powerful = destination.is_some_and(|it| POWERFUL.contains(&it.as_bytes()));
    if is_worker || (is_powerful && is(FETCH_SITE, b"same-origin")) {
        return Err(ApiError::forbidden(
            "Files are not loaded as scripts, styles, workers or plugins by pages of this server's own address",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn is_let_through(pairs: &[(&'static str, &'static str)]) -> bool {
        let pairs = pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        check(&pairs.collect()).is_ok()
    }

    #[test]
    fn what_would_have_power_over_a_page_of_this_origin_is_refused() {
        for destination in POWERFUL {
            let destination = std::str::from_utf8(destination).unwrap();
            let dest = ("sec-fetch-dest", destination);
            assert!(!is_let_through(&[dest, ("sec-fetch-site", "same-origin")]), "{destination}");
            assert!(is_let_through(&[dest, ("sec-fetch-site", "cross-site")]), "{destination}");
            assert!(is_let_through(&[dest, ("sec-fetch-site", "same-site")]), "{destination}");
            assert!(is_let_through(&[dest]), "{destination}");
        }
        assert!(!is_let_through(&[("service-worker", "script")]));
    }

    #[test]
    fn what_is_only_shown_or_read_goes_out() {
        let site = ("sec-fetch-site", "same-origin");
        for destination in ["image", "video", "audio", "track", "iframe", "document", "empty"] {
            assert!(is_let_through(&[("sec-fetch-dest", destination), site]), "{destination}");
        }
        assert!(is_let_through(&[]) && is_let_through(&[site]));
    }
}
