//! The first path components that are ours: no bucket may have such a name.
//!
//! Promises: everything the router knows by a fixed first component is on the list; a test of the router compares them.
//! Never here: what lies behind these paths.

/// First components of the API.
pub const API: &str = "api";
/// First component of what is ours alone: dashboard, health, metrics, documents.
pub const OWN: &str = "-";
/// First component, below a bucket, of the earlier presign form. Keys may not start with it.
pub const PRESIGNED: &str = "presigned";

/// The bucket of variants of pictures, which nobody can address.
pub const VARIANTS: &str = "trug.variants";
/// The bucket of noncurrent versions and delete markers, which nobody can address.
pub const VERSIONS: &str = "trug.versions";

/// What stands before the token of a presigned upload. What stands behind it is a secret while it lives.
pub const TOKEN_PATH: &str = "/api/presigned-url/";

/// Where the first account is made, and where an account chooses its password. The secret of a link stands behind a
/// `#`, so that browsers keep it from servers and logs.
pub const SET_UP_PATH: &str = "/-/set-up";
pub const INVITATION_PATH: &str = "/-/invitation";

/// Where people sign in: for pages of our own alone, so that no other origin reads an answer. What begins with one of
/// these and a slash belongs to it.
const FOR_OWN_PAGES: &[&str] =
    &["/-/session", "/-/sessions", "/-/password", SET_UP_PATH, INVITATION_PATH];

/// Names that no bucket may have: those above, and those that browsers, crawlers and probes ask for unasked.
pub const BUCKET_NAMES: &[&str] = &[
    API,
    OWN,
    PRESIGNED,
    VARIANTS,
    VERSIONS,
    "health",
    "metrics",
    "favicon.ico",
    "robots.txt",
    "sitemap.xml",
    "index.html",
    ".well-known",
];

/// Whether answers at this path are for pages of our own alone.
pub fn is_for_own_pages(path: &str) -> bool {
    path.starts_with("/-/")
        && FOR_OWN_PAGES.iter().any(|own| {
            path.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
}

/// Whether a bucket may not have this name. The name is compared as decoded.
pub fn is_reserved(name: &str) -> bool {
    BUCKET_NAMES.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_for_our_own_pages_is_told_by_whole_components() {
        for path in ["/-/session", "/-/sessions", "/-/sessions/aaaa", "/-/set-up", "/-/password"] {
            assert!(is_for_own_pages(path), "{path}");
        }
        for path in ["/-/", "/-/health", "/-/set-upper", "/api/buckets", "/b/-/session", "/"] {
            assert!(!is_for_own_pages(path), "{path}");
        }
    }
}
