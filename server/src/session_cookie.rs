//! The cookie that holds the secret of a session: what it is called, read and written as.
//!
//! Where the public address is https it is `__Host-trug-session`, which browsers take from this very host over TLS
//! alone, else `trug-session`. Promises: only the one that this server sets is read, and two of them are none, so that
//! nobody slips one in beside it; no script sees it, and no other site sends it. Never here: whether it may count, and
//! for whom.

use cookie::{Cookie, CookieBuilder, SameSite, time};
use http::HeaderValue;
use http::header::{self, HeaderMap};

use crate::config::PublicUrl;
use crate::limits::SESSION_LIFE;

/// What the cookie is called without TLS.
const PLAIN: &str = "trug-session";
/// And with it.
const SECURE: &str = "__Host-trug-session";

/// The cookie of this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionCookie {
    name: &'static str,
    secure: bool,
}

impl SessionCookie {
    /// The cookie of a server that is reached at this address.
    pub fn of(public_url: &PublicUrl) -> Self {
        let secure = public_url.is_https();
        Self { name: if secure { SECURE } else { PLAIN }, secure }
    }

    /// The secret that a request brings along. `None` without a cookie; an empty text for what is no secret.
    pub fn read(self, headers: &HeaderMap) -> Option<String> {
        let mut found = None;
        for value in headers.get_all(header::COOKIE) {
            let Ok(text) = value.to_str() else { continue };
            for cookie in Cookie::split_parse(text).filter_map(Result::ok) {
                if cookie.name() != self.name {
                    continue;
                }
                found = Some(match found {
                    None => cookie.value_trimmed().to_owned(),
                    Some(_) => String::new(),
                });
            }
        }
        found
    }

    /// What sets it.
    pub fn set(self, secret: &str) -> HeaderValue {
        let life = i64::try_from(SESSION_LIFE.as_secs()).unwrap_or(i64::MAX);
        self.written(secret, time::Duration::seconds(life))
    }

    /// What takes it away.
    pub fn clear(self) -> HeaderValue {
        self.written("", time::Duration::ZERO)
    }

    fn written(self, value: &str, max_age: time::Duration) -> HeaderValue {
        let cookie: CookieBuilder<'_> = Cookie::build((self.name, value))
            .path("/")
            .http_only(true)
            .same_site(SameSite::Strict)
            .secure(self.secure)
            .max_age(max_age);
        // Secrets are letters and digits.
        let text = cookie.build().to_string();
        HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cookie(url: &str) -> SessionCookie {
        SessionCookie::of(&PublicUrl::parse(url).unwrap())
    }

    fn headers(values: &[&str]) -> HeaderMap {
        values.iter().map(|it| (header::COOKIE, HeaderValue::from_str(it).unwrap())).collect()
    }

    #[test]
    fn a_secure_cookie_is_for_its_host_alone() {
        assert_eq!(
            cookie("https://cdn.example.com").set("abc"),
            "__Host-trug-session=abc; HttpOnly; SameSite=Strict; Secure; Path=/; Max-Age=2592000"
        );
        assert_eq!(
            cookie("http://127.0.0.1:8080").set("abc"),
            "trug-session=abc; HttpOnly; SameSite=Strict; Path=/; Max-Age=2592000"
        );
        assert_eq!(
            cookie("http://127.0.0.1:8080").clear(),
            "trug-session=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0"
        );
    }

    #[test]
    fn one_cookie_is_read_and_two_are_none() {
        let read = |values: &[&str]| cookie("http://localhost").read(&headers(values));
        assert_eq!(read(&["a=b; trug-session=abc; c=d"]).as_deref(), Some("abc"));
        assert_eq!(read(&["a=b", "trug-session=abc"]).as_deref(), Some("abc"));
        assert_eq!(read(&["trug-session=\"abc\""]).as_deref(), Some("abc"));
        assert_eq!(read(&["trug-session=abc; trug-session=abd"]).as_deref(), Some(""));
        assert_eq!(read(&["trug-session=abc", "trug-session=abc"]).as_deref(), Some(""));
        for none in ["", "trug-sessions=abc", "__Host-trug-session=abc", ";;==;", "Trug-Session=a"]
        {
            assert_eq!(read(&[none]), None, "{none}");
        }
        let secure = cookie("HTTPS://cdn.example.com");
        assert_eq!(secure.read(&headers(&["trug-session=abc"])), None);
    }
}
