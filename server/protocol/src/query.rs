//! Query string parser, as lenient as clients require.
//!
//! Guarantees: unknown parameters are ignored; the last of several equal names wins, aliases included; an invalid value
//! of a parameter that is read is a 400 that names the parameter. Non-goals: meaning of the parameters.

use std::borrow::Cow;

use http::Uri;
use http::request::Parts;
use http::uri::PathAndQuery;
use percent_encoding::percent_decode;

use crate::error::ApiError;

/// Query string of a request. Cheap to clone; values are decoded on access.
#[derive(Clone, Debug, Default)]
pub struct Query(Option<PathAndQuery>);

impl Query {
    /// Returns the query of a request URI.
    pub fn from_uri(uri: &Uri) -> Self {
        Self(uri.path_and_query().filter(|it| it.query().is_some()).cloned())
    }

    /// Returns whether there is no query.
    pub fn is_empty(&self) -> bool {
        self.raw().is_empty()
    }

    /// Returns the text of the parameter with one of the names; empty counts as absent.
    pub fn string(&self, names: &[&str]) -> Result<Option<String>, ApiError> {
        Ok(self.string_allow_empty(names)?.filter(|text| !text.is_empty()))
    }

    /// Returns the text of the parameter with one of the names, which may be empty.
    pub fn string_allow_empty(&self, names: &[&str]) -> Result<Option<String>, ApiError> {
        let Some(raw) = self.last(names) else { return Ok(None) };
        match decode(raw.unwrap_or("")) {
            Some(text) => Ok(Some(text.into_owned())),
            None => Err(ApiError::bad_parameter(name_of(names), "must be UTF-8")),
        }
    }

    /// Returns the flag with one of the names: true, 1, yes, on or no value; false, 0, no or off; any case.
    pub fn flag(&self, names: &[&str]) -> Result<Option<bool>, ApiError> {
        let Some(raw) = self.last(names) else { return Ok(None) };
        let text = decode(raw.unwrap_or("")).unwrap_or(Cow::Borrowed("?"));
        match parse_flag(&text) {
            Some(flag) => Ok(Some(flag)),
            None => Err(ApiError::bad_parameter(name_of(names), "must be true or false")),
        }
    }

    /// Returns the integer with one of the names; empty counts as absent, too large as the largest.
    pub fn number(&self, names: &[&str]) -> Result<Option<u64>, ApiError> {
        let Some(text) = self.string(names)? else { return Ok(None) };
        if !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(ApiError::bad_parameter(name_of(names), "must be an integer"));
        }
        Ok(Some(text.parse().unwrap_or(u64::MAX)))
    }

    fn raw(&self) -> &str {
        self.0.as_ref().and_then(PathAndQuery::query).unwrap_or("")
    }

    /// Returns the raw value of the last pair with one of the names; the inner option is `None` for a name without `=`.
    fn last(&self, names: &[&str]) -> Option<Option<&str>> {
        let is_asked = |name: &str| decode(name).is_some_and(|name| names.contains(&&*name));
        raw_pairs(self.raw()).filter(|(name, _)| is_asked(name)).last().map(|(_, value)| value)
    }
}

impl<S: Sync> axum::extract::FromRequestParts<S> for Query {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Self::from_uri(&parts.uri))
    }
}

/// Parses a flag, as in [`Query::flag`].
pub fn parse_flag(text: &str) -> Option<bool> {
    let is_one_of =
        |words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(text.trim()));
    if is_one_of(&["", "true", "1", "yes", "on"]) {
        Some(true)
    } else if is_one_of(&["false", "0", "no", "off"]) {
        Some(false)
    } else {
        None
    }
}

fn raw_pairs(raw: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    raw.split('&').filter(|pair| !pair.is_empty()).map(|pair| match pair.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (pair, None),
    })
}

/// Decodes form encoding: `+` is a space, a malformed escape is literal. `None` if the result is not UTF-8.
fn decode(raw: &str) -> Option<Cow<'_, str>> {
    if !raw.contains(['%', '+']) {
        return Some(Cow::Borrowed(raw));
    }
    let spaced = raw.replace('+', " ");
    let text = percent_decode(spaced.as_bytes()).decode_utf8().ok()?;
    Some(Cow::Owned(text.into_owned()))
}

fn name_of<'a>(names: &[&'a str]) -> &'a str {
    names.first().copied().unwrap_or("parameter")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(raw: &str) -> Query {
        Query::from_uri(&format!("/b/x?{raw}").parse().unwrap())
    }

    #[test]
    fn query_flags_accept_client_spellings() {
        let cases: &[(&str, Option<bool>)] = &[
            ("", None),
            ("other=1", None),
            ("overwrite", Some(true)),
            ("overwrite=", Some(true)),
            ("overwrite=true", Some(true)),
            ("overwrite=True", Some(true)),
            ("overwrite=1", Some(true)),
            ("overwrite=YES", Some(true)),
            ("overwrite=on", Some(true)),
            ("overwrite=false", Some(false)),
            ("overwrite=0", Some(false)),
            ("overwrite=No", Some(false)),
            ("overwrite=OFF", Some(false)),
            ("overwrite=true&overwrite=false", Some(false)),
            ("upsert=1", Some(true)),
            ("overwrite=0&upsert=1", Some(true)),
            ("over%77rite=1", Some(true)),
            ("&&overwrite=1&", Some(true)),
        ];
        for (raw, flag) in cases {
            assert_eq!(query(raw).flag(&["overwrite", "upsert"]).unwrap(), *flag, "{raw}");
        }
        for wrong in ["overwrite=2", "overwrite=maybe", "overwrite=%ff"] {
            let refusal = query(wrong).flag(&["overwrite", "upsert"]).unwrap_err();
            assert_eq!(refusal.status(), 400, "{wrong}");
            assert!(refusal.message().contains("overwrite"), "{}", refusal.message());
        }
    }

    #[test]
    fn query_numbers_are_integers() {
        let number = |raw: &str| query(raw).number(&["maxKeys"]);
        assert_eq!(number("").unwrap(), None);
        assert_eq!(number("maxKeys=").unwrap(), None);
        assert_eq!(number("maxKeys=0").unwrap(), Some(0));
        assert_eq!(number("maxKeys=007").unwrap(), Some(7));
        assert_eq!(number(&format!("maxKeys={}", "9".repeat(30))).unwrap(), Some(u64::MAX));
        for wrong in ["-1", "+1", "1.5", "1e3", "%201", "x", "%D9%A1", "0x1"] {
            let refusal = number(&format!("maxKeys={wrong}")).unwrap_err();
            assert_eq!(
                (refusal.status().as_u16(), refusal.code()),
                (400, "bad_parameter"),
                "{wrong}"
            );
        }
    }

    #[test]
    fn query_text_is_decoded_once() {
        let text = |raw: &str| query(raw).string(&["path"]).unwrap();
        assert_eq!(text("path=b%2Fdir%2F").as_deref(), Some("b/dir/"));
        assert_eq!(text("path=a%252Fb").as_deref(), Some("a%2Fb"));
        assert_eq!(text("path=a+b%2B").as_deref(), Some("a b+"));
        assert_eq!(text("path=100%").as_deref(), Some("100%"));
        assert_eq!(text("path=a=b").as_deref(), Some("a=b"));
        assert_eq!(text("path="), None);
        assert_eq!(query("path=").string_allow_empty(&["path"]).unwrap().as_deref(), Some(""));
        assert_eq!(query("path=%ff").string(&["path"]).unwrap_err().status(), 400);
    }
}
