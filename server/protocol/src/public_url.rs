//! Public base URL of the server, and the URLs of objects below it.
//!
//! Guarantees: the URL is valid, without query, fragment and user. Non-goals: the listen address.

use std::fmt::Write;
use std::net::SocketAddr;

use engine::ObjectName;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::destination::Scheme;

/// Public base URL: `http` or `https`, without a final slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl(String);

impl PublicUrl {
    /// Validates a public URL.
    ///
    /// # Errors
    ///
    /// The violated rule, with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let refuse = |why: &str| Err(format!("{text:?} {why}"));
        let Ok(uri) = text.parse::<http::Uri>() else { return refuse("is not a URL") };
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none() {
            return refuse("must start with http:// or https:// and name a host");
        }
        if uri.query().is_some() || text.contains(['@', '#']) {
            return refuse("must have no query, no fragment and no user");
        }
        Ok(Self(text.trim_end_matches('/').to_owned()))
    }

    /// Returns the URL at which a server with this listen address can be reached from the same machine.
    pub fn from_listener(scheme: Scheme, listen: SocketAddr) -> Self {
        let host = if listen.ip().is_unspecified() {
            "localhost".to_owned()
        } else if listen.is_ipv6() {
            format!("[{}]", listen.ip())
        } else {
            listen.ip().to_string()
        };
        let scheme = match scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        Self(format!("{scheme}://{host}:{}", listen.port()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn is_https(&self) -> bool {
        self.0.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("https://"))
    }

    /// Returns its host, without the port.
    pub fn host(&self) -> Option<String> {
        self.0.parse::<http::Uri>().ok()?.host().map(str::to_owned)
    }
}

/// Returns the public URL of an object below a base without a final `/`: each segment escaped, `(` and `)` literal.
pub fn public_url(base: &str, name: &ObjectName) -> String {
    let mut url = String::with_capacity(base.len() + name.key.as_str().len() + 80);
    url.push_str(base.trim_end_matches('/'));
    let _ = write!(url, "/{}/{}", name.bucket, utf8_percent_encode(name.key.as_str(), PATH));
    url
}

/// Escapes a key for a path below the server's own paths.
pub fn escaped_key(key: &str) -> String {
    utf8_percent_encode(key, PATH).to_string()
}

/// Every character except those that stay readable in a link; `/` stays.
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'(')
    .remove(b')')
    .remove(b'!')
    .remove(b'*')
    .remove(b'@')
    .remove(b',');

#[cfg(test)]
mod tests {
    use engine::{BucketName, ObjectKey};
    use unicode_normalization::UnicodeNormalization;

    use super::*;
    use crate::object_path::ObjectPath;

    #[test]
    fn public_url_defaults_to_a_reachable_listener() {
        for (scheme, listen, url) in [
            (Scheme::Http, "127.0.0.1:8080", "http://127.0.0.1:8080"),
            (Scheme::Http, "0.0.0.0:80", "http://localhost:80"),
            (Scheme::Https, "[::]:443", "https://localhost:443"),
            (Scheme::Https, "[::1]:80", "https://[::1]:80"),
        ] {
            assert_eq!(PublicUrl::from_listener(scheme, listen.parse().unwrap()).as_str(), url);
        }
    }

    #[test]
    fn public_url_tells_host_and_scheme() {
        for (url, host, secure) in [
            ("http://127.0.0.1:8080", "127.0.0.1", false),
            ("https://cdn.example.com/files/", "cdn.example.com", true),
            ("HTTPS://[::1]:8443", "[::1]", true),
        ] {
            let url = PublicUrl::parse(url).unwrap();
            assert_eq!((url.host().as_deref(), url.is_https()), (Some(host), secure));
        }
    }

    #[test]
    fn public_url_round_trips() {
        for key in [
            "a.png",
            "img/a (1).webp",
            "日本 語/100% #?&+.png",
            "a%2Fb",
            "e\u{301}".nfc().collect::<String>().as_str(),
        ] {
            let name =
                ObjectName::new(BucketName::parse("abc").unwrap(), ObjectKey::parse(key).unwrap());
            let url = public_url("https://cdn.example.org/", &name);
            let path = url.strip_prefix("https://cdn.example.org").unwrap();
            assert!(url.is_ascii() && !url.contains([' ', '?', '#']), "{url}");
            assert_eq!(ObjectPath::from_path(path).unwrap().object(), Some(name), "{url}");
        }
        let name = ObjectName::new(
            BucketName::parse("abc").unwrap(),
            ObjectKey::parse("a (1).png").unwrap(),
        );
        assert_eq!(
            public_url("https://cdn.example.org", &name),
            "https://cdn.example.org/abc/a%20(1).png"
        );
    }
}
