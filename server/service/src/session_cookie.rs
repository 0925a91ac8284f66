//! Cookies of a signed-in browser: the session cookie, and the device cookie that identifies the browser after the
//! session has ended. Names, parsing and formatting.
//!
//! With an https public URL their names start with `__Host-`, which browsers accept only from this exact host over TLS.
//! Guarantees: only cookies with the names of this server are read, and duplicates are ignored altogether, so that
//! nobody can inject one; scripts cannot read them, and other sites cannot send them. Non-goals: whether a cookie is
//! valid, and for which account.

use std::time::Duration;

use catalog::limits::SESSION_LIFETIME;
use cookie::{Cookie, CookieBuilder, SameSite, time};
use http::HeaderValue;
use http::header::{self, HeaderMap};
use protocol::public_url::PublicUrl;

use crate::limits::DEVICE_LIFE;

/// Cookie of this server that holds a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretCookie {
    name: &'static str,
    secure: bool,
    life: Duration,
}

impl SecretCookie {
    /// Creates the session cookie.
    pub fn session(public_url: &PublicUrl) -> Self {
        Self::for_public_url(public_url, ["trug-session", "__Host-trug-session"], SESSION_LIFETIME)
    }

    /// Creates the device cookie of a browser in which an account has signed in.
    pub fn device(public_url: &PublicUrl) -> Self {
        Self::for_public_url(public_url, ["trug-device", "__Host-trug-device"], DEVICE_LIFE)
    }

    fn for_public_url(
        public_url: &PublicUrl,
        [plain, secure]: [&'static str; 2],
        life: Duration,
    ) -> Self {
        let is_https = public_url.is_https();
        Self { name: if is_https { secure } else { plain }, secure: is_https, life }
    }

    /// Returns the secret in a request's cookie. `None` without a cookie; an empty text for an invalid secret.
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

    /// Returns the `Set-Cookie` value that sets the cookie.
    pub fn set(self, secret: &str) -> HeaderValue {
        let life = i64::try_from(self.life.as_secs()).unwrap_or(i64::MAX);
        self.written(secret, time::Duration::seconds(life))
    }

    /// Returns the `Set-Cookie` value that deletes the cookie.
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
        // Secrets consist of letters, digits, hyphens and dots.
        let text = cookie.build().to_string();
        HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cookie(url: &str) -> SecretCookie {
        SecretCookie::session(&PublicUrl::parse(url).unwrap())
    }

    fn headers(values: &[&str]) -> HeaderMap {
        values.iter().map(|it| (header::COOKIE, HeaderValue::from_str(it).unwrap())).collect()
    }

    #[test]
    fn secure_cookie_has_the_host_prefix() {
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
    fn duplicate_session_cookies_are_rejected() {
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
