//! CSRF protection: decides by Fetch Metadata and origin whether a request comes from the dashboard.
//!
//! Browsers state the source of each request (`Sec-Fetch-Site`), older ones at least the origin of those that change
//! state (`Origin`). A page under a foreign name that resolves to this server (DNS rebinding) sends that name as
//! `Host`. Guarantees: a doubtful request counts as cross-site. Non-goals: cookies, and the response.

use std::net::IpAddr;

use http::header::{self, HeaderMap};
use http::uri::{Authority, Scheme, Uri};
use http::{HeaderName, Method};

use protocol::public_url::PublicUrl;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Source of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestOrigin {
    /// Same-origin page, or a URL that the user entered.
    SameOrigin,
    /// Another site, or an invalid statement.
    CrossSite,
    /// Neither header: an old browser, or no browser.
    Unknown,
}

/// Host names of the dashboard.
#[derive(Clone, Debug)]
pub struct DashboardHosts {
    names: Vec<String>,
}

impl RequestOrigin {
    /// Determines the source of a request.
    pub fn from_headers(method: &Method, headers: &HeaderMap, uri: &Uri) -> Self {
        let mut said = headers.get_all(SEC_FETCH_SITE).iter();
        if let Some(site) = said.next() {
            let is_own = match site.as_bytes() {
                b"same-origin" => true,
                b"none" => is_read(method),
                _ => false,
            };
            return if is_own && said.next().is_none() {
                Self::SameOrigin
            } else {
                Self::CrossSite
            };
        }
        let mut said = headers.get_all(header::ORIGIN).iter();
        let Some(origin) = said.next() else { return Self::Unknown };
        let is_own = || {
            let origin: Uri = origin.to_str().ok()?.parse().ok()?;
            let asked = host_of(headers, uri)?;
            // A proxy may change the scheme; a missing port is the default port of either.
            let (scheme, named) = (origin.scheme()?, origin.authority()?);
            let port = |authority: &Authority| authority.port_u16();
            let usual = if *scheme == Scheme::HTTPS { 443 } else { 80 };
            let same_port = port(named).unwrap_or(usual) == port(&asked).unwrap_or(usual);
            Some(named.host().eq_ignore_ascii_case(asked.host()) && same_port)
        };
        match is_own() {
            Some(true) if said.next().is_none() => Self::SameOrigin,
            _ => Self::CrossSite,
        }
    }

    /// Returns whether the session cookie of such a request is honored.
    pub fn allows_cookies(self, method: &Method) -> bool {
        match self {
            Self::SameOrigin => true,
            Self::CrossSite => false,
            Self::Unknown => is_read(method),
        }
    }
}

impl DashboardHosts {
    /// Collects the host of the public URL and those that the operator configured.
    pub fn new(public_url: &PublicUrl, configured: &[String]) -> Self {
        let names = public_url.host().into_iter().chain(configured.iter().cloned());
        Self { names: names.map(|name| name.to_ascii_lowercase()).collect() }
    }

    /// Returns the bucket that a host prefixes to one of the names, or to `localhost`: virtual-hosted style of S3.
    pub fn bucket_before<'h>(&self, host: &'h str) -> Option<&'h str> {
        let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
        if self.names.iter().any(|own| own.eq_ignore_ascii_case(host)) {
            return None;
        }
        let own = self.names.iter().map(String::as_str).chain(["localhost"]);
        own.filter_map(|own| {
            let start = host.len().checked_sub(own.len() + 1)?;
            let (bucket, rest) = (host.get(..start)?, host.get(start..)?);
            let is_own = rest.strip_prefix('.').is_some_and(|it| it.eq_ignore_ascii_case(own));
            (is_own && !bucket.is_empty()).then_some(bucket)
        })
        // If both `a.b.c` and `b.c` match, the longer one applies.
        .min_by_key(|bucket| bucket.len())
    }

    /// Returns whether the request's host is one of the names, localhost, or an IP address, to none of which a foreign
    /// name can resolve.
    pub fn matches_host(&self, headers: &HeaderMap, uri: &Uri) -> bool {
        let Some(authority) = host_of(headers, uri) else { return false };
        let host = authority.host().to_ascii_lowercase();
        let address = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let is_address = address.unwrap_or(&host).parse::<IpAddr>().is_ok();
        is_address || host == "localhost" || self.names.contains(&host)
    }
}

/// Returns the host and port of a request.
pub fn host_of(headers: &HeaderMap, uri: &Uri) -> Option<Authority> {
    match headers.get(header::HOST) {
        Some(host) => Authority::try_from(host.as_bytes()).ok(),
        None => uri.authority().cloned(),
    }
}

fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn source(method: &str, pairs: &[(&str, &str)]) -> RequestOrigin {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        RequestOrigin::from_headers(
            &method.parse().unwrap(),
            &headers,
            &"/api/buckets".parse().unwrap(),
        )
    }

    #[test]
    fn virtual_host_bucket_is_not_the_dashboard() {
        let url = PublicUrl::parse("https://cdn.example.com").unwrap();
        let hosts = DashboardHosts::new(&url, &["example.com".to_owned()]);
        for (host, bucket) in [
            ("photos.cdn.example.com", Some("photos")),
            ("photos.CDN.example.com:8443", Some("photos")),
            ("a.b.cdn.example.com", Some("a.b")),
            ("photos.localhost:8080", Some("photos")),
            ("cdn.example.com", None),
            ("example.com", None),
            ("photos.example.org", None),
            ("photoscdn.example.com.evil.org", None),
            ("127.0.0.1:8080", None),
        ] {
            assert_eq!(hosts.bucket_before(host), bucket, "{host}");
        }
    }

    #[test]
    fn fetch_metadata_takes_precedence_over_origin() {
        let host = ("host", "cdn.example.com");
        let own = ("origin", "https://cdn.example.com");
        for method in ["GET", "HEAD", "POST", "DELETE"] {
            let is = |site: &str| source(method, &[host, ("sec-fetch-site", site)]);
            assert_eq!(is("same-origin"), RequestOrigin::SameOrigin, "{method}");
            for other in ["same-site", "cross-site", "", "SAME-ORIGIN", "same-origin, none"] {
                assert_eq!(is(other), RequestOrigin::CrossSite, "{method} {other}");
                let both = [host, own, ("sec-fetch-site", other)];
                assert_eq!(source(method, &both), RequestOrigin::CrossSite, "{method} {other}");
            }
            let none = if matches!(method, "GET" | "HEAD") {
                RequestOrigin::SameOrigin
            } else {
                RequestOrigin::CrossSite
            };
            assert_eq!(is("none"), none, "{method}");
            let twice =
                [host, ("sec-fetch-site", "same-origin"), ("sec-fetch-site", "same-origin")];
            assert_eq!(source(method, &twice), RequestOrigin::CrossSite);
        }
    }

    #[test]
    fn origin_must_match_host() {
        let is = |host: &str, origin: &str| source("POST", &[("host", host), ("origin", origin)]);
        for (host, origin) in [
            ("cdn.example.com", "https://cdn.example.com"),
            ("CDN.example.com", "https://cdn.EXAMPLE.com"),
            ("cdn.example.com:443", "https://cdn.example.com"),
            ("127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("[::1]:8080", "http://[::1]:8080"),
            ("localhost", "http://localhost:80"),
        ] {
            assert_eq!(is(host, origin), RequestOrigin::SameOrigin, "{host} {origin}");
        }
        for (host, origin) in [
            ("cdn.example.com", "https://example.com"),
            ("cdn.example.com", "https://cdn.example.com.evil.com"),
            ("cdn.example.com", "https://cdn.example.com:8443"),
            ("127.0.0.1:8080", "http://127.0.0.1:8081"),
            ("127.0.0.1:8080", "http://127.0.0.1"),
            ("cdn.example.com", "null"),
            ("cdn.example.com", ""),
            ("cdn.example.com", "cdn.example.com"),
        ] {
            assert_eq!(is(host, origin), RequestOrigin::CrossSite, "{host} {origin}");
        }
        assert_eq!(source("POST", &[("origin", "http://a")]), RequestOrigin::CrossSite, "no host");
        assert_eq!(source("POST", &[("host", "a")]), RequestOrigin::Unknown);
    }

    #[test]
    fn cookie_without_fetch_metadata_is_read_only() {
        for (source, reads, changes) in [
            (RequestOrigin::SameOrigin, true, true),
            (RequestOrigin::CrossSite, false, false),
            (RequestOrigin::Unknown, true, false),
        ] {
            for (method, counts) in [("GET", reads), ("HEAD", reads), ("POST", changes)] {
                let method = method.parse().unwrap();
                assert_eq!(source.allows_cookies(&method), counts, "{source:?} {method}");
            }
        }
    }

    #[test]
    fn dashboard_answers_only_its_hosts() {
        let url = PublicUrl::parse("https://CDN.example.com/files").unwrap();
        let hosts = DashboardHosts::new(&url, &["files.internal".to_owned()]);
        let is = |host: &str| {
            let headers =
                HeaderMap::from_iter([(header::HOST, HeaderValue::from_str(host).unwrap())]);
            hosts.matches_host(&headers, &"/-/session".parse().unwrap())
        };
        for own in [
            "cdn.example.com",
            "cdn.example.com:8443",
            "FILES.internal",
            "localhost:8080",
            "192.0.2.7",
            "[::1]:8080",
            "[2001:db8::1]",
        ] {
            assert!(is(own), "{own}");
        }
        for foreign in [
            "evil.com",
            "example.com",
            "localhost.evil.com",
            "127.0.0.1.evil.com",
            "",
            "cdn.example.com.",
        ] {
            assert!(!is(foreign), "{foreign}");
        }
        assert!(!hosts.matches_host(&HeaderMap::new(), &"/".parse().unwrap()));
    }
}
