//! Reserved first path segments: no bucket may have such a name.
//!
//! Guarantees: every fixed first segment of the route table is on the list; a test of the table compares them.
//! Non-goals: the endpoints below these paths.

/// First segment of the API.
pub const API: &str = "api";
/// First segment of the server's own pages: dashboard, health, metrics, documents.
pub const INTERNAL: &str = "-";
/// First segment, below a bucket, of the earlier presign form. Keys may not start with it.
pub const PRESIGNED: &str = "presigned";

/// Bucket of the variant cache, which is not addressable.
pub const VARIANTS: &str = "trug.variants";
/// Bucket of noncurrent versions and delete markers, which is not addressable.
pub const VERSIONS: &str = "trug.versions";

/// Path prefix of the token of a presigned upload. The token after it is a secret while it is valid.
pub const TOKEN_PATH: &str = "/api/presigned-url/";
/// Path prefix of the secret of a shared link.
pub const LINK_PATH: &str = "/-/s/";
/// Path prefix of the pages of public files; bucket and key follow.
pub const FILE_PAGE_PATH: &str = "/-/v";
/// Path prefix of the secret of a prepared zip archive.
pub const ZIP_PATH: &str = "/-/zip/";

/// Path where the first account is created, and where an account chooses its password. The secret of a link follows a
/// `#`, so that browsers do not send it to servers and logs.
pub const SET_UP_PATH: &str = "/-/set-up";
pub const INVITATION_PATH: &str = "/-/invitation";

/// Sign-in paths, restricted to the dashboard so that no other origin can read the responses. Each covers the paths
/// below it.
const DASHBOARD_ONLY_PATHS: &[&str] =
    &["/-/session", "/-/sessions", "/-/password", SET_UP_PATH, INVITATION_PATH];

/// Names that no bucket may have: those above, and those that browsers, crawlers and probes request on their own.
pub const BUCKET_NAMES: &[&str] = &[
    API,
    INTERNAL,
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

/// Returns whether a path is restricted to the dashboard.
pub fn is_dashboard_path(path: &str) -> bool {
    path.starts_with("/-/")
        && DASHBOARD_ONLY_PATHS.iter().any(|own| after_segments(path, own).is_some())
}

/// Returns what follows `start` and a `/` in a path, or an empty path if nothing does. `None` if the path does not
/// start with these whole segments.
pub fn after_segments<'a>(path: &'a str, start: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(start)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
}

/// Returns whether a bucket may not have this name. Compares the decoded name.
pub fn is_reserved(name: &str) -> bool {
    BUCKET_NAMES.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashboard_paths_match_whole_segments() {
        for path in ["/-/session", "/-/sessions", "/-/sessions/aaaa", "/-/set-up", "/-/password"] {
            assert!(is_dashboard_path(path), "{path}");
        }
        for path in ["/-/", "/-/health", "/-/set-upper", "/api/buckets", "/b/-/session", "/"] {
            assert!(!is_dashboard_path(path), "{path}");
        }
    }
}
