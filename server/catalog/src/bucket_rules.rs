//! Validated settings of a bucket: cache rule, origins, media types.
//!
//! Guarantees: an accepted value is valid in a header as it is. Non-goals: storage of the settings.

use serde::{Deserialize, Serialize};

use super::CatalogError;
use crate::limits::{BUCKET_LIST_MAX, CATALOG_TEXT_BYTES_MAX};

/// Value of the `Cache-Control` header: visible ASCII and spaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheControl(String);

/// Origins whose pages may read the files of a bucket. Stored as a list, or `null` for every origin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Option<Vec<String>>", into = "Option<Vec<String>>")]
pub enum CorsOrigins {
    /// Every origin.
    #[default]
    Any,
    /// Only these origins, in the form that browsers send.
    Only(Vec<String>),
}

/// Media types that a bucket accepts. Stored as a list, empty for every type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub enum AllowedTypes {
    #[default]
    Any,
    /// Media types such as `image/png`, and families such as `image/*`, in lower case.
    Only(Vec<String>),
}

impl CacheControl {
    /// Validates a header value.
    pub fn parse(value: &str) -> Result<Self, CatalogError> {
        let plain = value.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
        if value.trim().is_empty() || value.len() > CATALOG_TEXT_BYTES_MAX || !plain {
            return Err(CatalogError::InvalidRequest(format!(
                "Cache-Control must be 1 to {CATALOG_TEXT_BYTES_MAX} visible ASCII characters"
            )));
        }
        Ok(Self(value.trim().to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl CorsOrigins {
    /// Wildcard for every origin.
    pub const EVERY: &str = "*";

    /// Parses a list of origins, or `*` alone.
    pub fn parse(origins: &[String]) -> Result<Self, CatalogError> {
        if origins.iter().any(|origin| origin == Self::EVERY) {
            return match origins {
                [_] => Ok(Self::Any),
                _ => Err(CatalogError::InvalidRequest(
                    "\"*\" cannot be combined with other origins".into(),
                )),
            };
        }
        if origins.is_empty() {
            return Err(CatalogError::InvalidRequest("name at least one origin, or \"*\"".into()));
        }
        let refuse = |origin: &String| {
            CatalogError::InvalidRequest(format!(
                "{origin:?} is not an origin such as \"https://example.com\""
            ))
        };
        let read = |origin: &String| read_origin(origin).ok_or_else(|| refuse(origin));
        Ok(Self::Only(list(origins, "origins", read)?))
    }

    /// Returns whether pages of this origin may read.
    pub fn allow(&self, origin: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Only(origins) => origins.iter().any(|allowed| allowed == origin),
        }
    }

    /// Returns the list form: the origins, or `*`.
    pub fn to_list(&self) -> Vec<String> {
        match self {
            Self::Any => vec![Self::EVERY.to_owned()],
            Self::Only(origins) => origins.clone(),
        }
    }
}

impl AllowedTypes {
    /// Parses a list of media types; an empty one allows all.
    pub fn parse(types: &[String]) -> Result<Self, CatalogError> {
        if types.is_empty() {
            return Ok(Self::Any);
        }
        let refuse = |kind: &String| {
            CatalogError::InvalidRequest(format!(
                "{kind:?} is not a media type (\"image/png\") or wildcard (\"image/*\")"
            ))
        };
        let read = |kind: &String| read_type(kind).ok_or_else(|| refuse(kind));
        Ok(Self::Only(list(types, "types", read)?))
    }

    /// Returns whether a media type, without parameters, is accepted.
    pub fn allow(&self, essence: &str) -> bool {
        let Self::Only(types) = self else { return true };
        types.iter().any(|allowed| match allowed.strip_suffix('*') {
            // The family includes its slash, so that `image/*` does not match `imagery/x`.
            Some(family) => {
                essence.get(..family.len()).is_some_and(|it| it.eq_ignore_ascii_case(family))
            }
            None => allowed.eq_ignore_ascii_case(essence),
        })
    }

    /// Returns whether every type of another list is in this one.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, _) => true,
            (Self::Only(_), Self::Any) => false,
            (Self::Only(_), Self::Only(types)) => types.iter().all(|kind| self.allow(kind)),
        }
    }

    /// Returns the types that both lists accept.
    pub fn intersection(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Any, types) | (types, Self::Any) => types.clone(),
            (Self::Only(own), Self::Only(others)) => {
                let own = own.iter().filter(|kind| other.allow(kind));
                let mut both: Vec<_> =
                    own.chain(others.iter().filter(|kind| self.allow(kind))).cloned().collect();
                both.sort_unstable();
                both.dedup();
                Self::Only(both)
            }
        }
    }

    /// Returns the list form; empty for all.
    pub fn to_list(&self) -> Vec<String> {
        match self {
            Self::Any => Vec::new(),
            Self::Only(types) => types.clone(),
        }
    }
}

impl TryFrom<Option<Vec<String>>> for CorsOrigins {
    type Error = CatalogError;

    fn try_from(list: Option<Vec<String>>) -> Result<Self, CatalogError> {
        list.map_or(Ok(Self::Any), |origins| Self::parse(&origins))
    }
}

impl From<CorsOrigins> for Option<Vec<String>> {
    fn from(origins: CorsOrigins) -> Self {
        match origins {
            CorsOrigins::Any => None,
            CorsOrigins::Only(origins) => Some(origins),
        }
    }
}

impl TryFrom<Vec<String>> for AllowedTypes {
    type Error = CatalogError;

    fn try_from(types: Vec<String>) -> Result<Self, CatalogError> {
        Self::parse(&types)
    }
}

impl From<AllowedTypes> for Vec<String> {
    fn from(types: AllowedTypes) -> Self {
        types.to_list()
    }
}

fn list(
    texts: &[String],
    what: &str,
    read: impl Fn(&String) -> Result<String, CatalogError>,
) -> Result<Vec<String>, CatalogError> {
    if texts.len() > BUCKET_LIST_MAX {
        return Err(CatalogError::InvalidRequest(format!(
            "a bucket has at most {BUCKET_LIST_MAX} {what}"
        )));
    }
    let mut read: Vec<String> = texts.iter().map(read).collect::<Result<_, _>>()?;
    read.sort_unstable();
    read.dedup();
    Ok(read)
}

/// Parses `scheme://host` with an optional port, in lower case: the form of browsers, and of game clients with schemes
/// of their own.
fn read_origin(origin: &str) -> Option<String> {
    let origin = origin.trim().to_ascii_lowercase();
    let (scheme, authority) = origin.split_once("://")?;
    let in_scheme = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"+-.".contains(&b);
    let in_host = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-._:[]".contains(&b);
    let is_formed = scheme.starts_with(|c: char| c.is_ascii_lowercase())
        && scheme.bytes().all(in_scheme)
        && !authority.is_empty()
        && authority.bytes().all(in_host)
        && origin.len() <= CATALOG_TEXT_BYTES_MAX;
    is_formed.then_some(origin)
}

fn read_type(kind: &str) -> Option<String> {
    let kind = kind.trim().to_ascii_lowercase();
    let (family, name) = kind.split_once('/')?;
    let is_token = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&b))
    };
    let is_formed = is_token(family) && (name == "*" || is_token(name));
    (is_formed && kind.len() <= CATALOG_TEXT_BYTES_MAX).then_some(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn cache_control_rejects_header_injection() {
        for bad in ["", "  ", "a\r\nX: 1", "é", &"a".repeat(201)] {
            assert!(CacheControl::parse(bad).is_err(), "{bad:?}");
        }
        assert_eq!(CacheControl::parse("no-cache").unwrap().as_str(), "no-cache");
    }

    #[test]
    fn origins_are_exact() {
        let origins = texts(&["https://Example.com", "nui://game:30120", "https://example.com"]);
        let origins = CorsOrigins::parse(&origins).unwrap();
        assert_eq!(origins.to_list(), ["https://example.com", "nui://game:30120"]);
        assert!(origins.allow("https://example.com"));
        for other in [
            "http://example.com",
            "https://example.com.evil",
            "https://a.example.com",
            "*",
            "null",
            "",
        ] {
            assert!(!origins.allow(other), "{other}");
        }
        assert_eq!(CorsOrigins::parse(&texts(&["*"])).unwrap(), CorsOrigins::Any);
        for bad in [
            &[][..],
            &["*", "https://a.b"],
            &["example.com"],
            &["https://"],
            &["https://a/b"],
            &["https://a\r\nX"],
            &["https://u@a"],
            &["null"],
            &["https://*.a.b"],
        ] {
            assert!(CorsOrigins::parse(&texts(bad)).is_err(), "{bad:?}");
        }
        let many: Vec<String> = (0..=BUCKET_LIST_MAX).map(|at| format!("https://a{at}")).collect();
        assert!(CorsOrigins::parse(&many).is_err());
    }

    #[test]
    fn allowed_types_are_exact_or_wildcard() {
        let types = AllowedTypes::parse(&texts(&["image/*", "Video/MP4"])).unwrap();
        for taken in ["image/png", "IMAGE/PNG", "video/mp4"] {
            assert!(types.allow(taken), "{taken}");
        }
        for refused in ["imagery/x", "image", "video/webm", "text/html", "", "é"] {
            assert!(!types.allow(refused), "{refused}");
        }
        assert!(AllowedTypes::parse(&[]).unwrap().allow("text/html"));
        for bad in ["*", "*/*", "image", "image/", "/png", "image/png; a=b", "image/p*", "im age/x"]
        {
            assert!(AllowedTypes::parse(&texts(&[bad])).is_err(), "{bad}");
        }
    }
}
