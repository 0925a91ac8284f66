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

/// What stands before the token of a presigned upload. What stands behind it is a secret while it lives.
pub const TOKEN_PATH: &str = "/api/presigned-url/";

/// Names that no bucket may have: those above, and those that browsers, crawlers and probes ask for unasked.
pub const BUCKET_NAMES: &[&str] = &[
    API,
    OWN,
    PRESIGNED,
    VARIANTS,
    "health",
    "metrics",
    "favicon.ico",
    "robots.txt",
    "sitemap.xml",
    "index.html",
    ".well-known",
];

/// Whether a bucket may not have this name. The name is compared as decoded.
pub fn is_reserved(name: &str) -> bool {
    BUCKET_NAMES.contains(&name)
}
