//! Virtual-hosted style: `photos.files.example.org/a.jpg` is `/photos/a.jpg` in path style.
//!
//! Non-goals: unsigned requests.

use http::request::Parts;
use s3s::S3Result;
use s3s::host::{S3Host, VirtualHost};
use service::own_pages::host_of;
use service::state::AppState;

use super::signed::is_signed;

/// Host parser for `s3s`.
pub(super) struct Hosts {
    app: AppState,
}

impl Hosts {
    pub(super) fn new(app: AppState) -> Self {
        Self { app }
    }
}

impl S3Host for Hosts {
    fn parse_host_header<'a>(&'a self, host: &'a str) -> S3Result<VirtualHost<'a>> {
        Ok(match self.app.dashboard_hosts().bucket_before(host) {
            Some(bucket) => VirtualHost::new(host).with_bucket(bucket),
            None => VirtualHost::new(host),
        })
    }
}

/// Returns the path of a signed request in path style; `None` for unsigned requests.
pub fn path_of(app: &AppState, head: &Parts) -> Option<String> {
    if !is_signed(&head.method, &head.uri, &head.headers) {
        return None;
    }
    let path = head.uri.path();
    let host = host_of(&head.headers, &head.uri);
    let bucket = host.as_ref().and_then(|host| {
        let hosts = app.dashboard_hosts();
        hosts.bucket_before(host.as_str()).map(str::to_owned)
    });
    Some(bucket.map_or_else(|| path.to_owned(), |bucket| format!("/{bucket}{path}")))
}
