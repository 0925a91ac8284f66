//! Destination of an outbound request: a URL that a user supplied, such as that of a webhook.
//!
//! A URL is parsed once, by the rules of [`OutboundUrl::parse`]. Its address is checked where the connection is made,
//! on the very address that is connected to; the rules for that are in `reach.rs`. Guarantees: logs show only the host
//! of a destination, never its path or query, which may be secret. Non-goals: name lookups, connections.

mod public_address;

use std::fmt;
use std::net::IpAddr;

use http::Uri;
use http::uri::PathAndQuery;

pub use self::public_address::is_globally_routable;
use crate::limits;

/// Syntactically valid destination URL.
#[derive(Clone, PartialEq, Eq)]
pub struct OutboundUrl {
    text: String,
    origin: Origin,
    authority: String,
    path: PathAndQuery,
}

/// Scheme, host and port: the unit of the operator's allow list, and of connection reuse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    scheme: Scheme,
    /// Host in lower case; an IPv6 address without brackets.
    host: String,
    port: u16,
}

/// URL scheme of a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    Http,
    Https,
}

/// Rule that a URL violates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidUrl(&'static str);

impl OutboundUrl {
    /// Parses a URL: `http` or `https`, an ASCII host, any port, no user, no fragment, at most
    /// [`limits::WEBHOOK_URL_BYTES_MAX`] bytes.
    pub fn parse(text: &str) -> Result<Self, InvalidUrl> {
        if text.len() > limits::WEBHOOK_URL_BYTES_MAX {
            return Err(InvalidUrl("is too long"));
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') {
            return Err(InvalidUrl(
                "must be ASCII without spaces: other letters in a path as %-escapes, in a host as punycode",
            ));
        }
        if text.contains('#') {
            return Err(InvalidUrl("must have no fragment"));
        }
        let uri: Uri = text.parse().map_err(|_| InvalidUrl("is not a URL"))?;
        let scheme = match uri.scheme_str() {
            Some("http") => Scheme::Http,
            Some("https") => Scheme::Https,
            _ => return Err(InvalidUrl("must start with http:// or https://")),
        };
        let authority = uri.authority().ok_or(InvalidUrl("must name a host"))?;
        if authority.as_str().contains('@') {
            return Err(InvalidUrl("must not contain credentials"));
        }
        let bracketed = authority.host();
        let host = bracketed.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        if host.is_empty() {
            return Err(InvalidUrl("must name a host"));
        }
        let port = match authority.as_str().strip_prefix(bracketed) {
            Some("") => scheme.port(),
            Some(rest) => match rest.strip_prefix(':').and_then(|port| port.parse().ok()) {
                Some(port @ 1..) => port,
                _ => return Err(InvalidUrl("has an invalid port")),
            },
            None => return Err(InvalidUrl("is not a URL")),
        };
        // In a URL a query may directly follow the host, but not in a request target.
        let path = match uri.path_and_query().map_or("", PathAndQuery::as_str) {
            path if path.starts_with('/') => PathAndQuery::try_from(path),
            query => PathAndQuery::try_from(format!("/{query}")),
        };
        Ok(Self {
            text: text.to_owned(),
            authority: authority.as_str().to_ascii_lowercase(),
            path: path.map_err(|_| InvalidUrl("is not a URL"))?,
            origin: Origin { scheme, host, port },
        })
    }

    /// Returns the URL as given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Returns the value of `Host`.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Returns the request target.
    pub fn path(&self) -> &PathAndQuery {
        &self.path
    }

    /// Returns a destination with another path on the same host. Does not check its length.
    pub fn at(&self, path: PathAndQuery) -> Self {
        let scheme = self.origin.scheme.name();
        let text = format!("{scheme}://{}{path}", self.authority);
        Self { text, path, ..self.clone() }
    }

    /// Rejects a URL with a literal IP address to which requests are forbidden. A host name is checked when it is
    /// connected to.
    pub fn check_ip_literal(&self, allowed: &[Origin]) -> Result<(), InvalidUrl> {
        match self.origin.host.parse::<IpAddr>() {
            Ok(address) if !is_globally_routable(address) && !allowed.contains(&self.origin) => {
                Err(InvalidUrl("is a private or reserved address, which is not allowed"))
            }
            _ => Ok(()),
        }
    }
}

impl Origin {
    /// Parses an origin: a URL without a path.
    pub fn parse(text: &str) -> Result<Self, InvalidUrl> {
        let destination = OutboundUrl::parse(text)?;
        if destination.path != "/" || text.ends_with('?') {
            return Err(InvalidUrl("must have no path, query or fragment"));
        }
        Ok(destination.origin)
    }

    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Returns the host in lower case; an IPv6 address without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Scheme {
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

impl fmt::Debug for OutboundUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Destination({})", self.origin.host)
    }
}

impl fmt::Display for InvalidUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outbound_url_is_parsed() {
        for (text, scheme, host, port, authority, path) in [
            ("http://a.example", Scheme::Http, "a.example", 80, "a.example", "/"),
            ("https://A.example/x?y=1", Scheme::Https, "a.example", 443, "a.example", "/x?y=1"),
            ("https://a:8443/x", Scheme::Https, "a", 8443, "a:8443", "/x"),
            ("http://[2001:DB8::1]:81/", Scheme::Http, "2001:db8::1", 81, "[2001:db8::1]:81", "/"),
            ("http://a?y", Scheme::Http, "a", 80, "a", "/?y"),
        ] {
            let read = OutboundUrl::parse(text).unwrap();
            let origin = Origin { scheme, host: host.into(), port };
            assert_eq!((read.origin(), read.authority()), (&origin, authority), "{text}");
            assert_eq!((read.path().as_str(), read.as_str()), (path, text));
        }
    }

    #[test]
    fn invalid_outbound_urls_are_rejected() {
        let long = format!("http://a/{}", "x".repeat(limits::WEBHOOK_URL_BYTES_MAX));
        for bad in [
            "",
            "a.example",
            "/x",
            "ftp://a.example",
            "file:///etc/passwd",
            "unix:///run/x",
            "gopher://a",
            "http://",
            "http:///x",
            "http://user@a",
            "http://user:word@a",
            "http://a@b@c/",
            "http://a#x",
            "http://a:0/",
            "http://a:65536/",
            "http://a:/",
            "http://a:x/",
            "http://a b/",
            "http://a\\@b/",
            "http://a/\r\nX: y",
            "http://b\u{fc}cher.example/",
            "http://[::1",
            &long,
        ] {
            assert!(OutboundUrl::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn origin_match_is_exact() {
        let origin = |text| Origin::parse(text).unwrap();
        assert_eq!(origin("http://127.0.0.1:9000"), origin("http://127.0.0.1:9000/"));
        assert_ne!(origin("http://127.0.0.1:9000"), origin("http://127.0.0.1:9001"));
        assert_ne!(origin("http://a.example"), origin("https://a.example"));
        assert_ne!(origin("http://a.example"), origin("http://b.a.example"));
        assert_eq!(origin("https://A.example"), origin("https://a.example:443"));
        for bad in ["http://a/x", "http://a/?", "http://a?x", "a", "http://*.a/x"] {
            assert!(Origin::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn private_ip_literal_is_rejected_unless_allowed() {
        let check = |text: &str, allowed: &[&str]| {
            let allowed: Vec<_> = allowed.iter().map(|it| Origin::parse(it).unwrap()).collect();
            OutboundUrl::parse(text).unwrap().check_ip_literal(&allowed).is_ok()
        };
        assert!(check("http://93.184.216.34/", &[]) && check("http://localhost/", &[]));
        for bad in ["http://127.0.0.1/", "http://[::1]/", "http://[::ffff:10.0.0.1]/"] {
            assert!(!check(bad, &[]), "{bad}");
        }
        assert!(check("http://127.0.0.1:9000/x", &["http://127.0.0.1:9000"]));
        assert!(!check("http://127.0.0.1:9001/x", &["http://127.0.0.1:9000"]));
    }

    proptest::proptest! {
        /// Tests that every accepted URL yields a request: its host, path and port are valid.
        #[test]
        fn accepted_outbound_urls_form_valid_requests(
            text in "(https?://)?([a-z0-9.:@\\[\\]%_-]{0,20}|.{0,20})([/?#][ -~]{0,20})?",
        ) {
            if let Ok(read) = OutboundUrl::parse(&text) {
                proptest::prop_assert!(http::HeaderValue::from_str(read.authority()).is_ok());
                proptest::prop_assert!(read.path().as_str().starts_with('/'));
                proptest::prop_assert!(read.origin().port() > 0 && !read.origin().host().is_empty());
                proptest::prop_assert!(!read.authority().contains(['@', '/', '?', '#', '\\']));
                proptest::prop_assert_eq!(&OutboundUrl::parse(read.as_str()), &Ok(read));
            }
        }
    }

    #[test]
    fn debug_output_shows_only_the_host() {
        let secret = OutboundUrl::parse("https://a.example/hooks/secret?key=word").unwrap();
        assert_eq!(format!("{secret:?}"), "Destination(a.example)");
    }
}
